"""Compares many programs in worker processes and counts what was compared."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.pool import Pool

from pulsar_ml.harness.engine import SAMPLERS
from tests.memory_model.compare import compare, faults_of_seed, shrunk
from tests.memory_model.generator import program_of_seed
from tests.memory_model.models import MODES

PIECE = 100  # programs a worker takes at a time
MOST_KEPT = 5  # disagreements with their text


@dataclass(slots=True)
class Counts:
    """The numbers of a sweep; ``found`` are the texts of the first disagreements."""

    programs: int = 0
    comparisons: int = 0
    exhausted: int = 0
    executions: int = 0
    samples: int = 0
    disagreements: int = 0
    of: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.programs += other.programs
        self.comparisons += other.comparisons
        self.exhausted += other.exhausted
        self.executions += other.executions
        self.samples += other.samples
        self.disagreements += other.disagreements
        self.of += other.of
        self.found = (self.found + other.found)[:MOST_KEPT]

    def __str__(self) -> str:
        kinds = ", ".join(f"{number:,} with {name}" for name, number in sorted(self.of.items()))
        return (
            f"{self.programs:,} programs ({kinds}) in {', '.join(MODES)}: "
            f"{self.comparisons:,} comparisons, {self.exhausted:,} searches exhausted, "
            f"{self.executions:,} executions of searches, {self.samples:,} of samplers, "
            f"{self.disagreements:,} disagreements"
        )


def sampler_of_seed(seed: int) -> str:
    return SAMPLERS[seed // 25 % len(SAMPLERS)]


def work(piece: tuple[range, int]) -> Counts:
    """Compare the programs of some seeds, with at most so many executions of a search."""
    seeds, executions = piece
    counts = Counts()
    for seed in seeds:
        program = program_of_seed(seed)
        counts.programs += 1
        for kind in ("lock", "wait", "timed_wait", "spawn"):
            counts.of[kind] += program.has(kind)
        for mode in MODES:
            result = compare(
                program,
                mode,
                faults=faults_of_seed(seed, program),
                samplers=(sampler_of_seed(seed),),
                executions=executions,
                seed=seed,
            )
            counts.comparisons += 1
            counts.exhausted += result.exhausted
            counts.executions += result.executions
            counts.samples += result.samples
            if not result.agrees:
                counts.disagreements += 1
                if len(counts.found) < MOST_KEPT:
                    counts.found.append(f"program {seed}\n{shrunk(result)}")
    return counts


def pieces(first: int, programs: int, executions: int) -> Iterator[tuple[range, int]]:
    for begin in range(first, first + programs, PIECE):
        yield range(begin, min(begin + PIECE, first + programs)), executions


def ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def pool_of(workers: int | None) -> Iterator[Pool]:
    """Start worker processes, which leave Ctrl-C to this one."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=ignore_interrupts) as pool:
        yield pool
