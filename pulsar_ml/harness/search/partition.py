"""Disjoint parts of an exhaustive search, so that many processes can share its tree of choices.

The state of a depth-first search is one path: the choices to the right of the path, below its
floor, are still to do. A part is divided at the first place of its path where a choice was not
taken: one part keeps the choice that was taken there, the other gets those that follow. The two
never overlap and together are the divided part, so when every part is exhausted, the search is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import BUFFER

TEXT = re.compile(r"(\d{1,6}):((?:\d{1,5}/\d{1,5}(?:,\d{1,5}/\d{1,5})*)?)")
MOST_CHOICES = 1 << 16  # of a path; an execution has no more steps
ALONE = "reduce"  # the strategy that ends where the reduction does not cover the program
# Bits of the statistic "unreduced", in the order of the engine's.
REASONS = (
    "stores of mode tso that arrive within a step",
    "a loop that yields again and again",
    "annotated synchronisation",
    "races that are allowed or not detected",
    "a check of lock-freedom",
    "more than 16 threads, or 8 in mode tso",
    "Python code",
    "random numbers or keys of thread-specific data",
    "no memory",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A disjoint piece of an exhaustive search: all executions from a path onwards.

    Attributes:
        path: the choices of the next execution, as far as they are decided.
        options: the number of options at each choice; 0 when it is not known yet.
        floor: the number of choices that stay fixed. 0 with an empty path is the whole search.
    """

    path: tuple[int, ...] = ()
    options: tuple[int, ...] = ()
    floor: int = 0

    @property
    def cut(self) -> int | None:
        """The first index of the path with an option that was not taken; None without one."""
        for at in range(self.floor, len(self.path)):
            if self.path[at] + 1 < self.options[at]:
                return at
        return None

    def halves(self) -> tuple[Part, Part]:
        """Return two parts that together are this one; ValueError when :attr:`cut` is None."""
        at = self.cut
        if at is None:
            raise ValueError(
                "this part has no option left beside its path, so it cannot be divided"
            )
        later = (*self.path[:at], self.path[at] + 1)
        return Part(self.path, self.options, at + 1), Part(later, self.options[: at + 1], at)

    def __str__(self) -> str:
        choices = ",".join(
            f"{taken}/{of}" for taken, of in zip(self.path, self.options, strict=True)
        )
        return f"{self.floor}:{choices}"

    @staticmethod
    def of(text: str) -> Part:
        """Return the part that ``str`` described; "" is the whole. UsageError for other texts."""
        if not text:
            return Part()
        found = TEXT.fullmatch(text) if len(text) < 12 * MOST_CHOICES else None
        if found is None:
            raise UsageError(f"a part of a search is FLOOR:TAKEN/OPTIONS,..., not {text!r:.60}")
        pairs = [choice.split("/") for choice in found[2].split(",") if choice]
        path, options = tuple(int(taken) for taken, _ in pairs), tuple(int(of) for _, of in pairs)
        floor = int(found[1])
        if floor > len(path) or any(
            (of and taken >= of) or max(taken, of) >= 1 << 16
            for taken, of in zip(path, options, strict=True)
        ):
            raise UsageError(f"this part of a search is damaged: {text!r:.60}")
        return Part(path, options, floor)


def divided(parts: Iterable[Part], count: int) -> list[Part]:
    """Divide parts until there are at least ``count``, or none can be divided.

    Those that can be cut nearest to the root come first, because most of the tree is there.
    """
    order = [(_height(part), number, part) for number, part in enumerate(parts)]
    heapify(order)
    number = len(order)
    while order and len(order) < count and order[0][2].cut is not None:
        first, second = order[0][2].halves()
        heapreplace(order, (_height(first), number, first))
        heappush(order, (_height(second), number + 1, second))
        number += 2
    return [part for _, _, part in sorted(order)]


def _height(part: Part) -> int:
    """Return the index where a part can be cut; MOST_CHOICES sorts the others last."""
    return MOST_CHOICES if part.cut is None else part.cut


def bounds_hit(
    counts: Mapping[str, int],
    strategy: str,
    bound: int,
    step_limit: int,
    *,
    spins: int,
    turns: int,
    stores: int,
) -> dict[str, int]:
    """Describe the bounds that left something out, each with its count.

    ``counts`` are the engine's. A bound counts executions; the stores in a buffer count stores.
    """
    met = {
        f"{strategy.removesuffix('s')} bound {bound}": counts["pruned"],
        f"spin bound {spins}": counts["spun"],
        f"{turns} turns of loops in an operation": counts["looped"],
        f"step limit {step_limit:,}": counts["cut"],
        f"{stores} stores remembered of a location": counts["forgotten"],
        "stores forgotten at an access of another width or kind": counts["mixed"],
        f"{BUFFER} stores in a thread's buffer": counts["crowded"],
    }
    return {named: count for named, count in met.items() if count}


def proved(bounds: Iterable[str]) -> str:
    """Describe the proof of a finished search, given the bounds that cut something off."""
    named = ", ".join(dict.fromkeys(bounds))
    return f"within the stated bounds: {named}" if named else "completely"


def bounds_met(bounds: Mapping[str, int]) -> str:
    """Name the bounds that left something out, each with its count, in one sentence; or ""."""
    named = ", ".join(f"{bound} ({count:,} times)" for bound, count in bounds.items())
    return f"bounds that left something out: {named}" if named else ""


def reasons(unreduced: int) -> str:
    """Name the reasons of a statistic "unreduced"; "" for a search that was reduced."""
    return ", ".join(reason for bit, reason in enumerate(REASONS) if unreduced >> bit & 1)


def remark_of(strategy: str, statistics: Mapping[str, int]) -> str:
    """Say that a search with reduction went on without it, or ended; "" when it did neither."""
    why = reasons(statistics["unreduced"])
    if not why:
        return ""
    if strategy == ALONE:
        return f"the search ended, because the reduction does not cover the program: {why}"
    return f"searched without reduction, which does not cover the program: {why}"


def summary_of(complete: int, classes: int, blocked: int) -> str:
    """Describe how close the executions of reduced searches are to one for each class."""
    return (
        f"reduced searches: {complete:,} whole executions for {classes:,} classes; {blocked:,} "
        "left early because they were like earlier ones"
    )
