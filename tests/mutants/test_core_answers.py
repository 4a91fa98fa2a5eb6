"""The true core answers like its models, in the programs of the kill table and both modes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations import _checked
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import Mutant
from stress.mutants.hunting import PER_PROGRAM, program_of, program_of_calls
from stress.mutants.table.techniques import CORE, Case, cases, is_directed, judge_of

CORES = [case for case in cases() if case.label.startswith(CORE) and judge_of(case) is not None]
PROGRAMS = 12  # of the kill table's, when they are drawn
OF_CALLS = 300  # executions of a program that is given


def own_programs(mutant: Mutant) -> Mutant:
    """The mutant with its suite's program sizes, unless it has programs of its own."""
    if is_directed(mutant) or mutant.within:
        return mutant
    return replace(mutant, programs=SUITES[mutant.suite].controlled)


def program(case: Case, drawn: int) -> Program:
    mutant = own_programs(case.mutant)
    suite = SUITES[mutant.suite]
    subject = _checked.SUBJECTS[suite.subject]
    if mutant.calls:
        return program_of_calls(suite, subject, mutant)
    return program_of(suite, subject, drawn, mutant.programs, mutant.settings)


def failure_of(case: Case, drawn: int, mode: str, executions: int) -> str:
    mutant = own_programs(case.mutant)
    subject = _checked.SUBJECTS[SUITES[mutant.suite].subject]
    done = explore(
        subject,
        program(case, drawn),
        executions=executions,
        seed=drawn // 1000,
        strategy=mutant.strategy,
        mode=mode,
        reuse="quarantine" if mutant.strategy in SEARCHES else "mixed",
        races=False,
        judge=judge_of(case),
    )
    return "" if done.failure is None else f"program {drawn}: {done.failure.message}"


@pytest.mark.parametrize("mode", ["c11", "sc"])
@pytest.mark.parametrize("case", CORES, ids=lambda case: case.label)
def test_no_answer_of_the_true_core_is_refused(case: Case, mode: str) -> None:
    if case.mutant.calls:
        assert failure_of(case, 0, mode, OF_CALLS) == ""
        return
    for drawn in range(PROGRAMS):
        assert failure_of(case, drawn, mode, PER_PROGRAM) == ""


def test_a_read_that_sees_the_copy_of_a_dispatch_released_while_that_goes_on() -> None:
    """A model in which a dispatch took one moment once rejected it."""
    case = next(case for case in CORES if case.label == f"{CORE}, removal_queue")
    assert failure_of(case, 27, "c11", PER_PROGRAM) == ""
