"""Automatic mutants in the engine: each lock ignored, see :mod:`stress.mutants.faults.locks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType

from pulsar_ml.campaign.local.weakening import notice
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import STRUCTURES
from stress.mutants.faults.locks import Lock, locks_of
from stress.mutants.faults.results import IGNORED, FaultResult, Key
from stress.mutants.faults.weakened_orders import campaigns, fault_result, order_of
from stress.mutants.sources.digests import reached


@dataclass(frozen=True, slots=True, order=True)
class Ignored:
    """A lock, and the suites that may take it; the structure's own suite comes first."""

    lock: Lock
    suites: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.lock.file, self.lock.function, self.lock.lock, IGNORED


def faults(module: ModuleType, suites: Iterable[Suite]) -> list[Ignored]:
    """Yields all locks of the structures that the suites' subjects are made of."""
    found = []
    for path in sorted(STRUCTURES.glob("*.pxd")):
        names = [suite.name for suite in suites if path in reached(suite.subject)]
        names.sort(key=lambda name: order_of(SUITES[name], path.stem))
        if names:
            found += [Ignored(lock, tuple(names)) for lock in locks_of(path)]
    return found


def hunt(module: ModuleType, fault: Ignored, suites: Sequence[Suite]) -> FaultResult:
    """Runs executions of the suites that may take the lock until one fails."""
    known = {suite.name: suite for suite in suites}
    tried = [known[name] for name in fault.suites]
    return fault_result(
        fault.key, *notice(module, tried, partial(campaigns, module), mutant=fault.lock.id)
    )
