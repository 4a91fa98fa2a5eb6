"""Explores the programs: Python code of the managed ledger is under test, the core is native."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsar_ml.harness.pythreads.check import explore_python
from pulsar_ml.harness.search.explore import Exploration
from tests.managed_ledger.interleaved.mutants import Mutant, applied

LAYER = "pulsar_ml.managed_ledger"
ENOUGH = 400  # executions, in which each mutant is found


def explore(program: Callable[[], None], **options: Any) -> Exploration:
    """Explore one program; a call of the core is one step."""
    return explore_python(program, also=[LAYER], isolated=False, shrinks=False, **options)[0]


def hunt(mutant: Mutant, *, executions: int = ENOUGH) -> Exploration:
    """Explore the program of a mutant, with the mutant applied."""
    with applied(mutant) as changed:
        assert changed
        return explore(mutant.program, executions=executions, strategy=mutant.strategy, bound=1)
