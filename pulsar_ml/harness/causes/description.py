"""The text of a failure with its steps, its cause, and the stale reads on which it rests."""

from __future__ import annotations

from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.stale import stale_remarks
from pulsar_ml.harness.subjects.subject import Subject


def described(failure: Failure, subject: Subject, *, judge: Judge | None = None) -> str:
    """Return :meth:`Failure.describe` with its cause and the stale reads on which it rests."""
    remarks = stale_remarks(failure, subject, judge=judge)
    return failure.describe(
        subject, judge=judge, remarks=(*remarks, *why_lines(failure, subject, judge=judge))
    )


def why_lines(failure: Failure, subject: Subject, *, judge: Judge | None = None) -> tuple[str, ...]:
    """Return the sentences on the cause of a failure as lines; none if it does not repeat."""
    again = failure.replay(subject, judge)
    said = why(failure, subject, again.trace, judge=judge) if again.exact else ()
    return tuple(f"why: {each}" for each in said)
