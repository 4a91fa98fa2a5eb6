"""The kill table: the content of a cell, what counts as found, and the page."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.campaign.trial.suite import ControlledSize
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.faults.results import FAULTS, read
from stress.mutants.sources import digests
from stress.mutants.sources.digests import PACKAGE, native_names, reached
from stress.mutants.sources.origin import Origin
from stress.mutants.table import techniques
from stress.mutants.table.command import PAGE, missing
from stress.mutants.table.origins import origin_of
from stress.mutants.table.page import SOURCES, false_alarms, page, survivors
from stress.mutants.table.results import Results, summary
from stress.mutants.table.techniques import (
    STUCK_SEEDS,
    TECHNIQUES,
    Case,
    Task,
    Trial,
    applies,
    attempts,
    cases,
    nothing,
)

ONE, C11 = TECHNIQUES["one"], TECHNIQUES["c11"]
MUTANT = Case("X1", replace(nothing("refcount"), id="X1", title="a mistake"), "X1")
RETAIN = next(mutant for mutant in CATALOGUE if mutant.id == "M13")  # of the reference counts
CORE = Case("true core, refcount", nothing("refcount"), None)


def trial(seed: int, *, found: bool) -> Trial:
    size = {"threads": 2, "operations": 3, "preemptions": 1, "stale reads": 0, "other": 0}
    return Trial(seed, found, 7 + seed, 0.25, "I12" if found else "", size if found else None)


def results(folder: Path, case: Case, *found: bool, technique: str = "c11") -> Results:
    table = Results(folder / "cells.csv")
    trials = [trial(seed, found=one) for seed, one in enumerate(found)]
    table.add(summary(case, TECHNIQUES[technique], trials))
    return table


START = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.parametrize(("before", "status"), [("", 0), (START, 3)])
def test_sanitized_trials_are_forks_of_one_thread(before: str, status: int) -> None:
    """The trials import nothing that starts a thread, and they notice a thread that runs."""
    code = f"""
import os, threading
import stress.mutants.table.sanitized_trials as trials
{before}
try:
    trials.check_threads()
except RuntimeError:
    os._exit(3)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == status


def test_a_cell_sums_its_trials_up(tmp_path: Path) -> None:
    cell = results(tmp_path, MUTANT, True, False, True).of(MUTANT, C11)
    assert cell is not None
    assert (cell.seeds, cell.found, cell.spent, cell.first, cell.seconds) == (
        3,
        2,
        24,
        "8",
        "0.250",
    )
    assert (cell.verdicts, cell.size) == ("I12 (2)", "2 threads, 3 operations, 1 preemptions")


def test_a_present_cell_is_not_repeated(tmp_path: Path) -> None:
    table = results(tmp_path, MUTANT, True, False)
    again = Results(table.path)
    assert again.cells == table.cells
    assert missing(C11, [MUTANT], 2, again) == []
    assert missing(C11, [MUTANT], 5, again) == [MUTANT]
    assert missing(ONE, [MUTANT], 2, again) == [MUTANT]


def test_another_text_of_a_mutant_makes_its_results_void_and_another_title_does_not(
    tmp_path: Path,
) -> None:
    table = results(tmp_path, Case("X1", RETAIN, "X1"), True)
    assert table.lacks(C11, Case("X1", replace(RETAIN, new="return RELEASED"), "X1"), 1)
    assert not table.lacks(C11, Case("X1", replace(RETAIN, title="reworded"), "X1"), 1)


def test_a_page_has_counts_medians_verdicts_and_sizes(tmp_path: Path) -> None:
    table = results(tmp_path, MUTANT, True, False)
    text = page(table, [MUTANT, CORE], [])
    assert "| X1 | a mistake | refcount |  | - | - | - | 1/2 | - | - | - | - | - |" in text
    assert "| X1 | 1/2 | 7 | 0.250 | I12 (1) | 2 threads, 3 operations, 1 preemptions |" in text
    assert "Survivors" not in text
    text = page(results(tmp_path, CORE, False), [MUTANT, CORE], [])
    assert "| refcount | - | - | - | 0/1; 7 |" in text


