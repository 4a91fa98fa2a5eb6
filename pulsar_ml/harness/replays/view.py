"""The text of a replay: the summary, the steps in columns, the failing check, the state at a step.

The text is made in the process of the replay, which alone knows the names of Python's variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.locations.names import NO_LOCATION, Names
from pulsar_ml.harness.replays.ending import ending, values_of
from pulsar_ml.harness.replays.essence import essential
from pulsar_ml.harness.replays.state import state_lines
from pulsar_ml.harness.search.failure import AT_LOCATIONS, Failure, Replayed
from pulsar_ml.harness.search.lanes import is_left_out, lane_table
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

MOST_WHOLE = 12  # steps that a table shows without leaving any out


@dataclass(frozen=True, slots=True)
class View:
    """The parts of a replay that its text shows.

    Attributes:
        all_steps: True for the table with all steps, not with the essential ones alone.
        to: the step behind which the table ends, counted from 1; None for the failure.
        sources: True for the source lines below the table.
        sentence: that of the broken invariant, or "".
        marks: rows before steps, by the number of the step, counted from 0.
    """

    all_steps: bool = False
    to: int | None = None
    sources: bool = True
    sentence: str = ""
    marks: Mapping[int, str] | None = None


def view_text(
    failure: Failure,
    again: Replayed,
    subject: Subject,
    view: View,
    judge: Judge | None = None,
) -> str:
    """Return the text of a replay; the summary alone when its steps are not known.

    ``judge`` is that of the replay.

    Raises UsageError for a step that the replay does not have.
    """
    if not again.trace:
        return failure.summary(again)
    trace = again.trace
    own = [index for index, event in enumerate(trace) if int(event["thread"]) >= 0]
    if view.to is not None and not 1 <= view.to <= len(own):
        raise UsageError(
            f"the replay has no step {view.to}; it has the steps 1 to {len(own)}, which replay -v "
            "prints"
        )
    names = Names(trace)
    location = names.known(trace[-1]) if failure.kind in AT_LOCATIONS and again.exact else ""
    program = Program.from_json(failure.program)
    numbers = {index: place + 1 for place, index in enumerate(own)}
    shown = {index for index in own if not is_left_out(trace[index], names, trace)}
    for index in sorted(shown):  # so that numbered names do not depend on the steps left out
        if trace[index]["op"] not in NO_LOCATION:
            names.of(trace[index])
    values = values_of(failure, again)
    steps = {at for value in values for at in (value.step, value.writer) if at is not None}
    chosen = set(own)
    if not view.all_steps and len(shown) > MOST_WHOLE:
        chosen = essential(failure, trace, sorted(steps))
    end = len(trace) if view.to is None else own[view.to - 1] + 1
    if view.to is not None:
        chosen = {index for index in chosen | {end - 1} if index < end}
    last: list[str] = []
    if again.failure is not None and view.to is None:
        last = ending(failure, again, values, numbers, names, view.sentence)
    if again.exact and view.to is None:
        last += [f"why: {each}" for each in why(failure, subject, trace, judge=judge)]
    table = lane_table(
        program,
        trace[:end],
        subject=subject,
        sources=view.sources and failure.mutant is None,
        names=names,
        marks=view.marks,
        numbered=True,
        chosen={numbers[index] - 1 for index in chosen if index in numbers},
        ending=last,
    )
    shown = {index for index in shown if index < end}
    lines = [failure.summary(again, location), *heading(chosen, shown, own), table]
    if view.to is not None:
        lines += ["", *state_lines(trace, view.to, program, subject, names)]
    return "\n".join(lines)


def heading(chosen: set[int], shown: set[int], own: list[int]) -> list[str]:
    """Say that steps are left out."""
    left_out = len(shown - chosen)
    if not left_out:
        return []
    return [f"  {counted(left_out, 'step')} of {len(own)} not shown: -v shows all"]


def guilty_event(failure: Failure, trace: list[dict[str, Any]]) -> int | None:
    """Return the index of the step at which a debugger stops; None: where the execution fails.

    A failed check of an invariant or of answers is not where the fault is: there it is the last
    stale read, or else the last access.
    """
    from pulsar_ml.harness.search.timeline import guilty

    if failure.kind in AT_FAILURE:
        return None
    marked = guilty(failure, trace)
    if marked:
        return max(marked)
    accesses = [
        index
        for index, event in enumerate(trace)
        if int(event["thread"]) >= 0 and event["op"] not in ("call", "return") and event["pc"]
    ]
    stale = [index for index in accesses if trace[index]["stale"]]
    return next(iter([*stale[-1:], *accesses[-1:]]), None)


# Ends at which the engine stands in the function that is at fault.
AT_FAILURE = (
    *("data race", "use after free", "double free", "bad free", "out of bounds"),
    *("uninitialised read", "assertion", "lock misuse", "stack overflow"),
)
