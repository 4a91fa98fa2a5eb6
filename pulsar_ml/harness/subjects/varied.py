"""Programs made from another one by a few changes: calls, arguments, order, settings, threads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.subjects.colliding import Arguments, Draws, draw_world
from pulsar_ml.harness.subjects.program import CALL, Program
from pulsar_ml.harness.subjects.subject import Subject

VARIATION_STREAM = 5  # of the seed's random numbers

Calls = list[np.void]


class Variation:
    """Changes to copies of programs, drawn from one seed.

    Args:
        subject: the subject of the programs.
        draws: the random numbers.
        weights: the weight of each operation in a new call, by code; 0: it does not occur.
        longest: the most calls of a thread.
        settings: ranges that replace those of the subject.
        kinds: settings whose values are alternatives and no sizes.
    """

    def __init__(
        self,
        subject: Subject,
        draws: Draws,
        weights: list[int],
        longest: int,
        settings: Mapping[str, tuple[int, int]],
        kinds: Collection[str],
    ) -> None:
        self.subject, self.draws, self.weights = subject, draws, weights
        self.longest, self.settings, self.kinds = longest, settings, kinds
        self.arguments = Arguments(subject, draws)

    def of(self, parent: Program, other: Program) -> Program:
        """Make one to four changes of ``parent``; ``other`` lends a thread or its settings."""
        world = dict(parent.settings)
        threads = [list(calls) for calls in parent.threads]
        self.arguments.learn(parent.threads)
        for _ in range(1 + self.draws.below(4)):
            way = self.draws.below(12)
            if way == 0:
                world = draw_world(self.subject, self.draws, self.settings, self.kinds)
            elif way == 1:
                world = dict(other.settings)
            elif way == 2 and not self.has_role(other.threads[-1]):
                self.arguments.learn(other.threads)
                threads[self.draws.below(len(threads))] = list(other.threads[-1])
            else:
                self.change_call(threads, way)
        return self.program(parent, world, threads)

    def meeting(self, parent: Program, first: int, second: int) -> Program:
        """Put calls of two operations, by code, side by side at the end of two threads.

        Arguments that both operations have are equal.
        """
        threads = [list(calls) for calls in parent.threads]
        self.arguments.learn(parent.threads)
        at = self.draws.below(len(threads))
        behind = (at + 1 + self.draws.below(len(threads) - 1)) % len(threads)
        one, two = self.new_call(first), self.new_call(second)
        known = dict(
            zip(self.subject.operations[first].arguments, one["arguments"].tolist(), strict=False)
        )
        for index, argument in enumerate(self.subject.operations[second].arguments):
            if argument in known:
                two["arguments"][index] = known[argument]
        threads[at] = [*threads[at][: self.longest - 1], one]
        threads[behind] = [*threads[behind][: self.longest - 1], two]
        return self.program(parent, dict(parent.settings), threads)

    def change_call(self, threads: list[Calls], way: int) -> None:
        filled = [number for number, calls in enumerate(threads) if calls]
        if not filled:
            return
        calls = threads[filled[self.draws.below(len(filled))]]
        at = self.draws.below(len(calls))
        operation = self.subject.operations[int(calls[at]["code"])]
        if way < 6 and operation.arguments:
            index = self.draws.below(len(operation.arguments))
            changed = calls[at].copy()
            changed["arguments"][index] = self.arguments.value(operation.arguments[index])
            calls[at] = changed
        elif way < 8:
            new = self.new_call(self.draws.weighted(self.weights))
            if not self.has_role([new]):
                calls[at] = new
        elif way == 8 and len(calls) < self.longest:
            new = self.new_call(self.draws.weighted(self.weights))
            if not self.has_role([new]):
                calls.insert(at, new)
        elif way == 9 and len(calls) > 1:
            del calls[at]
        elif way == 10:
            step = self.draws.below(len(calls))
            calls[at], calls[step] = calls[step], calls[at]
        elif not operation.role:
            into = threads[self.draws.below(len(threads))]
            if len(into) < self.longest:
                into.insert(self.draws.below(len(into) + 1), calls[at].copy())

    def has_role(self, calls: Collection[np.void] | NDArray[np.void]) -> bool:
        """Return true if one of the calls belongs to one thread alone."""
        return any(self.subject.operations[int(call["code"])].role for call in calls)

    def new_call(self, code: int) -> np.void:
        call = np.zeros(1, CALL)
        call["code"] = code
        values = self.arguments.of(code)
        call["arguments"][0, : len(values)] = values
        new: np.void = call[0]
        return new

    def program(self, parent: Program, world: Mapping[str, int], threads: list[Calls]) -> Program:
        arrays = []
        for calls in threads:
            array = np.zeros(len(calls), CALL)
            for number, call in enumerate(calls):
                array[number] = call
            array.flags.writeable = False
            arrays.append(array)
        return dataclasses.replace(
            parent, seed=self.draws.seed, settings=dict(world), threads=tuple(arrays)
        )
