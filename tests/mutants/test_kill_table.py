"""The kill table: what is kept of a cell, what counts as found, and what the page says of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pulsar_ml.harness.search.child import Limits
from pulsar_ml.suites.registry import SUITES
from stress.mutants import techniques
from stress.mutants.faults import NOTICED, read
from stress.mutants.kill_page import blamed, page, survivors
from stress.mutants.kill_table import PAGE, missing
from stress.mutants.results import Results, summary
from stress.mutants.sources import PACKAGE, named_in, reached
from stress.mutants.techniques import (
    STUCK_SEEDS,
    TECHNIQUES,
    Case,
    Task,
    Trial,
    attempts,
    cases,
    nothing,
)

ONE, C11 = TECHNIQUES["one"], TECHNIQUES["c11"]
MUTANT = Case("X1", replace(nothing("refcount"), id="X1", title="a mistake"), "X1")
CORE = Case("true core, refcount", nothing("refcount"), None)


def trial(seed: int, *, found: bool) -> Trial:
    size = {"threads": 2, "operations": 3, "preemptions": 1, "stale reads": 0, "other": 0}
    return Trial(seed, found, 7 + seed, 0.25, "I12" if found else "", size if found else None)


def results(folder: Path, case: Case, *found: bool, technique: str = "c11") -> Results:
    made = Results(folder / "cells.csv")
    trials = [trial(seed, found=one) for seed, one in enumerate(found)]
    made.add(summary(case, TECHNIQUES[technique], trials))
    return made


def test_a_cell_sums_its_trials_up(tmp_path: Path) -> None:
    cell = results(tmp_path, MUTANT, True, False, True).of(MUTANT, C11)
    assert cell is not None
    assert (cell.seeds, cell.found, cell.made, cell.first, cell.seconds) == (3, 2, 24, "8", "0.250")
    assert (cell.verdicts, cell.size) == ("I12 (2)", "2 threads, 3 operations, 1 preemptions")


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    made = results(tmp_path, MUTANT, True, False)
    again = Results(made.path)
    assert again.cells == made.cells
    assert missing(C11, [MUTANT], 2, again) == []
    assert missing(C11, [MUTANT], 5, again) == [MUTANT]
    assert missing(ONE, [MUTANT], 2, again) == [MUTANT]


def test_another_text_of_a_mutant_makes_its_results_void_and_another_title_does_not(
    tmp_path: Path,
) -> None:
    made = results(tmp_path, MUTANT, True)
    assert made.lacks(C11, Case("X1", replace(MUTANT.mutant, new="pass"), "X1"), 1)
    assert not made.lacks(C11, Case("X1", replace(MUTANT.mutant, title="reworded"), "X1"), 1)


def test_a_page_has_counts_medians_verdicts_and_sizes(tmp_path: Path) -> None:
    made = results(tmp_path, MUTANT, True, False)
    text = page(made, [MUTANT, CORE], [])
    assert "| X1 | a mistake | refcount |  | - | - | - | 1/2 |" in text
    assert "| X1 | 1/2 | 7 | 0.250 | I12 (1) | 2 threads, 3 operations, 1 preemptions |" in text
    assert "Survivors" not in text
    text = page(results(tmp_path, CORE, False), [MUTANT, CORE], [])
    assert "| refcount | - | - | - | 0/1; 7 |" in text


def test_the_summary_says_what_only_one_technique_finds(tmp_path: Path) -> None:
    made = results(tmp_path, MUTANT, True, False)
    core = results(tmp_path, CORE, False).cells[CORE.label, "c11"]
    made.cells[core.key] = core
    text = page(made, [MUTANT, CORE], [])
    assert "1 mutants: 1 found by some technique, 0 equivalent, 0 not found." in text
    assert "The true core: 1 cells, 0 in which something was reported." in text
    assert "| engine c11 | 1 | 0 | 1 | 1 |" in text
    other = replace(made.cells["X1", "c11"], technique="sc", found=2)
    made.cells[other.key] = other
    made.cells[core.key] = replace(core, found=1)
    text = page(made, [MUTANT, CORE], [])
    assert "| engine c11 | 1 | 0 | 0 | 1 |" in text
    assert "| engine sc | 1 | 1 | 0 | 1 |" in text
    assert "The true core: 1 cells, 1 in which something was reported." in text


def test_a_survivor_is_flagged_and_an_equivalent_mutant_is_not(tmp_path: Path) -> None:
    made = results(tmp_path, MUTANT, False, False)
    assert survivors(made, [MUTANT]) == [MUTANT]
    assert "## Survivors" in page(made, [MUTANT], [])
    same = Case("X1", replace(MUTANT.mutant, equivalent="Nobody asks."), "X1")
    assert survivors(made, [same]) == []
    assert "| X1 | a mistake | Nobody asks. |" in page(made, [same], [])


def test_the_true_core_and_what_equals_it_may_not_be_blamed(tmp_path: Path) -> None:
    made = results(tmp_path, CORE, True)
    assert [cell.case for cell in blamed(made, [CORE])] == [CORE.label]
    same = Case("X1", replace(MUTANT.mutant, equivalent="Nobody asks."), "X1")
    assert [cell.case for cell in blamed(results(tmp_path, MUTANT, True), [same])] == ["X1"]
    assert not blamed(results(tmp_path, CORE, False), [CORE])


def test_what_a_sanitizer_without_fences_says_of_a_fence_does_not_count(tmp_path: Path) -> None:
    cell = replace(next(iter(results(tmp_path, MUTANT, True).cells.values())), technique="tsan")
    made = results(tmp_path, MUTANT, False)
    made.cells[cell.key] = cell
    for fenced, wrong in ((False, ["X1"]), (True, [])):
        same = Case("X1", replace(MUTANT.mutant, equivalent="Nobody asks.", fenced=fenced), "X1")
        assert [one.case for one in blamed(made, [same])] == wrong
    assert "The thread sanitizer, which knows no fences, reports it (1/1 seeds)" in page(
        made, [same], []
    )


def test_the_page_is_what_the_data_gives() -> None:
    text = page(Results(), cases(), read(NOTICED))
    assert text == PAGE.read_text(), "run `python -m stress.mutants.kill_table --page-only`"
    fewer = Results()
    del fewer.cells["H01", "c11"]
    assert text != page(fewer, cases(), read(NOTICED))


# What counts as found --------------------------------------------------------------------------------------


def tried(what: Callable[[Task], object], seeds: int = 1) -> list[Trial]:
    def act(task: Task) -> Trial:
        what(task)
        return task.silent(task.budget, 0.0)

    return attempts(replace(ONE, attempt=act), ModuleType("none"), Path(), MUTANT, seeds)


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_silence_is_no_finding() -> None:
    assert [one.found for one in tried(lambda _: None, 3)] == [False] * 3


def test_a_crash_is_a_finding_and_the_next_seed_is_tried() -> None:
    def crash(task: Task) -> None:
        if task.seed == 1:
            os.kill(os.getpid(), signal.SIGSEGV)

    assert [(one.seed, one.found, one.verdict) for one in tried(crash, 3)] == [
        (0, False, ""), (1, True, "SIGSEGV"), (2, False, ""),
    ]  # fmt: skip


def test_what_does_not_end_is_a_finding_and_ends_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(techniques.LIMITS, "threads", Limits(wall=20.0, cpu=0.2))
    found = tried(lambda _: busy(60), 9)
    assert [one.verdict for one in found] == [
        "no execution ended within 0.2 s of the processor"
    ] * STUCK_SEEDS


def test_what_goes_on_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(techniques.LIMITS, "threads", Limits(wall=20.0, cpu=0.5))

    def steady(task: Task) -> None:
        for _ in range(8):
            busy(0.1)
            task.alive()

    assert [one.found for one in tried(steady)] == [False]


# What a result depends on ----------------------------------------------------------------------------------


def test_a_subject_is_made_of_what_it_names() -> None:
    names = {path.relative_to(PACKAGE).as_posix() for path in reached("refcount")}
    assert {
        "operations/refcount.pxd",
        "structures/refcount.pxd",
        "sync/atomics.pxd",
        "sync/sync.h",
    } <= names
    assert "structures/range_cache.pxd" not in names
    assert PACKAGE / "structures/range_cache.pxd" in reached("removal_queue")
    assert all(reached(suite.subject) for suite in SUITES.values())
    assert all(path.exists() for path in named_in(PACKAGE / "structures/range_cache.pxd"))
