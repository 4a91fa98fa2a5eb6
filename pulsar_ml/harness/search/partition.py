"""Disjoint parts of an exhaustive search, so that many processes may own the tree of its choices together.

A depth-first search is at any moment one path: what lies to the right of it, below its floor, is left to do.
Such a rest is cut where its path has a choice that was not taken: the choices so far remain one part, those
that follow at that place become another. Parts never overlap, and together they are what was cut; so when
each of them was searched to its end, the whole was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import BUFFER, HISTORY, SPINS, STEP_LIMIT

TEXT = re.compile(r"(\d{1,6}):((?:\d{1,5}/\d{1,5}(?:,\d{1,5}/\d{1,5})*)?)")
MOST_CHOICES = 1 << 16  # of a path; an execution has no more steps


@dataclass(frozen=True, slots=True)
class Part:
    """What an exhaustive search has still to do, from a path onwards.

    Attributes:
        path: the choices of the next execution, as far as they are decided.
        options: how many there are at each of them; 0: not known before that execution is made.
        floor: how many choices of the path are left as they are. 0 with an empty path: the whole search.
    """

    path: tuple[int, ...] = ()
    options: tuple[int, ...] = ()
    floor: int = 0

    @property
    def cut(self) -> int | None:
        """The first place of the path where something is left beside it; None when there is none."""
        for at in range(self.floor, len(self.path)):
            if self.path[at] + 1 < self.options[at]:
                return at
        return None

    def halves(self) -> tuple[Part, Part]:
        """Two parts that are this one together. Only where :attr:`cut` is a place."""
        at = self.cut
        if at is None:
            raise ValueError("nothing is left beside the path of this part, so it cannot be cut")
        later = (*self.path[:at], self.path[at] + 1)
        return Part(self.path, self.options, at + 1), Part(later, self.options[: at + 1], at)

    def __str__(self) -> str:
        choices = ",".join(
            f"{taken}/{of}" for taken, of in zip(self.path, self.options, strict=True)
        )
        return f"{self.floor}:{choices}"

    @staticmethod
    def of(text: str) -> Part:
        """The part that ``str`` described; "" is the whole. Raises ``UsageError`` when it is none."""
        if not text:
            return Part()
        found = TEXT.fullmatch(text) if len(text) < 12 * MOST_CHOICES else None
        if found is None:
            raise UsageError(f"a part of a search is FLOOR:TAKEN/OPTIONS,..., not {text!r:.60}")
        pairs = [choice.split("/") for choice in found[2].split(",") if choice]
        path, options = tuple(int(taken) for taken, _ in pairs), tuple(int(of) for _, of in pairs)
        floor = int(found[1])
        if floor > len(path) or any(
            of and taken >= of or max(taken, of) >= 1 << 16
            for taken, of in zip(path, options, strict=True)
        ):
            raise UsageError(f"this part of a search is damaged: {text!r:.60}")
        return Part(path, options, floor)


def divided(parts: Iterable[Part], count: int) -> list[Part]:
    """The same work as at least ``count`` parts, if there are as many: what can be cut nearest to the root is
    cut first, because most of the tree is there.
    """
    order = [(_height(part), number, part) for number, part in enumerate(parts)]
    heapify(order)
    made = len(order)
    while order and len(order) < count and order[0][2].cut is not None:
        first, second = order[0][2].halves()
        heapreplace(order, (_height(first), made, first))
        heappush(order, (_height(second), made + 1, second))
        made += 2
    return [part for _, _, part in sorted(order)]


def _height(part: Part) -> int:
    """The place where a part can be cut, and after all others the parts that cannot be."""
    return MOST_CHOICES if part.cut is None else part.cut


def bounds_hit(
    counts: Mapping[str, int],
    strategy: str,
    bound: int,
    step_limit: int = STEP_LIMIT,
    spins: int = SPINS,
) -> tuple[str, ...]:
    """What left something out of a search, in words; ``counts`` are the engine's."""
    hit = {
        f"{strategy.removesuffix('s')} bound {bound}": counts["pruned"],
        f"spin bound {spins}": counts["spun"],
        f"step limit {step_limit:,}": counts["cut"],
        f"{HISTORY} stores remembered of a location": counts["forgotten"],
        f"{BUFFER} stores in a thread's buffer": counts["crowded"],
    }
    return tuple(named for named, left_out in hit.items() if left_out)


def proved(bounds: Iterable[str]) -> str:
    """What a search has shown that took every path, when these bounds left something out of its parts."""
    named = ", ".join(dict.fromkeys(bounds))
    return f"within the stated bounds: {named}" if named else "completely"
