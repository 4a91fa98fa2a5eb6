"""The baseline of a run: an earlier run, records, and files of known failures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow.compute as pc

from pulsar_ml.campaign.store.merge import Summary
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.trial.controlled import as_violation
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.testing.known import (
    Baseline,
    Entry,
    read_baseline,
    records_below,
    short_signature,
)


def signature_of(failure: Failure) -> str:
    """The signature of a test's failure, which its record has in its name, or of a suite's row."""
    if Program.from_json(failure.program).is_test:
        return short_signature(failure)
    found = as_violation(failure)
    return signature(failure.subject, found.invariant, found.message, found.places)


def signatures_of(directory: Path) -> list[Entry]:
    """The signatures of the run in ``directory``, finished or not, or of the records there."""
    if not (directory / "run.json").exists() and (found := records_below(directory, signature_of)):
        return found
    run = open_run(directory)
    seen: set[str] = set()
    for batch in run.violations():
        seen.update(pc.unique(batch["signature"]).to_pylist())
    source = f"run {run.facts['run_id'] or directory.name}"
    return [Entry(one, source) for one in sorted(seen)]


def baseline_of(paths: Iterable[Path], day: date) -> Baseline:
    """The baseline of results directories, folders of records and files of known failures."""
    return read_baseline(paths, day, signatures_of)


def verdict_against(summary: Summary, baseline: Baseline | None) -> str:
    """The verdict of a run when its known failures are left out."""
    if baseline is None or summary.verdict != "violation":
        return summary.verdict
    if not all(map(baseline.is_known, summary.groups)):
        return "violation"
    return "nothing_exercised" if summary.idle_suites or not summary.suites else "clean"
