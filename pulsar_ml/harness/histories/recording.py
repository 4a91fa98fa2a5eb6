"""Records histories of runs on real threads, and of executions under the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import RETURNED, History, history_of_run, record_array
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.result import RunResult
from pulsar_ml.harness.subjects.subject import Instance, Subject
from pulsar_ml.harness.subjects.threads import run_program

if TYPE_CHECKING:
    from pulsar_ml.harness.engine import Explorer


def record_run(
    instance: Instance, program: Program, *, patience_ns: int = 120_000_000_000
) -> tuple[RunResult, History]:
    """Run ``program`` on real threads, as :func:`run_program` does, and return its history, too.

    Stamps are nanoseconds of the monotonic clock, next to a full fence. The fences order accesses
    that the subject leaves unordered, so use a recording to judge results, not to find races.
    Operations of threads that were left behind are pending.
    """
    records = record_array(program.threads)
    result = run_program(instance, program, patience_ns=patience_ns, records=records)
    history = history_of_run(
        signatures(instance.subject),
        records,
        source="threads",
        subject=program.subject,
        settings=program.settings,
    )
    return result, history


def history_of_execution(explorer: Explorer) -> History:
    """Return the history of the last execution, in steps; ValueError if it was not complete."""
    return history_filled(history_before(explorer), explorer)


def history_before(explorer: Explorer) -> History:
    """Return a history of the program's calls without results, each at stamp 0."""
    program = explorer.program
    records = record_array(program.threads)
    for its_records in records:
        its_records["invoked"] = 0
        its_records["ending"] = RETURNED
    return history_of_run(
        signatures(explorer.subject),
        records,
        source="engine",
        subject=program.subject,
        settings=program.settings,
    )


def history_filled(before: History, explorer: Explorer) -> History:
    """Return the last execution's history, from :func:`history_before`, which can be kept."""
    if explorer.end() != "complete":
        raise ValueError(
            f"the execution ended with {explorer.end()!r}; only a complete one has all its results"
        )
    records = before.records.copy()
    put_answers(records, explorer.answers())
    return before.with_records(records)


def put_answers(records: NDArray[np.void], answers: NDArray[np.int64]) -> None:
    """Write the result of :meth:`Explorer.answers` into as many records."""
    records["invoked"] = answers[:, 0]
    records["returned"] = answers[:, 1]
    records["moment"] = answers[:, 2]
    records["result"] = answers[:, 3:]


def signatures(subject: Subject) -> list[tuple[str, int]]:
    return [(operation.name, len(operation.arguments)) for operation in subject.operations]