def test_the_summary_counts_mutants_that_only_one_technique_finds(tmp_path: Path) -> None:
    table = results(tmp_path, MUTANT, True, False)
    core = results(tmp_path, CORE, False).cells[CORE.label, "c11"]
    table.cells[core.key] = core
    text = page(table, [MUTANT, CORE], [])
    assert "1 mutants: 1 found blind by some technique, 0 only by programs written" in text
    assert "The true core: 1 cells, 0 with a report." in text
    assert "| engine c11 | 1 | 0 | 1 | 1 |" in text
    other = replace(table.cells["X1", "c11"], technique="sc", found=2)
    table.cells[other.key] = other
    table.cells[core.key] = replace(core, found=1)
    text = page(table, [MUTANT, CORE], [])
    assert "| engine c11 | 1 | 0 | 0 | 1 |" in text
    assert "| engine sc | 1 | 1 | 0 | 1 |" in text
    assert "The true core: 1 cells, 1 with a report." in text


def test_a_program_written_for_a_mutant_has_a_column_of_its_own(tmp_path: Path) -> None:
    directed = TECHNIQUES["directed"]
    written = Case("X1", replace(MUTANT.mutant, calls=((("retain", 0),),)), "X1")
    assert [applies(directed, one) for one in (written, MUTANT, CORE)] == [True, False, False]
    table = results(tmp_path, written, False)
    assert survivors(table, [written]) == [written]
    table.add(summary(written, directed, [trial(0, found=True)]))
    text = page(table, [written], [])
    assert "1 mutants: 0 found blind by some technique, 1 only by programs written" in text
    assert "| X1 | - | 0/1 | - | - | 1/1 | 7 | 0.250 |" in text
    assert survivors(table, [written]) == []


def test_a_survivor_is_flagged_and_an_equivalent_mutant_is_not(tmp_path: Path) -> None:
    table = results(tmp_path, MUTANT, False, False)
    assert survivors(table, [MUTANT]) == [MUTANT]
    assert "## Survivors" in page(table, [MUTANT], [])
    same = Case("X1", replace(MUTANT.mutant, equivalent="No caller can tell."), "X1")
    assert survivors(table, [same]) == []
    assert "| X1 | a mistake | No caller can tell. |" in page(table, [same], [])


def test_reports_of_the_true_core_and_of_equivalent_mutants_are_false_alarms(
    tmp_path: Path,
) -> None:
    table = results(tmp_path, CORE, True)
    assert [cell.case for cell in false_alarms(table, [CORE])] == [CORE.label]
    same = Case("X1", replace(MUTANT.mutant, equivalent="No caller can tell."), "X1")
    assert [cell.case for cell in false_alarms(results(tmp_path, MUTANT, True), [same])] == ["X1"]
    assert not false_alarms(results(tmp_path, CORE, False), [CORE])


def without_ages(text: str) -> str:
    """A page without the section that depends on the sources of the day."""
    start = text.index(SOURCES)
    return text[:start] + text[text.index("\n## ", start) :]


def test_the_page_is_what_the_data_gives() -> None:
    text = without_ages(page(Results(), cases(), read(FAULTS)))
    written = without_ages(PAGE.read_text())
    assert text == written, "run `python -m stress.mutants.table --page-only`"
    fewer = Results()
    del fewer.cells["H01", "c11"]
    assert text != without_ages(page(fewer, cases(), read(FAULTS)))


def test_the_page_counts_results_of_older_sources(tmp_path: Path) -> None:
    table = results(tmp_path, MUTANT, True)
    assert "Of 1 results 1 were of the present sources" in page(table, [MUTANT], [])
    cell = table.cells["X1", "c11"]
    table.cells["X1", "c11"] = replace(cell, engine="0" * 12)
    text = page(table, [MUTANT], [])
    assert "Of 1 results 0 were of the present sources" in text
    assert "| engine c11 | 1 | 0 | 0 | 0 | 0 | 1 |" in text
    assert missing(C11, [MUTANT], 1, table) == [MUTANT]


# What counts as found -----------------------------------------------------------------


def tried(action: Callable[[Task], object], seeds: int = 1) -> list[Trial]:
    def act(task: Task) -> Trial:
        action(task)
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


def test_a_hang_is_a_finding_and_ends_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(techniques.LIMITS, "threads", Limits(wall=20.0, cpu=0.2))
    found = tried(lambda _: busy(60), 9)
    assert [one.verdict for one in found] == [
        "no execution ended within 0.2 s of processor time"
    ] * STUCK_SEEDS


