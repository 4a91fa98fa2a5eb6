"""The cause of a failure: sentences, the step at which it became inevitable, and hints.

They are looked for in a child process, because an execution with a change may crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pulsar_ml.campaign.local.inevitability import FEW, inevitable_text, shares
from pulsar_ml.harness.causes.hints import Hints, hints
from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError, Send
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.terminal.progress import ProgressDisplay

# Failures of a check that some continuations of the same steps pass.
OF_CHECKS = ("invariant", "assertion", WRONG_ANSWERS)
NONE = Hints((), 0, 0)


@dataclass(frozen=True, slots=True)
class Cause:
    """The result of ``pulsar-ml explain``.

    Attributes:
        why: sentences from the failing execution, see :func:`why`.
        inevitable: the step from which on continuations fail as well, in a sentence; "" if unknown.
        hints: changes that end the failure.
    """

    why: tuple[str, ...] = ()
    inevitable: str = ""
    hints: Hints = NONE


def cause_of(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    limits: Limits | None,
    most: int,
    progress: ProgressDisplay,
    *,
    rule: str = "",
) -> Cause:
    """Return the cause of a failure; without hints when one execution ends the child process.

    Without ``limits`` the work is done in this process. ``rule`` is the sentence of the broken
    invariant.
    """
    found = Cause()

    def note(result: Any) -> None:
        nonlocal found
        match result:
            case Hints():
                found = Cause(found.why, found.inevitable, result)
            case Cause():
                found = result
            case _:
                progress.update(result)

    def work(send: Send) -> None:
        with one_session(subject):
            send(sentences_of(failure, subject, judge, rule))
            send(hints(failure, subject, judge, most=most, on_trial=send))

    progress.begin("changes tried")
    if limits is None:
        work(note)
        return found
    try:
        watch(work, note, limits=limits)
    except LostError as error:
        reason = f"an execution with a change ends its process: {error.message}"
        return Cause(found.why, found.inevitable, Hints((), 0, 0, reason))
    return found


def sentences_of(failure: Failure, subject: Subject, judge: Judge | None, rule: str) -> Cause:
    """Return the cause without hints; nothing is known of an execution that differs."""
    if failure.ended_process:
        return Cause()
    again = failure.replay(subject, judge)
    if not again.exact:
        return Cause()
    inevitable = ""
    if failure.kind in OF_CHECKS:
        inevitable = inevitable_text(shares(failure, subject, judge, samples=FEW))
    return Cause(why(failure, subject, again.trace, judge=judge, rule=rule), inevitable)


@contextmanager
def one_session(subject: Subject) -> Iterator[None]:
    """Make one session of all executions: names of Python's code are those of their session."""
    around = subject.around
    with subject.session():
        subject.around = None
        try:
            yield
        finally:
            subject.around = around
