"""The kill table: what is kept of a trial, what counts as found, and what the page says of it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pulsar_ml.harness.sandbox import Limits
from stress.mutants import techniques
from stress.mutants.kill_page import blamed, page, survivors
from stress.mutants.kill_table import missing
from stress.mutants.results import Results
from stress.mutants.techniques import (
    TECHNIQUES,
    Case,
    Technique,
    Trial,
    attempt,
    nothing,
)

ONE, C11 = TECHNIQUES["one"], TECHNIQUES["c11"]
MUTANT = Case("X1", replace(nothing("refcount"), id="X1", title="a mistake"), "X1")
CORE = Case("true core, refcount", nothing("refcount"), None)
PAIRS = [(ONE, MUTANT), (C11, MUTANT), (ONE, CORE), (C11, CORE)]


def results(path: Path, *trials: Trial) -> Results:
    made = Results(path / "lines.jsonl", PAIRS, seeds=2)
    for trial in trials:
        made.add(trial)
    return made


def trial(case: Case, technique: str, seed: int, *, found: bool) -> Trial:
    size = {"threads": 2, "operations": 3, "preemptions": 1, "stale reads": 0, "other": 0}
    return Trial(case.label, technique, seed, found, 7, 0.25, "I12" if found else "", size if found else None)


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    results(tmp_path, trial(MUTANT, "one", 0, found=True))
    with (tmp_path / "lines.jsonl").open("a") as file:
        file.write('{"source": "cut o')
    again = Results(tmp_path / "lines.jsonl", PAIRS, seeds=2)
    assert missing(ONE, [MUTANT, CORE], 2, again) == [(CORE, 0), (MUTANT, 1), (CORE, 1)]
    again.add(trial(CORE, "one", 0, found=False))
    assert missing(ONE, [MUTANT, CORE], 2, Results(again.path, PAIRS, seeds=2)) == [(MUTANT, 1), (CORE, 1)]


def test_another_text_of_a_mutant_makes_its_results_void(tmp_path: Path) -> None:
    made = results(tmp_path, trial(MUTANT, "one", 0, found=True))
    changed = Case("X1", replace(MUTANT.mutant, new="pass"), "X1")
    assert not Results(made.path, [(ONE, changed)], seeds=2).trials
    assert Results(
        made.path, [(ONE, Case("X1", replace(MUTANT.mutant, title="reworded"), "X1"))], seeds=2
    ).trials


def test_a_page_has_counts_medians_verdicts_and_sizes(tmp_path: Path) -> None:
    made = results(
        tmp_path, trial(MUTANT, "c11", 0, found=True), trial(MUTANT, "c11", 1, found=False),
        trial(CORE, "c11", 0, found=False),
    )  # fmt: skip
    text = page(made, [C11], [MUTANT, CORE], 2)
    assert "| X1 | a mistake | refcount |  | 1/2 |" in text
    assert "| X1 | 1/2 | 7 | 0.250 | I12 (1) | 2 threads, 3 operations, 1 preemptions |" in text
    assert "| refcount | 0/1; 7 |" in text
    assert "Survivors" not in text


def test_a_survivor_is_flagged_and_an_equivalent_mutant_is_not(tmp_path: Path) -> None:
    made = results(tmp_path, trial(MUTANT, "one", 0, found=False), trial(MUTANT, "c11", 0, found=False))
    assert survivors(made, [ONE, C11], [MUTANT]) == [MUTANT]
    assert "## Survivors" in page(made, [ONE, C11], [MUTANT], 2)
    same = Case("X1", replace(MUTANT.mutant, equivalent="Nobody asks."), "X1")
    assert survivors(made, [ONE, C11], [same]) == []
    assert "| X1 | a mistake | Nobody asks. |" in page(made, [ONE, C11], [same], 2)


def test_the_true_core_may_not_be_blamed(tmp_path: Path) -> None:
    wrong = trial(CORE, "one", 0, found=True)
    made = results(tmp_path, wrong)
    assert blamed(made, [ONE], [CORE]) == [wrong]


def tried(what: object) -> Trial:
    def act(module: ModuleType, path: Path, case: Case, seed: int, budget: int) -> Trial:
        what()  # type: ignore[operator]
        raise AssertionError

    technique: Technique = replace(ONE, attempt=act)
    return attempt(technique, ModuleType("none"), Path(), MUTANT, 0)


def test_a_crash_is_a_finding() -> None:
    found = tried(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    assert found.found
    assert found.verdict == "SIGSEGV"
    assert json.loads(json.dumps(found.to_data()))["case"] == "X1"


def test_what_does_not_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> None:
        while True:
            pass

    monkeypatch.setitem(techniques.LIMITS, "threads", Limits(wall=20.0, cpu=0.2))
    found = tried(endless)
    assert found.found
    assert found.verdict == "no execution ended within 0.2 s of the processor"
