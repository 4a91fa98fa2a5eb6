"""Disjoint parts of an exhaustive search, so that many processes can share its tree of choices.

The state of a depth-first search is one path: the choices to the right of the path, below its
floor, are still to do. A part is divided at the first place of its path where a choice was not
taken: one part keeps the choice that was taken there, the other gets those that follow. The two
never overlap and together are the divided part, so when every part is exhausted, the search is.

A search with reduction also knows which branches stand for others. Its parts are words of the
engine (``schedule/reduction/parts.c``), and are divided in the same way (:class:`ReducedPart`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappush, heapreplace
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import BUFFER, REDUCING, Explorer, executions_left, part_words

TEXT = re.compile(r"(?:u(\d{1,4}):)?(\d{1,6}):((?:\d{1,5}/\d{1,5}(?:,\d{1,5}/\d{1,5})*)?)")
REDUCED_TEXT = re.compile(r"r[0-9a-f]{1,16}(?:,[0-9a-f]{1,16})*")
MOST_WORDS = 1 << 20  # of a part with reduction
MOST_CHOICES = 1 << 16  # of a path; an execution has no more steps
ALONE = "reduce"  # the strategy that ends where the reduction does not cover the program
SYMMETRY = ", up to the names of equal threads"  # of a proof
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
        unreduced: why a search with reduction was given up, as bits of REASONS; 0 for others.
    """

    path: tuple[int, ...] = ()
    options: tuple[int, ...] = ()
    floor: int = 0
    unreduced: int = 0

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
        first = replace(self, floor=at + 1)
        return first, replace(self, path=later, options=self.options[: at + 1], floor=at)

    @property
    def begin(self) -> dict[str, Any]:
        """Return the options of an explorer that make it begin here."""
        found: dict[str, Any] = {"path": self.path, "floor": self.floor}
        return {**found, "unreduced": self.unreduced} if self.unreduced else found

    def __str__(self) -> str:
        choices = ",".join(
            f"{taken}/{of}" for taken, of in zip(self.path, self.options, strict=True)
        )
        reason = f"u{self.unreduced}:" if self.unreduced else ""
        return f"{reason}{self.floor}:{choices}"

    @staticmethod
    def of(text: str) -> Part | ReducedPart:
        """Return the part that ``str`` described; "" is the whole. UsageError for other texts."""
        if not text:
            return Part()
        if text[0] == "r":
            return ReducedPart.of(text)
        found = TEXT.fullmatch(text) if len(text) < 12 * MOST_CHOICES else None
        if found is None:
            raise UsageError(f"a part of a search is FLOOR:TAKEN/OPTIONS,..., not {text!r:.60}")
        pairs = [choice.split("/") for choice in found[3].split(",") if choice]
        path, options = tuple(int(taken) for taken, _ in pairs), tuple(int(of) for _, of in pairs)
        floor, unreduced = int(found[2]), int(found[1] or 0)
        if (
            floor > len(path)
            or unreduced >= 1 << len(REASONS)
            or any(
                (of and taken >= of) or max(taken, of) >= 1 << 16
                for taken, of in zip(path, options, strict=True)
            )
        ):
            raise UsageError(f"this part of a search is damaged: {text!r:.60}")
        return Part(path, options, floor, unreduced)


# The first words of a part with reduction, and of each of its nodes.
FORM, ADVANCE, FLOOR_NODES, FLOOR_VALUES, FOOTPRINTS, VALUES, NODES, TOTAL, HEAD = range(9)
THREAD, SLEEP, _, ENABLED, _, _, _, _, _, _, LENGTH = range(11)
MOST_REDUCED = 16  # threads, and buffers in mode tso
START = (1 << 31) - 1  # the node of a choice that comes before the first one
CLOSED = 1 << 63  # in the word of a choice: the other options were searched


