"""Spark's pages name each job by run, wave, suites and seeds, and have metrics by suite."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.distributed.counters import since
from pulsar_ml.distributed.runner import describe
from tests import ROOT
from tests.harness.toys.build_toys import toys_path
from tests.spark.sweep_suites import TOYS
from tests.spark.test_sweep import TIMEOUT, environment

SCRIPT = """
import json, sys, time, urllib.request
from pathlib import Path
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native
from pulsar_ml.distributed.runner import SparkRunner
from pulsar_ml.distributed.session import PAGES, open_session, settings

scratch, module = Path(sys.argv[1]), sys.argv[2]
options = TrialOptions(module=module)
plan = Plan(("counter", "tattler"), 0, 6, 2, options)
job = Job("a-run", load_native(module).BUILD_ID, options)
chosen = settings("local[2]", cpus=1, scratch=scratch, site=None)
session = open_session(chosen, PAGES, scratch=scratch, log=scratch / "log")
runner = SparkRunner(session, cpus=1, registry="tests.spark.sweep_suites", note=print)
reports, searched = [], []
noted = (lambda *counts: reports.append(counts), lambda *counts: searched.append(counts))
watch = Watch(lambda: False, *noted, wave=7, round=2)
wave = runner.run(job, list(plan.chunks()), watch)
context = session.sparkContext
def get(path):
    with urllib.request.urlopen(context.uiWebUrl + path) as answer:
        return answer.read().decode()
def stages():
    return json.loads(get(api + "stages"))
api = f"/api/v1/applications/{context.applicationId}/"
# Spark brings its pages up to date beside the job.
while [stage["status"] for stage in stages()] != ["COMPLETE"] or any(
    job["status"] != "SUCCEEDED" for job in json.loads(get(api + "jobs"))
):
    time.sleep(0.1)
json.dump({
    "trials": wave.table().num_rows,
    "reports": [sum(column) for column in zip(*reports)],
    "jobs": json.loads(get(api + "jobs")),
    "stages": stages(),
    "metrics": json.loads(get("/metrics/json"))["gauges"],
    "prometheus": get("/metrics/prometheus"),
}, open(scratch / "seen", "w"))
runner.close()
"""
WORDS = "a-run, round 2, wave 7: counter, tattler seeds 0 to 5 (4 chunks, 12 trials)"


@pytest.mark.xdist_group("spark")
def test_jobs_stages_and_metrics_of_a_live_session(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(toys_path())],
        cwd=ROOT,
        env=environment(**{TOYS: str(toys_path())}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads((tmp_path / "seen").read_text())
    assert seen["trials"] == 12
    assert seen["reports"] == [12, 6], "trials and violations, reported while the wave ran"
    (job,) = seen["jobs"]
    assert (job["description"], job["jobGroup"]) == (WORDS, "a-run wave 7 job 1")
    (stage,) = seen["stages"]
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
