"""Histories that real threads record are short enough for a verdict, however the threads ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulsar_ml.campaign.trial.judging import judge_of, recorded_programs
from pulsar_ml.campaign.trial.trial import PRODUCT, find_subject, load_native
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.histories.recording import record_run
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.suites.registry import SUITES

SUITE = SUITES["mpsc_queue"]
PRODUCERS = (1, 2, 3)
ROUND = 100  # nanoseconds in which each producer offers once


def consumer_last(orders: Sequence[Sequence[int]]) -> History:
    """A history of producers that offer together, round by round, and of polls after all offers.

    ``orders`` has the order in which the handles of each round are polled.
    """
    subject = find_subject(load_native(PRODUCT), SUITE)
    rounds = len(orders)
    program = Program.generate(
        subject, 1, threads=4, operations=rounds, mix={"offer": 1}, settings={}, noise=False
    )
    instance = subject.create(threads=4, settings=program.settings)
    history = record_run(instance, program)[1]
    records = history.records.copy()
    names = [signature.name for signature in history.signatures]
    polled = [(number + 1, thread) for number, order in enumerate(orders) for thread in order]
    for thread in range(4):
        for number, row in enumerate(np.flatnonzero(records["thread"] == thread)):
            result = (0, *polled[number], 0, 0) if thread == 0 else (0, number + 1, 0, 0, 0)
            begin = ROUND * (number + rounds * (thread == 0))
            records["operation"][row] = names.index("poll" if thread == 0 else "offer")
            records["result"][row] = result
            records["invoked"][row], records["returned"][row] = begin, begin + ROUND - 1
    return history.with_records(records)


def test_a_queue_whose_consumer_comes_last_gets_a_verdict() -> None:
    judge = judge_of(SUITE.model)
    assert judge is not None
    judge.checkers.clear()
    before = judge.unknown
    others = [(1, 2, 3)] * (SUITE.recorded - 1)
    assert judge.message(consumer_last([(3, 2, 1), *others]), 4) == ""
    wrong = judge.message(consumer_last([(3, 2, 2), *others]), 4)
    assert "cannot follow any legal order" in wrong  # of polls that return one handle twice
    assert judge.unknown == before


def test_recorded_programs_have_the_sizes_of_their_suite() -> None:
    for name in ("mpsc_queue", "refcount"):
        suite = SUITES[name]
        subject = find_subject(load_native(PRODUCT), suite)
        whole = Program.generate(subject, 1, threads=8, operations=1, settings=suite.settings)
        for program in recorded_programs(subject, suite, 1, whole.settings, threads=8, noise=False):
            assert [len(thread) for thread in program.threads] == [suite.recorded] * 4
