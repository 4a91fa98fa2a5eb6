"""Rows of violations are bounded, counts are not: dropped rows stay counted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS, split
from pulsar_ml.campaign.store.store import RunStore, read_violations
from pulsar_ml.campaign.store.witnesses import Witnesses, witnesses_of
from pulsar_ml.campaign.trial.chunk import run_chunk
from tests.campaign.rows import JOB, SUITE, made_up_trial

(ONE,) = split(run_chunk(SUITE, Chunk(0, SUITE.name, 0, 1), JOB, trial=made_up_trial))[
    1
].to_pylist()[:1]


def wave_of(found: list[tuple[str, int]]) -> pa.Table:
    """Make violations of these signatures and seeds."""
    rows = [
        {
            **ONE,
            "signature": signature,
            "seed": seed,
            "message": f"seen at {seed}",
            "replay": f"{seed}",
        }
        for signature, seed in found
    ]
    return pa.Table.from_pylist(rows, schema=VIOLATIONS)


def rows(table: pa.Table) -> list[tuple[int, int, str]]:
    return [(row["seed"], row["unlisted"], row["replay"]) for row in table.to_pylist()]


def test_the_smallest_seeds_are_kept_and_the_others_counted() -> None:
    witnesses = Witnesses(2)
    first = witnesses.bound(wave_of([("a", 3), ("a", 1), ("b", 9), ("a", 2), ("a", 4)]))
    assert rows(first) == [(1, 0, "1"), (9, 0, "9"), (2, 2, "2")]
    second = witnesses.bound(wave_of([("a", 6), ("a", 5), ("a", 7), ("b", 5)]))
    assert rows(second) == [(5, 2, ""), (5, 0, "5")]


def test_a_smaller_seed_that_comes_late_is_kept() -> None:
    witnesses = Witnesses(1, [wave_of([("a", 5)])])
    assert rows(witnesses.bound(wave_of([("a", 2), ("a", 6)]))) == [(2, 1, "2")]


def test_nothing_found_is_nothing_to_bound() -> None:
    assert Witnesses(1).bound(VIOLATIONS.empty_table()).equals(VIOLATIONS.empty_table())


WAVES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=12),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=40)
@given(WAVES, st.integers(1, 4))
def test_whatever_comes_the_summary_is_that_of_all_rows(
    waves: list[list[tuple[str, int]]], most: int
) -> None:
    whole, bounded = Summary(), Summary()
    witnesses = Witnesses(most)
    records: list[pa.Table] = []
    for found in waves:
        table = wave_of(found)
        result = witnesses.bound(table)
        add(whole, TRIALS.empty_table(), table)
        add(bounded, TRIALS.empty_table(), result)
        records.append(result)
    assert bounded.groups == whole.groups
    for signature, group in whole.groups.items():
        of_it = [
            row for result in records for row in result.to_pylist() if row["signature"] == signature
        ]
        assert sum(1 + row["unlisted"] for row in of_it) == group.count
        early = [row for row in of_it if row["replay"]]
        seeds = [[seed for kind, seed in found if kind == signature] for found in waves]
        spans = [(min(some), max(some)) for some in seeds if some]
        in_order = all(before[1] <= behind[0] for before, behind in pairwise(spans))
        assert not in_order or len(early) <= most


@pytest.mark.parametrize("most", [1, 3])
def test_a_run_that_goes_on_knows_what_it_has(tmp_path: Path, most: int) -> None:
    store = RunStore(tmp_path / "run")
    for wave in range(4):
        store.bound = witnesses_of(store.directory, most).bound  # as after a restart
        rows_of_wave = run_chunk(
            SUITE, Chunk(wave, SUITE.name, 20 * wave, 20 * wave + 20), JOB, trial=made_up_trial
        )
        assert rows_of_wave is not None
        store.write_wave(wave, *split(rows_of_wave))
    found = read_violations(store.directory).to_pylist()
    for signature in {row["signature"] for row in found}:
        of_it = [row for row in found if row["signature"] == signature]
        assert sum(1 + row["unlisted"] for row in of_it) == 16
        assert [row["seed"] for row in of_it if row["replay"]] == [0, 5, 10][:most]