@dataclass(frozen=True, slots=True)
class ReducedPart:
    """A disjoint piece of a search with reduction: the state of the search, as the engine's words.

    It is divided at the first node of its path with a branch that was not taken. One part keeps the
    branch that was taken there. The other part gets all other branches, also those that no race
    asked for so far: neither part then needs what the other one finds.
    """

    words: tuple[int, ...]

    @property
    def begin(self) -> dict[str, Any]:
        """Return the options of an explorer that make it begin here."""
        return {"begun": self.words}

    @property
    def cut(self) -> int | None:
        """The number of the first node with a branch that was not taken; None without one.

        0 stands for the choices before the first node, whose number is 1.
        """
        found = self._cut()
        return None if found is None else found[0]

    def halves(self) -> tuple[ReducedPart, ReducedPart]:
        """Return two parts that together are this one; ValueError when :attr:`cut` is None."""
        found = self._cut()
        if found is None:
            raise ValueError(
                "this part has no branch left beside its path, so it cannot be divided"
            )
        number, end = found
        head, words = list(self.words[:HEAD]), self.words
        values = [each for each in self._values() if each[0] <= number]
        first = [*head]
        first[FLOOR_NODES], first[FLOOR_VALUES] = number, len(values)
        at = self._values_at()
        later = words[HEAD:at] + words[at : at + len(values)] + words[at + head[VALUES] : end]
        head[ADVANCE], head[VALUES], head[NODES] = 1, len(values), number
        head[TOTAL] = HEAD + len(later)
        return ReducedPart((*first, *words[HEAD:])), ReducedPart((*head, *later))

    def _values_at(self) -> int:
        """The place of the first choice of a value, behind the footprints."""
        at = HEAD
        for _ in range(self.words[FOOTPRINTS]):
            at += 1 + 3 * (self.words[at] & 255)
        return at

    def _values(self) -> list[tuple[int, bool]]:
        """For each choice of a value: the number of its node, and whether an option is left."""
        at = self._values_at()
        words = self.words[at : at + self.words[VALUES]]
        return [
            (
                0 if word >> 32 & START == START else (word >> 32 & START) + 1,
                not word & CLOSED and (word & 65535) + 1 < word >> 16 & 65535,
            )
            for word in words
        ]

    def _cut(self) -> tuple[int, int] | None:
        """The number of the node to divide at, and the end of its words.

        The last node is not divided: its transition was not made yet, so what clashes with it is
        not known. A part that was cut off and did not begin is not divided either.
        """
        words, at = self.words, self._values_at() + self.words[VALUES]
        if words[ADVANCE]:
            return None
        left = {number for number, more in self._values()[words[FLOOR_VALUES] :] if more}
        if 0 in left:
            return 0, at
        for number in range(1, words[NODES]):
            end = at + words[at + LENGTH]
            taken = words[at + SLEEP] | 1 << (words[at + THREAD] & 255)
            if number > words[FLOOR_NODES] and (number in left or words[at + ENABLED] & ~taken):
                return number, end
            at = end
        return None

    def __str__(self) -> str:
        return "r" + ",".join(f"{word:x}" for word in self.words)

    @staticmethod
    def of(text: str) -> ReducedPart:
        """Return the part that ``str`` described. UsageError for other texts."""
        if len(text) > 17 * MOST_WORDS or not REDUCED_TEXT.fullmatch(text):
            raise UsageError(
                f"a part of a search with reduction is rWORD,WORD,..., not {text!r:.60}"
            )
        found = ReducedPart(tuple(int(word, 16) for word in text[1:].split(",")))
        try:
            whole = found.words[TOTAL] == len(found.words) and found._end() == len(found.words)
        except IndexError:
            whole = False
        if not whole:
            raise UsageError(f"this part of a search is damaged: {text!r:.60}")
        return found

    def _end(self) -> int:
        """The end of the nodes, by their lengths; IndexError for numbers that make no sense."""
        words = self.words
        at = self._values_at() + words[VALUES]
        if words[FLOOR_VALUES] > words[VALUES] or words[FLOOR_NODES] > words[NODES]:
            return 0
        for _ in range(words[NODES]):
            if words[at + LENGTH] <= LENGTH or words[at + THREAD] & 255 >= MOST_REDUCED:
                return 0
            at += words[at + LENGTH]
        return at


def divided(parts: Iterable[Part | ReducedPart], count: int) -> list[Part | ReducedPart]:
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


def _height(part: Part | ReducedPart) -> int:
    """Return the index where a part can be cut; MOST_CHOICES sorts the others last."""
    return MOST_CHOICES if part.cut is None else part.cut


@dataclass(frozen=True, slots=True)
class Left:
    """The executions that a search with reduction has yet to make: Knuth's estimate.

    Attributes:
        executions: the estimate.
        spread: its standard deviation.
    """

    executions: float
    spread: float

    def __str__(self) -> str:
        least, most = max(0.0, self.executions - self.spread), self.executions + self.spread
        return f"about {self.executions:,.0f} executions are left (between {least:,.0f} and {most:,.0f})"


def left_of(explorer: Explorer) -> Left | None:
    """Estimate what an unfinished search with reduction has yet to do; None for other searches."""
    if explorer.strategy not in REDUCING:
        return None
    left = Left(*executions_left(explorer))
    return left if left.executions >= 0 else None


def rest_of(explorer: Explorer) -> Part | ReducedPart | None:
    """Return the part of an unfinished search that was not reached; None: no more is searched.

    The whole search without reduction, when it was a part with reduction which was given up.
    """
    unreduced = explorer.statistics()["unreduced"]
    if explorer.strategy not in REDUCING:
        return Part(*explorer.path())
    if not unreduced:
        return ReducedPart(tuple(part_words(explorer).tolist()))
    return None if explorer.strategy == ALONE else Part(*explorer.path(), unreduced)


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
        f"{'delay' if strategy == 'delays' else 'preemption'} bound {bound}": counts["pruned"],
        f"spin bound {spins}": counts["spun"],
        f"{turns} turns of loops in an operation": counts["looped"],
        f"step limit {step_limit:,}": counts["cut"],
        f"{stores} stores remembered of a location": counts["forgotten"],
        "stores forgotten at an access of another width or kind": counts["mixed"],
        f"{BUFFER} stores in a thread's buffer": counts["crowded"],
    }
    return {named: count for named, count in met.items() if count}


def proved(bounds: Iterable[str], *, symmetry: bool = False) -> str:
    """Describe the proof of a finished search, given the bounds that cut something off."""
    named = ", ".join(dict.fromkeys(bounds))
    proof = f"within the stated bounds: {named}" if named else "completely"
    return proof + SYMMETRY * symmetry


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


def summary_of(complete: int, classes: int, blocked: int, beyond: int) -> str:
    """Describe how close the executions of reduced searches are to one for each class.

    ``beyond`` executions need more preemptions than the bound.
    """
    return (
        f"reduced searches: {complete:,} whole executions for {classes:,} classes; {blocked:,} "
        "left early because they were like earlier ones"
        + (f"; {beyond:,} left because they need more preemptions than the bound" if beyond else "")
    )
