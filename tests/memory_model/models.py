"""Compiles the models of SC, TSO and RC11, which are C++, and asks them about litmus programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_extension
from tests import ROOT
from tests.memory_model.engine import HERE
from tests.memory_model.litmus import KINDS, Litmus, Outcome

MODES = ("sc", "tso", "c11")
# The bits of machine.hpp.
FAULTS = {"timeout": 1, "spurious": 2}
DEFECTS = (
    "no release",
    "no seq_cst",
    "no buffers",
    "no join edge",
    "no spawn edge",
    "deaf notify",
    "time-out without the mutex",
    "notify one is all",
    "no mutex edge",
    "latest time-out first",
    "wait keeps the mutex",
    "join does not wait",
    "spawn keeps the buffer",
    "join leaves the buffer",
    "try_lock waits",
    "failed try_lock acquires",
    "late lock holds",
    "unlock wakes nobody",
    "span is over at once",
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The outcomes that a model allows a program; in mode c11 also its number of graphs."""

    outcomes: set[Outcome]
    graphs: int


@cache
def oracle() -> ModuleType:
    """Compile the models, once for each state of their sources."""
    folder = ROOT / "build" / "memory_model"
    flags = ["-std=c++17", "-O2", "-Wno-unused"]
    return load_extension(
        build_extension(HERE / "oracle.pyx", into=folder, language="c++", flags=flags)
    )


def rows_of(program: Litmus) -> list[list[tuple[int, int, int, int, int]]]:
    """Return the calls of a program as the models take them."""
    return [
        [
            (KINDS.index(call.kind), call.cell, call.order, call.value, call.expected)
            for call in calls
        ]
        for calls in program.threads
    ]


def allowed(
    program: Litmus,
    mode: str,
    *,
    faults: Sequence[str] = (),
    strengthened: bool = True,
    defect: str = "",
) -> Allowed:
    """Return the outcomes that a model allows a program.

    ``strengthened`` asks more than RC11, as the engine does (docs/engine.md, Limits). ``defect`` is
    one of DEFECTS: a rule of the model that is wrong on purpose.
    """
    outcomes, graphs = oracle().explore(
        rows_of(program),
        program.roots,
        mode=mode,
        strengthened=strengthened,
        faults=sum(FAULTS[fault] for fault in faults),
        defects=1 << DEFECTS.index(defect) if defect else 0,
    )
    return Allowed(outcomes, graphs)
