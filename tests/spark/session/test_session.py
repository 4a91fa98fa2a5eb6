"""Settings of sessions, and messages when there is none; no JVM is started here."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_ml.campaign import turns
from pulsar_ml.distributed.session import (
    LocalMaster,
    check_master,
    java_message,
    java_problem,
    local_master,
    repeating,
    settings,
    task_cpus,
)
from pulsar_ml.errors import UsageError
from pulsar_ml.sweep.options import RunnerOptions
from pulsar_ml.sweep.runners import effective_master


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", LocalMaster(1, 1)),
        ("local[3]", LocalMaster(1, 3)),
        ("local[3,2]", LocalMaster(1, 3)),
        ("local-cluster[2,1,1024]", LocalMaster(2, 1)),
        ("local-cluster[2, 4, 1024]", LocalMaster(2, 4)),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_the_cores_of_a_master_on_this_machine_are_known(
    master: str, expected: LocalMaster | None
) -> None:
    assert local_master(master) == expected
    check_master(master)


def test_a_star_stands_for_the_processors_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    assert local_master("local[*]") == LocalMaster(1, 7)
    check_master("local[*]")


@pytest.mark.parametrize(
    ("master", "attempts"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3]", "local[3,4]"),
        ("local[3,2]", "local[3,2]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_task_that_lost_its_worker_is_tried_again_on_every_master(
    master: str, attempts: str
) -> None:
    assert repeating(master) == attempts
    assert settings(master, cpus=1, scratch=Path("/s"), site=None)["spark.task.maxFailures"] == "4"


@pytest.mark.parametrize("master", ["", "locally", "local[x]", "http://host", "sc://host:15002"])
def test_a_master_that_no_spark_knows_is_refused(master: str) -> None:
    with pytest.raises(UsageError, match="does not know the master"):
        check_master(master)


@pytest.mark.parametrize(
    ("master", "threads", "cpus"),
    [
        ("local[8]", 4, 1),
        ("local[2]", 16, 1),
        ("local-cluster[2,1,1024]", 4, 1),
        ("local[4]", 1, 1),
        ("spark://host:7077", 16, 4),
    ],
)
def test_four_trials_share_the_cores_of_one(master: str, threads: int, cpus: int) -> None:
    assert task_cpus(master, threads) == cpus


def test_settings_keep_everything_that_spark_writes_in_the_scratch_directory() -> None:
    scratch = Path("/scratch")
    chosen = settings("local[2]", cpus=2, scratch=scratch, site=scratch / "site")
    written = [key for key, value in chosen.items() if value.startswith("/scratch")]
    assert sorted(written) == [
        "spark.executorEnv.PYTHONPATH",
        "spark.local.dir",
        "spark.sql.warehouse.dir",
    ]
    assert chosen["spark.task.cpus"] == "2"


def test_executors_of_a_cluster_are_left_as_they_are() -> None:
    chosen = settings("spark://host:7077", cpus=4, scratch=Path("/scratch"), site=Path("/site"))
    assert not [key for key in chosen if key.startswith(("spark.executor", "spark.driver"))]
    assert chosen["spark.task.maxFailures"] == "4"


def fake_java(directory: Path, text: str) -> dict[str, str]:
    java = directory / "java"
    java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    java.chmod(0o755)
    return {"PATH": str(directory)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "21" 2023-09-19', None),
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11"),
        ('java version "1.8.0_402"', "is Java 8"),
        ("cannot open shared object file", "does not start"),
    ],
)
def test_a_java_that_is_too_old_or_broken_is_named(
    tmp_path: Path, text: str, problem: str | None
) -> None:
    sentence = java_problem(fake_java(tmp_path, text))
    assert (
        sentence is None
        if problem is None
        else (problem in (sentence or "") and "openjdk-17" in (sentence or ""))
    )


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    assert str(tmp_path) in (
        java_problem({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]}) or ""
    )


def test_the_sentence_of_a_java_error_is_found_in_its_stack() -> None:
    text = (
        "An error occurred calling x.\n"
        ": org.apache.spark.SparkException: no room\n\tat a.b(C.scala:1)"
    )
    assert java_message(RuntimeError(text)) == "no room"
    assert java_message(RuntimeError("only this")) == "only this"
    assert java_message(RuntimeError()) == "RuntimeError"


def test_without_a_master_as_many_tasks_run_as_the_pool_has_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "processor_count", lambda: 2)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    options = RunnerOptions("spark", None, {}, None, None, "suites")
    assert [effective_master(options, threads) for threads in (1, 2, 4)] == [
        "local[2]",
        "local[6]",
        "local[4]",
    ]
    assert effective_master(replace(options, master="local[3]"), 4) == "local[3]"
