"""The minimal illegal part of an illegal history.

Leaving out a call can make a legal history illegal: a read without its write. So a call is left out only
where that proves nothing by itself: when it is pure; when the model says that its unit can go; or when the
rest is illegal even if the call took effect at any time, or never. All that are left out so take effect at
most as often as there are of them; if there are many, any number of times, which is sooner told of most
models.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.linearize.cells._cells import Cells
from pulsar_ml.harness.linearize.checker import ModelChecker
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS, Checker

Item = TypeVar("Item")
Searched = tuple[int, list[int], int, int, int]  # what a native search answers
Together = frozenset[tuple[int, int]]  # states, each with the calls at any time that it took

STEPS_OF_ONE = 50_000
STEPS_OF_ALL = 10_000_000
MORE_STATES = (
    5_000  # that shrinking may add: calls that may come again and again may lead on without end
)
MORE_ANSWERS = 60_000  # that shrinking may ask the model for
MOST_TOGETHER = 500
MOST_LOOKED_UP = (
    2_000_000  # answers, known or not, to see where calls at any time lead: about a second
)
FEW_LOOSE = 8  # calls left out, so many of which take effect no more often than there are of them


def minimal(
    checker: ModelChecker,
    records: NDArray[np.void],
    symbols: NDArray[np.int32],
    indices: NDArray[np.int32],
    cells: Cells | None = None,
) -> tuple[int, ...]:
    """Indices of an illegal part of the illegal ``indices`` of which nothing more can be left out.

    ``cells`` answers in the place of the model, where it can.
    """
    checker.most_states = len(checker.states) + MORE_STATES
    try:
        return Shrinking(checker, records, symbols, cells).run(indices.tolist())
    finally:
        checker.most_states = sys.maxsize


class Shrinking:
    def __init__(
        self,
        checker: ModelChecker,
        records: NDArray[np.void],
        symbols: NDArray[np.int32],
        cells: Cells | None = None,
    ) -> None:
        self.checker = checker
        self.cells = cells
        self.records = records
        self.symbols = symbols
        self.given: list[int] = []
        self.loose: set[int] = set()  # symbols of calls left out that could happen at any time
        self.answers: dict[tuple[int, int], list[int]] = {}
        self.left = STEPS_OF_ALL
        self.looked_up = 0
        self.most_answers = checker.asked + MORE_ANSWERS
        self.verdicts: dict[tuple[tuple[int, ...], frozenset[int]], bool] = {}
        self.too_loose: list[
            frozenset[int]
        ] = []  # with these at any time there are too many states
        self.too_many: list[tuple[frozenset[int], int]] = []  # and with these even so often

    def run(self, indices: list[int]) -> tuple[int, ...]:
        kept = self.given = indices
        while True:
            before = len(kept)
            kept = self.without_pure(kept)
            kept = self.without_units(kept)
            kept = self.without_others(kept)
            if len(kept) == before:
                return tuple(kept)

    def illegal(self, indices: Sequence[int], loose: set[int]) -> bool:
        """Whether it is sure that these calls are illegal, with what is loose at any time."""
        if not indices:
            return False
        key = tuple(indices), frozenset(loose)
        if key not in self.verdicts:
            self.verdicts[key] = self.searched(*key)
        return self.verdicts[key]

    def searched(self, indices: tuple[int, ...], loose: frozenset[int]) -> bool:
        if self.left <= 0 or self.checker.asked > self.most_answers:
            return False
        chosen = np.array(indices, dtype=np.int32)
        if self.cells is not None:
            first = np.unique(self.symbols, return_index=True)
            at_any_time = first[1][np.isin(first[0], list(loose))].astype(np.int32)
            answer, _, steps, _ = self.cells.search(
                self.records, chosen=chosen, loose=at_any_time, most_steps=STEPS_OF_ONE
            )
            self.left -= steps
            return ANSWERS[answer] == "illegal"
        try:
            if loose:
                searched = self.search_loosened(chosen, loose)
            else:
                searched = self.checker.native.search(
                    self.records,
                    symbols=self.symbols,
                    chosen=chosen,
                    state=self.checker.start,
                    most_steps=STEPS_OF_ONE,
                )
        except StatesFull:
            return False
        self.left -= searched[3]
        return ANSWERS[searched[0]] == "illegal"

    def search_loosened(self, chosen: NDArray[np.int32], loose: frozenset[int]) -> Searched:
        """The search with ``loose`` at any time; StatesFull if that leads to too many states."""
        records = np.ascontiguousarray(self.records[chosen])
        gone = np.setdiff1d(self.given, chosen)
        most = int(np.isin(self.symbols[gone], list(loose)).sum())
        if most > FEW_LOOSE and not any(some <= loose for some in self.too_loose):
            try:
                return Loosened(self, loose).search(records)
            except StatesFull:
                self.too_loose.append(loose)
        if any(some <= loose and often <= most for some, often in self.too_many):
            raise StatesFull("the calls left out lead to too many states")
        try:
            return Loosened(self, loose, most).search(records)
        except StatesFull:
            self.too_many.append((loose, most))
            raise

    def answer(self, state: int, symbol: int) -> list[int]:
        key = (state, symbol)
        self.looked_up += 1
        if self.looked_up > MOST_LOOKED_UP:
            raise StatesFull("no more answers for shrinking")
        if key not in self.answers:
            if self.checker.asked > self.most_answers:
                raise StatesFull("no more answers for shrinking")
            self.answers[key] = self.checker.answer(state, symbol)
        return self.answers[key]

    def without_pure(self, kept: list[int]) -> list[int]:
        pure = [index for index in kept if self.checker.pure[self.symbols[index]]]

        def still(wanted: list[int]) -> bool:
            gone = set(pure) - set(wanted)
            return self.illegal([index for index in kept if index not in gone], self.loose)

        left: list[int] = reduced(pure, still)
        gone = set(pure) - set(left)
        return [index for index in kept if index not in gone]

    def without_units(self, kept: list[int]) -> list[int]:
        if not hasattr(self.checker.model, "unit"):
            return kept
        units: dict[Hashable, list[int]] = {}
        for index in kept:
            unit = self.checker.model.unit(self.checker.calls[self.symbols[index]])
            if unit is not None:
                units.setdefault(unit, []).append(index)
        names = list(units)

        def without(wanted: list[Hashable]) -> list[int]:
            gone = {index for unit in set(names) - set(wanted) for index in units[unit]}
            return [index for index in kept if index not in gone]

        return without(reduced(names, lambda wanted: self.illegal(without(wanted), self.loose)))

    def without_others(self, kept: list[int]) -> list[int]:
        others = [index for index in kept if not self.checker.pure[self.symbols[index]]]

        def loosened(wanted: list[int]) -> set[int]:
            return self.loose | {int(self.symbols[index]) for index in set(others) - set(wanted)}

        def without(wanted: list[int]) -> list[int]:
            gone = set(others) - set(wanted)
            return [index for index in kept if index not in gone]

        wanted = reduced(others, lambda some: self.illegal(without(some), loosened(some)))
        self.loose = loosened(wanted)
        return without(wanted)


def reduced(items: list[Item], still: Callable[[list[Item]], bool]) -> list[Item]:
    """The items that are left when ever smaller runs of them are taken out while ``still`` holds."""
    size = len(items)
    while size:
        at = 0
        while at < len(items):
            fewer = items[:at] + items[at + size :]
            if still(fewer):
                items = fewer
            else:
                at += size
        size = len(items) // 2 if size > len(items) else size // 2
    return items


class Loosened:
    """The model when calls of some symbols may happen at any time, ``most`` of them in all or (None) as often
    as they like: its states are all states of the model in which the object may then be, each with the least
    number of such calls that lead to it.
    """

    def __init__(
        self, shrinking: Shrinking, loose: frozenset[int], most: int | None = None
    ) -> None:
        self.shrinking = shrinking
        self.loose = loose
        self.most = most
        self.symbols: list[int] = []
        self.states: list[Together] = []
        self.numbers: dict[Together, int] = {}
        self.closures: dict[Together, int] = {}
        checker = shrinking.checker
        self.native = Checker(
            self.learn, self.step, by_thread=checker.native.by_thread, memory=checker.memory
        )
        self.start = self.closed({checker.start: 0})

    def search(self, records: NDArray[np.void]) -> Searched:
        return self.native.search(records, state=self.start, most_steps=STEPS_OF_ONE)

    def closed(self, states: Mapping[int, int]) -> int:
        key = frozenset(states.items())
        if key in self.closures:
            return self.closures[key]
        found = dict(states)
        waiting = deque(states)
        while waiting:
            state = waiting.popleft()
            used = found[state] + (self.most is not None)
            if self.most is not None and used > self.most:
                continue
            for symbol in self.loose:
                for after in self.shrinking.answer(state, symbol):
                    if after not in found or used < found[after]:
                        if len(found) >= MOST_TOGETHER:
                            raise StatesFull("calls at any time lead to too many states")
                        found[after] = used
                        waiting.append(after)
        together = frozenset(found.items())
        number = self.numbers.setdefault(together, len(self.states))
        if number == len(self.states):
            self.states.append(together)
        self.closures[key] = number
        return number

    def learn(self, symbol: int, row: tuple[int, ...]) -> tuple[bool, int, bool, int]:
        self.symbols.append(self.shrinking.checker.rows[row])
        return False, 0, False, 0

    def step(self, number: int, symbol: int) -> list[int]:
        whole = self.symbols[symbol]
        image: dict[int, int] = {}
        for state, used in self.states[number]:
            for after in self.shrinking.answer(state, whole):
                image[after] = min(used, image.get(after, used))
        return [self.closed(image)] if image else []
