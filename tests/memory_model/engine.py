"""Runs litmus programs in the engine, exhaustively or by sampling, and returns their outcomes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.subjects.program import CALL, Program
from tests import ROOT
from tests.memory_model.litmus import CELLS, KINDS, Litmus, Operation, Outcome


@dataclass(frozen=True, slots=True)
class Explored:
    """The executions of a program: outcomes, classes, and what an exhaustive search proved."""

    outcomes: set[Outcome]
    executions: int
    classes: int
    exhausted: bool


@cache
def cells() -> ModuleType:
    """Compile the cells for the engine, once for each state of their sources."""
    here = Path(__file__).parent
    sources = [here / "cells.h", here / "cells.pyx", ROOT / "pulsar_ml/harness/building/checked.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = ROOT / "build" / "memory_model" / digest
    path = build_extension(
        here / "cells.pyx", into=folder, checked=True, include=[ROOT], flags=["-Wno-unused"]
    )
    return load_checked(path)


def call_of(operation: Operation) -> tuple[int, int, tuple[int, int, int]]:
    value = operation.value
    if operation.kind == "cas":
        value |= operation.expected << 3
    return KINDS.index(operation.kind), 0, (operation.cell, operation.order, value)


def program_of(litmus: Litmus) -> Program:
    """Convert a litmus program to a program of the engine."""
    subject = cells().SUBJECTS["cells"]
    return Program(
        subject="cells",
        seed=0,
        settings={},
        operations=tuple(operation.name for operation in subject.operations),
        threads=tuple(
            np.array([call_of(call) for call in calls], dtype=CALL) for calls in litmus.threads
        ),
    )


def nibbles(word: int, count: int) -> tuple[int, ...]:
    return tuple(word >> 4 * i & 15 for i in range(count))


def explored(
    litmus: Litmus, *, mode: str, strategy: str, executions: int, seed: int = 0
) -> Explored:
    """Run a program and return its outcomes."""
    bound = 60 if strategy in ("preemptions", "delays") else 2
    explorer = Explorer(
        cells().SUBJECTS["cells"],
        program_of(litmus),
        mode=mode,
        strategy=strategy,
        seed=seed,
        bound=bound,
    )
    cells().outcomes()
    done = explorer.run(0, executions)
    if explorer.failed():
        raise AssertionError(f"{explorer.failure()['message']} in\n{litmus}")
    statistics = explorer.statistics()
    found = {
        (
            tuple(nibbles(words[t], len(calls)) for t, calls in enumerate(litmus.threads)),
            nibbles(words[4], CELLS),
        )
        for words in cells().outcomes()
    }
    return Explored(found, done, statistics["classes"], statistics["exhausted"] == 2)
