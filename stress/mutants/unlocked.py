"""Automatic mutants in the engine: each lock of the structures ignored, see :mod:`stress.mutants.locks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import STRUCTURES
from stress.mutants.faults import IGNORED, Key, Noticed
from stress.mutants.locks import Lock, locks_of
from stress.mutants.sources import digest, reached
from stress.mutants.weakened import notice, order_of


@dataclass(frozen=True, slots=True, order=True)
class Ignored:
    """A lock, and the suites that may take it, the structure's own first."""

    lock: Lock
    suites: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.lock.file, self.lock.function, self.lock.lock, IGNORED

    @property
    def source(self) -> str:
        return digest(SUITES[self.suites[0]].subject)[:12]


def faults(module: ModuleType, suites: Iterable[Suite]) -> list[Ignored]:
    """All locks of the structures that the suites' subjects are made of."""
    found = []
    for path in sorted(STRUCTURES.glob("*.pxd")):
        names = [suite.name for suite in suites if path in reached(suite.subject)]
        names.sort(key=lambda name: order_of(SUITES[name], path.stem))
        if names:
            found += [Ignored(lock, tuple(names)) for lock in locks_of(path)]
    return found


def hunt(module: ModuleType, fault: Ignored, suites: Sequence[Suite]) -> Noticed:
    """Executions of the suites that may take the lock until one fails."""
    known = {suite.name: suite for suite in suites}
    seen = notice(module, [known[name] for name in fault.suites], mutant=fault.lock.id)
    return Noticed(*fault.key, fault.source, *seen)
