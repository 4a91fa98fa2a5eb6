"""Runs all automatic mutants of the structures and keeps their results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import build
from stress.mutants.faults import ignored_locks, weakened_orders
from stress.mutants.faults.results import FAULTS, FaultResult, Key, read, unexplained, write


class Executed(Protocol):
    """A fault, and the suites that execute it."""

    @property
    def suites(self) -> tuple[str, ...]: ...


F = TypeVar("F", bound=Executed)


def executed_by(found: Iterable[F], names: Collection[str]) -> list[F]:
    """The faults that one of these suites executes; all faults without a name.

    Each keeps all its suites: a result says which suite of all notices the fault, so a run for some
    suites must not look in those alone.
    """
    return [one for one in found if not names or not set(names).isdisjoint(one.suites)]


def run_faults(names: Sequence[str], *, missing: bool = False) -> int:
    """Hunts the faults that these suites execute (default: all) and that have no present result.

    ``missing`` leaves faults alone that have a result of older sources.
    Returns the exit code: 1 if a fault was not noticed and has no reason.
    """
    if unknown := [name for name in names if name not in SUITES]:
        text = f"there is no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}"
        print(text, file=sys.stderr)
        return 2
    suites = list(SUITES.values())
    orders, locks = load_native(CHECKED), load_native(str(build(checked=True)))
    weak = weakened_orders.faults(orders, suites)
    ignored = ignored_locks.faults(locks, suites)
    hunts: list[tuple[Key, Callable[[], FaultResult]]] = [
        *(
            (fault.key, partial(weakened_orders.hunt, orders, fault, suites))
            for fault in executed_by(weak, names)
        ),
        *(
            (lock.key, partial(ignored_locks.hunt, locks, lock, suites))
            for lock in executed_by(ignored, names)
        ),
    ]
    present = {fault.key for fault in weak} | {lock.key for lock in ignored}
    results = {one.key: one for one in read(FAULTS) if one.key in present}
    for key, hunt in hunts:
        result = results.get(key)
        if result is None or (
            not missing and result.origin != weakened_orders.fault_origin(result.file, result.suite)
        ):
            print(" ".join(key), file=sys.stderr)
            results[key] = hunt()
            write(FAULTS, list(results.values()))
    write(FAULTS, list(results.values()))
    left = unexplained(list(results.values()))
    for one in left:
        print(f"not noticed, and without a reason: {' '.join(one.key)}", file=sys.stderr)
    return 1 if left else 0
