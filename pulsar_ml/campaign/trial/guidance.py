"""Guidance of an exploration: inputs whose operations met in new ways have successors.

An input is a program with a tape, which is the decisions of an execution that showed something new,
and with pairs of steps of that execution that could have met and did not. Half of the programs are
drawn as without guidance and have neither. Each other one is made from an earlier input, chosen by
its energy: the number of meetings that it was the first to show, divided by its successors. One
half of a successor's executions departs from the tape or makes such a pair meet, and the other one
is unguided.

Meetings are those of :func:`pulsar_ml.harness.engine.meetings`, in one execution of each batch, so
guidance depends on seeds and counts and on no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.campaign.trial.controlled import program_of, rare_operations
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import Explorer, meetings, pairs_apart
from pulsar_ml.harness.search.failure import Decision
from pulsar_ml.harness.subjects.colliding import Draws
from pulsar_ml.harness.subjects.program import Program, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.harness.subjects.varied import VARIATION_STREAM, Variation

PAIRS = 1 << 32  # the numbers of pairs of operations are below it
FLOOR = 2  # one program of so many is drawn without guidance
FORCED = 4  # one program of so many successors puts a pair together that never met
SAME = 4  # one of so many others is the program of its parent
ENERGY = 64  # the unit of energy
LEAST = 64  # executions of a program before it may end as known
NEW = 16  # a program is known when fewer than one in so many executions is of a class seen once
MOST_DECISIONS = 2000  # of a tape; a longer one is not kept
MOST_APART = 16  # pairs of one input that its successors make meet

NO_TAPE = np.empty((0, 4), np.uint32)
NO_PAIRS = np.empty((0, 6), np.uint32), np.empty((0, 2), np.uint64)


class Steering(TypedDict):
    """Options of :func:`explore` for the executions of a successor."""

    decisions: tuple[Decision, ...]
    apart: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Guided:
    """A program to explore, with the tape and the pairs of its parent; both are empty without one."""

    program: Program
    steering: Steering


@dataclass(slots=True)
class Input:
    """A program that showed something new, with the tape of that execution.

    Attributes:
        new: the number of meetings that it was the first to show.
        tape: the decisions of that execution, a row each.
        apart: pairs of its steps that could have met, a row each.
        numbers: the two numbers of the meeting of each pair.
        successors: programs that were made from it.
    """

    program: Program
    new: int
    tape: NDArray[np.uint32] = NO_TAPE
    apart: NDArray[np.uint32] = NO_PAIRS[0]
    numbers: NDArray[np.uint64] = NO_PAIRS[1]
    successors: int = 0

    @property
    def energy(self) -> int:
        return max(1, ENERGY * self.new // (1 + self.successors))


class Guide:
    """Chooses the programs of one suite's exploration, one after the other.

    Args:
        subject: the suite's subject.
        suite: the suite.
        seed: program ``number`` is drawn from ``seed + number``.
        options: the sizes of programs.
    """

    def __init__(self, subject: Subject, suite: Suite, seed: int, options: TrialOptions) -> None:
        self.subject, self.suite, self.seed, self.options = subject, suite, seed, options
        self.corpus: list[Input] = []
        self.seen: set[int] = set()
        self.met: set[int] = set()  # in the program under way
        self._shown = (NO_TAPE, *NO_PAIRS)  # the tape of its first new execution, and its pairs
        self.weights = resolve_mix(subject, suite.controlled.mix or suite.mix)
        for name in rare_operations(subject, suite):
            self.weights[subject.operation(name).code] = 1

    def next(self, number: int) -> Guided:
        """Return the program of ``number``, 0, 1, ... in this order, and how to steer it."""
        drawn = program_of(self.subject, self.suite, self.seed + number, self.options)
        if number % FLOOR == 0 or not self.corpus:
            return Guided(drawn, Steering(decisions=(), apart=()))
        draws = Draws(self.seed + number, VARIATION_STREAM)
        parent = self.corpus[draws.weighted([each.energy for each in self.corpus])]
        parent.successors += 1
        return Guided(self.successor(draws, parent.program, drawn), self.steering(draws, parent))

    def successor(self, draws: Draws, parent: Program, drawn: Program) -> Program:
        """Make a program from an earlier one; ``drawn`` may lend it some of its calls."""
        size = self.suite.controlled
        variation = Variation(
            self.subject,
            draws,
            self.weights,
            self.options.operations or size.operations[1],
            {**self.suite.settings, **size.settings},
            size.kinds,
        )
        if len(parent.threads) > 1 and draws.one_in(FORCED):
            apart = self.pairs_apart()
            if apart:
                return variation.meeting(parent, *apart[draws.below(len(apart))])
        return parent if draws.one_in(SAME) else variation.of(parent, drawn)

    def steering(self, draws: Draws, parent: Input) -> Steering:
        """Return the parent's tape, and some of its pairs that no execution has shown so far."""
        unseen = [
            row
            for row, numbers in zip(parent.apart.tolist(), parent.numbers.tolist(), strict=True)
            if self.seen.isdisjoint(numbers)
        ]
        first = draws.below(len(unseen)) if unseen else 0
        chosen = (unseen[first:] + unseen[:first])[:MOST_APART]
        tape = [(at, thread, kind, value) for at, thread, kind, value in parent.tape.tolist()]
        return Steering(decisions=tuple(tape), apart=tuple(map(tuple, chosen)))

    def look(self, explorer: Explorer) -> bool:
        """Note what met in the execution last made again; true when the program is known."""
        found = set(meetings(explorer).tolist())
        if not found <= self.met:
            if not found <= self.seen and len(self._shown[0]) == 0:
                self.keep(explorer)
            self.met |= found
        count = explorer.statistics()
        return count["executions"] >= LEAST and NEW * count["once"] < count["executions"]

    def keep(self, explorer: Explorer) -> None:
        """Keep the tape of the execution last made again, and the pairs that it left apart."""
        tape = explorer.decisions_made()
        if len(tape) <= MOST_DECISIONS:
            self._shown = (np.array(tape, np.uint32).reshape(-1, 4), *pairs_apart(explorer))

    def learn(self, program: Program) -> int:
        """Keep a program whose executions showed something new; return how much."""
        new = len(self.met - self.seen)
        if new:
            self.corpus.append(Input(program, new, *self._shown))
        self.seen |= self.met
        self.met = set()
        self._shown = (NO_TAPE, *NO_PAIRS)
        return new

    def pairs_apart(self) -> list[tuple[int, int]]:
        """Return pairs of operations, by code, that met others and never each other.

        The first one stored something that another operation read, and the second one read.
        """
        pairs = sorted((one >> 16, one & 0xFFFF) for one in self.seen if one < PAIRS)
        known = set(pairs)
        operations = self.subject.operations
        return [
            (giver - 1, taker - 1)
            for giver in dict.fromkeys(giver for giver, _ in pairs)
            for taker in sorted({taker for _, taker in pairs})
            if giver
            and taker
            and (giver, taker) not in known
            and not operations[giver - 1].role
            and not operations[taker - 1].role
        ]
