"""Cursors of the two cursor containers: their numbers, statuses and starting positions."""

from __future__ import annotations

from tests.structures.machine import Pair

DONE, UNKNOWN, REFUSED = 0, 1, 3
UNTRACKED = -1
FIRST = 3  # the numbers below name a thread's own cursors
DURABLE, NOT_DURABLE = 1, 0


def with_cursors(structure: str, *values: int, **settings: int) -> Pair:
    """Cursors FIRST, FIRST + 1, ... at the given values."""
    pair = Pair(structure, {"cursors": 40, "values": 64, "chunk_bits": 2, **settings})
    for number, value in enumerate(values):
        pair.call("add", FIRST + number, value, NOT_DURABLE)
    return pair
