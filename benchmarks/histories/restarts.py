"""Random orders of a search, with restarts and side by side, beside its own order.

``python -m benchmarks.histories.restarts`` searches hard histories in the search's own order, and
in random orders of the calls that it may choose from (a record's moment decides). From the steps of
the random orders it computes the cost of restarts (the sequence of Luby, Sinclair and Zuckerman)
and of four orders side by side. The figures are steps, so they do not depend on the machine. A
search without an answer counts with its limit.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.linearize import maps
from pulsar_ml.harness.histories.generated import Line, simulate
from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.linearize import Options, check
from pulsar_ml.harness.models import Counter, KeyValueMap, Multiset, Set, Stack

ORDERS = 12
LIMIT = 300_000
DRAWS = 200  # of the cost of restarts
OPTIONS = Options(explain=False, partition=False, monitors=False, most_steps=LIMIT)


def in_order(history: History, seed: int) -> History:
    """Return the history with random moments, which decide the order of choices."""
    records = history.records.copy()
    records["moment"] = np.random.default_rng(seed).integers(1, 1 << 30, len(records))
    return history.with_records(records)


def steps(history: History, model: Any) -> int:
    return max(1, check(history, model, options=OPTIONS).steps)


def luby() -> Iterator[int]:
    """Yield 1, 1, 2, 1, 1, 2, 4, ..."""
    u, v = 1, 1
    while True:
        yield v
        u, v = (u + 1, 1) if u & -u == v else (u, 2 * v)


def with_restarts(costs: Sequence[int], unit: int, draw: random.Random) -> int:
    """Return the steps until a run in a random order ends within its turn."""
    total = 0
    for turn in luby():
        cost = draw.choice(costs)
        if cost <= turn * unit:
            return total + cost
        total += turn * unit
        if total >= LIMIT:
            return LIMIT
    raise AssertionError("the sequence has no end")


def collection(seed: int, kind: str, clients: int, operations: int, wrong: bool) -> History:
    """Calls of a set, a multiset or a counter that always overlap, with few values."""
    draw = random.Random(seed)
    held: dict[int, int] = {}
    total, found = 0, []
    free = [0.0] * clients
    for _ in range(operations):
        client = min(range(clients), key=free.__getitem__)
        begin = free[client]
        effect = begin + draw.random()
        free[client] = end = effect + draw.random()
        found.append((effect, client, begin, end))
    rows = []
    for place, (_, client, begin, end) in enumerate(sorted(found)):
        value = draw.randrange(4)
        if kind == "counter":
            name = draw.choice(["get_and_add", "increment", "read"])
            arguments = (value,) if name == "get_and_add" else ()
            result: Any = total if name != "increment" else None
            total += value if name == "get_and_add" else name == "increment"
        else:
            name = draw.choice(["add", "remove", "contains"])
            arguments = (value,)
            there = held.get(value, 0)
            if name == "contains":
                result = there > 0
            elif name == "add":
                result = None if kind == "multiset" else not there
                held[value] = there + 1 if kind == "multiset" else 1
            else:
                result = there > 0
                held[value] = max(0, there - 1)
        if wrong and place == operations * 3 // 4 and result is not None:
            result = result + 1 if kind == "counter" else not result
        rows.append(Operation(client, name, arguments, result, begin, end))
    return history_of(rows)


def shapes() -> Iterator[tuple[str, Any, list[History]]]:
    for clients, operations in ((10, 300), (50, 1300)):
        for broken in (False, True):
            name = f"map, {clients} clients, {operations} operations"
            some = maps(clients, operations, broken)[:8]
            yield f"{name}{', one flip' * broken}", KeyValueMap(), some
    for kind, model in (("set", Set()), ("multiset", Multiset()), ("counter", Counter())):
        for wrong in (False, True):
            some = [collection(seed, kind, 12, 300, wrong) for seed in range(8)]
            yield f"{kind}, 12 clients, 300 operations{', one flip' * wrong}", model, some
    stacks = [simulate(Line(stack=True), seed=seed, clients=8, operations=300) for seed in range(8)]
    yield "stack of distinct values, 8 clients, 300 operations", Stack(), stacks


def row(model: Any, histories: list[History]) -> list[float]:
    """Median and worst steps: own order, random order, restarts, four orders side by side."""
    own, one, again, four = [], [], [], []
    for history in histories:
        draw = random.Random(1)
        own.append(steps(history, model))
        costs = [steps(in_order(history, seed), model) for seed in range(ORDERS)]
        one += costs
        again += [with_restarts(costs, 4 * len(history), draw) for _ in range(DRAWS)]
        four += [4 * min(draw.sample(costs, 4)) for _ in range(DRAWS)]
    return [
        cost for some in (own, one, again, four) for cost in (statistics.median(some), max(some))
    ]


def main() -> None:
    print("steps, median and worst: own order; random; random with restarts; four side by side")
    for name, model, histories in shapes():
        figures = [f"{figure:>9,.0f}" for figure in row(model, histories)]
        print(f"{name:55}", *figures, flush=True)


if __name__ == "__main__":
    main()
