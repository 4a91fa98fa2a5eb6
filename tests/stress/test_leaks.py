"""A leak is told of one program that was repeated in a process of its own, and of nothing else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pulsar_ml.campaign.local.leaks import confirmed_leak, growth_of
from pulsar_ml.campaign.local.records import Records
from pulsar_ml.campaign.local.session import Budget, SuiteRun, run_suite
from pulsar_ml.campaign.local.watch import MEGABYTE, ProcessWatch
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import LEAK, TrialOptions, run_trial
from pulsar_ml.terminal.progress import ProgressDisplay
from tests.stress.conftest import Toys
from tests.stress.toy_suites import SUITES

THRESHOLD = 8 * MEGABYTE


def record_of(toys_so: Path, suite: str, seed: int = 3) -> ReplayRecord:
    return run_trial(SUITES[suite], seed, TrialOptions(module=str(toys_so))).replay


def run(toys_so: Path, folder: Path, suite: str) -> SuiteRun:
    return run_suite(
        SUITES[suite],
        seed=0,
        budget=Budget(None, 80),
        options=TrialOptions(module=str(toys_so)),
        records=Records(folder),
        progress=ProgressDisplay(Console(file=io.StringIO())),
        most_failures=10,
        leak_threshold=THRESHOLD,
    )


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resident memory as programs of growing size need it: one MiB more after each."""
    sizes = iter(range(100 * MEGABYTE, 10_000 * MEGABYTE, MEGABYTE))
    monkeypatch.setattr(ProcessWatch, "resident", lambda self: next(sizes))


def test_programs_that_grow_are_no_leak(toys_so: Path, tmp_path: Path, growing: None) -> None:
    found = run(toys_so, tmp_path, "counter")
    assert not found.failures
    assert not found.memory_judged
    assert found.exit_code() == 0


def test_a_program_that_keeps_memory_is_one(toys_so: Path, tmp_path: Path, growing: None) -> None:
    (failure,) = run(toys_so, tmp_path, "leaky").failures
    (violation,) = failure.violations
    assert violation.invariant == LEAK
    assert "repeats of the program of seed 79 and did not level off" in violation.message
    assert ReplayRecord.from_json(failure.record.read_text()).seed == 79


def test_the_first_program_that_keeps_memory_is_named(toys_so: Path) -> None:
    records = [record_of(toys_so, "leaky", seed) for seed in (5, 4)]
    found = confirmed_leak(SUITES["leaky"], records, programs=64, threshold=MEGABYTE)
    assert found is not None
    assert found[0].seed == 5 and "the program of seed 5" in found[1]


def test_a_program_without_a_leak_confirms_nothing(toys_so: Path) -> None:
    record = record_of(toys_so, "counter")
    assert growth_of(SUITES["counter"], record, repeats=64, threshold=MEGABYTE) == ""


def test_leaks_are_ignored_on_request(toys: Toys) -> None:
    code, out, _ = toys("run", "leaky", "--seeds", "80", "--ignore", "leak")
    assert code == 0
    assert "growth not judged" in out
