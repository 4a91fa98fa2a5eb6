"""Wrong answers are reported on one thread, on real threads and in the engine; right ones not."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.trial import controlled, trial
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, select_mutant
from pulsar_ml.cli import main
from pulsar_ml.harness.engine import Explorer  # noqa: F401  checked modules need the engine first
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import build
from stress.mutants.catalogue import refcount
from stress.mutants.catalogue.answers import MUTANTS as ANSWERS
from stress.mutants.catalogue.mutant import Mutant

SEEDS = range(40)
# Takes concurrency, for schedules.
RACY = next(mutant for mutant in refcount.MUTANTS if mutant.id == "M13")


@pytest.fixture(scope="module")
def product() -> Iterator[str]:
    path = str(build(checked=False))
    yield path
    select_mutant(load_native(path), None)


@pytest.fixture(scope="module")
def checked() -> Iterator[str]:
    path = str(build(checked=True))
    yield path
    select_mutant(load_native(path), None)


def wrong_answer(module: ModuleType, structure: str, seed: int) -> str:
    """The first call of a program on one thread with another answer than the model's."""
    subject = module.SUBJECTS[structure]
    suite = SUITES[structure]
    program = Program.generate(
        subject, seed, threads=1, operations=200, mix=suite.mix, settings=suite.settings
    )
    instance = subject.create(threads=1, settings=program.settings)
    model = importlib.import_module(suite.model).Model(program.settings, 1)
    for call in program.threads[0]:
        operation = subject.operations[int(call["code"])]
        arguments = [int(word) for word in call["arguments"][: len(operation.arguments)]]
        seen = tuple(instance.call(operation.name, *arguments))
        if seen != model.step(operation.name, arguments):
            return f"{operation.name}{tuple(arguments)}: {seen}"
    instance.check()
    return ""


@pytest.mark.parametrize("mutant", ANSWERS, ids=lambda mutant: mutant.id)
def test_one_thread_sees_a_wrong_answer(product: str, mutant: Mutant) -> None:
    module = load_native(product)
    select_mutant(module, mutant.id)
    assert any(wrong_answer(module, mutant.suite, seed) for seed in range(5))
    select_mutant(module, None)
    assert not any(wrong_answer(module, mutant.suite, seed) for seed in range(5))


@pytest.mark.parametrize("mutant", ANSWERS, ids=lambda mutant: mutant.id)
def test_real_threads_see_a_wrong_answer_that_no_invariant_sees(
    product: str, mutant: Mutant
) -> None:
    options = TrialOptions(module=product, mutant=mutant.id, operations=200)
    results = (trial.run_trial(SUITES[mutant.suite], seed, options) for seed in SEEDS)
    found = next(result for result in results if result.violations)
    assert [violation.invariant for violation in found.violations] == [LINEARIZABILITY]
    assert found.replay.invariant == LINEARIZABILITY


@pytest.mark.parametrize("mutant", ANSWERS, ids=lambda mutant: mutant.id)
def test_the_engine_sees_a_wrong_answer_and_makes_it_again(checked: str, mutant: Mutant) -> None:
    options = TrialOptions(module=checked, mutant=mutant.id, executions=200)
    suite = SUITES[mutant.suite]
    if mutant.programs.mix:
        suite = dataclasses.replace(suite, controlled=mutant.programs)
    results = (controlled.run_trial(suite, seed, options) for seed in SEEDS)
    found = next(result for result in results if result.violations)
    assert found.violations[0].invariant == LINEARIZABILITY
    failure = Failure.from_text(found.violations[0].record)
    assert failure.kind == WRONG_ANSWERS
    assert failure.replay(load_native(checked).SUBJECTS[mutant.suite]).exact


@pytest.mark.parametrize("structure", sorted({mutant.suite for mutant in ANSWERS}))
def test_right_answers_are_silent(product: str, checked: str, structure: str) -> None:
    suite = SUITES[structure]
    for seed in range(3):
        assert not trial.run_trial(
            suite, seed, TrialOptions(module=product, operations=200)
        ).violations
        options = TrialOptions(module=checked, executions=300)
        assert not controlled.run_trial(suite, seed, options).violations


def recorded(
    product: str, checked: str, mutant: Mutant, folder: Path
) -> tuple[ReplayRecord, Failure]:
    """The record of ``run`` of a mutant, and the failure that ``hunt`` finds from it."""
    ran = CliRunner().invoke(
        main,
        ["run", mutant.suite, "--module", product, "--mutant", mutant.id, "--seeds", "200", "--failures",
         "1", "--seed", "1", "--records", str(folder)],
    )  # fmt: skip
    assert ran.exit_code == 1, ran.output
    record = next(folder.glob("*.json"))
    target = folder / "target.json"
    found = CliRunner().invoke(
        main,
        ["hunt", str(record), "--trust", "--out", str(target), "--no-sandbox"],
    )
    assert found.exit_code == 1, found.output
    assert Failure.from_text(target.read_text()).module == checked  # built from the same sources
    again = CliRunner().invoke(main, ["replay", "--trust", str(target)])
    assert again.exit_code == 1
    assert "the failure was made again, step by step" in again.output
    return ReplayRecord.from_json(record.read_text()), Failure.from_text(target.read_text())


def test_a_schedule_is_found_for_what_real_threads_broke(
    product: str, checked: str, tmp_path: Path
) -> None:
    record, failure = recorded(product, checked, RACY, tmp_path)
    # Real threads decide whether a reader sees a broken invariant or gives a wrong answer.
    if record.invariant == LINEARIZABILITY:
        assert failure.kind == WRONG_ANSWERS
    else:
        assert failure.rule == record.invariant
    assert failure.mutant == "M13"


def test_a_schedule_is_found_for_answers_that_real_threads_gave(
    product: str, checked: str, tmp_path: Path
) -> None:
    record, failure = recorded(product, checked, ANSWERS[0], tmp_path)
    assert record.invariant == LINEARIZABILITY
    assert failure.kind == WRONG_ANSWERS


def test_a_record_without_a_broken_invariant_has_no_schedule(
    product: str, checked: str, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    options = TrialOptions(module=product, operations=20)
    path.write_text(trial.run_trial(SUITES["refcount"], 1, options).replay.to_json())
    found = CliRunner().invoke(main, ["hunt", str(path), "--module", checked])
    assert found.exit_code == 2
    assert "not about a broken invariant" in found.output
