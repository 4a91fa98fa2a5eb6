"""The common part of the models of range caches and eviction policies: entries, wrappers and
caches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

EVICTED = -(1 << 30)


@dataclass(slots=True)
class Entry:
    """An entry, or a counting copy of one; copies share the list that holds the expected reads."""

    incarnation: int
    expected: list[int]
    counts_read: bool = False
    shared: bool = (
        False  # has a read count that others may share; made late where no read was expected
    )
    references: int = 1
    counts_of_4: bool = False  # marks go below zero, and no read count is made late

    def expected_reads(self) -> int:
        return self.expected[0]

    def release(self) -> bool:
        """Gives one reference back; whether it was the last."""
        self.references -= 1
        if self.references == 0 and self.counts_read:
            if self.counts_of_4:
                self.expected[0] -= self.shared
            elif self.expected[0] > 0:
                self.expected[0] -= 1
        return self.references == 0


@dataclass(slots=True, eq=False)
class Wrapper:
    """A wrapper that the policy knows; empty when its entry is None."""

    cache: int
    key: int
    entry: Entry | None
    size: int
    timestamp: int
    requeues: int = 0
    accessed: bool = False
    visits: int = 0

    def expects_reads(self) -> bool:
        return self.entry is not None and self.entry.expected_reads() >= 1


@dataclass(slots=True)
class Cache:
    """A cache: key -> wrapper, and the bytes counted."""

    wrappers: dict[int, Wrapper] = field(default_factory=dict)
    size: int = 0

    def ascending(self, first: int, last: int) -> Iterator[Wrapper]:
        """The wrappers of a range of keys; what is removed meanwhile does not come any more."""
        for key in range(first, last + 1):
            if key in self.wrappers:
                yield self.wrappers[key]

    def take_out(self, wrapper: Wrapper, *, mark: bool) -> int:
        """Removes what a wrapper holds and leaves it empty; the bytes that were counted for it.

        ``mark`` says in the expected reads that the entry was evicted.
        """
        del self.wrappers[wrapper.key]
        self.size -= wrapper.size
        entry, wrapper.entry = wrapper.entry, None
        if entry is not None and entry.references:
            if mark and entry.shared:
                entry.expected[0] = EVICTED
            entry.release()
        return wrapper.size
