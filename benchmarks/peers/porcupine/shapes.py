"""Shapes: the kinds of histories that the rows beside Porcupine check."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.peers.porcupine.histories import (
    Bag,
    CasCell,
    Priorities,
    RepeatedLine,
    Sum,
    flipped,
    lock,
)
from pulsar_ml.harness.histories.generated import Cell, Members, simulate
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.models import (
    CasRegister,
    Counter,
    KeyValueMap,
    Lock,
    Multiset,
    PriorityQueue,
    Queue,
    Set,
    Stack,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Histories of one kind.

    Attributes:
        name: the row's name.
        model: makes the model.
        peer: the name of Porcupine's model.
        generate: makes the history of a seed.
        flips: the number of calls with the result of another call, of each history.
        count: the number of histories.
        partition: False to check all keys together.
    """

    name: str
    model: Callable[[], Any]
    peer: str
    generate: Callable[[int], History]
    flips: int = 0
    count: int = 5
    partition: bool = True
    kept: dict[str, list[History]] = field(default_factory=dict)

    def histories(self) -> list[History]:
        """Return the histories, generated at first use."""
        if "all" not in self.kept:
            found = [self.generate(seed) for seed in range(self.count)]
            if self.flips:
                found = [flipped(one, seed, self.flips) for seed, one in enumerate(found)]
            self.kept["all"] = found
        return self.kept["all"]


System = Callable[[], Any]


def simulated(
    name: str, model: Callable[[], Any], peer: str, system: System, clients: int, operations: int,
    *, busy: float = 0.95, crashes: float = 0.0,
) -> Iterator[Shape]:  # fmt: skip
    """Shapes of one system: legal, illegal by one flip, and illegal by many."""

    def generate(seed: int) -> History:
        return simulate(
            system(), seed=seed, clients=clients, operations=operations, busy=busy, crashes=crashes
        )

    title = f"{name}, {clients} clients, {operations} operations"
    title += "" if busy > 0.9 else ", idle"
    title += ", crashes" if crashes else ""
    count = 5 if operations <= 1_000 and clients == 5 else 3
    for flips in (0, 1, max(2, operations // 20)):
        kind = {0: "legal", 1: "one flip"}.get(flips, "many flips")
        yield Shape(f"{title}, {kind}", model, peer, generate, flips, count)


def maps(
    clients: int, operations: int, keys: int, *, partition: bool = True, illegal: bool = True
) -> Iterator[Shape]:
    """Shapes of a map of strings."""

    def generate(seed: int) -> History:
        return key_value(seed, clients=clients, operations=operations, keys=keys)

    title = f"map of {keys} keys, {clients} clients, {operations} operations"
    title += "" if partition else ", together"
    count = 5 if operations <= 1_000 else 3 if operations <= 100_000 else 1
    for flips in (0, 1, operations // 20) if illegal else (0,):
        kind = {0: "legal", 1: "one flip"}.get(flips, "many flips")
        peer = "map" if partition else "map together"
        yield Shape(
            f"{title}, {kind}", KeyValueMap, peer, generate, flips, count, partition=partition
        )


def locks(clients: int, operations: int) -> Shape:
    """Shape of a lock."""
    return Shape(
        f"lock, {clients} clients, {operations} operations, legal", Lock, "lock",
        lambda seed: lock(seed, clients=clients, operations=operations),
    )  # fmt: skip


def registers() -> Iterator[Shape]:
    """Shapes of registers, with and without compare-and-set, busy, idle and with crashes."""
    kinds: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("register", Cell),
        ("compare-and-set register", CasCell),
    )
    for clients, (name, cell) in itertools.product((5, 10, 50), kinds):
        make = partial(simulated, model=CasRegister, peer="register", clients=clients)
        for operations in (100, 1_000, 10_000, 100_000):
            yield from make(name, system=partial(cell, 5), operations=operations)
            if operations < 100_000:
                system = partial(cell, 100)
                yield from make(f"{name} of 100 values", system=system, operations=operations)
            system = partial(cell, distinct=True)
            yield from make(f"{name}, distinct", system=system, operations=operations)
            yield from make(name, system=partial(cell, 5), operations=operations, busy=0.3)
    for operations, crashes in ((100, 0.1), (1_000, 0.01), (10_000, 0.001)):
        yield from simulated(
            "compare-and-set register", CasRegister, "register", partial(CasCell, 5), 5, operations,
            crashes=crashes,
        )  # fmt: skip


def all_maps() -> Iterator[Shape]:
    """Shapes of maps of 1 to 1,000 keys, which are checked one by one or together."""
    for clients, operations, keys in (
        (10, 300, 1), (10, 300, 10), (50, 1_300, 10), (10, 10_000, 100), (50, 10_000, 100),
        (10, 100_000, 1_000), (50, 100_000, 1_000), (50, 1_000_000, 1_000),
    ):  # fmt: skip
        yield from maps(clients, operations, keys)
    for clients, operations, keys in ((10, 300, 10), (10, 10_000, 100), (50, 1_300, 10)):
        yield from maps(clients, operations, keys, partition=False)


def collections() -> Iterator[Shape]:
    """Shapes of queues, stacks, sets, counters and locks."""

    def of(clients: int, operations: int, crashes: float = 0.0) -> Iterator[Shape]:
        kinds: tuple[tuple[str, Callable[[], Any], str, System], ...] = (
            ("queue of 5 values", Queue, "queue", partial(RepeatedLine, 5)),
            ("stack of 5 values", Stack, "stack", partial(RepeatedLine, 5, stack=True)),
            (
                "priority queue of 5 values",
                PriorityQueue,
                "priority-queue",
                partial(Priorities, 5),
            ),
            ("set of 5 values", Set, "set", partial(Members, 5)),
            ("multiset of 5 values", Multiset, "multiset", partial(Bag, 5)),
            ("counter", Counter, "counter", Sum),
        )
        for name, model, peer, system in kinds:
            yield from simulated(name, model, peer, system, clients, operations, crashes=crashes)

    for operations in (60, 200, 1_000):
        for clients in (5, 10):
            yield from of(clients, operations)
            yield locks(clients, operations)
    yield from of(5, 200, crashes=0.02)


def shapes() -> list[Shape]:
    """All shapes, in the order of their rows."""
    return [*registers(), *all_maps(), *collections()]
