"""Creates a program's world with each of its allocations failing in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

REFUSED = "outside the engine's limits"  # the end of an execution whose world was not made
NEVER = "no instance of the structure can be made"
WHOLE = 2  # worlds made in spite of a failure, one after the other, that end the attempts


@dataclass(frozen=True, slots=True)
class Creations:
    """The executions that were made, and the first report; "" for none."""

    executions: int
    refused: int
    verdict: str


def failing_creations(
    subject: Subject, program: Program, fail_after: Callable[[int], None], most: int
) -> Creations:
    """Run ``program`` with the first, the second, ... native allocation of its world failing.

    A world must be made when nothing fails. Without memory it must be refused, and what it had
    allocated freed. An allocation of a call may fail, too: the program is made once more behind the
    last allocation of its world. ``fail_after`` is the module's ``fail_allocation_after``.
    """
    explorer = Explorer(subject, program, strategy="random", reuse="quarantine")
    explorer.run(0, 1)
    if explorer.failed() and explorer.end() == REFUSED:
        return Creations(1, 1, NEVER)
    refused = whole = 0
    for number in range(most):
        fail_after(number)
        try:
            explorer.run(0, 1)
        finally:
            fail_after(-1)
        if explorer.failed() and explorer.end() != REFUSED:
            return Creations(number + 1, refused, explorer.end())
        if explorer.failed():
            refused += 1
            whole = 0
        else:
            whole += 1
            if whole == WHOLE:
                return Creations(number + 1, refused, "")
    return Creations(most, refused, "")
