"""Builds one checked module with all automatic mutants behind a switch; one of them is active.

Each statement with mistakes becomes a choice among its mutants and itself. The switch is one
integer that the compiler may read once a function. A mutant that is executed sets a mark, so a
survivor that no program reached is told apart.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pulsar_ml.harness.building.build import build_extension, only_one_process
from pulsar_ml.harness.building.checked import compiler_of
from stress.mutants.automatic.operators import ATOMIC, expression
from stress.mutants.automatic.points import PACKAGE, Point, points
from stress.mutants.build import COPIED, ROOT, declared

# The engine must see neither the switch nor the mark: they are no memory of the code under test.
HEADER = """\
#ifndef PML_MUTANTS
#define PML_MUTANTS "%s"
#include "pulsar_ml/sync/sync.h"
static int pml_selected = -1;
static int pml_reached = 0;
__attribute__((noinline, const, no_sanitize("thread"), unused))
static int pml_active(void) { return pml_selected; }
__attribute__((noinline, no_sanitize("thread"), unused))
static int pml_reach(void) { pml_reached = 1; return 1; }
#define pml_at(number) (pml_active() == (number) && pml_reach())
#define pml_select_mutant(number) (pml_reached = 0, pml_selected = (number))
#define pml_was_reached() (pml_reached)
%s
#endif
"""
DECLARATION = """\
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from pulsar_ml.sync.atomics cimport pml_i32, pml_i64, pml_ptr, pml_u8, pml_u32, pml_u64


cdef extern from "pulsar_ml/sync/mutants.h" nogil:
    bint pml_at(int number) noexcept
"""
ORDER = re.compile(
    r"^(?P<line>[^\n]*?(?P<name>\w+_(?:acquire|release|acq_rel)) \"pml_(?P=name)\"\([^)]*\) noexcept)$",
    re.MULTILINE,
)
# In the macros of sync.h, which make the functions of a cell.
FUNCTION_OF_CELL = re.compile(
    r"PML_INLINE \w+ pml_##name##_(?P<op>\w+)\([^)]*\)\s*\{[^}]*\}",
)
STRONG = re.compile(r"__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL)\b")
CTYPES = {
    "u8": "uint8_t",
    "i32": "int32_t",
    "u32": "uint32_t",
    "i64": "int64_t",
    "u64": "uint64_t",
    "ptr": "void *",
}
SELECTION = """

def was_reached() -> bool:
    return pml_was_reached() != 0
