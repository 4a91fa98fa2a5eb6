"""Runs a program of one thread with each of its allocations failing in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.judges.judge import NO_MEMORY, ModelJudge
from pulsar_ml.harness.judges.oracle import run_judged
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

REFUSED = "outside the engine's limits"  # the end of an execution whose world was not made
NEVER = "no instance of the structure can be made"
OF_PLACE = 4  # parts into which the allocations of one place are divided; one at each end fails
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
    allocated freed. A call without memory answers what the model says of it. Of the world and of
    the calls ``most`` allocations are tried at most. ``fail_after`` is the module's
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
        judged=judge is not None,
    )
    brief = judge.brief if judge else None
    done, refused, whole = 0, 0, 0

    def attempt(number: int) -> str:
        nonlocal done, refused, whole
        fail_after(number)
        try:
            wrong = run_judged(explorer, 0, 1, brief)[1]
        finally:
            fail_after(-1)
        done += 1
        if not explorer.failed():
            whole += 1
            return WRONG_ANSWERS if wrong else ""
        if explorer.end() != REFUSED:
            return explorer.end()
        refused, whole = refused + 1, 0
        return ""

    if found := attempt(-1):
        return Allocations(1, 0, found)
    if refused:
        return Allocations(1, 1, NEVER)
    explorer.again(0)
    places = [event["pc"] for event in explorer.trace() if event["op"] == "allocate"]
    first = whole = 0
    while whole < WHOLE and first < most:
        if found := attempt(first):
            return Allocations(done, refused, found)
        first += 1
    after = first - whole
    for number in chosen(places, most):
        if found := attempt(after + number):
            return Allocations(done, refused, found)
    return Allocations(done, refused)


def chosen(places: Sequence[object], most: int) -> list[int]:
    """The numbers of allocations to fail, of those that the calls make at these places.

    Of each place the first, the last, and others at even distances.
    """
    of_place: dict[object, list[int]] = {}
    for number, place in enumerate(places):
        of_place.setdefault(place, []).append(number)
    found: set[int] = set()
    for numbers in of_place.values():
        last = len(numbers) - 1
        found |= {numbers[last * part // OF_PLACE] for part in range(OF_PLACE + 1)}
    return sorted(found)[:most]
