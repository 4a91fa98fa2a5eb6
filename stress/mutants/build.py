"""Builds one native module with every mutant and a switch for each lock; one of them is active.

The native sources are copied. Each mutant's ``old`` text, which must occur exactly once in its
file, becomes ``if pml_mutant == k: new else: old``; comments do not matter. The product's sources
contain no switch, and the module is never packaged.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from pulsar_ml.harness.building.build import build_extension, only_one_process
from stress.mutants.catalogue import CATALOGUE, WITHOUT_MEMORY, Mutant
from stress.mutants.faults.locks import FUNCTION, locks_of, with_switches

ROOT = Path(__file__).resolve().parents[2]
STRUCTURES = ROOT / "pulsar_ml" / "structures"
COPIED = ("*.pxd", "*.h", "operations/_native.pyx")

COMMENT = re.compile(r"#.*")

SANITIZED = ("-fsanitize=thread", "-g", "-Wno-tsan")

# The engine must not see the switch: it is no shared memory of the code under test.
HEADER = """\
#ifndef PML_MUTANTS
#define PML_MUTANTS "{ids}"
static int pml_selected = -1;
#ifdef PML_CHECKED
__attribute__((noinline, no_sanitize("thread")))
static int pml_active(void) {{ return pml_selected; }}
#else
static inline int pml_active(void) {{ return pml_selected; }}
#endif
#define pml_mutant pml_active()
#define pml_select_mutant(number) (pml_selected = (number))
#endif
"""

DECLARATION = """\
cdef extern from "pulsar_ml/sync/mutants.h" nogil:
    int pml_mutant
"""

CIMPORT = "from pulsar_ml.sync.mutants cimport pml_mutant\n"


class AnchorError(ValueError):
    """A mutant's old text does not occur exactly once in its file."""


def indented(text: str, spaces: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * spaces)


def find_anchor(source: str, mutant: Mutant) -> re.Match[str]:
    """The place of the mutant's old text. Raises AnchorError unless there is exactly one."""
    lines = textwrap.dedent(mutant.old).strip("\n").split("\n")
    code = [line for text in lines if (line := COMMENT.sub("", text).rstrip())]
    between = r"(?: *#.*)?\n(?: *(?:#.*)?\n)*"  # comments, and lines without code
    pattern = between.join(rf"(?P<i{n}> *){re.escape(line)}" for n, line in enumerate(code))
    # The lines may be indented further in the file, all by the same amount.
    found = [
        match
        for match in re.finditer(f"^{pattern}(?: *#.*)?$", source, re.MULTILINE)
        if len(set(match.groupdict().values())) == 1
        and mutant.function in ("", function_at(source, match.start()))
    ]
    if len(found) != 1:
        text = "\n".join(lines)
        raise AnchorError(
            f"mutant {mutant.id}: its old text occurs {len(found)} times in {mutant.file}, "
            f"not once:\n{text}"
        )
    return found[0]


def function_at(source: str, position: int) -> str:
    """The name of the function around a position; "" before the first function."""
    names = [match["name"] for match in FUNCTION.finditer(source, 0, position)]
    return names[-1] if names else ""


def switch(anchor: re.Match[str], numbered: Sequence[tuple[int, Mutant]]) -> str:
    """The code that replaces an anchor: a choice among the mutants that share it."""
    depth = len(anchor["i0"])
    choice: list[str] = []
    for number, mutant in numbered:
        choice.append(" " * depth + ("elif" if choice else "if") + f" pml_mutant == {number}:")
        choice.append(indented(mutant.new, depth + 4))
    return "\n".join([*choice, " " * depth + "else:", indented(numbered[0][1].old, depth + 4)])


def replaced(source: str, mutant: Mutant) -> str:
    """``source`` with the mutant in place of its old text, without a switch."""
    anchor = find_anchor(source, mutant)
    function = source.rindex("\ncdef ", 0, anchor.start()) + 1
    helper = textwrap.dedent(mutant.helper).strip("\n") + "\n\n\n" if mutant.helper else ""
    new = indented(mutant.new, len(anchor["i0"]))
    return (
        source[:function]
        + helper
        + source[function : anchor.start()]
        + new
        + source[anchor.end() :]
    )


