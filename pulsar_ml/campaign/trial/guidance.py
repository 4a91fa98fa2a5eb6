"""Guidance of an exploration: inputs whose operations met in new ways have successors.

Programs come in blocks. Each program of a block is first drawn and scouted: a few executions show
most failures, and what its operations do. A short search beside them begins with whole calls, one
thread behind the other, and lets the last loads see ever older stores, which samplers rarely do.
Then each program is explored. Half of the explored programs are drawn as without guidance. Each
other one is made from an earlier input, chosen by its energy: the number of meetings that it was
the first to show, divided by its successors.

An input is a program with a tape, which is the decisions of an execution that showed something new,
and with pairs of steps of that execution that could have met and did not. One half of a successor's
executions departs from the tape or makes such a pair meet, and the other one is unguided.

Meetings are those of :func:`pulsar_ml.harness.engine.meetings`, in one execution of each batch, so
guidance depends on seeds and counts and on no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.campaign.trial.programs import program_of, rare_operations, steps_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import Explorer, meetings, pairs_apart
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Decision
from pulsar_ml.harness.subjects.colliding import Draws
from pulsar_ml.harness.subjects.program import Program, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.harness.subjects.varied import VARIATION_STREAM, Variation

# The usual exploration of a suite: its programs, and the executions of each. Mistakes that few
# programs contain are rarer than others, so there are many programs.
SEEDS, EXECUTIONS = 1_500, 64
PAIRS = 1 << 32  # the numbers of pairs of operations are below it
FLOOR = 2  # one program of so many is drawn without guidance
FORCED = 4  # one program of so many successors puts a pair together that never met
SAME = 4  # one of so many others is the program of its parent
ENERGY = 64  # the unit of energy
LEAST = 64  # executions of a program before it may end as known
NEW = 16  # a program is known when fewer than one in so many executions is of a class seen once
MOST_DECISIONS = 2000  # of a tape; a longer one is not kept
MOST_APART = 16  # pairs of one input that its successors make meet
SCOUTED = 32  # executions of a program that is scouted
SEARCH, SEARCHED = "preemptions", 64  # the strategy of its short search, and the executions
BLOCKS = (8, 16, 32, 64)  # programs of the first blocks; each later one is like the last of these


class Steering(TypedDict):
    """Options of :func:`explore` for the executions of a successor."""

    decisions: tuple[Decision, ...]
    apart: tuple[tuple[int, ...], ...]
    strategy: NotRequired[str]  # in place of that of the exploration


def unsteered() -> Steering:
    return Steering(decisions=(), apart=())


def searched() -> Steering:
    return Steering(decisions=(), apart=(), strategy=SEARCH)


@dataclass(frozen=True, slots=True)
class Guided:
    """A program to explore.

    Attributes:
        program: the program.
        steering: the tape and the pairs of its parent; empty without one.
        scouted: True for a few executions that nobody counts, unless they fail.
    """

    program: Program
    steering: Steering
    scouted: bool = False

    def executions(self, most: int) -> int:
        """Return the number of its executions, if an explored program has at most ``most``."""
        few = SEARCHED if "strategy" in self.steering else SCOUTED
        return min(most, few) if self.scouted else most


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """An execution from which others may depart, in rows of small numbers.

    Attributes:
        decisions: the decisions of the execution.
        apart: pairs of its steps that could have met.
        numbers: the two numbers of the meeting of each pair.
    """

    decisions: NDArray[np.uint32]
    apart: NDArray[np.uint32]
    numbers: NDArray[np.uint64]


NO_TAPE = Tape(
    np.empty((0, 4), np.uint32), np.empty((0, 6), np.uint32), np.empty((0, 2), np.uint64)
)


@dataclass(slots=True)
class Input:
    """A program that showed something new.

    Attributes:
        new: the number of meetings that it was the first to show.
        tape: the first execution of those that were looked at that showed one of them.
        successors: programs that were made from it.
    """

    program: Program
    new: int
    tape: Tape = NO_TAPE
    successors: int = 0

    @property
    def energy(self) -> int:
        return max(1, ENERGY * self.new // (1 + self.successors))


@dataclass(frozen=True, slots=True)
class Memory:
    """The programs of a guide that showed something new, and all that was seen, for a later one."""

    corpus: tuple[Input, ...] = ()
    seen: frozenset[int] = frozenset()


class Guide:
    """Chooses the programs of one suite's exploration, one after the other.

    Args:
        subject: the suite's subject.
        suite: the suite.
        seed: program ``number`` is drawn from ``seed + number``.
        options: the sizes of programs.
        memory: that of a guide of earlier seeds.
        searches: True gives each drawn program a short search.
    """

    def __init__(
        self,
        subject: Subject,
        suite: Suite,
        seed: int,
        options: TrialOptions,
        memory: Memory | None = None,
        *,
        searches: bool = False,
    ) -> None:
        self.subject, self.suite, self.seed, self.options = subject, suite, seed, options
        self.searches = searches
        self.corpus: list[Input] = list(memory.corpus) if memory else []
        self.seen: set[int] = set(memory.seen) if memory else set()
        self.met: set[int] = set()  # in the program under way
        self.tape = NO_TAPE  # of that program
        self.weights = resolve_mix(subject, suite.controlled.mix or suite.mix)
        for name in rare_operations(subject, suite):
            self.weights[subject.operation(name).code] = 1

    def programs(self, count: int) -> Iterator[Guided]:
        """Yield the programs of ``count`` numbers, each scouted before it is explored.

        The caller passes :meth:`look` to its executions, and then the program to :meth:`learn`.
        """
        first = 0
        for size in chain(BLOCKS, repeat(BLOCKS[-1])):
            block = range(first, min(first + size, count))
            drawn = [self.drawn(number) for number in block]
            for program in drawn:
                yield Guided(program, unsteered(), scouted=True)
                if self.searches:
                    yield Guided(program, searched(), scouted=True)
            for number, program in zip(block, drawn, strict=True):
                yield self.next(number, program)
            first += size
            if first >= count:
                return

    def drawn(self, number: int) -> Program:
        return program_of(self.subject, self.suite, self.seed + number, self.options)

    def next(self, number: int, drawn: Program) -> Guided:
        """Return the program of ``number``, of which ``drawn`` is unguided, and how to steer it."""
        if number % FLOOR == 0 or not self.corpus:
            return Guided(drawn, unsteered())
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
        tape = parent.tape
        unseen = [
            row
            for row, numbers in zip(tape.apart.tolist(), tape.numbers.tolist(), strict=True)
            if self.seen.isdisjoint(numbers)
        ]
        first = draws.below(len(unseen)) if unseen else 0
        chosen = (unseen[first:] + unseen[:first])[:MOST_APART]
        decisions = [
            (at, thread, kind, value) for at, thread, kind, value in tape.decisions.tolist()
        ]
        return Steering(decisions=tuple(decisions), apart=tuple(map(tuple, chosen)))

    def look(self, explorer: Explorer) -> bool:
        """Note what met in the execution last made again; true when the program is known."""
        found = set(meetings(explorer).tolist())
        if not found <= self.met:
            if self.tape is NO_TAPE and not found <= self.seen:
                self.keep(explorer)
            self.met |= found
        count = explorer.statistics()
        return count["executions"] >= LEAST and NEW * count["once"] < count["executions"]

    def keep(self, explorer: Explorer) -> None:
        """Keep the tape of the execution last made again, and the pairs that it left apart."""
        decisions = explorer.decisions_made()
        if len(decisions) <= MOST_DECISIONS:
            self.tape = Tape(np.array(decisions, np.uint32).reshape(-1, 4), *pairs_apart(explorer))

    def learn(self, program: Program) -> int:
        """Keep a program whose executions showed something new; return how much."""
        new = len(self.met - self.seen)
        if new:
            self.corpus.append(Input(program, new, self.tape))
        self.seen |= self.met
        self.met = set()
        self.tape = NO_TAPE
        return new

    def memory(self) -> Memory:
        return Memory(tuple(self.corpus), frozenset(self.seen))

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


def made_from_corpus(
    subject: Subject, suite: Suite, seed: int, options: TrialOptions, **search: Any
) -> Guided:
    """Make the program of a trial from one of the seeds in ``options.corpus``.

    The chosen seed's program is scouted first: that makes its tape and its pairs again. ``search``
    are the options of the trial's executions, which the earlier trial had as well, and in which
    these executions did not fail.
    """
    draws = Draws(seed, VARIATION_STREAM)
    parent = options.corpus[draws.below(len(options.corpus))]
    guide = Guide(subject, suite, parent, options)
    program = guide.drawn(0)
    most = min(SCOUTED, options.executions)
    explore(
        subject,
        program,
        executions=most,
        seed=parent,
        look=guide.look,
        step_limit=steps_of(options),
        **search,
    )
    guide.learn(program)
    drawn = program_of(subject, suite, seed, options)
    if not guide.corpus:
        return Guided(drawn, unsteered())
    (found,) = guide.corpus
    return Guided(guide.successor(draws, program, drawn), guide.steering(draws, found))
