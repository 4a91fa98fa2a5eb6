"""``shrink RUN``: its output, its exit codes, and the same results from Spark's executors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.cli.understand.shrink import command as main
from tests import ROOT
from tests.campaign.test_shrinking import REGISTRY, files, four, large, rogue, run_of
from tests.report.kit import row, write_run
from tests.spark.session.one_jvm import OneJvm
from tests.spark.test_sweep import TIMEOUT, environment

POOL = ["--runner", "pool", "--workers", "2", "--executions", "20000"]


def shrink(run: Path, *options: str) -> Result:
    return CliRunner().invoke(main, [str(run), "--trust", *POOL, *options])


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    run = run_of(tmp_path_factory.mktemp("shrink") / "run", large("racy"), large("counter", "T01"))
    return run, shrink(run)


def test_a_table_says_what_became_smaller_and_how_it_is_made_again(
    pooled: tuple[Path, Result],
) -> None:
    _, done = pooled
    assert done.exit_code == 0, done.output
    assert "2 failures, 2 at once" in done.stderr and "2 of 2 failures: smaller 2" in done.stderr
    assert "15 → 3" in done.stdout and "smaller" in done.stdout
    assert "2 failures: 2 smaller than recorded" in done.stdout
    commands = [line.strip() for line in done.stdout.splitlines() if " replay " in line]
    assert len(commands) == 2
    assert all(command.endswith(f".json --suites {REGISTRY} --trust") for command in commands)
    replayed = subprocess.run(
        commands[0], shell=True,
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=TIMEOUT,
    )  # fmt: skip
    assert (
        replayed.returncode == 1 and "the failure was made again, step by step" in replayed.stdout
    )


def test_the_second_time_there_is_nothing_left_to_do(pooled: tuple[Path, Result]) -> None:
    run, _ = pooled
    before = files(run)
    done = shrink(run, "--json")
    assert done.exit_code == 0 and "at once" not in done.stderr
    result = json.loads(done.stdout)["failures"]
    assert [(one["suite"], one["outcome"], one["before"]["operations"]) for one in result] == [
        ("counter", "smaller", 15),
        ("racy", "smaller", 15),
    ]
    assert all(Path(one["record"]).is_file() for one in result)
    assert files(run) == before


@pytest.mark.xdist_group("spark")
def test_executors_find_the_same(
    pooled: tuple[Path, Result], tmp_path: Path, spark_jvm: OneJvm
) -> None:
    run = run_of(
        tmp_path / "run", large("racy"), large("counter", "T01"), rogue("ends_the_process")
    )
    options = ["--trust", "--executions", "20000", "--master", "local[2]"]
    done = spark_jvm.run(main, tmp_path, str(run), *options)
    assert done.returncode == 4, done.stderr
    assert "3 failures: 2 smaller than recorded" in done.stdout and "exit status 3" in done.stdout
    found = files(run)
    assert {name: found[name] for name in files(pooled[0])} == files(pooled[0])


def test_one_signature_can_be_asked_for(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", large("racy"), rogue("ends_the_process"))
    (signature,) = [
        path.stem for path in (run / "records").iterdir() if '"racy"' in path.read_text()
    ]
    done = shrink(run, "--signature", signature)
    assert done.exit_code == 0 and "1 failure: 1 smaller than recorded" in done.stdout, done.output
    assert {name.partition(".")[0] for name in files(run)} == {signature}
    done = shrink(run)
    assert (
        done.exit_code == 4 and "1 tried before" in done.stdout and "exit status 3" in done.stdout
    )


def test_what_cannot_be_tried_ends_with_4_and_a_reason(tmp_path: Path) -> None:
    done = shrink(four(tmp_path / "run"), "--json")
    assert done.exit_code == 4
    found = {(one["outcome"], one["message"]) for one in json.loads(done.stdout)["failures"]}
    assert found == {("refused", "pulsar_ml.suites.registry has no suite 'made_up'")}


def test_a_run_without_failures_has_nothing_to_shrink(tmp_path: Path) -> None:
    done = shrink(write_run(tmp_path / "run", [row(1)]))
    assert done.exit_code == 3 and "0 failures" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--signature", "nope"], "has no record with the signature 'nope'"),
        (["--executions", "0"], "0"),
        (["--runner", "spark", "--master", "nowhere"], "does not know the master 'nowhere'"),
    ],
)
def test_usage_errors_change_nothing(tmp_path: Path, options: list[str], message: str) -> None:
    run = four(tmp_path / "run")
    done = shrink(run, *options)
    assert done.exit_code == 2 and message in done.stderr, done.output
    assert not (run / "shrunk").exists()
    done = shrink(tmp_path / "nowhere")
    assert done.exit_code == 2 and "cannot be read" in done.stderr


def test_ctrl_c_ends_with_130_and_the_next_time_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", large("racy"))
    with monkeypatch.context() as patch:
        patch.setattr("pulsar_ml.terminal.stop_request.StopRequest.requested", lambda stop: True)
        done = shrink(run)
    assert done.exit_code == 130 and "1 failure: 0 smaller than recorded" in done.stdout, (
        done.output
    )
    assert not (run / "shrunk").exists()
    assert shrink(run).exit_code == 0 and len(files(run)) == 2
