"""The loop of a run, on its own: budgets, interruption, the program in flight."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pulsar_ml.campaign.local.records import Records, fresh_folder
from pulsar_ml.campaign.local.session import Budget, SuiteRun, run_suite
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.terminal.progress import ProgressDisplay
from tests.stress.toy_suites import SUITES


class Interrupting(ProgressDisplay):
    """Progress during which Ctrl-C is pressed after some programs."""

    def __init__(self, after: int) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.after = after

    def update(self, done: float, text: str = "") -> None:
        if done == self.after:
            raise KeyboardInterrupt


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records")


def run(
    toys_so: Path,
    records: Records,
    progress: ProgressDisplay,
    name: str = "racy",
    *,
    seconds: float | None = None,
    programs: int | None = None,
) -> SuiteRun:
    return run_suite(
        SUITES[name],
        seed=10,
        budget=Budget(seconds, programs),
        options=TrialOptions(module=str(toys_so), operations=1000),
        records=records,
        progress=progress,
        most_failures=100,
        leak_threshold=0,
    )


def test_interruption_keeps_what_was_found(toys_so: Path, records: Records) -> None:
    found = run(toys_so, records, Interrupting(3), programs=50)
    assert found.interrupted
    assert (found.exit_code(), found.programs) == (130, 3)
    assert [failure.seed for failure in found.failures] == [10, 11, 12]
    assert all(
        ReplayRecord.from_json(failure.record.read_text()).invariant == "T1"
        for failure in found.failures
    )


def test_the_program_in_flight_is_on_disk_while_it_runs(toys_so: Path, records: Records) -> None:
    run(toys_so, records, Interrupting(4), programs=50)
    record = ReplayRecord.from_json((records.folder / "running.json").read_text())
    assert (record.suite, record.seed) == ("racy", 13)
    records.close()
    assert not (records.folder / "running.json").exists()


def test_any_time_is_enough_for_one_program(toys_so: Path, records: Records) -> None:
    found = run(
        toys_so, records, ProgressDisplay(Console(file=io.StringIO())), name="counter", seconds=1e-9
    )
    assert found.programs == 1


def test_a_terminal_gets_a_bar_and_the_text_survives(toys_so: Path, records: Records) -> None:
    screen = io.StringIO()
    run(toys_so, records, ProgressDisplay(Console(file=screen, force_terminal=True)), programs=2)
    assert "racy: 2 programs from seed 10 on 2 threads" in screen.getvalue()


def test_budgets_are_shared_in_equal_parts() -> None:
    assert Budget(60.0, None).share(4) == Budget(15.0, None)
    assert Budget(None, 10).share(4) == Budget(None, 2)
    assert Budget(None, 3).share(4) == Budget(None, 1)


def test_a_fresh_folder_is_always_new(tmp_path: Path) -> None:
    paths = {fresh_folder(tmp_path / "runs" / "now") for _ in range(3)}
    assert {path.name for path in paths} == {"now", "now-2", "now-3"}
