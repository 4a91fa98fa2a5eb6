"""Rows that executors write: the same run as when the driver collects them, each trial once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.schema import CHUNKS, split
from pulsar_ml.campaign.store.staging import (
    StagedFiles,
    in_parts,
    open_staging,
    path_of,
    write_part,
)
from pulsar_ml.campaign.store.store import RunStore, read_chunks, read_trials, read_violations
from pulsar_ml.cli.find.sweep import command as main
from pulsar_ml.distributed.groups import grouped, merging
from pulsar_ml.distributed.tasks import ExecutorError, ledger_rows, rows_of
from tests.campaign.rows import stable_rows
from tests.campaign.store.test_ledger import rows
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm
from tests.spark.session.test_tasks import work


@pytest.mark.xdist_group("spark")
def test_executors_leave_the_run_that_the_driver_would(tmp_path: Path, spark_jvm: OneJvm) -> None:
    options = ["--engine", "controlled", "--suite", "racy", "--suite", "counter", "--seeds", "24"]
    options += ["--executions", "60", "--module", str(toys_path(checked=True)), "--json"]
    # Chunks of one trial, and then tasks of as many as take 0.2 seconds.
    options += ["--chunk-seconds", "0.2"]
    results = []
    for number, place in enumerate(
        (["--master", "local[2]", "--rows", "executors"], ["--runner", "inline"])
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        done = spark_jvm.sweep(directory, *options, *place)
        assert done.returncode == 1, done.stderr
        results.append(json.loads(done.stdout))
    staged, inline = (tmp_path / name / "out" for name in ("0", "1"))
    # Each was cut by itself.
    columns = [name for name in read_trials(staged).column_names if name != "chunk_id"]
    for read in (read_trials, read_violations):
        known = [name for name in columns if name in read(staged).column_names] + ["run_id", "host"]
        assert stable_rows(read(staged).select(known)) == stable_rows(read(inline).select(known))
    assert [results[0][name] for name in ("trials", "executions", "violations")] == [
        results[1][name] for name in ("trials", "executions", "violations")
    ]
    for one, other in zip(results[0]["signatures"], results[1]["signatures"], strict=True):
        assert {**one, "replay": ""} == {**other, "replay": ""}
    for name in ("racy", "counter"):
        one, other = (dict(each["suites"][name]) for each in results)
        assert one.pop("busy_us") > 0 and other.pop("busy_us") > 0
        differing = {"wall_us", *SPENT}
        assert {key: one[key] for key in one if key not in differing} == {
            key: other[key] for key in other if key not in differing
        }
    assert not (staged / ".staging").exists()
    chunks = read_chunks(staged)
    assert sum(chunks["trials"].to_pylist()) == 48 and len(
        set(chunks["chunk_id"].to_pylist())
    ) == len(chunks)
    past = past_of(staged)
    past.store.close()
    assert past.summary.trials == 48


def test_a_task_writes_its_chunks_and_tells_the_ledger(tmp_path: Path) -> None:
    staging = open_staging(tmp_path)
    prepared = work(staging=(str(staging[0]), staging[1]), tasks=((0, 2), (1, 3)))
    found = pa.Table.from_batches(ledger_rows(prepared, [0]))
    assert found.column_names == [*CHUNKS.names, "file"]
    assert [(line["chunk_id"], line["suite"], line["trials"]) for line in found.to_pylist()] == [
        (0, "counter", 3),
        (2, "counter", 3),
    ]
    (name,) = set(found["file"].to_pylist())
    assert [path.name for path in staging[0].glob("*.parquet")] == [f"trials-{name}.parquet"]
    (path,) = staging[0].glob("*.parquet")
    assert pa.parquet.read_table(path)["seed"].to_pylist() == [5, 6, 7, 8, 9, 10]
    assert [len(batch) for batch in rows_of(prepared, [1])] == [3, 3]


def test_an_executor_that_sees_another_directory_says_so_before_the_first_trial(
    tmp_path: Path,
) -> None:
    directory, token = open_staging(tmp_path)
    for staging in ((str(tmp_path / "nowhere"), token), (str(directory), "another")):
        with pytest.raises(
            ExecutorError, match="does not see .* every executor has at this path"
        ) as raised:
            next(ledger_rows(work(staging=staging), [0]))
        assert "\n" not in str(raised.value)
    assert not list(directory.glob("*.parquet"))


def test_files_are_merged_in_parts_and_published_one_by_one(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    directory, _ = open_staging(store.directory)
    ledgers = []
    for number in range(4):  # of 10 trials each
        part = rows(Chunk(number, "made_up", 10 * number, 10 * number + 10))
        assert list(write_part(directory, str(number), [part])) == [part]
        ledger = ledger_of(part)
        ledgers.append(ledger.append_column("file", pa.array([str(number)])))
    ledger = pa.concat_tables(reversed(ledgers))
    assert in_parts(ledger) == [["0", "1", "2", "3"]] and in_parts(ledger, 1) == [
        ["0"],
        ["1"],
        ["2"],
        ["3"],
    ]
    parts = in_parts(ledger, 15)
    assert parts == [["0", "1"], ["2", "3"]]
    (directory / "trials-lost.parquet").write_bytes(b"PAR1 and no more")
    for number, name in enumerate(merging(str(directory), parts)(iter([0, 1]))):
        chunks = pa.concat_tables(ledgers[2 * number : 2 * number + 2]).drop_columns(["file"])
        paths = [path_of(directory, table, name) for table in ("trials", "violations")]
        store.publish_part(number, StagedFiles(paths[0], paths[1], chunks))
        assert read_trials(store.directory)["seed"].to_pylist() == list(range(20 * number + 20))
    expected = split(rows(Chunk(0, "made_up", 0, 40)))[1]
    assert read_violations(store.directory)["seed"].to_pylist() == expected["seed"].to_pylist()
    assert read_chunks(store.directory)["chunk_id"].to_pylist() == [0, 1, 2, 3]
    store.tidy()
    assert not directory.exists() and read_trials(store.directory).num_rows == 40


def test_groups_of_files_are_those_of_their_rows(tmp_path: Path) -> None:
    directory, _ = open_staging(tmp_path)
    parts = [rows(Chunk(0, "made_up", 7, 31)), rows(Chunk(1, "made_up", 1, 7))]
    for number, part in enumerate(parts):
        assert list(write_part(directory, str(number), [part])) == [part]
    found = grouped([str(path) for path in sorted(directory.glob("violations-*"))])
    groups = sorted(found.values(), key=lambda group: str(group["invariant"]))
    assert [(group["invariant"], group["seed"], group["count"]) for group in groups] == [
        ("I1", 5, 6),
        ("I2", 5, 6),
    ]
    expected = split(parts[1])[1].to_pylist()
    assert [(group["message"], group["replay"]) for group in groups] == [
        (line["message"], line["replay"]) for line in expected
    ]


@pytest.mark.parametrize("option", [["--rows", "executors"], ["--speculate"]])
def test_what_only_spark_does_is_refused_elsewhere(tmp_path: Path, option: list[str]) -> None:
    done = CliRunner().invoke(main, ["--runner", "pool", "--out", str(tmp_path / "out"), *option])
    assert (
        done.exit_code == 2
        and f"{' '.join(option)} is for --runner spark, not for pool" in done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_work_names_each_chunk_of_each_task() -> None:
    plain = work()
    assert plain.tasks == tuple((index,) for index in range(len(plain.chunks)))
    assert Counter(place for task in plain.tasks for place in task) == Counter(
        range(len(plain.chunks))
    )
