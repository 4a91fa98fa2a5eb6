"""Guidance of an exploration: programs whose operations met in new ways have successors.

Half of the programs are drawn as without guidance. Each other one is made from an earlier program,
chosen by its energy: the number of meetings that it was the first to show, divided by its
successors. Meetings are those of :func:`pulsar_ml.harness.engine.meetings`, in one execution of
each batch, so guidance depends on seeds and counts and on no time.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_ml.campaign.trial.controlled import program_of, rare_operations
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import Explorer, meetings
from pulsar_ml.harness.subjects.colliding import Draws
from pulsar_ml.harness.subjects.program import Program, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.harness.subjects.varied import VARIATION_STREAM, Variation

PAIRS = 1 << 32  # the numbers of pairs of operations are below it
FLOOR = 2  # one program of so many is drawn without guidance
FORCED = 4  # one program of so many successors puts a pair together that never met
ENERGY = 64  # the unit of energy
LEAST = 64  # executions of a program before it may end as known
NEW = 16  # a program is known when fewer than one in so many executions is of a class seen once


@dataclass(slots=True)
class Input:
    """A program that showed something new: how many meetings, and how many successors it has."""

    program: Program
    new: int
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
        self.weights = resolve_mix(subject, suite.controlled.mix or suite.mix)
        for name in rare_operations(subject, suite):
            self.weights[subject.operation(name).code] = 1

    def program(self, number: int) -> Program:
        """Return the program of ``number``, 0, 1, ... in this order."""
        drawn = program_of(self.subject, self.suite, self.seed + number, self.options)
        if number % FLOOR == 0 or not self.corpus:
            return drawn
        draws = Draws(self.seed + number, VARIATION_STREAM)
        parent = self.corpus[draws.weighted([each.energy for each in self.corpus])]
        parent.successors += 1
        size = self.suite.controlled
        variation = Variation(
            self.subject,
            draws,
            self.weights,
            self.options.operations or size.operations[1],
            {**self.suite.settings, **size.settings},
            size.kinds,
        )
        if len(parent.program.threads) > 1 and draws.one_in(FORCED):
            apart = self.pairs_apart()
            if apart:
                return variation.meeting(parent.program, *apart[draws.below(len(apart))])
        return variation.of(parent.program, drawn)

    def look(self, explorer: Explorer) -> bool:
        """Note what met in the execution last made again; true when the program is known."""
        self.met.update(meetings(explorer).tolist())
        count = explorer.statistics()
        return count["executions"] >= LEAST and NEW * count["once"] < count["executions"]

    def learn(self, program: Program) -> int:
        """Keep a program whose executions showed something new; return how much."""
        new = len(self.met - self.seen)
        if new:
            self.corpus.append(Input(program, new))
        self.seen |= self.met
        self.met = set()
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
