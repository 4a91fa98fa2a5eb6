"""Histories of simulated systems for the rows beside Porcupine, legal and illegal, from seeds."""

from __future__ import annotations

import bisect
import itertools
import random as plain_random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.generated import Cell, Line, Members, Signatures, simulate
from pulsar_ml.harness.histories.history import (
    FLAG,
    MOST_ARGUMENTS,
    NONE,
    RETURNED,
    VALUE,
    WORD,
    History,
    Operation,
    Signature,
    history_of,
)
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

Drawn = tuple[NDArray[np.int64], NDArray[np.int64]]


class CasCell(Cell):
    """A register with reads, writes and compare-and-sets, a third each."""

    signatures: Signatures = (*Cell.signatures, Signature("cas", 2, FLAG))

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        codes = random.integers(0, 3, count)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = np.where(codes > 0, random.integers(0, self.values, count), 0)
        arguments[:, 1] = np.where(codes == 2, random.integers(0, self.values, count), 0)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        if code < 2:
            return super().apply(code, arguments)
        if self.held[-1] != arguments[0]:
            return 0
        self.held.append(arguments[1])
        return 1


class RepeatedLine(Line):
    """A queue or a stack of few values."""

    def __init__(self, values: int, *, stack: bool = False) -> None:
        super().__init__(stack=stack)
        self.values = values

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        codes = (random.random(count) > 0.55).astype(np.int64)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = np.where(codes == 0, random.integers(0, self.values, count), 0)
        return codes, arguments


class Priorities(RepeatedLine):
    """A priority queue of few values."""

    def __init__(self, values: int) -> None:
        super().__init__(values)
        self.signatures = (Signature("insert", 1, NONE), Signature("delete_min", 0, WORD))

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        if code == 0:
            bisect.insort(self.held, arguments[0])
            return None
        return self.held.pop(0) if self.held else None


class Bag(Members):
    """A multiset: add, remove, count."""

    signatures: Signatures = (
        Signature("add", 1, NONE),
        Signature("remove", 1, FLAG),
        Signature("count", 1, WORD),
    )

    def __init__(self, values: int) -> None:
        super().__init__(values)
        self.counts = [0] * values

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        value = arguments[0]
        before = self.counts[value]
        self.counts[value] += (1, -min(1, before), 0)[code]
        return (None, min(1, before), before)[code]

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        return None


class Sum:
    """A counter with read, increment and get_and_add."""

    signatures: Signatures = (
        Signature("read", 0, WORD),
        Signature("increment", 0, NONE),
        Signature("get_and_add", 1, WORD),
    )

    def __init__(self) -> None:
        self.held = 0

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        codes = random.integers(0, 3, count)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = np.where(codes == 2, random.integers(0, 3, count), 0)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        before = self.held
        self.held += (0, 1, arguments[0])[code]
        return None if code == 1 else before

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        return None


