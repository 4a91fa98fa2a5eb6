"""The minimal core of an illegal history.

Removing a call can make a legal history illegal, for example a read without its write. So a call is
removed only where that cannot happen: when the call is pure; when the model allows the removal of
its unit; or when the rest is illegal even if the call took effect at any time, or never. Removed
calls of the last kind are unconstrained: state_set they take effect at most as often as their
number, or, when they are many, any number of times, which most models decide faster.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS, Checker
from pulsar_ml.harness.linearize.searches import REAL_TIME, Searches
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL

Item = TypeVar("Item")
Searched = tuple[int, list[int], int, int, int]  # the result of a native search
StateSet = frozenset[tuple[int, int]]  # (state, number of unconstrained calls that led to it)

STEPS_OF_ONE = 50_000
STEPS_OF_ALL = 10_000_000
MORE_STATES = 5_000  # the most new states: repeated unconstrained calls may never stop
MORE_ANSWERS = 60_000  # the most calls of the model
MOST_STATES_TOGETHER = 500
MOST_LOOKED_UP = 2_000_000  # the most lookups of answers, which take about a second
FEW_CALLS = 64  # so many calls of a register are also tried with a bounded number of effects
FEW_UNCONSTRAINED = 8  # up to so many removed calls, their number of effects is bounded


def minimal(
    part: Searches, indices: NDArray[np.int32], criterion: int = REAL_TIME
) -> tuple[tuple[int, ...], bool]:
    """Return an illegal subset of the illegal ``indices`` of which no call can be removed.

    False with it: a limit was reached, and perhaps more calls could be removed. ``criterion``: one
    by which the order of some calls does not depend on the others.
    """
    whole = part.of_all_keys()
    try:
        with few_states(whole, MORE_STATES):
            shrinking = Shrinking(whole, criterion)
            core = shrinking.run(indices.tolist())
            return core, shrinking.complete
    finally:
        if whole is not part:
            whole.close()


@contextmanager
def few_states(part: Searches, most: int) -> Iterator[None]:
    """Let the model reach at most ``most`` new states."""
    checker = part.checker
    checker.most_states = len(checker.states) + most
    try:
        yield
    finally:
        checker.most_states = sys.maxsize


class Shrinking:
    """The state of the removal of calls from one illegal history.

    ``complete`` is False once a limit left open whether a call can be removed.
    """

    def __init__(self, part: Searches, criterion: int = REAL_TIME) -> None:
        if part.several_keys:
            raise ValueError("a core of several keys needs states of all keys: of_all_keys()")
        self.part = part
        self.criterion = criterion
        self.checker = part.checker
        self.records = part.records
        self.symbols = part.symbols
        self.complete = True
        self.all_calls: list[int] = []
        self.unconstrained: set[int] = set()  # symbols of removed calls that may come at any time
        self.answers: dict[tuple[int, int], list[int]] = {}
        self.steps_left = STEPS_OF_ALL
        self.looked_up = 0
        self.most_answers = self.checker.answer_count + MORE_ANSWERS
        self.verdicts: dict[tuple[tuple[int, ...], frozenset[int]], bool] = {}
        # Unconstrained symbols that lead to too many states: any number of times, or that often.
        self.too_unconstrained: list[frozenset[int]] = []
        self.too_many: list[tuple[frozenset[int], int]] = []

    def run(self, indices: list[int]) -> tuple[int, ...]:
        remaining = self.all_calls = indices
        while True:
            before = len(remaining)
            remaining = self.without_pure(remaining)
            remaining = self.without_units(remaining)
            remaining = self.without_others(remaining)
            if len(remaining) == before:
                return tuple(remaining)

    def illegal(self, indices: Sequence[int], unconstrained: set[int]) -> bool:
        """True when these calls are certainly illegal, with the unconstrained calls at any time."""
        if not indices:
            return False
        key = tuple(indices), frozenset(unconstrained)
        if key not in self.verdicts:
            self.verdicts[key] = self.prove_illegal(*key)
        return self.verdicts[key]

    def prove_illegal(self, indices: tuple[int, ...], unconstrained: frozenset[int]) -> bool:
        answer = self.answer_of(np.array(indices, dtype=np.int32), unconstrained)
        if answer not in (LEGAL, ILLEGAL):
            self.complete = False
        return answer == ILLEGAL

    def answer_of(self, chosen: NDArray[np.int32], unconstrained: frozenset[int]) -> str:
        """Return the answer for some calls; "" or the name of a limit: unknown."""
        part = self.part
        if (
            self.steps_left <= 0
            or self.checker.answer_count > self.most_answers
            or part.effort.late
        ):
            return ""
        if part.cells is not None:
            first = np.unique(self.symbols, return_index=True)
            at_any_time = first[1][np.isin(first[0], list(unconstrained))].astype(np.int32)
            answer, _, steps, _ = part.cells.search(
                self.records, chosen=chosen, unconstrained=at_any_time, most_steps=STEPS_OF_ONE
            )
            self.steps_left -= steps
            # The native search lets them take effect any number of times, the model fewer times.
            few = unconstrained and len(self.all_calls) - len(chosen) <= FEW_UNCONSTRAINED
            if ANSWERS[answer] != LEGAL or not few or len(chosen) > FEW_CALLS:
                return ANSWERS[answer]
        if part.parts is not None and not unconstrained:
            records = np.ascontiguousarray(self.records[chosen])
            answer, _, steps, _ = part.parts.search(
                records, together=True, criterion=self.criterion, most_steps=STEPS_OF_ONE
            )
            self.steps_left -= steps
            if answer >= 0:
                return ANSWERS[answer]
        try:
            if unconstrained:
                result = self.search_unconstrained(chosen, unconstrained)
            else:
                result = self.checker.native.search(
                    self.records,
                    symbols=self.symbols,
                    chosen=chosen,
                    state=self.checker.start,
                    criterion=self.criterion,
                    most_steps=STEPS_OF_ONE,
                )
        except StatesFull:
            return ""
        self.steps_left -= result[3]
        return ANSWERS[result[0]]

    def search_unconstrained(
        self, chosen: NDArray[np.int32], unconstrained: frozenset[int]
    ) -> Searched:
        """Searches with ``unconstrained`` symbols at any time; StatesFull for too many states."""
        records = np.ascontiguousarray(self.records[chosen])
        removed = np.setdiff1d(self.all_calls, chosen)
        most = int(np.isin(self.symbols[removed], list(unconstrained)).sum())
        if most > FEW_UNCONSTRAINED and not any(
            some <= unconstrained for some in self.too_unconstrained
        ):
            try:
                return UnconstrainedCalls(self, unconstrained).search(records)
            except StatesFull:
                self.too_unconstrained.append(unconstrained)
        if any(some <= unconstrained and often <= most for some, often in self.too_many):
            raise StatesFull("the removed calls lead to too many states")
        try:
            return UnconstrainedCalls(self, unconstrained, most).search(records)
        except StatesFull:
            self.too_many.append((unconstrained, most))
            raise

    def answer(self, state: int, symbol: int) -> list[int]:
        key = (state, symbol)
        self.looked_up += 1
        if self.looked_up > MOST_LOOKED_UP:
            raise StatesFull("the limit of answers for shrinking is reached")
        if key not in self.answers:
            if self.checker.answer_count > self.most_answers or self.part.effort.late:
                raise StatesFull("the limit of answers or of time for shrinking is reached")
            self.answers[key] = self.checker.answer(state, symbol)
        return self.answers[key]

    def without_pure(self, remaining: list[int]) -> list[int]:
        pure = [index for index in remaining if self.checker.pure[self.symbols[index]]]

        def still(wanted: list[int]) -> bool:
            removed = set(pure) - set(wanted)
            return self.illegal(
                [index for index in remaining if index not in removed], self.unconstrained
            )

        left: list[int] = reduced(pure, still)
        removed = set(pure) - set(left)
        return [index for index in remaining if index not in removed]

    def without_units(self, remaining: list[int]) -> list[int]:
        if not hasattr(self.checker.model, "unit"):
            return remaining
        units: dict[Hashable, list[int]] = {}
        for index in remaining:
            unit = self.checker.model.unit(self.checker.calls[self.symbols[index]])
            if unit is not None:
                units.setdefault(unit, []).append(index)
        names = list(units)

        def without(wanted: list[Hashable]) -> list[int]:
            removed = {index for unit in set(names) - set(wanted) for index in units[unit]}
            return [index for index in remaining if index not in removed]

        return without(
            reduced(names, lambda wanted: self.illegal(without(wanted), self.unconstrained))
        )

    def without_others(self, remaining: list[int]) -> list[int]:
        others = [index for index in remaining if not self.checker.pure[self.symbols[index]]]

        def unconstrained_without(wanted: list[int]) -> set[int]:
            return self.unconstrained | {
                int(self.symbols[index]) for index in set(others) - set(wanted)
            }

        def without(wanted: list[int]) -> list[int]:
            removed = set(others) - set(wanted)
            return [index for index in remaining if index not in removed]

        wanted = reduced(
            others, lambda some: self.illegal(without(some), unconstrained_without(some))
        )
        self.unconstrained = unconstrained_without(wanted)
        return without(wanted)


def reduced(items: list[Item], still: Callable[[list[Item]], bool]) -> list[Item]:
    """Removes ever smaller runs of items while ``still`` holds for the rest; returns the rest."""
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


class UnconstrainedCalls:
    """The model in which calls of some symbols may take effect at any time.

    They do so ``most`` times in total, or, for None, any number of times. A state is the set of all
    model states in which the object may then be, each with the least number of such calls that lead
    to it.
    """

    def __init__(
        self, shrinking: Shrinking, unconstrained: frozenset[int], most: int | None = None
    ) -> None:
        self.shrinking = shrinking
        self.unconstrained = unconstrained
        self.most = most
        self.symbols: list[int] = []
        self.states: list[StateSet] = []
        self.numbers: dict[StateSet, int] = {}
        self.closures: dict[StateSet, int] = {}
        checker = shrinking.checker
        self.native = Checker(
            self.learn, self.step, by_thread=checker.native.by_thread, memory=checker.memory
        )
        self.native.deadline_ns = checker.native.deadline_ns
        self.start = self.closure({checker.start: 0})

    def search(self, records: NDArray[np.void]) -> Searched:
        return self.native.search(
            records,
            state=self.start,
            criterion=self.shrinking.criterion,
            most_steps=STEPS_OF_ONE,
        )

    def closure(self, states: Mapping[int, int]) -> int:
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
            for symbol in self.unconstrained:
                for after in self.shrinking.answer(state, symbol):
                    if after not in found or used < found[after]:
                        if len(found) >= MOST_STATES_TOGETHER:
                            raise StatesFull("unconstrained calls lead to too many states")
                        found[after] = used
                        waiting.append(after)
        state_set = frozenset(found.items())
        number = self.numbers.setdefault(state_set, len(self.states))
        if number == len(self.states):
            self.states.append(state_set)
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
        return [self.closure(image)] if image else []
