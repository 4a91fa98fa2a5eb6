"""Histories of simulated systems for the rows beside Porcupine, legal and illegal, from seeds."""

from __future__ import annotations

import bisect
import random as plain_random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.generated import Cell, Line, Members, Signatures
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

Drawn = tuple[NDArray[np.int64], NDArray[np.int64]]


class CasCell(Cell):
    """A register with reads, writes and compare-and-sets, a third each.

    With distinct values, half of the compare-and-sets expect the value that they find.
    """

    signatures: Signatures = (*Cell.signatures, Signature("cas", 2, FLAG))

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        codes = random.integers(0, 3, count)
        arguments = np.zeros((count, MOST_ARGUMENTS), np.int64)
        first = random.integers(0, self.values, count)
        second = random.integers(0, self.values, count)
        if self.distinct:
            first = second = np.arange(count)
            self.arguments = arguments  # see apply()
        arguments[:, 0] = np.where(codes > 0, first, 0)
        arguments[:, 1] = np.where(codes == 2, second, 0)
        return codes, arguments

    def apply(self, code: int, arguments: Sequence[int]) -> int | None:
        if code < 2:
            return super().apply(code, arguments)
        if self.distinct and arguments[1] % 2 and self.held[-1] is not None:
            self.arguments[arguments[1], 0] = self.held[-1]
        elif self.held[-1] != arguments[0]:
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
