"""Spark's pages name each job by run, wave, suites and seeds, and have metrics by suite."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native
from pulsar_ml.distributed.counters import since
from pulsar_ml.distributed.driver import spark_session
from pulsar_ml.distributed.runner import SparkRunner, describe
from pulsar_ml.distributed.session import PAGES
from tests.harness.toys.build_toys import toys_path
from tests.spark.session.one_jvm import OneJvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REGISTRY = "tests.spark.sweep_suites"


def page(session: SparkSession, path: str) -> str:
    url = session.sparkContext.uiWebUrl
    assert url is not None
    with urllib.request.urlopen(url + path) as answer:
        text: str = answer.read().decode()
        return text


def seen_at(module: str) -> dict[str, Any]:
    """The pages of a live session, after a wave."""
    options = TrialOptions(module=module)
    plan = Plan(("counter", "tattler"), 0, 6, 2, options)
    job = Job("a-run", load_native(module).BUILD_ID, options)
    reports: list[tuple[int, int]] = []
    with ExitStack() as stack:
        session = spark_session(stack, "local[2]", PAGES, suites=REGISTRY)
        runner = SparkRunner(session, cpus=1, registry=REGISTRY, note=print)
        stack.callback(runner.close)
        watch = Watch(
            lambda: False,
            lambda trials, violations: reports.append((trials, violations)),
            lambda executions, classes: None,
            wave=7,
            round=2,
        )
        wave = runner.run(job, list(plan.chunks()), watch)
        # A wave that may leave chunks to the next one has none before it, so it has no rows.
        ended = replace(watch, ends=time.monotonic(), carry=True)
        empty = runner.run(job, list(plan.chunks()), ended)
        left = runner.under_way
        over = runner.run(job, [], watch)
        api = f"/api/v1/applications/{session.sparkContext.applicationId}/"

        def entries(name: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = json.loads(page(session, api + name))
            return found

        # Spark brings its pages up to date beside the job.
        while [stage["status"] for stage in entries("stages")] != 2 * ["COMPLETE"] or any(
            job["status"] != "SUCCEEDED" for job in entries("jobs")
        ):
            pass
        return {
            "trials": wave.table().num_rows,
            "left": [len(wave.left), len(over.left), len(over.batches)],
            "carry": [empty.kept, len(empty.left), left, runner.under_way],
            "reports": [sum(column) for column in zip(*reports, strict=True)],
            "jobs": entries("jobs"),
            "stages": entries("stages"),
            "metrics": json.loads(page(session, "/metrics/json"))["gauges"],
            "prometheus": page(session, "/metrics/prometheus"),
        }


WORDS = "a-run, round 2, wave 7: counter, tattler seeds 0 to 5 (4 chunks, 12 trials)"


@pytest.mark.xdist_group("spark")
def test_jobs_stages_and_metrics_of_a_live_session(tmp_path: Path, spark_jvm: OneJvm) -> None:
    with spark_jvm.serving(tmp_path):
        seen = seen_at(str(toys_path()))
    assert seen["trials"] == 12
    assert seen["reports"] == [12, 6], "trials and violations, reported while the wave ran"
    assert seen["left"] == [0, 4, 0], "of a wave, and of one whose time was over"
    assert seen["carry"] == [False, 0, True, False], "a job that was left to the next wave"
    job = seen["jobs"][-1]
    assert (job["description"], job["jobGroup"]) == (WORDS, "a-run wave 7 job 1")
    stage = seen["stages"][-1]
    assert (stage["description"], stage["numCompleteTasks"]) == (WORDS, 4)
    metrics = {
        name.split("AccumulatorSource.")[1]: entry["value"]
        for name, entry in seen["metrics"].items()
        if "AccumulatorSource." in name
    }
    assert metrics == {
        "pulsar_ml.wave": 7,
        "pulsar_ml.round": 2,
        **{
            f"pulsar_ml.{suite}.{name}": 0
            for suite in ("counter", "tattler")
            for name in ("executions", "classes")
        },
        "pulsar_ml.counter.trials": 6,
        "pulsar_ml.counter.violations": 0,
        "pulsar_ml.tattler.trials": 6,
        "pulsar_ml.tattler.violations": 6,
    }
    assert "pulsar_ml_tattler_violations" in seen["prometheus"]


def test_a_job_says_which_seeds_of_which_suites() -> None:
    chunks = [
        Chunk(0, "a", 0, 10),
        Chunk(1, "b", 0, 10),
        Chunk(2, "a", 10, 20),
        Chunk(3, "c", 5, 6, "pct"),
    ]
    quiet = Watch(lambda: False, lambda trials, violations: None, wave=2)
    assert describe("r", quiet, chunks) == (
        "r, round 1, wave 2: a seeds 0 to 19; b seeds 0 to 9; c by pct seeds 5 to 5 "
        "(4 chunks, 31 trials)"
    )


def test_what_was_told_since() -> None:
    assert since({}, {}) == (0, 0, 0, 0)
    assert since({"a": (1, 0, 5, 2)}, {"a": (3, 1, 9, 2), "b": (1, 1, 1, 1)}) == (3, 2, 5, 1)
