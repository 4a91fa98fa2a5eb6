"""Histories of what the harness runs: on real threads with stamps, in the engine with step numbers."""

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
    from pulsar_ml.harness.engine import Campaign


def record_run(
    instance: Instance, program: Program, *, patience_ns: int = 120_000_000_000
) -> tuple[RunResult, History]:
    """Run ``program`` as :func:`pulsar_ml.harness.subjects.threads.run_program` does, and keep its history.

    Stamps are nanoseconds of the monotonic clock, read behind a full fence, so the recording orders more than
    the subject does: it is for the answers, not for races. Operations of threads that were left
    behind are pending.
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


def history_of_execution(campaign: Campaign) -> History:
    """The history of the campaign's last execution, in steps; ValueError if it did not come to its end."""
    return history_filled(history_before(campaign), campaign)


def history_before(campaign: Campaign) -> History:
    """The calls of a campaign's program, as if each had been made at once and answered nothing."""
    program = campaign.program
    records = record_array(program.threads)
    for its_records in records:
        its_records["invoked"] = 0
        its_records["ending"] = RETURNED
    return history_of_run(
        signatures(campaign.subject),
        records,
        source="engine",
        subject=program.subject,
        settings=program.settings,
    )


def history_filled(before: History, campaign: Campaign) -> History:
    """:func:`history_of_execution` with the history before it, which all executions of a program share."""
    if campaign.end() != "complete":
        raise ValueError(
            f"the execution ended with {campaign.end()!r}; only a complete one has all its answers"
        )
    records = before.records.copy()
    put_answers(records, campaign.answers())
    return before.with_records(records)


def put_answers(records: NDArray[np.void], answers: NDArray[np.int64]) -> None:
    """What :meth:`Campaign.answers` returned into as many records."""
    records["invoked"] = answers[:, 0]
    records["returned"] = answers[:, 1]
    records["moment"] = answers[:, 2]
    records["result"] = answers[:, 3:]


def signatures(subject: Subject) -> list[tuple[str, int]]:
    return [(operation.name, len(operation.arguments)) for operation in subject.operations]
