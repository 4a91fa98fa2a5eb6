"""A mark that is lost between the write section of a requeue and a later clearing.

The engine finds the moment in a program of two threads; real threads hardly meet it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program, calls_from_rows
from stress.mutants.hunting import mutants

SETTINGS = {
    "caches": 1, "keys": 4, "chunk_bits": 2, "queue_chunk_bits": 2, "max_requeue": 0, "extend": 1,
    "length_shift": 0, "keep": 0, "policy": 0,
}  # fmt: skip
EXECUTIONS = 200_000

Call = tuple[str, int, int, int]

EVICTOR: Sequence[Call] = [("put", 0, 0, 0), ("get", 0, 0, 0), ("expire", 0, 0, 0)]
READER: Sequence[Call] = [("get", 0, 0, 0)] * 2


def run() -> Exploration:
    subject = mutants().SUBJECTS["removal_queue"]
    names = tuple(operation.name for operation in subject.operations)
    lanes = [
        calls_from_rows([[names.index(name), 0, *arguments] for name, *arguments in calls])
        for calls in (EVICTOR, READER)
    ]
    program = Program("removal_queue", 0, SETTINGS, names, tuple(lanes))
    # It takes three switches at the right places.
    return explore(
        subject,
        program,
        executions=EXECUTIONS,
        seed=1,
        mode="sc",
        strategy="portfolio",
        reuse="mixed",
    )


def test_the_engine_finds_a_mark_that_is_cleared_outside_the_write_section() -> None:
    assert run().failure is None
    mutants().select_mutant("M30")
    try:
        failure = run().failure
    finally:
        mutants().select_mutant(None)
    assert failure is not None
    assert failure.rule == "I55"