def mutated(source: str, numbered: Iterable[tuple[int, Mutant]]) -> str:
    """Puts all mutants of a file behind switches, and declares the switch.

    Raises AnchorError for an old text that does not occur exactly once, or that overlaps another
    mutant's.
    """
    numbered = list(numbered)
    ordered = sorted(numbered, key=lambda pair: (pair[1].old, pair[0]))
    groups = [list(group) for _, group in groupby(ordered, key=lambda pair: pair[1].old)]
    anchors = sorted(
        ((find_anchor(source, group[0][1]), group) for group in groups),
        key=lambda pair: -pair[0].start(),
    )
    for (later, group), (earlier, _) in pairwise(anchors):
        if earlier.end() > later.start():
            raise AnchorError(
                f"mutant {group[0][1].id}: its old text overlaps another mutant's in "
                f"{group[0][1].file}"
            )
    changes = [(anchor.start(), anchor.end(), switch(anchor, group)) for anchor, group in anchors]
    for anchor, group in anchors:
        function = source.rindex("\ncdef ", 0, anchor.start()) + 1
        helpers = (
            textwrap.dedent(mutant.helper).strip("\n") for _, mutant in group if mutant.helper
        )
        changes += [(function, function, f"{helper}\n\n\n") for helper in helpers]
    # From the end, so that earlier positions stay valid.
    for start, end, text in sorted(changes, reverse=True):
        source = source[:start] + text + source[end:]
    declarations = CIMPORT + "".join(
        mutant.cimports + "\n" for _, mutant in numbered if mutant.cimports
    )
    return declared(source, declarations)


def declared(source: str, declarations: str = CIMPORT) -> str:
    """Puts declarations before those of ``source``."""
    cut = re.search(r"^(from|cimport|cdef)\b", source, re.MULTILINE)
    assert cut is not None
    return source[: cut.start()] + declarations + source[cut.start() :]


def build(
    into: Path = ROOT / "build" / "mutants",
    catalogue: Sequence[Mutant] = (*CATALOGUE, *WITHOUT_MEMORY),
    *,
    checked: bool = False,
    sanitized: bool = False,
) -> Path:
    """Copies, mutates and compiles the sources, unless that is done; returns the module's path.

    ``checked`` builds for the engine, see :mod:`pulsar_ml.harness.building.checked`. ``sanitized``
    builds for the thread sanitizer, whose runtime must then be loaded before Python. Raises
    AnchorError, and RuntimeError with the compiler's output.
    """
    package = ROOT / "pulsar_ml"
    sources = sorted({path for pattern in COPIED for path in package.rglob(pattern)})
    changes = [(one.id, one.file, one.old, one.new, one.helper, one.cimports) for one in catalogue]
    digest = hashlib.sha256(repr(changes).encode() + Path(__file__).read_bytes())
    digest.update((Path(__file__).with_name("faults") / "locks.py").read_bytes())
    for path in sources:
        digest.update(path.read_bytes())
    identity = digest.hexdigest()[:12]
    tree = into / identity / "src"
    output = into / identity / "module"
    with only_one_process(into / identity):
        if not output.exists():
            shutil.rmtree(tree, ignore_errors=True)
            write_mutated(package, sources, tree, catalogue)
            output.mkdir()
    return build_extension(
        tree / "pulsar_ml" / "operations" / "_native.pyx",
        into=output,
        include=[tree],
        macros={
            "PML_FAULTS": "1",
            "PML_BUILD_ID": f'"mutants-{identity}"',
            "PML_MUTANTS_HEADER": '"pulsar_ml/sync/mutants.h"',
        },
        # Debuggers are not asked for local variables here.
        flags=["-O2", "-std=gnu11", "-fno-var-tracking", *(SANITIZED if sanitized else ())],
        checked=checked,
    )


def write_mutated(
    package: Path, sources: Sequence[Path], tree: Path, catalogue: Sequence[Mutant]
) -> None:
    """Writes the sources below ``tree``, each with its mutants."""
    by_file: dict[str, list[tuple[int, Mutant]]] = {}
    for number, mutant in enumerate(catalogue):
        by_file.setdefault(mutant.file, []).append((number, mutant))
    locks = sorted(
        {lock for path in sources if path.parent == STRUCTURES for lock in locks_of(path)}
    )
    numbers = {lock: len(catalogue) + number for number, lock in enumerate(locks)}
    for path in sources:
        relative = path.relative_to(package).as_posix()
        target = tree / "pulsar_ml" / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        source = path.read_text()
        text = mutated(source, by_file.pop(relative)) if relative in by_file else source
        if path.parent == STRUCTURES:
            text = with_switches(path.stem, text, source, numbers)
        target.write_text(declared(text) if "pml_mutant" in text and CIMPORT not in text else text)
    if by_file:
        raise AnchorError(f"no such source file: {', '.join(by_file)}")
    sync = tree / "pulsar_ml" / "sync"
    ids = " ".join([*(mutant.id for mutant in catalogue), *(lock.id for lock in locks)])
    (sync / "mutants.h").write_text(HEADER.format(ids=ids))
    (sync / "mutants.pxd").write_text(DECLARATION)
