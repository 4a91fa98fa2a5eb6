"""The baseline of a run: the signatures of an earlier run, and files of known failures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow.compute as pc

from pulsar_ml.campaign.store.merge import Summary
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.harness.testing.known import Baseline, Entry, read_baseline


def signatures_of(directory: Path) -> list[Entry]:
    """The signatures of the run in ``directory``, finished or not."""
    run = open_run(directory)
    found: set[str] = set()
    for batch in run.violations():
        found.update(pc.unique(batch["signature"]).to_pylist())
    source = f"run {run.facts['run_id'] or directory.name}"
    return [Entry(signature, source) for signature in sorted(found)]


def baseline_of(paths: Iterable[Path], day: date) -> Baseline:
    """The baseline of results directories and files of known failures."""
    return read_baseline(paths, day, signatures_of)


def verdict_against(summary: Summary, baseline: Baseline | None) -> str:
    """The verdict of a run when its known failures are left out."""
    if baseline is None or summary.verdict != "violation":
        return summary.verdict
    if not all(map(baseline.is_known, summary.groups)):
        return "violation"
    return "nothing_exercised" if summary.idle_suites or not summary.suites else "clean"