"""


def weak_declarations() -> tuple[str, str]:
    """Relaxed twins of all atomics that acquire or release: in C, and for Cython.

    They are the functions of sync.h and the declarations of atomics.pxd with other orders.
    """
    header, declarations = [], []
    joined = (PACKAGE / "sync" / "sync.h").read_text().replace("\\\n", " ")
    functions = {match["op"]: match.group() for match in FUNCTION_OF_CELL.finditer(joined)}
    for match in ORDER.finditer((PACKAGE / "sync" / "atomics.pxd").read_text()):
        name = match["name"]
        cell, _, op = name.partition("_")
        if ATOMIC.match(name):
            text = functions[op].replace(f"pml_##name##_{op}", f"weak_{name}")
            text = re.sub(r"\btype\b", CTYPES[cell], text.replace("pml_##name", f"pml_{cell}"))
            header.append(STRONG.sub("__ATOMIC_RELAXED", " ".join(text.split())))
            line = match["line"].replace(f'{name} "pml_{name}"', f"weak_{name}")
            declarations.append("    " + " ".join(line.split()))
    return "\n".join(header), "\n".join(declarations) + "\n"


def switched(source: str, numbered: Sequence[tuple[int, Point]]) -> str:
    """A source with its mutants behind switches; no line moves to another place above a change."""
    lines = source.splitlines()
    by_line: dict[int, list[tuple[int, Point]]] = defaultdict(list)
    for number, point in numbered:
        by_line[point.mistake.statement.line].append((number, point))
    for line in sorted(by_line, reverse=True):
        statement = by_line[line][0][1].mistake.statement
        lines[line - 1 : statement.last_line] = choice(by_line[line])
    names = {name for _, point in numbered for name in re.findall(r"\bweak_\w+", point.mistake.new)}
    cimport = ", ".join(["pml_at", *sorted(names)])
    return declared("\n".join(lines) + "\n", f"from pulsar_ml.sync.mutants cimport ({cimport})\n")


def choice(numbered: Sequence[tuple[int, Point]]) -> list[str]:
    """The lines in place of a statement: the active mutant, or the statement itself."""
    statement = numbered[0][1].mistake.statement
    pad = " " * statement.indent
    begin, end = expression(statement)
    if statement.is_head:
        value = statement.text(begin, end)
        for number, point in reversed(numbered):
            # `not not` keeps operands of other types in the context of a condition.
            value = (
                f"((not not ({point.mistake.new})) if pml_at({number}) else (not not ({value})))"
            )
        return [f"{pad}{statement.tokens[0]} {value}:"]
    before, target = "", ""
    if statement.tokens[0] == "cdef":
        before = statement.text(0, begin - 1)
        target = f"{statement.tokens[begin - 2]} = "
    lines = [pad + before] if before else []
    word = "if"
    for number, point in numbered:
        lines.append(f"{pad}{word} pml_at({number}):")
        lines += [f"{pad}    {target}{part}" for part in point.mistake.new.split("; ")]
        word = "elif"
    own = statement.text(begin, end) if before else statement.text()
    return [*lines, f"{pad}else:", f"{pad}    {target}{own}"]


def build(into: Path = ROOT / "build" / "automatic", *, checked: bool = True) -> Path:
    """Copies, changes and compiles the sources, unless that is done; returns the module's path.

    ``checked`` builds for the engine, otherwise for real threads. Raises BuildError with the
    compiler's output: every mutant of every operator compiles, or the build fails.
    """
    sources = sorted({path for pattern in COPIED for path in PACKAGE.rglob(pattern)})
    digest = hashlib.sha256(repr((HEADER, DECLARATION, SELECTION)).encode())
    texts = switched_sources(sources)
    for relative, text in texts.items():
        digest.update(f"{relative} {text}".encode())
    identity = digest.hexdigest()[:12]
    tree = into / identity / "src"
    output = into / identity / "module"
    with only_one_process(into / identity):
        if not output.exists():
            shutil.rmtree(tree, ignore_errors=True)
            write_switched(texts, tree)
            output.mkdir()
    return build_extension(
        tree / "pulsar_ml" / "operations" / "_native.pyx",
        into=output,
        include=[tree],
        macros={
            "PML_FAULTS": "1",
            "PML_BUILD_ID": f'"automatic-{identity}"',
            "PML_MUTANTS_HEADER": '"pulsar_ml/sync/mutants.h"',
        },
        flags=["-O1", "-g1", "-std=gnu11", *pattern_flags(compiler_of("c"))],
        checked=checked,
    )


def pattern_flags(compiler: Sequence[str]) -> list[str]:
    """The flag by which what nobody wrote on the stack is a pattern, not by chance what was meant.

    Clang has it, and GCC since version 12; for another compiler there is none.
    """
    flag = "-ftrivial-auto-var-init=pattern"
    command = [*compiler, flag, "-fsyntax-only", "-x", "c", "/dev/null"]
    done = subprocess.run(command, capture_output=True, check=False)
    return [flag] if done.returncode == 0 else []


def switched_sources(sources: Sequence[Path]) -> dict[str, str]:
    """The texts of the sources by their paths below ``pulsar_ml/``, each with its mutants."""
    by_file: dict[str, list[tuple[int, Point]]] = defaultdict(list)
    for number, point in enumerate(points()):
        by_file[point.file].append((number, point))
    texts = {}
    for path in sources:
        relative = path.relative_to(PACKAGE).as_posix()
        text = path.read_text()
        if relative in by_file:
            text = switched(text, by_file[relative])
        if relative == "operations/_native.pyx":
            text = text.replace(
                "    void pml_select_mutant(int number) noexcept\n",
                "    void pml_select_mutant(int number) noexcept\n"
                "    int pml_was_reached() noexcept\n",
            )
            text += SELECTION
        texts[relative] = text
    return texts


def write_switched(texts: Mapping[str, str], tree: Path) -> None:
    """Writes the sources below ``tree``, and the switch."""
    for relative, text in texts.items():
        target = tree / "pulsar_ml" / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    header, declarations = weak_declarations()
    sync = tree / "pulsar_ml" / "sync"
    ids = " ".join(point.id for point in points())
    (sync / "mutants.h").write_text(HEADER % (ids, header))
    (sync / "mutants.pxd").write_text(DECLARATION + declarations)
