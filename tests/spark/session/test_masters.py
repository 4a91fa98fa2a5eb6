"""Masters that do not answer, or no longer: a note after seconds, and an end with exit code 4."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.run.runner import RunnerError
from pulsar_ml.cli import main
from pulsar_ml.distributed.runner import MasterLife
from pulsar_ml.distributed.session import SessionError
from pulsar_ml.distributed.waiting import MasterWait
from tests.bad_input.test_commands import COMMANDS
from tests.spark.test_sweep import sweep


@pytest.fixture
def silent() -> Iterator[str]:
    """A master that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def gone(silent: str) -> str:
    """A master at whose port nobody listens, and no other test will."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        return f"spark://127.0.0.1:{other.getsockname()[1]}"


@pytest.mark.xdist_group("spark")
def test_a_master_that_never_answers_ends_the_sweep(tmp_path: Path, silent: str) -> None:
    done = sweep(
        tmp_path,
        *("--suite", "counter", "--seeds", "4", "--module", "sweep_suites"),
        *("--master", silent, "--master-seconds", "7"),
    )
    assert done.returncode == 4, done.stderr
    assert f"waiting for the Spark master {silent} for up to 7 s" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        f"Failed: the Spark master {silent} did not answer within 7 s; is it running"
    )
    assert "Traceback" not in done.stderr
    content = json.loads((tmp_path / "out" / "run.json").read_text())
    assert content["status"] == "failed" and "did not answer" in content["problem"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("pulsar_ml.cli.distribute.doctor", ["doctor"]),
        ("pulsar_ml.distributed.scale.bench", ["scale"]),
        ("pulsar_ml.cli.cache.grid", ["simulate", "tailing", "--grid", "default"]),
        ("pulsar_ml.sweep.runners", ["sweep", "--suite", "refcount", "--seeds", "1"]),
    ],
)
def test_each_command_waits_for_its_master_as_long_as_it_may(
    place: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session(*_: object, seconds: float, **__: object) -> None:
        raise SessionError(f"waited {seconds:g} s")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{place}.spark_session", session)
    master = ["--master", "local-cluster[1,1,1024]", "--master-seconds", "7.5"]
    done = CliRunner().invoke(main, [*words, *master])
    assert done.exit_code == 4, done.output
    assert done.output.splitlines()[-1] == "Failed: waited 7.5 s"


def test_each_command_with_a_master_takes_master_seconds() -> None:
    taking = {
        name
        for name, (_, _, command) in COMMANDS.items()
        if any("--master" in option.opts for option in command.params)
    }
    assert taking >= {"pulsar-ml doctor", "pulsar-ml shrink", "spark.mutants"}
    for name in taking:
        options = [word for option in COMMANDS[name][2].params for word in option.opts]
        assert "--master-seconds" in options, name


def test_a_session_that_takes_too_long_loses_its_jvm() -> None:
    notes: list[str] = []
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        wait = MasterWait("yarn", 0.01, SimpleNamespace(proc=process), notes.append)
        with wait:
            assert process.wait(900) == -signal.SIGKILL
    assert wait.gave_up and "yarn did not answer within 0.01 s" in wait.sentence()
    assert notes == ["waiting for the Spark master yarn for up to 0.01 s"]


def test_a_session_that_is_there_in_time_keeps_its_jvm() -> None:
    notes: list[str] = []
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        with MasterWait("yarn", 60, SimpleNamespace(proc=process), notes.append) as wait:
            pass
        assert process.poll() is None and not wait.gave_up and notes == []
        process.kill()


def test_a_master_that_is_gone_has_its_time_to_come_back(
    monkeypatch: pytest.MonkeyPatch, silent: str, gone: str
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    notes: list[str] = []
    life = MasterLife(gone, 20, notes.append)
    clock[0] = 4
    life.look(busy=False)
    assert notes == []
    clock[0] = 6
    life.look(busy=False)
    assert len(notes) == 1 and f"the Spark master {gone} does not answer" in notes[0]
    for clock[0] in (12, 18, 24):
        life.look(busy=False)
    clock[0] = 30
    with pytest.raises(RunnerError, match="does not answer .* is it running"):
        life.look(busy=False)
    life.look(busy=True)  # tasks run, so nobody asks
    clock[0] = 100
    MasterLife(silent, 20, notes.append).look(busy=False)
    MasterLife("local-cluster[1,1,1]", 20, notes.append).look(busy=False)
    assert len(notes) == 1
