"""Sequential consistency and the guarantees of sessions by their definitions: all orders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.models.model import Keyed

READS = ("read", "get")
FIRST = -1  # the write of the first value of a key


def sequential(history: History, model: Any) -> bool:
    """True when the calls have a legal order that keeps each thread's own.

    A call that did not return comes after the earlier calls of its thread, or has no effect.
    """
    records = history.records
    returned = [index for index in range(len(history)) if records["ending"][index] == 0]

    def earlier(one: int, other: int) -> bool:
        same = records["thread"][one] == records["thread"][other]
        before = (records["invoked"][one], one) < (records["invoked"][other], other)
        return bool(same and before and records["ending"][one] == 0)

    def extend(order: list[int], states: list[Any]) -> bool:
        if not states:
            return False
        if set(returned) <= set(order):
            return True
        return any(
            extend(
                [*order, index],
                [after for state in states for after in model.step(state, history.call(index))],
            )
            for index in range(len(history))
            if index not in order and all(one in order for one in returned if earlier(one, index))
        )

    return extend([], [model.init()])


def holds(history: History, model: Any, guarantee: str) -> bool:
    """True when a visibility and an order of the writes exist that have the guarantee.

    Each read sees the write whose value it returns, and what the guarantees make it see; of the
    writes to its key that it sees, the last in the order is the one whose value it returns.
    """
    return any(fits(history, guarantee, *choice) for choice in choices(history, model))


def choices(history: History, model: Any) -> Iterator[tuple[dict[int, int], list[int]]]:
    """Yield every choice of the write that each read returns, with every order of the writes."""
    calls = [history.call(index) for index in range(len(history))]
    writes = [index for index, call in enumerate(calls) if call.name not in READS]
    reads = [i for i, call in enumerate(calls) if call.name in READS and not call.pending]
    inner = model.model if isinstance(model, Keyed) else model
    initial = getattr(inner, "initial", None)
    sources = []
    for read in reads:
        found = [
            write for write in writes
            if key_of(history, write) == key_of(history, read)
            and written(history, write) == calls[read].result
        ]  # fmt: skip
        sources.append(found + [FIRST] * (calls[read].result == initial))
    for chosen in itertools.product(*sources):
        for order in itertools.permutations(writes):
            yield dict(zip(reads, chosen, strict=True)), list(order)


def key_of(history: History, index: int) -> object:
    call = history.call(index)
    values = {"read": 0, "write": 1, "get": 0, "put": 1, "delete": 0}[call.name]
    return call.arguments[: len(call.arguments) - values]


def written(history: History, index: int) -> object:
    call = history.call(index)
    return None if call.name == "delete" else call.arguments[-1]


def fits(history: History, guarantee: str, source: dict[int, int], order: list[int]) -> bool:
    records = history.records
    every = guarantee == "session"
    place = {write: at for at, write in enumerate(order)}

    def session(index: int) -> list[int]:
        """The earlier calls of the thread that returned."""
        own = [
            other for other in range(len(history))
            if records["thread"][other] == records["thread"][index]
            and records["ending"][other] == 0
            and (records["invoked"][other], other) < (records["invoked"][index], index)
        ]  # fmt: skip
        return sorted(own, key=lambda other: (records["invoked"][other], other))

    seen: dict[int, set[int]] = {}
    for read in sorted(source, key=lambda one: (records["invoked"][one], one)):
        seen[read] = {source[read]} - {FIRST}
        for other in session(read):
            if other in place and (every or guarantee == "read-your-writes"):
                seen[read].add(other)
            if other in source and (every or guarantee == "monotonic-reads"):
                seen[read] |= seen[other]
        here = [write for write in seen[read] if key_of(history, write) == key_of(history, read)]
        last = max(here, key=place.__getitem__, default=FIRST)
        if last != source[read]:
            return False
    for write in order:
        for other in session(write):
            if other in place and every and place[other] > place[write]:
                return False
            if other in source and (every or guarantee == "writes-follow-reads"):
                late = any(place[one] >= place[write] for one in seen[other])
                if late:
                    return False
    return True


def in_order(history: History, model: Any, order: Sequence[int]) -> bool:
    """True when the model allows the calls in this order."""
    states = [model.init()]
    for index in order:
        states = [after for state in states for after in model.step(state, history.call(index))]
    return bool(states)
