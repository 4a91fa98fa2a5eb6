"""A change of the code under test that the engine makes while it runs, and its name in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EngineChange = tuple[int, str, str, str]

# The changes of one kind come before those of the next, which cost the code under test more.
COST = {"acquire": 1, "release": 1, "acq_rel": 1, "seq_cst": 3}
FENCE_COST = 2
LOCK_COST = 4


@dataclass(frozen=True, slots=True)
class Order:
    """An atomic operation with a stronger order.

    Attributes:
        pcs, place: the addresses of the operation's code, and its function and file:line.
        what: the operation in words: "load", "compare-exchange".
        now, order: its order in the source, and the stronger one.
    """

    pcs: tuple[int, ...]
    place: str
    what: str
    now: str
    order: str

    @property
    def cost(self) -> int:
        return COST[self.order]

    @property
    def places(self) -> tuple[str, ...]:
        return (self.place,)

    def engine(self) -> tuple[EngineChange, ...]:
        return tuple((pc, self.order, "", "") for pc in self.pcs)

    def __str__(self) -> str:
        return f"{self.order} for the {self.what} at {self.place} ({self.now} now)"


@dataclass(frozen=True, slots=True)
class Fence:
    """One more fence, between two accesses of a thread that follow each other.

    Attributes:
        pcs: the addresses of the code of the access behind it.
        behind, before: the places of the two accesses; ``behind`` is "" at the start of a thread.
        order: the order of the fence.
    """

    pcs: tuple[int, ...]
    behind: str
    before: str
    order: str

    @property
    def cost(self) -> int:
        return COST[self.order] + FENCE_COST

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(place for place in (self.behind, self.before) if place)

    def engine(self) -> tuple[EngineChange, ...]:
        return tuple((pc, "", self.order, "") for pc in self.pcs)

    def __str__(self) -> str:
        article = "an" if self.order.startswith("ac") else "a"
        if self.behind in ("", self.before):
            return f"{article} {self.order} fence before {self.before}"
        return f"{article} {self.order} fence between {self.behind} and {self.before}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Code from a first access to a last one.

    Attributes:
        first, last: the places of the two accesses.
        takes, gives: the addresses of their code.
    """

    first: str
    last: str
    takes: frozenset[int]
    gives: frozenset[int]

    def __str__(self) -> str:
        if self.first == self.last:
            return self.first
        return f"{self.first} to {line_of(self.last, self.first)}"


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock around each of some stretches of code."""

    stretches: tuple[Stretch, ...]

    @property
    def cost(self) -> int:
        return LOCK_COST * len(self.stretches)

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(place for one in self.stretches for place in (one.first, one.last))

    def engine(self) -> tuple[EngineChange, ...]:
        takes = {pc for one in self.stretches for pc in one.takes}
        gives = {pc for one in self.stretches for pc in one.gives}
        return tuple(
            (pc, "", "", ", ".join(["takes"] * (pc in takes) + ["gives"] * (pc in gives)))
            for pc in sorted(takes | gives)
        )

    def __str__(self) -> str:
        return "one lock around " + ", and around ".join(map(str, self.stretches))


@dataclass(frozen=True, slots=True)
class CallLock:
    """One lock, held by some operations as long as they run.

    Attributes:
        codes, names: the operations.
    """

    codes: tuple[int, ...]
    names: tuple[str, ...]

    @property
    def cost(self) -> int:
        return 2 * LOCK_COST * len(self.codes)

    @property
    def places(self) -> tuple[str, ...]:
        return ()

    def engine(self) -> tuple[EngineChange, ...]:
        return tuple((code, "", "", "call") for code in self.codes)

    def __str__(self) -> str:
        return f"one lock around all of {' and of '.join(self.names)}"


Change = Order | Fence | Lock | CallLock


def line_of(last: str, first: str) -> str:
    """The place ``last`` behind ``first``: its line alone if the function is the same."""
    function, _, place = last.rpartition(" ")
    file, _, line = place.rpartition(":")
    return (
        f"line {line}" if f"{function} {file}:" == first[: len(function) + len(file) + 2] else last
    )


def engine_changes(changes: Iterable[Change]) -> tuple[EngineChange, ...] | None:
    """The engine's option ``changes``; None when two changes of one place do not fit together."""
    merged: dict[int, EngineChange] = {}
    for change in changes:
        for row in change.engine():
            before = merged.get(row[0], (row[0], "", "", ""))
            if any(
                old and new and old != new for old, new in zip(before[1:], row[1:], strict=True)
            ):
                return None
            order, fence, lock = (new or old for old, new in zip(before[1:], row[1:], strict=True))
            merged[row[0]] = (row[0], order, fence, lock)
    return tuple(merged.values())


def cost_of(changes: Iterable[Change]) -> int:
    """Less for the change that a reader would try first."""
    return sum(change.cost for change in changes)
