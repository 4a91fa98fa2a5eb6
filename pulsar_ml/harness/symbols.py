"""From code addresses to function and file:line, by addr2line, and only when a report is made."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

from pulsar_ml.harness.engine import locate

OF_ATOMICS = re.compile(r"sync/sync\.h$|/(atomic|(bits/)?atomic_\w+\.h)$")


@functools.cache
def describe_pc(pc: int) -> str:
    """``function file:line`` of the call before ``pc``; the module and offset where nothing more is known."""
    found = locate(pc)
    if found is None:
        return "?"
    module, offset = found
    place = innermost(module, offset - 1)
    if place is None:
        return f"{Path(module).name}+{offset:#x}"
    function, file, line = place
    return f"{function} {'/'.join(Path(file).parts[-2:])}:{line}"


def source_line(pc: int) -> str:
    """The line that ``describe_pc`` names; "" when its file is not here or newer than the module."""
    found = locate(pc)
    place = innermost(found[0], found[1] - 1) if found is not None else None
    if found is None or place is None:
        return ""
    try:
        if Path(place[1]).stat().st_mtime > Path(found[0]).stat().st_mtime:
            return ""
        return Path(place[1]).read_text(errors="replace").splitlines()[place[2] - 1].strip()
    except (OSError, IndexError):
        return ""


def of_engine(pc: int) -> bool:
    """Whether ``pc`` is in the engine itself, which calls the operations."""
    found = locate(pc)
    return found is not None and Path(found[0]).name.startswith("_engine.")


@functools.cache
def innermost(module: str, offset: int) -> tuple[str, str, int] | None:
    """Function, file and line of ``offset``, from the inside out the first that is not one of an atomic
    type's own header."""
    tool = shutil.which("addr2line")
    if tool is None:
        return None
    output = subprocess.run(
        [tool, "-e", module, "-f", "-i", "-C", hex(offset)], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    pairs = [(output[i], output[i + 1].partition(" (disc")[0]) for i in range(0, len(output) - 1, 2)]
    for function, place in pairs:
        file, _, line = place.rpartition(":")
        if not place.startswith("?") and line.isdigit() and not OF_ATOMICS.search(file):
            return in_source(function), file, int(line)
    return None


def in_source(function: str) -> str:
    """The name that a function of Cython has in its source; others as they are."""
    if not function.startswith("__pyx_f_"):
        return function
    rest = function.removeprefix("__pyx_f_")
    # The parts of the module's name come first, each behind its length.
    while (part := re.match(r"\d+", rest)) is not None and len(rest) > part.end() + int(part[0]):
        rest = rest[part.end() + int(part[0]) :].removeprefix("_")
    return rest
