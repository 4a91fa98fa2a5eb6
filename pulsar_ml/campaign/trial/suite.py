"""Suites: the subject, operations, sizes and invariants of a set of stress programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ControlledSize:
    """Sizes of programs for the engine: inclusive ranges from which each seed draws.

    They are small: thousands of executions of a short program cover more than one of a long one.

    Attributes:
        threads: number of threads.
        operations: number of operations of each thread.
        mix: operation name -> weight, where the suite's mix would leave short programs without
            work. The other operations of the suite occur as well, less often.
        settings: setting name -> range that replaces that of the suite.
        kinds: settings whose values are alternatives, such as policies, and no sizes.
        sources: operations that make what the others use; most programs begin with one.
        left_out: operations that do not occur, because one call may have thousands of steps.
        lives: sequences of operations in the life of one thing, such as put, remove and put again.
            In half of the programs a thread makes the calls of one, and others meet it; a thread
            that is alone makes the calls of several, one after the other; of those that threads
            meet, where its programs name none.
        added: operation name -> weight, of operations beside the mix. Programs of one thread have
            many calls in one, whose answers only the exact model knows.
        spans: argument name -> range that replaces that of the operations, and lies within it.
        places: arguments that say in which container a call is. Half of the lives that other
            threads meet end in another container.
        duels: one of so many programs is a duel, none for 0: a thread makes the calls of a life,
            one call of another, of an operation of the life, meets them, and all are about one
            thing.
    """

    threads: tuple[int, int] = (2, 3)
    operations: tuple[int, int] = (3, 6)
    mix: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    lives: tuple[tuple[str, ...], ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    duels: int = 0


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite of stress programs, as a value that can be pickled.

    Attributes:
        name: the structure's name, which is also the name on the command line.
        subject: key in the ``SUBJECTS`` of the native module.
        summary: one sentence for lists.
        mix: operation name -> weight; empty: the subject's own weights. Operations left out of a
            mix that is not empty do not occur.
        settings: setting name -> inclusive range from which each seed draws; settings left out are
            drawn from the subject's own range.
        threads: default number of threads.
        operations: default number of operations per thread and program.
        invariants: id -> sentence, for everything that this suite checks.
        controlled: default sizes of its programs under the engine.
        alone: sizes of its programs of one thread under the engine. They are larger: no schedule
            multiplies them, and their calls fill and empty what a few calls do not. Without a mix
            or settings of their own, they have those of long programs.
        model: importable name of a module whose ``Model(settings, threads)`` is the sequential
            model of the operations; empty: answers are not compared with a model. A class
            ``Exact`` beside it judges programs of one thread, if ``Model`` allows whatever calls
            beside each other may answer.
        recorded: operations of each thread of a short program on real threads, whose history is
            compared with the model; few enough for a search of all orders of the calls.
    """

    name: str
    subject: str
    summary: str
    mix: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    threads: int = 4
    operations: int = 4000
    invariants: Mapping[str, str] = field(default_factory=dict)
    controlled: ControlledSize = ControlledSize()
    alone: ControlledSize = ControlledSize(threads=(1, 1), operations=(20, 200))
    model: str = ""
    recorded: int = 12
