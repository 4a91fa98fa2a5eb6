"""From code addresses to function and file:line, by addr2line, and only when a report is made."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from pulsar_ml.harness.engine import locate


@functools.cache
def describe_pc(pc: int) -> str:
    """``function file:line`` of the call before ``pc``; the module and offset where nothing more is known."""
    found = locate(pc)
    if found is None:
        return "?"
    module, offset = found
    known = lines(module, offset - 1)
    return known or f"{Path(module).name}+{offset:#x}"


def of_engine(pc: int) -> bool:
    """Whether ``pc`` is in the engine itself, which calls the operations."""
    found = locate(pc)
    return found is not None and Path(found[0]).name.startswith("_engine.")


def lines(module: str, offset: int) -> str:
    """The innermost source place of ``offset`` that is not inside the atomics' own header."""
    tool = shutil.which("addr2line")
    if tool is None:
        return ""
    output = subprocess.run(
        [tool, "-e", module, "-f", "-i", "-C", hex(offset)], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    pairs = [(output[i], output[i + 1].partition(" (disc")[0]) for i in range(0, len(output) - 1, 2)]
    for function, place in pairs:
        if not place.startswith("?") and not place.partition(":")[0].endswith("sync/sync.h"):
            file, _, line = place.rpartition(":")
            return f"{function} {'/'.join(Path(file).parts[-2:])}:{line}"
    return ""
