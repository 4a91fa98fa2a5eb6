"""Whole executions of a class that searches with reduction make, by what random programs do."""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Benchmark
from tests.memory_model.engine import explored, program_of
from tests.memory_model.generator import FEATURES, program_of_seed

MODES = ("sc", "tso", "c11")
PROGRAMS = 50  # of each kind
MOST = 20_000  # executions of a search that counts


def executions_of_a_class(kind: int, mode: str) -> float:
    """Whole executions by classes, of the random programs with the features of one row."""
    whole = classes = 0
    for seed in range(kind, PROGRAMS * len(FEATURES), len(FEATURES)):
        litmus = program_of_seed(seed)
        done = explored(litmus, program_of(litmus), mode=mode, strategy="reduce", executions=MOST)
        if done.exhausted and not done.unreduced:
            whole += done.executions - done.blocked
            classes += done.classes
    return whole / classes


ROWS = tuple(
    Benchmark(
        f"search: random programs with {' and '.join(features) or 'accesses alone'}, mode {mode}",
        partial(executions_of_a_class, kind, mode),
        "x",
        about="whole executions of a class",
    )
    for kind, features in enumerate(FEATURES)
    for mode in MODES
)
