"""Runs litmus programs in the engine, exhaustively or by sampling, and returns their outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import REDUCING, SEARCHES, Explorer
from pulsar_ml.harness.subjects.program import CALL, Program
from tests import ROOT
from tests.memory_model.litmus import CAS, KINDS, Litmus, Operation, Outcome

HERE = Path(__file__).parent
SPIN_BOUND = 64  # more turns than any program of ours makes
SWITCHES = 60  # more preemptions than any program of ours has steps


@dataclass(frozen=True, slots=True)
class Explored:
    """The executions of a program: outcomes, classes, and what an exhaustive search proved.

    ``failure`` is the text of a failure other than a deadlock, which ended the run; or "".
    ``hashes`` name the classes. Of a search with reduction, ``blocked`` counts the executions that
    it left, and ``unreduced`` is why it was given up.
    """

    outcomes: set[Outcome]
    executions: int
    classes: int
    exhausted: bool
    failure: str
    hashes: frozenset[int] = frozenset()
    blocked: int = 0
    unreduced: int = 0


@cache
def cells() -> ModuleType:
    """Compile the cells for the engine, once for each state of their sources."""
    sources = [HERE / "cells.h", HERE / "cells.pyx", ROOT / "pulsar_ml/harness/building/checked.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = ROOT / "build" / "memory_model" / digest
    path = build_extension(
        HERE / "cells.pyx", into=folder, checked=True, include=[ROOT], flags=["-Wno-unused"]
    )
    return load_checked(path)


def call_of(operation: Operation) -> tuple[int, int, tuple[int, int, int]]:
    value = operation.value
    if operation.kind == CAS:
        value |= operation.expected << 3
    return KINDS.index(operation.kind), 0, (operation.cell, operation.order, value)


@cache
def operation_names() -> tuple[str, ...]:
    return tuple(operation.name for operation in cells().SUBJECTS["cells"].operations)


def program_of(litmus: Litmus) -> Program:
    """Convert a litmus program to a program of the engine, without the threads that others start.

    :func:`explored` gives the calls of those to the subject itself.
    """
    return Program(
        subject="cells",
        seed=0,
        settings={},
        operations=operation_names(),
        threads=tuple(
            np.array([call_of(call) for call in calls], dtype=CALL)
            for calls in litmus.threads[: litmus.roots]
        ),
    )


def explored(
    litmus: Litmus,
    program: Program,
    *,
    mode: str,
    strategy: str,
    executions: int,
    faults: Sequence[str] = (),
    seed: int = 0,
    faulty: bool = False,
    symmetry: bool = False,
    bound: int | None = None,
) -> Explored:
    """Run a program and return its outcomes, deadlocks among them.

    ``program`` is :func:`program_of` the litmus program. With ``faulty``, compare-and-swaps are
    weak, and fences are allocations of memory. ``bound`` is the most preemptions.
    """
    module = cells()
    module.set_faulty(faulty)
    explorer = Explorer(
        module.SUBJECTS["cells"],
        program,
        mode=mode,
        strategy=strategy,
        seed=seed,
        bound=2 if strategy not in SEARCHES else SWITCHES if bound is None else bound,
        preemptions=bound if strategy in REDUCING else None,
        spins=SPIN_BOUND,
        faults=faults,
        symmetry=symmetry,
    )
    for thread in range(litmus.roots, len(litmus.threads)):
        module.set_child(thread, [call_of(call) for call in litmus.threads[thread]])
    module.outcomes()
    done = 0
    failure = ""
    while done < executions:
        done += explorer.run(done, executions - done)
        if not explorer.failed():
            break
        if explorer.end() != "deadlock":
            failure = f"{explorer.end()}: {explorer.failure()['message']}"
            break
        module.add_deadlock()
        if strategy in SEARCHES and not explorer.skip():
            break
    statistics = explorer.statistics()
    return Explored(
        module.outcomes(),
        done,
        statistics["classes"],
        statistics["exhausted"] == 2,
        failure,
        frozenset(explorer.classes().tolist()),
        statistics["blocked"],
        statistics["unreduced"],
    )
