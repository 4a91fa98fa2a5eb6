"""Draws random programs of a read-write lock, a semaphore and cells, which no model here has."""

from __future__ import annotations

import random

from tests.memory_model.litmus import (
    COUNT,
    GIVE,
    HOW,
    LOAD,
    READ_LOCK,
    RELAXED,
    SEQ_CST,
    SHARED_UNLOCK,
    STORE,
    TAKE,
    WRITE_LOCK,
    Litmus,
    Operation,
)


def objects_of_seed(seed: int) -> Litmus:
    """Return a program of two or three threads, with one to three of its parts in each."""
    draw = random.Random(f"objects {seed}")
    threads = draw.choice((2, 2, 3))
    parts = 3 if threads == 2 else 2
    return Litmus(
        tuple(
            tuple(call for _ in range(draw.randint(1, parts)) for call in part_of(draw))
            for _ in range(threads)
        )
    )


def part_of(draw: random.Random) -> list[Operation]:
    """Return a section of the lock, a use of the semaphore, or an access."""
    kind = draw.choice(("section", "section", TAKE, GIVE, COUNT, "access"))
    how = draw.choice((0, 0, 0, 1, 2))
    value = draw.choice((0, 1, 2, 3)) if HOW[how] == "until" else 0
    if kind == "section":
        lock = draw.choice((READ_LOCK, READ_LOCK, WRITE_LOCK))
        inside = [access_of(draw) for _ in range(draw.choice((0, 0, 1)))]
        return [Operation(lock, how, value=value), *inside, Operation(SHARED_UNLOCK)]
    if kind == TAKE:
        return [Operation(TAKE, how, value=value)]
    return [access_of(draw)] if kind == "access" else [Operation(kind)]


def access_of(draw: random.Random) -> Operation:
    order = draw.choice((RELAXED, SEQ_CST))
    if draw.random() < 0.5:
        return Operation(LOAD, 0, order)
    return Operation(STORE, 0, order, draw.randint(1, 3))
