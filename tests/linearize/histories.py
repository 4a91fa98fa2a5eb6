"""Strategies for small histories, legal and illegal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from pulsar_ml.harness.histories.history import History, Operation, history_of

# Draws one operation: its name, arguments and result.
Shape = Callable[[Any], tuple[str, tuple[Any, ...], Any]]

SMALL = st.integers(0, 2)
MAYBE = st.one_of(st.none(), SMALL)


def one(draw: Any, *choices: tuple[str, Sequence[Any], Any]) -> tuple[str, tuple[Any, ...], Any]:
    name, arguments, result = draw(st.sampled_from(choices))
    return name, tuple(draw(argument) for argument in arguments), draw(result)


NOTHING = st.none()
TRUTH = st.booleans()
SHAPES: dict[str, Shape] = {
    "register": lambda draw: one(draw, ("read", (), MAYBE), ("write", (SMALL,), NOTHING)),
    "cas-register": lambda draw: one(
        draw, ("read", (), MAYBE), ("write", (SMALL,), NOTHING), ("cas", (SMALL, SMALL), TRUTH)
    ),
    "map": lambda draw: one(
        draw,
        ("get", (SMALL,), MAYBE),
        ("put", (SMALL, SMALL), NOTHING),
        ("delete", (SMALL,), NOTHING),
    ),
    "evicting-map": lambda draw: one(
        draw,
        ("get", (SMALL,), MAYBE),
        ("put", (SMALL, SMALL), TRUTH),
        ("remove", (SMALL,), MAYBE),
        ("scan", (st.just(0), st.just(2)), st.lists(SMALL, max_size=2)),
    ),
    "set": lambda draw: one(
        draw, ("add", (SMALL,), TRUTH), ("remove", (SMALL,), TRUTH), ("contains", (SMALL,), TRUTH)
    ),
    "queue": lambda draw: one(draw, ("enqueue", (SMALL,), NOTHING), ("dequeue", (), MAYBE)),
    "multiset": lambda draw: one(
        draw,
        ("add", (SMALL,), NOTHING),
        ("remove", (SMALL,), st.sampled_from((True, False, None))),
        ("contains", (SMALL,), TRUTH),
        ("count", (SMALL,), SMALL),
    ),
    "priority-queue": lambda draw: one(
        draw, ("insert", (SMALL,), NOTHING), ("delete_min", (), MAYBE)
    ),
    "stack": lambda draw: one(draw, ("push", (SMALL,), NOTHING), ("pop", (), MAYBE)),
    "counter": lambda draw: one(
        draw, ("read", (), SMALL), ("increment", (), NOTHING), ("get_and_add", (SMALL,), SMALL)
    ),
    "lock": lambda draw: one(
        draw, ("acquire", (), NOTHING), ("try_acquire", (), TRUTH), ("release", (), NOTHING)
    ),
}


def hard_queue(values: int = 14) -> list[Operation]:
    """Values that were put at one time and taken at one time, and two that left in wrong order.

    One value was put twice. A search goes through all sets of values before it finds the two.
    """
    kept = (*range(1, values), 1)
    found = [Operation(at, "enqueue", (value,), None, 0, 100) for at, value in enumerate(kept, 1)]
    found += [Operation(at, "dequeue", (), value, 200, 300) for at, value in enumerate(kept, 1)]
    for at in (0, 1):
        found.append(Operation(0, "enqueue", (50 + at,), None, 101 + 2 * at, 102 + 2 * at))
        found.append(Operation(0, "dequeue", (), 51 - at, 301 + 2 * at, 302 + 2 * at))
    return found


@st.composite
def histories(draw: Any, shape: Shape, *, most: int = 6, open_ones: bool = True) -> History:
    """Up to ``most`` operations of three threads with any results; stamps may be equal."""
    clock = [0, 0, 0]
    ended = [False, False, False]
    operations = []
    for _ in range(draw(st.integers(0, most))):
        thread = draw(st.sampled_from([t for t in range(3) if not ended[t]] or [0]))
        if ended[thread]:
            break
        name, arguments, result = shape(draw)
        invoked = clock[thread] + draw(st.integers(1, 4))
        returned: int | None = invoked + draw(st.integers(0, 6))
        clock[thread] = returned if returned is not None else 0
        if open_ones and draw(st.integers(0, 9)) == 0:
            returned = None
            ended[thread] = True
        operations.append(
            Operation(thread, name, arguments, result, invoked, returned, draw(st.booleans()))
        )
    return history_of(operations)


@st.composite
def distinct(draw: Any, put: str, take: str, *, most: int = 8) -> History:
    """Distinct values, each put once; a take returns one of them, mostly only once, or nothing."""
    operations = []
    clock = [0, 0, 0, 0]
    values = list(range(draw(st.integers(1, 4))))
    kinds: list[tuple[str, int | None]] = [(put, value) for value in values]
    kinds += [(take, value) for value in values if draw(st.integers(0, 4))]
    kinds += [(take, None)] * draw(st.integers(0, 2))
    for name, value in draw(st.permutations(kinds))[:most]:
        thread = draw(st.integers(0, 3))
        invoked = clock[thread] + draw(st.integers(1, 3))
        clock[thread] = invoked + draw(st.integers(0, 7))
        arguments, result = ((value,), None) if name == put else ((), value)
        operations.append(Operation(thread, name, arguments, result, invoked, clock[thread]))
    return history_of(operations)


def placed(draw: Any, kinds: Sequence[tuple[str, tuple[Any, ...], Any]]) -> History:
    """The operations in intervals on four threads; some writes do not return."""
    clock = [0, 0, 0, 0]
    operations = []
    for name, arguments, result in kinds:
        thread = draw(st.integers(0, 3))
        invoked = clock[thread] + draw(st.integers(1, 3))
        clock[thread] = invoked + draw(st.integers(0, 7))
        returned = clock[thread] if name != "write" or draw(st.integers(0, 5)) else None
        operations.append(Operation(thread, name, arguments, result, invoked, returned))
        clock[thread] += 100 if returned is None else 0
    return history_of(operations)


@st.composite
def distinct_cell(draw: Any) -> History:
    values = list(range(draw(st.integers(1, 3))))
    kinds: list[tuple[str, tuple[Any, ...], Any]] = [("write", (value,), None) for value in values]
    kinds += [
        ("read", (), draw(st.sampled_from([None, *values]))) for _ in range(draw(st.integers(0, 4)))
    ]
    return placed(draw, draw(st.permutations(kinds)))


@st.composite
def distinct_exchanges(draw: Any) -> History:
    """Draw a register whose writes and compare-and-sets put distinct values."""
    count = draw(st.integers(1, 5))
    seen = st.sampled_from([None, *range(count)])
    kinds: list[tuple[str, tuple[Any, ...], Any]] = [
        ("write", (value,), None)
        if draw(st.integers(0, 2)) == 0
        else ("cas", (draw(seen), value), draw(st.integers(0, 4)) > 0)
        for value in range(count)
    ]
    kinds += [("read", (), draw(seen)) for _ in range(draw(st.integers(0, 2)))]
    return placed(draw, draw(st.permutations(kinds)))


@st.composite
def distinct_members(draw: Any) -> History:
    kinds: list[tuple[str, tuple[Any, ...], Any]] = [
        (name, (0,), True) for name in ("add", "remove") if draw(st.integers(0, 4))
    ]
    kinds += [
        (draw(st.sampled_from(("contains", "add", "remove"))), (0,), draw(st.booleans()))
        for _ in range(draw(st.integers(0, 4)))
    ]
    return placed(draw, draw(st.permutations(kinds)))
