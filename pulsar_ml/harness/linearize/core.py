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
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS, Checker
from pulsar_ml.harness.linearize.searches import REAL_TIME, Searches
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
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
    part: Searches, indices: Indices, criterion: int = REAL_TIME
) -> tuple[tuple[int, ...], bool]:
    """Return an illegal subset of the illegal ``indices`` of which no call can be removed.

    False with it: a limit was reached, and perhaps more calls could be removed. ``criterion``: one
    by which the order of some calls does not depend on the others.
    """
    whole = part.of_all_keys()
    try:
        with few_states(whole, MORE_STATES):
            shrinking = Shrinking(whole, criterion)
            core = shrinking.run(indices)
            return tuple(core.tolist()), shrinking.complete
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
        self.all_calls = np.empty(0, np.int32)
        self.unconstrained: frozenset[int] = frozenset()  # symbols of removed calls: at any time
        self.answers: dict[tuple[int, int], list[int]] = {}
        self.steps_left = STEPS_OF_ALL
        self.looked_up = 0
        self.most_answers = self.checker.answer_count + MORE_ANSWERS
        self.verdicts: dict[tuple[bytes, frozenset[int]], bool] = {}
        # Unconstrained symbols that lead to too many states: any number of times, or that often.
        self.too_unconstrained: list[frozenset[int]] = []
        self.too_many: list[tuple[frozenset[int], int]] = []

    @cached_property
    def first_call(self) -> Indices:
        """The first call of each symbol."""
        first = np.zeros(int(self.symbols.max(initial=-1)) + 1, np.int32)
        first[self.symbols[::-1]] = np.arange(len(self.symbols), dtype=np.int32)[::-1]
        return first

    def run(self, indices: Indices) -> Indices:
        remaining = self.all_calls = indices
        while True:
            before = len(remaining)
            remaining = self.without_pure(remaining)
            remaining = self.without_units(remaining)
            remaining = self.without_others(remaining)
            if len(remaining) == before:
                return remaining

    def illegal(self, chosen: Indices, unconstrained: frozenset[int]) -> bool:
        """True when these calls are certainly illegal, with the unconstrained calls at any time."""
        if len(chosen) == 0:
            return False
        key = chosen.tobytes(), unconstrained
        if key not in self.verdicts:
            answer = self.answer_of(chosen, unconstrained)
            if answer not in (LEGAL, ILLEGAL):
                self.complete = False
            self.verdicts[key] = answer == ILLEGAL
        return self.verdicts[key]

    def answer_of(self, chosen: Indices, unconstrained: frozenset[int]) -> str:
        """Return the answer for some calls; "" or the name of a limit: unknown."""
        part = self.part
        if (
            self.steps_left <= 0
            or self.checker.answer_count > self.most_answers
            or part.effort.late
        ):
            return ""
        if part.cells is not None:
            at_any_time = self.first_call[sorted(unconstrained)]
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

    def search_unconstrained(self, chosen: Indices, unconstrained: frozenset[int]) -> Searched:
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

    def are_pure(self, calls: Indices) -> NDArray[np.bool_]:
        return np.array(self.checker.pure, dtype=bool)[self.symbols[calls]]

    def without_pure(self, remaining: Indices) -> Indices:
        pure = self.are_pure(remaining)
        wanted = reduced(
            np.flatnonzero(pure),
            lambda some: self.illegal(remaining[kept(~pure, some)], self.unconstrained),
        )
        return remaining[kept(~pure, wanted)]

    def without_units(self, remaining: Indices) -> Indices:
        if not hasattr(self.checker.model, "unit"):
            return remaining
        numbers: dict[Hashable, int] = {}
        of_call = np.full(len(remaining), -1)
        for place, index in enumerate(remaining):
            unit = self.checker.model.unit(self.checker.calls[self.symbols[index]])
            if unit is not None:
                of_call[place] = numbers.setdefault(unit, len(numbers))

        def only(units: Ints) -> Indices:
            return remaining[(of_call < 0) | np.isin(of_call, units)]

        units = np.arange(len(numbers))
        return only(reduced(units, lambda some: self.illegal(only(some), self.unconstrained)))

    def without_others(self, remaining: Indices) -> Indices:
        pure = self.are_pure(remaining)

        def unconstrained_without(keep: NDArray[np.bool_]) -> frozenset[int]:
            return self.unconstrained.union(self.symbols[remaining[~keep]].tolist())

        def still(some: Ints) -> bool:
            keep = kept(pure, some)
            return self.illegal(remaining[keep], unconstrained_without(keep))

        keep = kept(pure, reduced(np.flatnonzero(~pure), still))
        self.unconstrained = unconstrained_without(keep)
        return remaining[keep]


def kept(always: NDArray[np.bool_], places: Ints) -> NDArray[np.bool_]:
    """Return a mask of the calls that are kept: some always, and those at ``places``."""
    keep = always.copy()
    keep[places] = True
    return keep


def reduced(items: Ints, still: Callable[[Ints], bool]) -> Ints:
    """Removes ever smaller runs of items while ``still`` holds for the rest; returns the rest."""
    size = len(items)
    while size:
        at = 0
        while at < len(items):
            fewer = np.concatenate((items[:at], items[at + size :]))
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
