"""The values of the cursor models: a cursor, the container at a moment, a thread's view, a walk."""

from __future__ import annotations

from typing import NamedTuple

UNTRACKED = -1

# The thread that a cursor belongs to (-1: all threads) and the cursor's number.
Name = tuple[int, int]


class Cursor(NamedTuple):
    """A registered cursor; its value is -1 while it has no position.

    ``born`` is the data version of its registration.
    """

    tag: int
    value: int
    durable: bool
    name: Name
    born: int


class Moment(NamedTuple):
    """The container between two changes, as far as a query may tell it from others.

    While a churn is under way, cursors of those values may be there besides, and so many changes
    more.
    """

    slowest: int  # of the values, -1: none has one
    size: int
    durable: bool
    version: int
    cursors: tuple[Cursor, ...] = ()
    left_at: frozenset[int] = frozenset()  # when the last cursor left, as far as that is certain
    churned: tuple[int, ...] = ()
    more: int = 0

    def may_be_slowest(self, value: int) -> bool:
        """True if `slowest` may be the slowest value."""
        if value != UNTRACKED and value in self.churned:
            return self.slowest == UNTRACKED or value <= self.slowest
        return value == self.slowest

    def rank(self, tag: int, rank: int) -> bool:
        """True if a cursor may have that rank."""
        value = next((cursor.value for cursor in self.cursors if cursor.tag == tag), UNTRACKED)
        return rank == 0 if value == UNTRACKED else self.counts(value, rank)

    def counts(self, value: int, rank: int) -> bool:
        """True if so many tracked cursors may be at a value or before it."""
        least = sum([UNTRACKED < cursor.value <= value for cursor in self.cursors])
        return least <= rank <= least + sum([UNTRACKED < guest <= value for guest in self.churned])


# A thread's knowledge: a moment, and later ones at which it saw the size and whether a cursor is
# durable; the moment where its call began (-1: none is under way); and the data version that it
# saw.
View = tuple[int, int, int, int, int]
NOTHING_SEEN: View = (0, 0, 0, -1, 0)


class Walk(NamedTuple):
    """A walk under way: cursors that stayed so far, and how many more it may have met."""

    sure: frozenset[int]
    more: int
