"""Draws random litmus programs."""

from __future__ import annotations

import random

from tests.memory_model.litmus import (
    ACQ_REL,
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
    ORDERS,
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

MOST_WRITES = 7
KINDS, KIND_WEIGHTS = (EXCHANGE, CAS, LOAD, STORE, FENCE), (1, 1, 10, 10, 2)
# Threads and accesses of a program; programs have the constructs of the rows of FEATURES in turn.
PLAIN = ((2, 4), (2, 5), (2, 6), (3, 5), (3, 6), (4, 6))
SMALL = ((2, 2), (2, 3), (2, 4), (2, 4), (3, 3), (3, 4))
FEATURES = (
    (),
    ("locks",),
    ("conditions",),
    ("threads",),
    ("conditions", "threads"),
    ("attempts",),
    ("attempts", "conditions"),
    ("attempts", "threads"),
)


def orders_of(kind: str) -> tuple[int, ...]:
    """Return the memory orders that C11 allows for an operation."""
    match kind:
        case "load":
            return (RELAXED, ACQUIRE, SEQ_CST)
        case "store":
            return (RELAXED, RELEASE, SEQ_CST)
        case "fence":
            return (ACQUIRE, RELEASE, ACQ_REL, SEQ_CST)
    return ORDERS


def program_of_seed(seed: int, *, most: int = 6) -> Litmus:
    """Return the program of a seed, with at most ``most`` accesses."""
    features = FEATURES[seed % len(FEATURES)]
    shapes = [shape for shape in (SMALL if features else PLAIN) if shape[1] <= most]
    threads, accesses = shapes[seed // len(FEATURES) % len(shapes)]
    return random_program(seed, threads=threads, accesses=accesses, features=features)


def random_program(
    seed: int, *, threads: int, accesses: int, features: tuple[str, ...] = ()
) -> Litmus:
    """Draw a program of ``threads`` threads with ``accesses`` accesses and fences in all.

    ``features`` may name "locks": threads hold the mutex around some of their accesses;
    "attempts": they try to get it, for a while or not; "conditions": they wait there, with and
    without a deadline, and notify; "threads": threads start and join others. Each write has a
    value of its own, so that an outcome says which write a read saw.
    """
    draw = random.Random(f"{seed} {threads} {accesses} {features}")
    rows = memory_accesses(draw, threads, accesses)
    if {"locks", "attempts", "conditions"} & set(features):
        for calls in rows:
            if draw.random() < 0.75:
                add_section(draw, calls, features)
    if "threads" in features:
        for child in range(draw.randint(1, threads - 1), threads):
            add_child(draw, rows, child)
    return Litmus(tuple(map(tuple, rows)))


def memory_accesses(draw: random.Random, threads: int, accesses: int) -> list[list[Operation]]:
    cells = draw.choice((1, 2, 2, 2, 2, 2, 3))
    # Weak outcomes need a cycle: each thread begins with the cell that the thread before it ends
    # with, and goes on to another one.
    in_cycle = cells > 1 and draw.random() < 0.6
    passes = in_cycle and draw.random() < 0.4
    sizes = [1 if passes else accesses // threads] * threads
    while sum(sizes) < accesses:
        sizes[draw.choice((0, -1)) if passes else draw.randrange(threads)] += 1
    written = cell = 0
    rows = []
    for size in sizes:
        calls: list[Operation] = []
        if not in_cycle:
            cell = draw.randrange(cells)
        for _ in range(size):
            kind = draw.choices(KINDS, KIND_WEIGHTS)[0]
            order = draw.choice(orders_of(kind))
            if kind != FENCE and draw.random() < 0.4:
                order = RELAXED
            begins, ends = not calls, len(calls) + 1 == size
            if passes and (begins or ends):
                # Between the first store and the last load of the program.
                receives = (begins and bool(rows)) or (ends and len(rows) + 1 == threads)
                sends = (ends and len(rows) + 1 < threads) or (begins and not rows)
                kind, order = link(draw, kind, order, receives=receives, sends=sends)
            if kind in (STORE, EXCHANGE, CAS):
                written = min(written + 1, MOST_WRITES)
            expected = draw.randrange(written + 1) if kind == CAS else 0
            calls.append(Operation(kind, cell, order, written, expected))
            # Mostly another cell than before: reordering needs two.
            moves = kind != FENCE if in_cycle else draw.choice((0, 1, 1, 1, 2))
            cell = (cell + moves) % cells
        if in_cycle:
            cell = calls[-1].cell
            add_fences(draw, calls)
        rows.append(calls)
    return rows


def link(
    draw: random.Random, kind: str, order: int, *, receives: bool, sends: bool
) -> tuple[str, int]:
    """Return the first or last access of a thread that passes a message on to the next one."""
    if receives and sends:
        return draw.choice((EXCHANGE, CAS)), order
    kind, strong = (LOAD, ACQUIRE) if receives else (STORE, RELEASE)
    return kind, draw.choice((strong, order if order in orders_of(kind) else RELAXED))


def add_fences(draw: random.Random, calls: list[Operation]) -> None:
    """Fence a thread of a cycle now and then: before its last access, and behind its first."""
    for at, orders in ((len(calls) - 1, (RELEASE, ACQ_REL)), (1, (ACQUIRE, ACQ_REL))):
        if len(calls) > 1 and draw.random() < 0.2:
            calls.insert(at, Operation(FENCE, order=draw.choice(orders)))


def lock_of(draw: random.Random, features: tuple[str, ...]) -> Operation:
    if "attempts" not in features:
        return Operation(LOCK)
    kind = draw.choice((LOCK, TRY_LOCK, LOCK_UNTIL, LOCK_FOR))
    late = kind in (LOCK_UNTIL, LOCK_FOR)
    return Operation(kind, value=draw.choice((0, 1, 1, 2, 2, 3)) if late else 0)


def add_section(draw: random.Random, calls: list[Operation], features: tuple[str, ...]) -> None:
    """Put a section of the mutex around some calls, with a wait or a notification."""
    begin = draw.randrange(len(calls) + 1)
    end = draw.randrange(begin, len(calls) + 1)
    calls[end:end] = [Operation(UNLOCK)]
    calls[begin:begin] = [lock_of(draw, features)]
    if "conditions" not in features:
        return
    if draw.random() < 0.25:
        calls.insert(draw.randint(0, len(calls)), Operation(draw.choice((NOTIFY_ONE, NOTIFY_ALL))))
        return
    kind = draw.choice((WAIT, TIMED_WAIT, TIMED_WAIT, NOTIFY_ONE, NOTIFY_ONE, NOTIFY_ALL))
    inside = kind in (WAIT, TIMED_WAIT) or draw.random() < 0.6
    at = draw.randint(begin + 1, end + 1) if inside else draw.randint(0, len(calls))
    calls.insert(at, Operation(kind, value=draw.randint(1, 3) if kind == TIMED_WAIT else 0))


def add_child(draw: random.Random, rows: list[list[Operation]], child: int) -> None:
    """Let an earlier thread start this one, often at once, and mostly join it, often last."""
    calls = rows[draw.randrange(child)]
    at = draw.choice((0, draw.randint(0, len(calls))))
    calls.insert(at, Operation(SPAWN, child))
    if draw.random() < 0.75:
        end = draw.choice((len(calls), draw.randint(at + 1, len(calls))))
        calls.insert(end, Operation(JOIN, child))
