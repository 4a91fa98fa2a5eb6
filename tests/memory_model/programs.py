"""Litmus programs of the textbooks, and one for each construct, a tuple for each thread."""

from __future__ import annotations

from tests.memory_model.litmus import (
    ACQUIRE,
    JOIN,
    LOAD,
    LOCK,
    NOTIFY_ONE,
    RELAXED,
    RELEASE,
    SEQ_CST,
    SPAWN,
    STORE,
    TIMED_WAIT,
    UNLOCK,
    WAIT,
    Litmus,
    Operation,
)

X, Y, Z = range(3)


def store(cell: int, value: int, order: int = RELAXED) -> Operation:
    return Operation(STORE, cell, order, value)


def load(cell: int, order: int = RELAXED) -> Operation:
    return Operation(LOAD, cell, order)


def until(deadline: int) -> Operation:
    return Operation(TIMED_WAIT, value=deadline)


def spawn(thread: int) -> Operation:
    return Operation(SPAWN, thread)


def join(thread: int) -> Operation:
    return Operation(JOIN, thread)


def locked(*calls: Operation) -> tuple[Operation, ...]:
    return (Operation(LOCK), *calls, Operation(UNLOCK))


def program(*threads: tuple[Operation, ...]) -> Litmus:
    return Litmus(threads)


WAITS, NOTIFIES = Operation(WAIT), Operation(NOTIFY_ONE)

STORE_BUFFERING = program(
    (store(X, 1, RELEASE), load(Y, ACQUIRE)), (store(Y, 1, RELEASE), load(X, ACQUIRE))
)
SC_STORE_BUFFERING = program(
    (store(X, 1, SEQ_CST), load(Y, SEQ_CST)), (store(Y, 1, SEQ_CST), load(X, SEQ_CST))
)
NOTIFYING_STORE_BUFFERING = program(
    (store(X, 1), NOTIFIES, load(Y)), (store(Y, 1), NOTIFIES, load(X))
)
MESSAGE = program((store(X, 1), store(Y, 1, RELEASE)), (load(Y, ACQUIRE), load(X)))
RELAXED_MESSAGE = program((store(X, 1), store(Y, 1, RELEASE)), (load(Y), load(X)))
LOCKED_MESSAGE = program(locked(store(X, 1), store(Y, 1)), locked(load(Y), load(X)))
# docs/engine.md, Limits: seq_cst beside relaxed accesses of one location, and beside time-outs.
MIXED_ORDERS = program((store(Y, 1, SEQ_CST), store(X, 2)), (load(X), store(Y, 4, SEQ_CST)))
SC_BEHIND_TIME_OUT = program((store(X, 1, SEQ_CST),), (*locked(until(1)), load(X, SEQ_CST)))
JOINED_STORE = program((spawn(1), join(1), load(X)), (store(X, 1),))
STORE_BEFORE_SPAWN = program((store(X, 1), spawn(1)), (load(X),))
STORE_ACROSS_SPAWN = program((store(X, 1), spawn(2), load(Y)), (store(Y, 1, SEQ_CST), load(X)), ())
LOST_NOTIFICATION = program(locked(WAITS), (NOTIFIES,))
LOCKED_NOTIFICATION = program(locked(WAITS), locked(NOTIFIES))
TWO_WAITS = program(locked(WAITS), locked(WAITS), (NOTIFIES,))
TIME_OUT = program(locked(until(1)), (NOTIFIES,))
TIME_OUT_IN_SECTION = program(locked(until(1), store(X, 1)), locked(load(X), load(X)))
# The first wait to time out notifies the other one.
TIME_OUTS_IN_ORDER = program(locked(until(1), NOTIFIES), locked(until(2)))
# Its search once failed: a started thread began with the reads of earlier executions.
STARTED_READER = program((spawn(1), store(Y, 1), join(1)), (spawn(2),), (load(Y),))
JOIN_UNDER_LOCK = program(locked(spawn(1), join(1)), locked())
