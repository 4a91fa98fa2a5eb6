"""Python code of the managed ledger under the engine: it is silent, and mutants are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.managed_ledger.interleaved.exploring import explore, hunt
from tests.managed_ledger.interleaved.mutants import MUTANTS, Mutant, applied
from tests.managed_ledger.interleaved.programs import PROGRAMS

FEW = 30  # executions of the true code; python -m tests.managed_ledger.interleaved makes more


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_managed_ledger_is_silent(program: Callable[[], None]) -> None:
    done = explore(program, executions=FEW)
    assert done.verdict == "clean", done.failure and done.failure.message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_is_found(mutant: Mutant) -> None:
    assert hunt(mutant).failure is not None


def test_a_mutant_leaves_the_code_as_it_was() -> None:
    codes = []
    for _ in range(2):
        with applied(MUTANTS[0]) as changed:
            assert changed == 1
        codes.append(explore(MUTANTS[0].program, executions=FEW).verdict)
    assert codes == ["clean", "clean"]


def test_each_program_finds_something() -> None:
    without = {"a_mark_beside_a_trim", "a_reader_of_new_entries"}
    finding = {mutant.program.__name__ for mutant in MUTANTS}
    assert {program.__name__ for program in PROGRAMS} - finding == without
