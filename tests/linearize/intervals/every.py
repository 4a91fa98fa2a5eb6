"""Every arrangement of some calls in time, and the calls of small histories of distinct values.

``python -m tests.linearize.intervals.every --values 3`` compares the monitors of queues, stacks and
priority queues with the definition on all 81,663 arrangements of the six calls of three values.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.linearize.monitors import judge
from pulsar_ml.harness.models import MODELS
from tests.linearize.chains import CONTAINERS
from tests.linearize.oracle import oracle

Called = tuple[str, tuple[Any, ...], Any]  # an operation, its arguments and its result
Arrangement = tuple[tuple[int, int], ...]


def arrangements(count: int) -> Iterator[Arrangement]:
    """Yield each order of ``count`` intervals once, as the first and last of some moments.

    Only which interval ends before another begins tells two arrangements apart. Each order has one
    shortest line of moments, at each of which an interval begins and one ends (Fishburn, 1985).
    """
    for moments in range(1, count + 1):
        for begun in itertools.product(range(moments), repeat=count):
            if len(set(begun)) == moments:
                for ended in itertools.product(*(range(first, moments) for first in begun)):
                    if len(set(ended)) == moments:
                        yield tuple(zip(begun, ended, strict=True))


def placed(calls: Sequence[Called], arrangement: Arrangement) -> History:
    """Return the history of calls, each in its interval and by its own thread."""
    return history_of(
        Operation(at, name, arguments, result, 2 * first, 2 * last + 1)
        for at, ((name, arguments, result), (first, last)) in enumerate(
            zip(calls, arrangement, strict=True)
        )
    )


def values_of(name: str, values: int) -> list[Called]:
    """Return the calls that put and take so many values of a container."""
    put, take = CONTAINERS[name]
    return [call for value in range(values) for call in ((put, (value,), None), (take, (), value))]


class Counts(NamedTuple):
    """Arrangements that are legal and illegal, and those on which the monitor is wrong."""

    legal: int
    illegal: int
    wrong: list[str]


def compared(name: str, calls: Sequence[Called]) -> Counts:
    """Compare a monitor with the definition on every arrangement of the calls."""
    model = MODELS[name]()
    legal = illegal = 0
    wrong = []
    for arrangement in arrangements(len(calls)):
        history = placed(calls, arrangement)
        judgement = judge(model.monitor, history, model)
        truth = oracle(history, model)
        legal, illegal = legal + truth, illegal + (not truth)
        if judgement is None or judgement.legal != truth:
            wrong.append(f"{name}: {calls} in {arrangement}")
        elif not truth and oracle(history.select(judgement.witness), model):
            wrong.append(f"{name}: the witness {judgement.witness} of {calls} in {arrangement}")
    return Counts(legal, illegal, wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=2)
    options = parser.parse_args()
    failed = False
    for name in CONTAINERS:
        found = compared(name, values_of(name, options.values))
        failed = failed or bool(found.wrong)
        print(f"{name}: {found.legal} legal, {found.illegal} illegal, {len(found.wrong)} wrong",
              *found.wrong[:5], sep="\n  ", flush=True)  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
