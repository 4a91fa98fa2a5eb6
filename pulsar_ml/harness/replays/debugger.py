"""Starts gdb on a replay and stops it at a step, in the fiber of the step's thread.

The replay calls the engine's function ``pml_step_reached`` at the step. A breakpoint there has the
code under test above it on the stack, and its frame is selected by file and line.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.failure import Failure, Replayed, replay_explorer
from pulsar_ml.harness.search.symbols import describe_pc, own_pc
from pulsar_ml.harness.subjects.subject import Subject

GDB = "gdb"
STOP = "pml_step_reached"
AT_FAILURE = -2  # as in Explorer.stop_at()

SELECT = """
import gdb
file, line = {file!r}, {line}
def sources(frame):
    while frame is not None:
        place = frame.find_sal()
        if place.symtab is not None:
            yield frame, place.symtab.fullname(), place.line
        frame = frame.older()
try:
    known = list(sources(gdb.newest_frame()))
except gdb.error:
    known = []
exact = [frame for frame, name, at in known if at == line and name.endswith(file)]
near = [frame for frame, name, at in known if name.endswith(file)]
if exact + near:
    (exact + near)[0].select()
    gdb.execute("frame")
"""


def debugger() -> str:
    """Return the path of gdb. UsageError when there is none."""
    found = shutil.which(GDB)
    if found is None:
        raise UsageError("there is no gdb on the PATH; install it, or use --to STEP instead")
    return found


def place_of(event: Mapping[str, Any] | None, failure: Failure) -> tuple[str, int]:
    """Return file and line of a step, or of the failure; ("", 0) when they are not known."""
    text = failure.where[0] if failure.where else ""
    if event is not None:
        text = describe_pc(own_pc(event["frames"]))
    file, _, line = text.rpartition(" ")[2].rpartition(":")
    return (file, int(line)) if line.isdigit() else ("", 0)


def gdb_words(program: Sequence[str], place: tuple[str, int]) -> list[str]:
    """Return the command line of gdb that runs ``program`` to the stop, and selects the frame."""
    script = SELECT.format(file=place[0], line=place[1])
    commands = (
        "set breakpoint pending on",
        "set confirm off",
        "set width 0",
        "set print thread-events off",
        "set print inferior-events off",
        f"break {STOP}",
        "run",
        f"python exec({script!r})",
    )
    early = ("set debuginfod enabled off", "set auto-load python-scripts off")
    return [
        *(debugger(), "-q"),
        *(word for each in early for word in ("-iex", each)),
        *(word for each in commands for word in ("-ex", each)),
        *("--args", *program),
    ]


def start(words: Sequence[str]) -> None:
    """Run gdb on this terminal until the user leaves it."""
    subprocess.run(words, check=False)


def stop(failure: Failure, subject: Subject, event: int) -> None:
    """Make the execution again, and call ``pml_step_reached`` at an event of its trace.

    ``event`` may be AT_FAILURE. Races that are passed over are known from a first replay.
    """
    explorer: Explorer = replay_explorer(failure, subject)
    explorer.again(0)
    explorer.stop_at(event)
    try:
        explorer.again(0)
    finally:
        explorer.stop_at(-1)


def check_debuggable(failure: Failure, subject: Subject, again: Replayed) -> None:
    """Raise UsageError for a replay in which gdb cannot stop at a step."""
    debugger()
    if subject.needs_gil:
        raise UsageError(
            f"{subject.name} is code of Python, whose lines gdb does not know; --to STEP shows the "
            "state at a step"
        )
    if not again.trace:
        raise UsageError(
            f"{failure.kind}: the steps of an execution that ends its process are not known; "
            "pulsar-ml replay repeats the execution in a child process"
        )
