"""A suite: which subject is driven, with which operations, by how many threads, for which invariants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ControlledSize:
    """Programs for the engine: inclusive ranges from which each seed draws.

    Small, because thousands of executions of one program say more about it than one of a long one.
    A ``mix`` takes the place of the suite's, where that one leaves short programs with nothing to do.
    """

    threads: tuple[int, int] = (2, 3)
    operations: tuple[int, int] = (3, 6)  # of each thread
    mix: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """What one suite of stress programs is made of; a value that can be pickled and sent away.

    Attributes:
        name: the structure's name, which is also the name on the command line.
        subject: key in the ``SUBJECTS`` of the native module.
        summary: one sentence for lists.
        mix: operation name -> weight; empty: the subject's own weights. Operations left out of a
            mix that is not empty do not occur.
        settings: setting name -> inclusive range from which each seed draws; settings left out are
            drawn from the subject's own range.
        threads: number of threads unless told otherwise.
        operations: operations per thread and program unless told otherwise.
        invariants: id -> sentence, for everything that this suite checks.
        controlled: size of its programs under the engine unless told otherwise.
        model: importable name of a module whose ``Model(settings, threads)`` says what the operations
            answer; empty: answers are not compared with a model.
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
    model: str = ""
