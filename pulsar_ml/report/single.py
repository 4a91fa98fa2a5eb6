"""Findings without a run: of one failure, or of a folder of records of ``check`` or pytest."""

from __future__ import annotations

import platform
from pathlib import Path

from pulsar_ml import __version__
from pulsar_ml.campaign.local.failures import read_failure
from pulsar_ml.campaign.local.record_kind import is_failure
from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.store.baseline import signature_of
from pulsar_ml.campaign.store.merge import Group, add_groups
from pulsar_ml.campaign.store.read_run import SavedRun, checked
from pulsar_ml.campaign.store.store import RUN_VERSION
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.testing.known import Baseline
from pulsar_ml.harness.testing.sarif import rule_of
from pulsar_ml.input_files import bounded_text
from pulsar_ml.report.findings import MOST_GROUPS, Findings
from pulsar_ml.terminal.command_line import short_path

OF_TESTS = Path(".pulsar_ml") / "failures"


def is_run(path: Path) -> bool:
    """Return False for a file, and for a folder with records in place of a run."""
    if path.is_file():
        return False
    return not path.is_dir() or (path / "run.json").exists() or not record_files(path)


def record_files(folder: Path) -> list[Path]:
    """The records of a folder, or of the folder of failures in it."""
    below = folder / OF_TESTS
    folder = below if below.is_dir() else folder
    return sorted(path for path in folder.glob("*.json") if path.is_file())


def gather_failures(path: Path, baseline: Baseline | None = None) -> Findings:
    """The findings of one record, or of all records in a folder; equal ones are one signature.

    Raises BadRecordError for a file that is no record, and UsageError for a folder without any.
    """
    files = [path] if path.is_file() else record_files(path)
    facts = {
        "version": RUN_VERSION,
        "status": "finished",
        "versions": {
            "python": platform.python_version(),
            "pulsar_ml": __version__,
            "system": f"{platform.system()} on {platform.machine()}",
        },
    }
    findings = Findings(
        SavedRun(path.parent, checked(facts, path)), source=short_path(path), baseline=baseline
    )
    for file in files:
        try:
            group = group_of(file)
        except BadRecordError:
            if path == file:
                raise
            continue  # another program's file
        if group.signature not in findings.records and len(findings.records) >= MOST_GROUPS:
            findings.dropped += 1
        elif add_groups(findings.summary, [group]):
            findings.records[group.signature] = file
    if not findings.records:
        raise UsageError(f"{path} has no record of a failure")
    return findings


def group_of(path: Path) -> Group:
    text = bounded_text(path, "the record")
    if is_failure(path):
        failure = read_failure(path)
        rule = rule_of(failure)
        name = signature_of(failure)
        return Group(name, failure.subject, rule, 1, failure.seed, failure.message, "", text)
    record = read_record(path)
    rule, message = record.invariant or "no invariant", record.message or "no message"
    name = signature(record.suite, rule, message)
    return Group(name, record.suite, rule, 1, record.seed, message, "", text)
