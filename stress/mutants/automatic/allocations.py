"""Runs a program of one thread with each of its allocations failing in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.judges.judge import NO_MEMORY, ModelJudge
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

REFUSED = "outside the engine's limits"  # the end of an execution whose world was not made
NEVER = "no instance of the structure can be made"
WHOLE = 2  # worlds made in spite of a failure, one after the other: the next failures are of calls


@dataclass(frozen=True, slots=True)
class Allocations:
    """The executions that were made, those whose world was refused, and the first report."""

    executions: int
    refused: int
    verdict: str = ""


def failing_allocations(
    subject: Subject,
    program: Program,
    fail_after: Callable[[int], None],
    most: int,
    *,
    judge: ModelJudge | None = None,
    steps: int,
) -> Allocations:
    """Run ``program`` with the first, the second, ... native allocation failing.

    A world must be made when nothing fails. Without memory it must be refused, and what it had
    allocated freed. A call without memory answers what the model says of it. Of more than ``most``
    allocations so many are tried at even distances. ``fail_after`` is the module's
    ``fail_allocation_after``.
    """
    # By the fault's name the model knows that memory is scarce; the strategy makes no faults.
    explorer = Explorer(
        subject,
        program,
        strategy="replay",
        reuse="quarantine",
        faults=(NO_MEMORY,),
        step_limit=steps,
    )

    def verdict() -> str:
        if explorer.failed():
            return explorer.end()
        wrong = judge is not None and explorer.end() == "complete" and judge.brief(explorer)
        return WRONG_ANSWERS if wrong else ""

    explorer.again(0)
    if explorer.failed() and explorer.end() == REFUSED:
        return Allocations(1, 1, NEVER)
    if found := verdict():
        return Allocations(1, 0, found)
    of_calls = sum(event["op"] == "allocate" for event in explorer.trace())
    done, refused, whole = 1, 0, 0

    def attempt(number: int) -> str:
        nonlocal done, refused, whole
        fail_after(number)
        try:
            explorer.again(0)
        finally:
            fail_after(-1)
        done += 1
        if explorer.failed() and explorer.end() == REFUSED:
            refused, whole = refused + 1, 0
            return ""
        whole += 1
        return verdict()

    first = 0
    while whole < WHOLE and first < most:
        if found := attempt(first):
            return Allocations(done, refused, found)
        first += 1
    for number in range(first, first - whole + of_calls, max(1, of_calls // most)):
        if found := attempt(number):
            return Allocations(done, refused, found)
    return Allocations(done, refused)
