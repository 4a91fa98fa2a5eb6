"""Runs all automatic mutants of the structures and keeps their results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import build
from stress.mutants.faults import ignored_locks, weakened_orders
from stress.mutants.faults.results import FAULTS, FaultResult, Key, read, unexplained, write


def run_faults(names: Sequence[str]) -> int:
    """Makes the faults of these suites (default: all) that have no result of today's sources.

    Returns the exit code: 1 if a fault was not noticed and has no reason.
    """
    if unknown := [name for name in names if name not in SUITES]:
        text = f"there is no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}"
        print(text, file=sys.stderr)
        return 2
    suites = [SUITES[name] for name in names or SUITES]
    before = {one.key: one for one in read(FAULTS)}
    after = dict(before) if names else {}
    orders, locks = load_native(CHECKED), load_native(str(build(checked=True)))
    hunts: list[tuple[Key, Callable[[], FaultResult]]] = [
        *(
            (fault.key, partial(weakened_orders.hunt, orders, fault, suites))
            for fault in weakened_orders.faults(orders, suites)
        ),
        *(
            (lock.key, partial(ignored_locks.hunt, locks, lock, suites))
            for lock in ignored_locks.faults(locks, suites)
        ),
    ]
    for key, hunt in hunts:
        result = before.get(key)
        if result is None or result.origin != weakened_orders.fault_origin(
            result.file, result.suite
        ):
            print(" ".join(key), file=sys.stderr)
            result = hunt()
        after[result.key] = result
        write(FAULTS, list({**before, **after}.values()))
    write(FAULTS, list(after.values()))
    left = unexplained(list(after.values()))
    for one in left:
        print(f"not noticed, and without a reason: {' '.join(one.key)}", file=sys.stderr)
    return 1 if left else 0
