"""A mutant that one test selects is not selected in the next test of the process."""

from __future__ import annotations

from pulsar_ml.campaign.trial.trial import select_mutant
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from tests.harness.toys.build_toys import toys_path
from tests.native_modules import unselect_mutants


def test_the_end_of_a_test_selects_the_unchanged_code() -> None:
    module = load_checked(toys_path(checked=True))
    subject = module.SUBJECTS["counter"]
    program = Program.generate(subject, 5, threads=2, operations=3, noise=False)

    def is_silent() -> bool:
        done = explore(subject, program, executions=200, seed=5, races=False)
        return done.failure is None

    select_mutant(module, "T01")
    assert not is_silent()
    unselect_mutants()
    assert is_silent()
