"""Hints at the cause of a failure, looked for in a child process."""

from __future__ import annotations

from typing import Any

from pulsar_ml.harness.causes.hints import Hints, hints
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError, Send
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.terminal.progress import ProgressDisplay


def hints_of(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    limits: Limits | None,
    most: int,
    progress: ProgressDisplay,
) -> Hints:
    """Changes that end the failure; none when an execution with a change ends its process.

    Without ``limits`` the work is done in this process.
    """
    found: list[Hints] = []

    def work(send: Send) -> None:
        send(hints(failure, subject, judge, most=most, on_trial=send))

    def note(result: Any) -> None:
        if isinstance(result, Hints):
            found.append(result)
        else:
            progress.update(result)

    progress.begin("changes tried")
    if limits is None:
        return hints(failure, subject, judge, most=most, on_trial=progress.update)
    try:
        watch(work, note, limits=limits)
    except LostError as error:
        return Hints((), 0, 0, f"an execution with a change ends its process: {error.message}")
    return found[0]
