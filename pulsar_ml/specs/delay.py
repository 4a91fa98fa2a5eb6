"""The common part of the models of delayed delivery: times, buckets, and the names of messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

TRACKED, DELIVER_NOW, NO_MEMORY, CLOSED = range(4)

MOST_TIME = 2**63 - 1
BATCH = 40  # a request for as many messages or more is one for all
CHUNK = 64  # messages of one call of the structure
ENTRIES = 64  # of a ledger, for single messages
APART = 311
LEAST_TIME = -(2**63)
STRIDES = (1, 1, 3, 64)  # between the messages of a run


def message_time(delay: int, clock: int) -> int:
    """When a message is due that an operation names by its delay; beyond all others: at the end of
    time.
    """
    if delay >= ENTRIES:
        return MOST_TIME - (delay - ENTRIES)
    return later(clock, delay)


def clock_start(settings: Mapping[str, int]) -> int:
    """Where clocks begin: near 0, near the smallest number, or in our days."""
    return (0, LEAST_TIME + 40, 1 << 40)[settings["era"]] + settings["start"]


def clocks_of(settings: Mapping[str, int], threads: int) -> list[int]:
    """The clocks of the manager's threads; each is ahead of the next one's."""
    start, apart = clock_start(settings), settings["clocks_apart"]
    return [start + i * apart for i in reversed(range(threads))]


def later(clock: int, milliseconds: int) -> int:
    """A clock that went on or stepped back, and stayed a number."""
    return max(clock + milliseconds, LEAST_TIME)


def signed(value: int) -> int:
    """The number as 64 bits have it."""
    return (value + 2**63) % 2**64 - 2**63


def positions(first: int, entries: int) -> list[int]:
    """The messages of a run: ``entries`` at a distance that the first one decides."""
    return [first + i * STRIDES[first % len(STRIDES)] for i in range(entries)]


def digest(taken: Iterable[int]) -> int:
    """A signed 64-bit number that depends on each message and on their order."""
    value = 0
    for entry in taken:
        value = (value * 0x100000001B3 + entry + 1) % 2**64
    return value - 2**64 if value >= 2**63 else value


@dataclass(frozen=True, slots=True)
class Rule:
    """Buckets as wide as the largest power of two that is not above the first tick."""

    first_tick: int
    strict: bool

    @property
    def precision(self) -> int:
        return 1 << (self.first_tick.bit_length() - 1) if self.first_tick > 0 else 1

    def key(self, deliver_at: int) -> int:
        below = deliver_at - deliver_at % self.precision
        if not self.strict or below == deliver_at:
            return below
        return min(below + self.precision, MOST_TIME)

    def cutoff(self, tick: int, now: int) -> int:
        return now if self.strict else min(now + tick, MOST_TIME)

    def limit(self, tick: int, now: int) -> int:
        return now if self.strict else min(now + tick, MOST_TIME) - self.precision + 1

    def due(self, tick: int, key: int) -> int:
        """When a bucket is due for a timer: not before its own time."""
        return key if self.strict else min(key + max(self.precision - 1 - tick, 0), MOST_TIME)