def lock(seed: int, *, clients: int, operations: int) -> History:
    """Generate a history of clients that wait for a lock, hold it and release it."""
    draw = plain_random.Random(seed)
    free_at = [0] * clients  # the return of each client's last call
    found = []
    for now in range(10, 10 + 10 * (operations // 2), 10):
        client = draw.randrange(clients)
        begun = max(free_at[client] + 1, now - draw.randrange(5, 40 * clients))
        begun = min(begun, now)
        found.append(Operation(client, "acquire", (), None, begun, now + draw.randrange(3)))
        free_at[client] = now + 9 + draw.randrange(60)
        found.append(Operation(client, "release", (), None, now + 3, free_at[client]))
        if free_at[client] >= now + 9:
            free_at[client] += 1
    return history_of(in_turn(found), source="simulated")


def in_turn(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Let each operation return before the next one of its thread is invoked."""
    following: dict[int | str, Any] = {}
    kept = []
    for one in reversed(operations):
        assert one.returned is not None
        returned = min(one.returned, following.get(one.thread, one.returned + 1) - 1)
        following[one.thread] = one.invoked
        kept.append(one._replace(returned=returned))
    return reversed(kept)


def flipped(history: History, seed: int, count: int) -> History:
    """Give ``count`` calls the results of other calls of their operation."""
    random = np.random.default_rng(seed)
    records = history.records.copy()
    ended = records["ending"] == RETURNED
    read = np.array([one.result not in (NONE,) for one in history.signatures])
    with_result = np.flatnonzero(ended & read[records["operation"]])
    if history.signatures[0].result == VALUE:
        none = history.values.index(None) if None in history.values else -2
        with_result = with_result[records["result"][with_result, 0] != none]
    changed = 0
    for at in random.permutation(with_result).tolist():
        row = records[at]
        same = with_result[records["operation"][with_result] == row["operation"]]
        others = same[np.any(records["result"][same] != row["result"], axis=1)]
        if history.signatures[0].result == VALUE:  # of the same key
            others = others[records["arguments"][others, 0] == row["arguments"][0]]
        if len(others):
            records["result"][at] = records["result"][random.choice(others)]
            changed += 1
        if changed == count:
            break
    return history.with_records(records)


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
    count = 5 if operations <= 1_000 else 3
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


def shapes() -> list[Shape]:
    """All shapes, in the order of their rows."""

    def cas(values: int) -> System:
        return lambda: CasCell(values)

    def line(values: int, stack: bool) -> System:
        return lambda: RepeatedLine(values, stack=stack)

    groups: list[Iterator[Shape]] = []
    for clients in (5, 10, 50):
        for operations in (100, 1_000, 10_000):
            groups += [
                simulated(
                    "register", CasRegister, "register", lambda: Cell(5), clients, operations
                ),
                simulated(
                    "register of 100 values",
                    CasRegister,
                    "register",
                    lambda: Cell(100),
                    clients,
                    operations,
                ),
                simulated(
                    "compare-and-set register", CasRegister, "register", cas(5), clients, operations
                ),
                simulated(
                    "compare-and-set register of 100 values",
                    CasRegister,
                    "register",
                    cas(100),
                    clients,
                    operations,
                ),
            ]
    groups += [
        simulated("register, distinct", CasRegister, "register", lambda: Cell(distinct=True), 10,
                  10_000),
        simulated("register", CasRegister, "register", lambda: Cell(5), 10, 100_000),
        simulated("compare-and-set register", CasRegister, "register", cas(5), 5, 100_000),
        simulated("register", CasRegister, "register", lambda: Cell(5), 5, 1_000, busy=0.3),
        simulated("register", CasRegister, "register", lambda: Cell(5), 50, 1_000, busy=0.3),
        simulated("compare-and-set register", CasRegister, "register", cas(5), 50, 1_000, busy=0.3),
        simulated("compare-and-set register", CasRegister, "register", cas(5), 5, 1_000, busy=0.3),
        simulated("compare-and-set register", CasRegister, "register", cas(5), 5, 100,
                  crashes=0.1),
        simulated("compare-and-set register", CasRegister, "register", cas(5), 5, 1_000,
                  crashes=0.01),
        maps(10, 300, 10), maps(50, 1_300, 10), maps(10, 300, 1), maps(10, 10_000, 100),
        maps(50, 100_000, 1_000), maps(50, 1_000_000, 1_000, illegal=False),
        maps(10, 300, 10, partition=False), maps(50, 1_300, 10, partition=False),
    ]  # fmt: skip
    for operations in (60, 200, 1_000):
        for clients in (5, 10):
            groups += [
                simulated("queue of 5 values", Queue, "queue", line(5, False), clients, operations),
                simulated("stack of 5 values", Stack, "stack", line(5, True), clients, operations),
                simulated("priority queue of 5 values", PriorityQueue, "priority-queue",
                          lambda: Priorities(5), clients, operations),
                simulated("set of 5 values", Set, "set", lambda: Members(5), clients, operations),
                simulated("multiset of 5 values", Multiset, "multiset", lambda: Bag(5), clients,
                          operations),
                simulated("counter", Counter, "counter", Sum, clients, operations),
                iter([locks(clients, operations)]),
            ]  # fmt: skip
    groups += [
        simulated("queue of 5 values", Queue, "queue", line(5, False), 5, 200, crashes=0.02),
        simulated("stack of 5 values", Stack, "stack", line(5, True), 5, 200, crashes=0.02),
        simulated("set of 5 values", Set, "set", lambda: Members(5), 5, 200, crashes=0.02),
        simulated("priority queue of 5 values", PriorityQueue, "priority-queue",
                  lambda: Priorities(5), 5, 200, crashes=0.02),
    ]  # fmt: skip
    return list(itertools.chain(*groups))
