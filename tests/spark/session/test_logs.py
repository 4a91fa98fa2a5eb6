"""The row of a violation leads to the log of the executor that found it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.store.schema import ROW
from pulsar_ml.campaign.store.store import read_violations
from pulsar_ml.campaign.trial.chunk import run_chunk
from pulsar_ml.distributed.logs import executor_log
from pulsar_ml.distributed.tasks import placed
from tests.campaign.rows import JOB, SUITE, made_up_trial
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm
from tests.spark.sweep_suites import TOYS


@pytest.mark.xdist_group("spark")
def test_a_row_names_the_file_with_what_its_trial_printed(
    tmp_path: Path, spark_jvm: OneJvm
) -> None:
    done = spark_jvm.sweep(
        tmp_path,
        *(
            "--suite",
            "deadly",
            "--seeds",
            "4",
            "--chunk-size",
            "1",
            "--master",
            "local-cluster[1,1,1024]",
        ),
        *("--module", "sweep_suites", "--conf", f"spark.executorEnv.{TOYS}={toys_path()}"),
    )
    assert done.returncode == 1, done.stderr
    rows = read_violations(tmp_path / "out").to_pylist()
    assert [row["seed"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        log = Path(row["log"])
        assert log.name == "stderr" and log.parent.name == row["executor"]
        assert log.is_relative_to(tmp_path / "out" / "executors"), (
            "and not in the installed package"
        )
        printed = log.read_text().splitlines()
        line = f"pulsar_ml: violation {row['signature']} of crash: deadly seed {row['seed']}"
        assert "about to crash" in printed[: printed.index(line)]


def test_where_a_log_is(tmp_path: Path) -> None:
    assert executor_log({}, tmp_path, "/run/spark.log") == ("driver", "/run/spark.log")
    assert executor_log({}, tmp_path, "") == ("", "")
    assert executor_log({"SPARK_EXECUTOR_ID": "3"}, tmp_path, "") == ("3", "")
    url = {"CONTAINER_ID": "container_1", "SPARK_LOG_URL_STDERR": "http://host/stderr"}
    assert executor_log(url, tmp_path, "") == ("container_1", "http://host/stderr")
    directory = tmp_path / "app-1" / "7"
    directory.mkdir(parents=True)
    (directory / "stderr").touch()
    assert executor_log(url, directory, "") == ("7", str(directory / "stderr"))


def test_rows_of_violations_are_placed_and_logged_once_a_signature(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = run_chunk(SUITE, Chunk(0, SUITE.name, 0, 11), JOB, trial=made_up_trial)
    assert rows is not None
    result = placed(rows, "7", "/w/stderr")
    assert result.schema.equals(ROW)
    found = [violation for row in result["violations"].to_pylist() for violation in row]
    assert len(found) == 6 and {(one["executor"], one["log"]) for one in found} == {
        ("7", "/w/stderr")
    }
    lines = capsys.readouterr().err.splitlines()
    kinds = {one["signature"] for one in found}
    assert len(lines) == len(kinds) and all("made_up seed 0" in line for line in lines)
    other = [name for name in ROW.names if name != "violations"]
    assert result.select(other).equals(rows.select(other))


def test_rows_without_violations_are_left_alone() -> None:
    rows = run_chunk(SUITE, Chunk(0, SUITE.name, 1, 5), JOB, trial=made_up_trial)
    assert isinstance(rows, pa.RecordBatch) and placed(rows, "7", "/w/stderr") is rows
