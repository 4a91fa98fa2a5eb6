"""The results directory: whole waves or none, versioned schemas, never over another run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.columns import SCHEMA_VERSION
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS, split
from pulsar_ml.campaign.store.store import RunStore, read_trials, read_violations, waves_of
from pulsar_ml.campaign.trial.chunk import run_chunk
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.errors import UsageError
from tests.campaign.rows import JOB, SUITE, made_up_trial


def tables(lo: int, hi: int) -> tuple[pa.Table, pa.Table]:
    batch = run_chunk(SUITE, Chunk(0, SUITE.name, lo, hi), JOB, trial=made_up_trial)
    assert batch is not None
    return split(batch)


def files(directory: Path) -> set[str]:
    return {
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    }


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.write_wave(0, *tables(0, 10))
    store.write_wave(1, *tables(10, 15))
    assert read_trials(store.directory)["seed"].to_pylist() == list(range(15))
    assert read_violations(store.directory)["seed"].to_pylist() == [0, 0, 5, 5, 10, 10]


def test_a_run_is_a_plain_dataset_for_other_tools(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.write_wave(0, *tables(0, 10))
    store.write_wave(1, *tables(11, 12))
    for name, schema, count in (("trials", TRIALS, 11), ("violations", VIOLATIONS, 4)):
        dataset = ds.dataset(tmp_path / name, format="parquet")
        assert dataset.schema.remove_metadata().equals(schema.remove_metadata())
        assert dataset.count_rows() == count


def test_each_file_names_the_version_of_its_schema(tmp_path: Path) -> None:
    RunStore(tmp_path).write_wave(0, *tables(1, 2))
    for name in ("trials", "violations"):
        metadata = pq.read_schema(tmp_path / name / "wave-00000.parquet").metadata
        assert metadata[b"pulsar_ml.schema_version"] == str(SCHEMA_VERSION).encode()


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_interrupted_write_leaves_the_wave_invisible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    store = RunStore(tmp_path)
    store.write_wave(0, *tables(0, 5))
    calls = 0
    replace = os.replace

    def interrupted(source: str, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write_wave(1, *tables(5, 10))
    # Trials come last: before them the wave's other tables may be missing, but no file is half.
    assert read_trials(tmp_path)["seed"].to_pylist() == [0, 1, 2, 3, 4]
    visible = {f"{name}/wave-00000.parquet" for name in ("violations", "chunks", "trials")}
    early = ["violations/wave-00001.parquet", "chunks/wave-00001.parquet"][: failing - 1]
    assert files(tmp_path) == visible | set(early)


def test_records_hold_the_smallest_seed_of_each_signature(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    summary = Summary()
    for lo, hi in ((8, 16), (3, 8)):
        store.write_records(add(summary, *tables(lo, hi)))
    for group in summary.groups.values():
        record = ReplayRecord.from_json(store.record_path(group.signature).read_text())
        assert record.seed == group.seed == 5
        assert record.invariant == group.invariant


def test_run_json_is_replaced_and_has_a_version(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.write_run({"status": "running"})
    store.write_run({"status": "finished"})
    assert json.loads((tmp_path / "run.json").read_text()) == {"version": 1, "status": "finished"}
    assert files(tmp_path) == {"run.json"}


def test_a_directory_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        RunStore(tmp_path)
    assert files(tmp_path) == {"note.txt"}


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(UsageError, match="cannot make"):
        RunStore(tmp_path / "run")


def test_a_run_without_waves_reads_as_empty_tables(tmp_path: Path) -> None:
    RunStore(tmp_path)
    assert read_trials(tmp_path).equals(TRIALS.empty_table())
    assert read_violations(tmp_path).equals(VIOLATIONS.empty_table())


def test_waves_are_in_order_also_behind_the_hundred_thousandth(tmp_path: Path) -> None:
    (tmp_path / "trials").mkdir()
    numbers = [0, 99_999, 100_000, 1_000_000]
    for number in reversed(numbers):
        (tmp_path / "trials" / f"wave-{number:05}.parquet").touch()
    assert waves_of(tmp_path) == [f"wave-{number:05}.parquet" for number in numbers]
