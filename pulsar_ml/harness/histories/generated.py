"""Generates histories of a simulated system with overlapping clients, from a seed.

Every operation takes effect at one moment of its interval, so the history is legal. Operations may
crash before or after that moment. On request the system answers once from a stale state, which
mostly makes the history illegal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    CRASHED,
    FLAG,
    MOST_ARGUMENTS,
    NEVER,
    NONE,
    RECORD,
    WORD,
    History,
    Operation,
    Signature,
    frozen,
    history_of,
)
from pulsar_ml.harness.models import KeyValueMap

Signatures = tuple[Signature, ...]


class System(Protocol):
    """A simulated object: operations take integers and answer an integer or None."""

    signatures: Signatures

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw ``count`` operations: their codes, and their arguments in rows of three."""
        ...

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        """Apply the operation to the current state, and return its answer."""
        ...

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        """Return a wrong answer, as of a replica that lags behind; None without one."""
        ...


def simulate(
    system: System,
    *,
    seed: int,
    clients: int,
    operations: int,
    crashes: float = 0.0,
    stale_at: float | None = None,
    busy: float = 0.8,
) -> History:
    """Generate a history of ``operations`` operations in all.

    ``crashes`` is the share of operations that never return; each ends its client, which a new one
    replaces. From ``stale_at`` on (0 to 1 of the history), one reading operation gets a wrong
    answer. ``busy`` is the share of its time that a client spends inside operations.
    """
    random = np.random.default_rng(seed)
    each = np.full(clients, operations // clients)
    each[: operations % clients] += 1
    client = np.repeat(np.arange(clients), each)
    lasts = random.integers(100, 2_000, operations)
    idle = (random.random(operations) * 2 * lasts.mean() * (1 - busy) / busy).astype(np.int64) + 1
    ends = np.concatenate(
        [np.cumsum(part) for part in np.split(lasts + idle, np.cumsum(each)[:-1])]
    )
    invoked = ends - lasts
    moment = invoked + (random.random(operations) * lasts).astype(np.int64)
    codes, arguments = system.draw(random, operations)
    crashed = random.random(operations) < crashes
    without_effect = crashed & (random.random(operations) < 0.5)
    order = np.lexsort((random.random(operations), moment))
    results = np.full(operations, ABSENT, np.int64)
    lie_after = operations if stale_at is None else int(stale_at * operations)
    for place, at in enumerate(order.tolist()):
        if without_effect[at]:
            continue
        code, values = int(codes[at]), arguments[at].tolist()
        answer = None
        if place >= lie_after and not crashed[at]:
            answer = system.stale(code, values)
            if answer is not None:
                lie_after = operations
        if answer is None:
            answer = system.apply(code, values)
        results[at] = ABSENT if answer is None else answer
    records = np.zeros(operations, RECORD)
    # A crashed client is followed by a new one.
    lives: NDArray[np.int64] = np.cumsum(crashed) - crashed.astype(np.int64)
    starts = np.cumsum(each) - each
    lives -= np.repeat(lives[starts[each > 0]], each[each > 0])
    records["thread"] = client + clients * lives
    records["operation"] = codes
    records["arguments"] = arguments
    records["result"][:, 0] = np.where(crashed, 0, results)
    records["invoked"] = invoked
    records["returned"] = np.where(crashed, NEVER, ends)
    records["ending"] = np.where(crashed, CRASHED, 0)
    return History(
        system.signatures, frozen(records[np.argsort(invoked, kind="stable")]), source="simulated"
    )


class Cell:
    """A register of few values, or of distinct ones, where every write writes a new value."""

    signatures: Signatures = (Signature("read", 0, WORD), Signature("write", 1, NONE))

    def __init__(self, values: int = 5, *, distinct: bool = False) -> None:
        self.values = values
        self.distinct = distinct
        self.held: list[int | None] = [None]

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        codes = random.integers(0, 2, count)
        values = np.arange(count) if self.distinct else random.integers(0, self.values, count)
        arguments[:, 0] = np.where(codes == 1, values, 0)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        if code == 1:
            self.held.append(arguments[0])
            return None
        return self.held[-1]

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        # A value that has not been written recently.
        recent = self.held[-12:]
        older = next((value for value in self.held[-13:0:-1] if value not in recent), None)
        return older if code == 0 else None


class DigitMap(KeyValueMap):
    """The model of :class:`Keys`, whose values are integers."""

    @staticmethod
    def appended(held: int, added: int) -> int:
        return (held * 10 + added) % 10**15


class Keys:
    """A key-value map with get, put, and append of a digit: a value shows its recent appends."""

    signatures: Signatures = (
        Signature("get", 1, WORD),
        Signature("put", 2, NONE),
        Signature("append", 2, NONE),
    )

    def __init__(self, keys: int = 10) -> None:
        self.keys = keys
        self.held: dict[int, list[int]] = {}

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = random.choice(3, count, p=[0.4, 0.1, 0.5])
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = random.integers(0, self.keys, count)
        arguments[:, 1] = np.where(codes == 0, 0, random.integers(0, 10, count))
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        key, value, _ = arguments
        versions = self.held.setdefault(key, [])
        if code == 0:
            return versions[-1] if versions else None
        versions.append(
            value if code == 1 or not versions else DigitMap.appended(versions[-1], value)
        )
        return None

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        versions = self.held.get(arguments[0], [])
        return versions[len(versions) // 2] if code == 0 and len(versions) > 5 else None


class Line:
    """A queue or a stack of distinct values, with as many insertions as removals."""

    def __init__(self, *, stack: bool = False) -> None:
        put, take = ("push", "pop") if stack else ("enqueue", "dequeue")
        self.signatures: Signatures = (Signature(put, 1, NONE), Signature(take, 0, WORD))
        self.stack = stack
        self.held: list[int] = []
        self.head = 0

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = random.integers(0, 2, count)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = np.where(codes == 0, np.arange(count), 0)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        if code == 0:
            self.held.append(arguments[0])
            return None
        if self.head == len(self.held):
            return None
        if self.stack:
            return self.held.pop()
        self.head += 1
        return self.held[self.head - 1]

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        """Take the value at the wrong end."""
        if code == 0 or len(self.held) - self.head < 4:
            return None
        return self.held.pop(self.head) if self.stack else self.held.pop()


class Members:
    """A set: add, remove, contains."""

    signatures: Signatures = (
        Signature("add", 1, FLAG),
        Signature("remove", 1, FLAG),
        Signature("contains", 1, FLAG),
    )

    def __init__(self, values: int = 20) -> None:
        self.values = values
        self.held: set[int] = set()

    def draw(
        self, random: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = random.integers(0, 3, count)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        arguments[:, 0] = random.integers(0, self.values, count)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        value = arguments[0]
        there = value in self.held
        if code == 0:
            self.held.add(value)
        elif code == 1:
            self.held.discard(value)
        return int(there if code else not there)

    def stale(self, code: int, arguments: Sequence[int]) -> int | None:
        return int(arguments[0] not in self.held) if code == 2 else None


SYSTEMS: Mapping[str, Callable[[], Any]] = {
    "register": Cell,
    "map": Keys,
    "queue": Line,
    "stack": lambda: Line(stack=True),
    "set": Members,
}


def short_cache_runs(seed: int, runs: int) -> tuple[History, NDArray[np.void]]:
    """Generate runs of one program, 3 threads with 4 operations each, on a cache that may forget.

    Returns the history of all runs, one behind the other, and its records in rows of twelve.
    """
    random = np.random.default_rng(seed)
    program = [draw_cache_call(random) for _ in range(12)]
    operations = []
    began = 0
    for _ in range(runs):
        held: dict[int, int] = {}
        lasts = random.integers(1, 60, (3, 4))
        ends = began + np.cumsum(lasts + random.integers(1, 10, (3, 4)), axis=1)
        began = int(ends.max())
        invoked = (ends - lasts).ravel()
        moment = invoked + random.random(12) * lasts.ravel()
        results: list[Any] = [None] * 12
        for at in np.argsort(moment).tolist():
            if held and random.random() < 0.1:
                held.pop(int(random.choice(sorted(held))))
            results[at] = cache_call(held, *program[at])
        operations += [
            Operation(at // 4, *program[at], results[at], int(invoked[at]), int(ends.ravel()[at]))
            for at in range(12)
        ]
    history = history_of(operations, source="simulated")
    return history, history.records.reshape(runs, 12)


def draw_cache_call(random: np.random.Generator) -> tuple[str, tuple[int, ...]]:
    name = str(random.choice(["put", "put", "get", "get", "remove", "scan"]))
    key, value = (int(number) for number in random.integers(0, 3, 2))
    return name, {"put": (key, value), "scan": (0, 2)}.get(name, (key,))


def cache_call(held: dict[int, int], name: str, arguments: tuple[int, ...]) -> Any:
    if name == "put":
        free = arguments[0] not in held
        held.setdefault(*arguments)
        return free
    if name == "scan":
        return tuple(held[key] for key in sorted(held) if arguments[0] <= key <= arguments[1])
    return held.pop(arguments[0], None) if name == "remove" else held.get(arguments[0])
