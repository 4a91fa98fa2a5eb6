"""Rounds: one search of each part that has no answer yet, in this process or in workers.

The outcomes come in the order of the parts and count against the limit of steps in that order. So
answers do not depend on the number of workers, nor on the moment at which they begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import NEVER
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.limits import _memory
from pulsar_ml.harness.linearize.options import Options
from pulsar_ml.harness.linearize.parts.workers import Death, Raised, Workers
from pulsar_ml.harness.linearize.searches import MEMORY_FULL, STEPS, Chosen

SECONDS_ALONE = 0.1  # of searches in this process before workers begin, which takes some time, too
NATIVELY = 5  # times as long, where workers begin anew what took so little time


class PartOfHistory(NamedTuple):
    """A key, and its calls; None: all calls. ``number`` is its place among the parts.

    With ``until``, they are those that were invoked by then. Those that return later may take
    effect, and need not, so only "illegal" is an answer: what happens later cannot mend it.
    """

    key: object = None
    chosen: Chosen = None
    number: int = 0
    until: int = NEVER

    @property
    def calls(self) -> NDArray[np.int32]:
        """The calls of one of several parts."""
        assert self.chosen is not None
        return self.chosen


class Outcome(NamedTuple):
    """The end of one search of a part.

    Attributes:
        answer: one of ANSWERS.
        way: the order that was found, or the longest one.
        blocked: the call that cannot follow it; -1: not known.
        steps, configurations: the effort of this search.
        full: the message about the model's states that need too much memory; "" otherwise.
        method: the algorithm.
    """

    answer: str
    way: Sequence[int] = ()
    blocked: int = -1
    steps: int = 0
    configurations: int = 0
    full: str = ""
    method: str = "search"


Search = Callable[[PartOfHistory, int], Outcome]  # of a part with at most so many steps


class Rounds:
    """Searches parts, in the workers of ``options``; a context that ends them.

    ``search`` counts its steps in ``effort`` itself. Workers share the memory; when it is too
    little for one of them, they end, and this process goes on alone with all of it.
    """

    def __init__(
        self,
        search: Search,
        parts: Sequence[PartOfHistory],
        effort: Effort,
        options: Options,
        seconds_alone: float,
    ) -> None:
        self.search = search
        self.effort = effort
        count = options.workers
        self.workers = Workers(
            lambda item: search(parts[item[0]], item[1]),
            count,
            lambda: _memory.limit(options.memory // count),
        )
        self.alone_until = time.monotonic() + seconds_alone

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        self.workers.end()

    def of(
        self, parts: Sequence[tuple[PartOfHistory, int]]
    ) -> Iterator[tuple[PartOfHistory, Outcome | Death]]:
        """Yield the outcome of each part, searched with at most as many steps as stand with it."""
        for place, (part, most) in enumerate(parts):
            several = self.workers.count > 1 and len(parts) - place > 1
            if several and time.monotonic() >= self.alone_until:
                yield from self.side_by_side(parts[place:])
                return
            yield part, self.alone(part, most)

    def alone(self, part: PartOfHistory, most: int) -> Outcome:
        left = self.effort.left
        return self.search(part, min(left, most)) if left else Outcome(STEPS)

    def side_by_side(
        self, parts: Sequence[tuple[PartOfHistory, int]]
    ) -> Iterator[tuple[PartOfHistory, Outcome | Death]]:
        items = [(part.number, min(self.effort.left, most)) for part, most in parts]
        with closing(self.workers.in_order(items)) as outcomes:
            for place, ((part, most), outcome) in enumerate(zip(parts, outcomes, strict=True)):
                if isinstance(outcome, Outcome) and outcome.answer == MEMORY_FULL:
                    outcomes.close()
                    self.workers.end()
                    self.workers.count = 1
                    yield from self.of(parts[place:])
                    return
                if isinstance(outcome, Death):
                    yield part, outcome
                elif isinstance(outcome, Raised) or outcome.steps > self.effort.left:
                    # Again: for the exception with its place in the source, or because the parts
                    # before this one took so many steps that it would not have come so far.
                    yield part, self.alone(part, most)
                elif not self.effort.left:
                    yield part, Outcome(STEPS)
                else:
                    self.effort.add(outcome.steps, outcome.configurations)
                    yield part, outcome
