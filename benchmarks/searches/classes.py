"""Whole executions of a class that searches with reduction make, by what random programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from benchmarks.measure import Benchmark
from tests.memory_model.compare import FAULTY, faults_of_seed
from tests.memory_model.engine import explored, program_of
from tests.memory_model.generator import FEATURES, program_of_seed
from tests.memory_model.litmus import Litmus
from tests.memory_model.objects.programs import objects_of_seed

MODES = ("sc", "tso", "c11")
PROGRAMS = 50  # of each kind
MOST = 20_000  # executions of a search that counts
OFTEN = 4  # times as many programs with faults, of which a half has none

# A program, the faults that may happen, and whether exchanges and allocations may fail.
Drawn = tuple[Litmus, tuple[str, ...], bool]


def executions_of_a_class(programs: Callable[[], Iterable[Drawn]], mode: str) -> float:
    """Whole executions by classes, of the programs whose searches with reduction end."""
    whole = classes = 0
    for litmus, faults, faulty in programs():
        done = explored(
            litmus,
            program_of(litmus),
            mode=mode,
            strategy="reduce",
            executions=MOST,
            faults=faults,
            faulty=faulty,
        )
        if done.exhausted and not done.unreduced:
            whole += done.executions - done.blocked
            classes += done.classes
    return whole / classes


def seeds(kind: int, count: int = PROGRAMS) -> range:
    """Seeds of programs with the features of one row."""
    return range(kind, count * len(FEATURES), len(FEATURES))


def of_kind(kind: int) -> Iterable[Drawn]:
    return ((program_of_seed(seed), (), False) for seed in seeds(kind))


def of_objects() -> Iterable[Drawn]:
    return ((objects_of_seed(seed), (), False) for seed in range(PROGRAMS))


def with_time_outs_and_spurious_ends() -> Iterable[Drawn]:
    for seed in range(OFTEN * PROGRAMS):
        litmus = program_of_seed(seed)
        if faults := faults_of_seed(seed, litmus):
            yield litmus, faults, False


def with_failures() -> Iterable[Drawn]:
    for seed in range(PROGRAMS):
        litmus = program_of_seed(seed)
        if litmus.has("cas", "fence"):
            yield litmus, FAULTY, True


KINDS: dict[str, Callable[[], Iterable[Drawn]]] = {
    **{
        " and ".join(features) or "accesses alone": partial(of_kind, kind)
        for kind, features in enumerate(FEATURES)
    },
    "read-write locks and semaphores": of_objects,
    "time-outs and spurious ends as faults": with_time_outs_and_spurious_ends,
    "weak exchanges and allocations that may fail": with_failures,
}
ROWS = tuple(
    Benchmark(
        f"search: random programs with {kind}, mode {mode}",
        partial(executions_of_a_class, programs, mode),
        "x",
        about="whole executions of a class",
    )
    for kind, programs in KINDS.items()
    for mode in MODES
)
