"""References in the hands of threads, and mailboxes that pass them on. A part of other models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

HANDS = 8  # references that one thread holds at most
MAILBOXES = 4


class Hands(Generic[Item]):
    """The references that each thread holds, and those in the mailboxes."""

    def __init__(self, threads: int) -> None:
        self.threads: list[list[Item]] = [[] for _ in range(threads)]
        self.mailboxes: list[Item | None] = [None] * MAILBOXES

    def full(self, thread: int) -> bool:
        return len(self.threads[thread]) == HANDS

    def at(self, thread: int, which: int) -> Item:
        """The item number ``which``, counted around."""
        held = self.threads[thread]
        return held[which % len(held)]

    def pick(self, thread: int, which: int) -> Item:
        """Takes an item out of the hands; the last item moves to its place."""
        held = self.threads[thread]
        index = which % len(held)
        held[index], held[-1] = held[-1], held[index]
        return held.pop()

    def exchange(self, thread: int, mailbox: int) -> bool:
        """Leaves the last item in the mailbox and takes what was there; whether there was
        something.
        """
        held = self.threads[thread]
        mine = held.pop() if held else None
        theirs, self.mailboxes[mailbox] = self.mailboxes[mailbox], mine
        if theirs is None:
            return False
        held.append(theirs)
        return True

    def everywhere(self) -> Iterator[Item]:
        """All references that exist."""
        for held in self.threads:
            yield from held
        yield from (item for item in self.mailboxes if item is not None)
