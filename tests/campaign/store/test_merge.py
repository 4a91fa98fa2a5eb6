"""Merging: totals, signatures and smallest seeds do not depend on the cut into waves."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import ROW, TRIALS, VIOLATIONS, split
from pulsar_ml.campaign.trial.chunk import run_chunk
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.signature import pattern, signature
from tests.campaign.rows import JOB, SUITE, made_up_trial


def rows(lo: int, hi: int) -> pa.Table:
    batch = run_chunk(SUITE, Chunk(0, SUITE.name, lo, hi), JOB, trial=made_up_trial)
    return pa.Table.from_batches([batch])


def merged(*tables: pa.Table) -> Summary:
    summary = Summary()
    for table in tables:
        add(summary, *split(table))
    return summary


def test_totals_count_each_verdict_once() -> None:
    summary = merged(rows(0, 30))
    totals = summary.suites[SUITE.name]
    assert (totals.trials, totals.violation, totals.nothing_exercised, totals.clean) == (
        30,
        6,
        8,
        16,
    )
    assert totals.operations == 30 * 400
    assert totals.overlaps == sum(range(30))
    assert totals.busy_us == sum(range(1, 31))
    assert (totals.judged, totals.unknown) == (10 * sum(range(30)), 15)
    assert (summary.judged, summary.unknown) == (4350, 15)
    assert summary.violations == 12
    assert summary.verdict == "violation"


def test_violations_that_differ_in_numbers_share_a_signature_and_keep_the_smallest_seed() -> None:
    summary = merged(rows(7, 31), rows(1, 7))
    assert {(group.invariant, group.seed, group.count) for group in summary.in_order()} == {
        ("I1", 5, 6),
        ("I2", 5, 6),
    }
    for group in summary.groups.values():
        record = ReplayRecord.from_json(group.replay)
        assert (record.seed, record.invariant, record.message) == (
            5,
            group.invariant,
            group.message,
        )


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=6), st.randoms())
def test_any_cut_into_waves_in_any_order_gives_the_same_summary(
    cuts: list[int], random: Random
) -> None:
    edges = sorted({0, 40, *cuts})
    waves = [rows(lo, hi) for lo, hi in itertools.pairwise(edges)]
    random.shuffle(waves)
    assert asdict(merged(*waves)) == asdict(merged(rows(0, 40)))


def test_add_returns_new_groups_and_those_with_a_smaller_seed() -> None:
    summary = Summary()
    assert len(add(summary, *split(rows(10, 12)))) == 2
    assert add(summary, *split(rows(13, 30))) == []
    assert [group.seed for group in add(summary, *split(rows(0, 10)))] == [0, 0]


def test_a_suite_that_exercised_nothing_is_no_clean_result() -> None:
    assert merged(rows(3, 4)).verdict == "nothing_exercised"
    assert merged(rows(3, 5)).verdict == "clean"
    assert merged().verdict == "nothing_exercised"


def test_split_keeps_each_violation_with_its_trial() -> None:
    trials, violations = split(rows(0, 12))
    assert trials.schema.equals(TRIALS)
    assert violations.schema.equals(VIOLATIONS)
    assert violations["seed"].to_pylist() == [0, 0, 5, 5, 10, 10]
    assert violations["invariant"].to_pylist() == ["I1", "I2"] * 3
    assert violations["duration_us"].to_pylist() == [1, 1, 6, 6, 11, 11]


def test_split_of_rows_without_violations_or_without_rows_is_empty() -> None:
    assert split(rows(1, 3))[1].num_rows == 0
    assert [table.num_rows for table in split(ROW.empty_table())] == [0, 0]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("the sum is 17, expected -3", "the sum is #, expected #"),
        ("node 0x7f3a is freed, 2.5 times", "node # is freed, # times"),
        ("range 3-9 of i64", "range #-# of i#"),
        ("nothing to see", "nothing to see"),
    ],
)
def test_a_signature_ignores_numbers_only(message: str, expected: str) -> None:
    assert pattern(message) == expected


def test_a_signature_tells_suites_invariants_and_messages_apart() -> None:
    base = signature("a", "I1", "x is 1")
    assert base == signature("a", "I1", "x is 22")
    others = {
        signature("b", "I1", "x is 1"),
        signature("a", "I2", "x is 1"),
        signature("a", "I1", "y is 1"),
    }
    assert len(others | {base}) == 4
