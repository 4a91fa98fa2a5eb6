"""Litmus programs of the textbooks, and one for each construct, a tuple for each thread."""

from __future__ import annotations

from tests.memory_model.litmus import (
    ACQUIRE,
    CAS,
    EXCHANGE,
    FENCE,
    JOIN,
    LOAD,
    LOCK,
    LOCK_FOR,
    LOCK_UNTIL,
    NOTIFY_ALL,
    NOTIFY_ONE,
    RELAXED,
    RELEASE,
    SEQ_CST,
    SPAWN,
    STORE,
    TIMED_WAIT,
    TRY_LOCK,
    UNLOCK,
    WAIT,
    Litmus,
    Operation,
)

X, Y, Z = range(3)


def store(cell: int, value: int, order: int = RELAXED) -> Operation:
    return Operation(STORE, cell, order, value)


def exchange(cell: int, value: int, order: int = RELAXED) -> Operation:
    return Operation(EXCHANGE, cell, order, value)


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


def tried(lock: Operation, *calls: Operation) -> tuple[Operation, ...]:
    return (lock, *calls, Operation(UNLOCK))


def until_locked(deadline: int) -> Operation:
    return Operation(LOCK_UNTIL, value=deadline)


def locked_for(span: int) -> Operation:
    return Operation(LOCK_FOR, value=span)


TRIES = Operation(TRY_LOCK)
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
# A join, or a mutex, passes on what a seq_cst fence orders.
SC_FENCE = Operation(FENCE, order=SEQ_CST)
JOIN_BEHIND_FENCE = program(
    (spawn(2), join(2), load(X)),
    (store(X, 2, SEQ_CST), load(Y, SEQ_CST)),
    (store(Y, 1), SC_FENCE),
)
MUTEX_BEHIND_FENCE = program(
    (*locked(load(Z)), load(X)),
    (store(X, 2, SEQ_CST), load(Y, SEQ_CST)),
    (store(Y, 1), SC_FENCE, *locked(store(Z, 3))),
)
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
# An unlock is a step of its own: the store is seen, and the mutex is still held.
SEEN_BEFORE_UNLOCK = program(locked(store(X, 1, SEQ_CST)), (load(X, SEQ_CST), *tried(TRIES)))
# A failed attempt learns nothing from the sections before.
FAILED_ATTEMPT = program(
    (*locked(store(X, 1)), *locked(store(Y, 1))), (load(Y), *tried(TRIES, load(X)))
)
# The mutex is held by a thread that joins one that wants it; without the mutex that does not wait.
LOCK_IN_TIME = program(locked(spawn(1), join(1)), tried(until_locked(1), WAITS))
UNLOCKED_IN_TIME = program(locked(store(X, 1)), tried(locked_for(1), load(X)))
# A span begins when its thread looks at the clock, and not when it locks.
SPANS = program(
    (spawn(1), *tried(locked_for(1), load(X))),
    tried(locked_for(1), store(X, 1), spawn(2), join(2)),
    tried(locked_for(1)),
)
SPAN_AND_DEADLINE = program(
    locked(spawn(1), spawn(2), join(2)),
    tried(locked_for(1), store(X, 1)),
    tried(until_locked(1), load(X)),
)
# Searches with reduction once missed a class of each of these.
WAIT_BETWEEN_LOCKS = program(
    (store(X, 1), Operation(NOTIFY_ALL)), (load(X), *locked(WAITS)), locked()
)
EXCHANGES_AND_OWN_LOAD = program((store(X, 1), load(X)), (exchange(X, 2),), (exchange(X, 3),))
SEQ_CST_EXCHANGE = program(
    (exchange(X, 1, SEQ_CST),), (store(X, 2, SEQ_CST),), (store(X, 3),), (store(X, 5),)
)
FAILED_SEQ_CST_SWAP = program((store(X, 1, SEQ_CST),), (Operation(CAS, X, SEQ_CST, 2),))
TWO_SEQ_CST_LOADS = program((store(X, 1), load(X, SEQ_CST)), (load(X, SEQ_CST),), (store(X, 2),))
TRY_WITH_A_FULL_BUFFER = program(
    locked(load(X)),
    (store(X, 1), spawn(2), store(Y, 2), TRIES, Operation(UNLOCK)),
    (TRIES, Operation(UNLOCK), load(Y)),
)
# And a search without reduction, in mode tso, an order in which stores arrive at the end.
ARRIVALS_AT_THE_END = program(
    (store(X, 1), load(Y)), (store(Y, 2, SEQ_CST), load(X)), (store(X, 3), load(Y))
)

# The programs that are compared with the models, whatever their searches take.
TEXTBOOK = (
    STORE_BUFFERING,
    NOTIFYING_STORE_BUFFERING,
    MESSAGE,
    RELAXED_MESSAGE,
    LOCKED_MESSAGE,
    MIXED_ORDERS,
    SC_BEHIND_TIME_OUT,
    JOINED_STORE,
    STORE_BEFORE_SPAWN,
    STORE_ACROSS_SPAWN,
    LOST_NOTIFICATION,
    TWO_WAITS,
    TIME_OUTS_IN_ORDER,
    STARTED_READER,
    JOIN_UNDER_LOCK,
    JOIN_BEHIND_FENCE,
    MUTEX_BEHIND_FENCE,
    SEEN_BEFORE_UNLOCK,
    FAILED_ATTEMPT,
    LOCK_IN_TIME,
    UNLOCKED_IN_TIME,
    SPANS,
    SPAN_AND_DEADLINE,
    WAIT_BETWEEN_LOCKS,
    EXCHANGES_AND_OWN_LOAD,
    SEQ_CST_EXCHANGE,
    FAILED_SEQ_CST_SWAP,
    TWO_SEQ_CST_LOADS,
    TRY_WITH_A_FULL_BUFFER,
    ARRIVALS_AT_THE_END,
)