def test_a_long_run_with_progress_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(techniques.LIMITS, "threads", Limits(wall=20.0, cpu=0.5))

    def steady(task: Task) -> None:
        for _ in range(8):
            busy(0.1)
            task.alive()

    assert [one.found for one in tried(steady)] == [False]


# What a result depends on -------------------------------------------------------------


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
    assert all(path.exists() for path in native_names(PACKAGE / "structures/range_cache.pxd"))


def changed(technique: str = "c11", **changes: Any) -> tuple[str, ...]:
    """Parts of the origin that differ when the mutant is another one."""
    before = origin_of(TECHNIQUES[technique], Case("X1", RETAIN, "X1"))
    case = Case("X1", replace(RETAIN, **changes), "X1")
    return origin_of(TECHNIQUES[technique], case).differing(before)


def test_an_origin_has_the_parts_that_play_a_role() -> None:
    parts = {
        name: [
            one.name for one in fields(Origin) if getattr(origin_of(technique, MUTANT), one.name)
        ]
        for name, technique in TECHNIQUES.items()
    }
    threads, engine = ["code", "programs"], ["code", "programs", "engine"]
    judged = ["code", "programs", "model", "engine"]
    assert parts == {
        "one": threads, "threads": threads, "tsan": threads, "sc": engine, "c11": engine, "linear": judged,
        "model": judged, "fault": judged, "explore": judged, "directed": judged,
    }  # fmt: skip


def test_a_change_voids_the_parts_that_it_touches() -> None:
    assert changed(title="reworded", origin="elsewhere", breaks="I1", within=7) == ()
    assert changed(new="return RELEASED") == ("code",)
    assert changed(new=f"# a comment\n{RETAIN.new.strip()}  # and another\n") == ()
    assert changed(old=f"# a comment\n{RETAIN.old.strip()}") == ()
    written: dict[str, Any] = {"calls": ((("retain", 0),), (("release", 0),))}
    sizes: dict[str, Any] = {"settings": {"objects": (1, 1)}}
    sizes["programs"] = ControlledSize((2, 2), (9, 9))
    for one in (written, sizes, {"strategy": "pct"}):
        assert changed("directed", **one) == ("programs",)
        assert changed(**one) == ()  # the blind columns do not know what was written for a mutant
    assert changed("threads", strategy="pct", calls=((("retain", 0),),)) == ()
    assert changed("linear", suite="read_count") == ("code", "programs", "model")
    assert changed(suite="read_count") == ("code", "programs")


def test_the_true_core_and_a_mutant_have_origins_of_their_own() -> None:
    core = replace(MUTANT, selected=None)
    assert origin_of(C11, core).differing(origin_of(C11, MUTANT)) == ("code", "programs")


def copy_of(folder: Path, engine: str) -> Path:
    """The project's sources below ``folder``, the engine in a room of its own there."""
    package = folder / "pulsar_ml"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "_*.c", "harness"))
    for path in digests.engine_sources():
        target = package / engine / path.relative_to(PACKAGE / "harness" / "engine")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            path.read_text().replace("pulsar_ml/harness/engine/", f"pulsar_ml/{engine}/")
        )
    return package


def test_moves_and_words_change_no_digest_of_the_project(
    tmp_path: Path,
) -> None:
    path = PACKAGE / "structures" / "refcount.pxd"
    before = digests.digest_of([path]), digests.digest_of(digests.engine_sources())
    package = copy_of(tmp_path, "rooms/engine")
    moved = package / "structures" / "refcount.pxd"
    text = moved.read_text().replace("pulsar_ml.sync.", "pulsar_ml.primitives.")
    moved.write_text("# Another first line.\n" + text)
    engine = sorted((package / "rooms").rglob("*.[ch]"))
    assert (digests.digest_of([moved]), digests.digest_of(engine)) == before
    moved.write_text(text.replace("0 < (seen", "0 <= (seen"))
    assert digests.digest_of([moved]) != before[0]
    schedule = next(path for path in engine if path.name == "sched.c")
    schedule.write_text(schedule.read_text() + "\nstatic int rounds = 1;\n")
    assert digests.digest_of(engine) != before[1]
