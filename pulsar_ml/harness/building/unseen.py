"""Finds what the engine cannot see in a checked module.

That is inline assembly, code that was linked without being recompiled, and thread-local variables
that all fibers share. Instrumented code calls the engine for each atomic access, so it has no
locked instruction and no memory fence of its own. Each one that a module has nevertheless came in
by another way.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

from pulsar_ml.harness.building.checked import WITHOUT_GIL

MOST_NAMED = 8
SIDECAR = ".unseen.json"
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(.*?)\s*$")
ATOMIC = re.compile(
    r"""^(lock\b|mfence|lfence|sfence|xchg[bwlq]?\s+.*\(|ldmxcsr|fldcw|fldenv|syscall
    |ld[a]?x[rp]|st[l]?x[rp]|lda[rp]|stlr|cas[ab]?[lp]?|swp[al]*|ld(add|clr|set|eor)[al]*|dmb|dsb
    |svc|msr\s+fpcr)""",
    re.VERBOSE,
)
FILLERS = re.compile(r"\b(cs|ds|data16|notrack|bnd)\s+")
# Functions of Python's headers and Cython's helpers, which are not instrumented without the GIL.
OF_PYTHON = re.compile(r"_?Py_|__Pyx_|__pyx_(find|insert)_code_object\b|__pyx_pymod_")
STATIC_TLS = re.compile(r"R_(X86_64_TPOFF64|X86_64_TLSDESC|AARCH64_TLS_TPREL64|AARCH64_TLSDESC)\b")


class UnseenCodeWarning(UserWarning):
    """A checked module has code that the engine cannot see."""


def unseen_code(module: Path) -> list[str]:
    """Where and what: ``spin_lock queue.h:31: lock cmpxchg %ecx,(%rdi)`` and the like.

    Empty when there is none, or when neither ``objdump`` nor ``readelf`` is installed.
    """
    from pulsar_ml.harness.search.symbols import look_up, place_in

    found = list(instructions(module))
    look_up(str(module), [offset for offset, _ in found])
    lines = [f"{place_in(str(module), offset)}: {text}" for offset, text in found]
    if WITHOUT_GIL:
        lines = [line for line in lines if not OF_PYTHON.match(line)]
    return list(dict.fromkeys([*lines, *shared_locals(module)]))


def instructions(module: Path) -> Iterator[tuple[int, str]]:
    """(offset, text) of each instruction that instrumented code does not have."""
    for line in output("objdump", "-d", "--no-show-raw-insn", str(module)):
        if match := INSTRUCTION.match(line):
            text = FILLERS.sub("", match[2])
            if ATOMIC.match(text):
                yield int(match[1], 16), " ".join(text.partition("#")[0].split())


def shared_locals(module: Path) -> Iterator[str]:
    """The thread-local variables that the module does not reach by __tls_get_addr."""
    for line in output("readelf", "-rW", str(module)):
        if STATIC_TLS.search(line):
            words = line.split()
            name = words[4].partition("@")[0] if len(words) > 4 and words[3] != "+" else ""
            yield f"thread-local variable {name or 'without a name'}: shared by all fibers"


def output(tool: str, *arguments: str) -> list[str]:
    path = shutil.which(tool)
    if path is None:
        return []
    done = subprocess.run(
        [path, *arguments], capture_output=True, text=True, errors="surrogateescape", check=False
    )
    return done.stdout.splitlines()


def warn_of_unseen_code(module: Path) -> None:
    """Warn once for each place; a file beside the module keeps the result for the next process."""
    lines = remembered(module)
    if lines is None:
        lines = unseen_code(module)
        remember(module, lines)
    if not lines:
        return
    more = f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
    warnings.warn(
        f"{module.name} has code that the engine cannot see (inline assembly, or a library that "
        f"was not recompiled): {'; '.join(lines[:MOST_NAMED])}{more}",
        UnseenCodeWarning,
        stacklevel=3,
    )


def state_of(module: Path) -> list[int]:
    facts = module.stat()
    return [facts.st_size, facts.st_mtime_ns]


def remembered(module: Path) -> list[str] | None:
    try:
        state, lines = json.loads(Path(f"{module}{SIDECAR}").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return None
    if state != state_of(module) or not isinstance(lines, list):
        return None
    return [str(line) for line in lines]


def remember(module: Path, lines: list[str]) -> None:
    with contextlib.suppress(OSError):  # a read-only folder: the next process scans again
        Path(f"{module}{SIDECAR}").write_text(
            json.dumps([state_of(module), lines]), encoding="utf-8"
        )
