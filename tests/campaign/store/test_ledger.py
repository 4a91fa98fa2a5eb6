"""The ledger: sums of chunks, sketches that unite, and a run that resumes without its trials."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run import resume
from pulsar_ml.campaign.store.ledger import Ids, ledger_of
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import CHUNKS, split
from pulsar_ml.campaign.store.sketch import SIZE, SPACE, estimate, hash_of, union
from pulsar_ml.campaign.store.store import read_chunks, read_trials, read_violations
from pulsar_ml.campaign.trial.chunk import run_chunk
from tests.campaign.rows import JOB, SUITE, made_up_trial
from tests.campaign.test_resume import PLAN, session

HASHES = [hash_of(str(number)) for number in range(20_000)]


def rows(*chunks: Chunk) -> pa.Table:
    result = [run_chunk(SUITE, chunk, JOB, trial=made_up_trial) for chunk in chunks]
    return pa.Table.from_batches(result)


def test_a_chunk_has_a_row_with_its_sums() -> None:
    table = ledger_of(rows(Chunk(3, SUITE.name, 0, 30), Chunk(5, SUITE.name, 30, 31)))
    assert table.schema.equals(CHUNKS, check_metadata=True)
    first, second = table.to_pylist()
    assert (first["chunk_id"], first["seed_lo"], first["seed_hi"], first["trials"]) == (
        3,
        0,
        30,
        30,
    )
    assert (first["violation"], first["nothing_exercised"], first["clean"]) == (6, 8, 16)
    assert first["violations"] == 12 and first["operations"] == 30 * 400
    assert (first["once"], first["judged"], first["unknown"]) == (435, 4350, 15)
    assert first["busy_us"] == sum(range(1, 31)) and first["wall_us"] > 0
    assert first["sketch"] == list(range(30))
    assert (second["chunk_id"], second["trials"], second["sketch"]) == (5, 1, [30])


def test_the_ledger_of_flat_tables_is_the_same_but_for_what_they_lack() -> None:
    whole = rows(Chunk(3, SUITE.name, 0, 30), Chunk(5, SUITE.name, 30, 47))
    lacking = ["wall_us", "sketch"]
    flat = ledger_of(*split(whole))
    assert flat.drop_columns(lacking).equals(ledger_of(whole).drop_columns(lacking))
    assert flat["sketch"].to_pylist() == [[], []]


@given(st.lists(st.lists(st.sampled_from(HASHES), max_size=300), max_size=5))
def test_sketches_add_up_in_any_order(parts: list[list[int]]) -> None:
    sketches = [union([part]) for part in parts]
    assert union(sketches) == union(reversed(sketches)) == union([chain(*parts)])
    assert union([union(sketches), *sketches]) == union(sketches), "and may be said twice"
    assert all(0 <= number < SPACE for sketch in sketches for number in sketch)


def test_few_things_are_counted_and_many_estimated() -> None:
    assert [estimate(union([HASHES[:count]])) for count in (0, 1, SIZE - 1)] == [0, 1, SIZE - 1]
    for count in (SIZE, 1000, 20_000):
        assert abs(estimate(union([HASHES[:count]])) / count - 1) < 0.27, "three standard errors"


@given(st.sets(st.integers(0, 5000)))
def test_ids_are_a_set(numbers: set[int]) -> None:
    ids = Ids()
    for number in [*numbers, *numbers]:
        ids.add(number)
    assert set(ids) == numbers and len(ids) == len(numbers)
    assert -1 not in ids and 10**9 not in ids and ids.__contains__("a") is False


def test_totals_know_what_is_unseen() -> None:
    summary = Summary()
    whole = rows(Chunk(0, SUITE.name, 0, 30))
    add(summary, *split(whole), ledger_of(whole))
    totals = summary.suites[SUITE.name]
    assert (totals.distinct, totals.once, totals.unseen_mass) == (30, 435, None)
    totals.executions = totals.telling = 870
    assert totals.unseen_mass == 0.5
    without = Summary()
    add(without, *split(whole))
    assert without.suites[SUITE.name].distinct is None


def test_a_run_goes_on_from_its_ledger_and_reads_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    session(tmp_path / "run")
    of_rows = Summary()
    add(of_rows, *(read(tmp_path / "run") for read in (read_trials, read_violations, read_chunks)))
    monkeypatch.setattr(resume, "which_chunk", None)
    for path in (
        tmp_path / "run" / "trials"
    ).iterdir():  # the footer remains: it has the number of rows
        content = bytearray(path.read_bytes())
        size = int.from_bytes(content[-8:-4], "little")
        content[4 : -size - 8] = bytes(len(content) - size - 12)
        path.write_bytes(content)
    with pytest.raises(OSError):
        read_trials(tmp_path / "run")
    past = resume.past_of(tmp_path / "run")
    past.store.close()
    assert past.summary == of_rows and past.done == set(range(PLAN.chunk_count))
