"""The JVM of a session ends with it, also when an interrupt ends the session's start."""

from __future__ import annotations

import logging
import signal
import subprocess
from types import SimpleNamespace

import psutil
import pytest

from pulsar_ml.distributed import jvm
from pulsar_ml.distributed.jvm import end_jvm, ended_when_interrupted
from pulsar_ml.terminal.signals import Interrupted

pytest.importorskip("pyspark")


def gateway(*command: str) -> SimpleNamespace:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    return SimpleNamespace(proc=process, shutdown=lambda: None)


def test_one_that_ends_with_its_input_ends_by_itself() -> None:
    found = gateway("cat")
    end_jvm(found)
    assert found.proc.returncode == 0


def test_one_that_does_not_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "END_SECONDS", 0.01)
    found = gateway("sleep", "600")
    end_jvm(found)
    assert found.proc.returncode == -signal.SIGKILL


def test_connections_are_closed_behind_the_jvm() -> None:
    """A connection whose thread waits for the JVM cannot be closed before."""
    found = gateway("cat")
    states: list[int | None] = []
    found.shutdown = lambda: states.append(found.proc.poll())
    end_jvm(found)
    assert states == [0]


def test_that_of_spark_submit_stays() -> None:
    end_jvm(SimpleNamespace(shutdown=lambda: pytest.fail("it is not ours")))


def test_an_interrupt_ends_what_was_started_meanwhile_and_no_other_process() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as before:
        with pytest.raises(Interrupted), ended_when_interrupted():
            meanwhile = subprocess.Popen(["sleep", "600"], start_new_session=True)
            started = psutil.Process(meanwhile.pid)
            raise Interrupted(signal.SIGTERM)
        running = [started.is_running(), before.poll() is None]
        meanwhile.kill()
        meanwhile.wait()
        before.kill()
    assert running == [False, True]


def test_what_py4j_prints_about_an_interrupt_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with ended_when_interrupted():
        logging.error("KeyboardInterrupt while sending command.")
        logging.error("Something else.")
    assert [record.message for record in caplog.records] == ["Something else."]
