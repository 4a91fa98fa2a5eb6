"""Mutants under the controlled engine: how soon each is found, and how small its failure is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median
from types import ModuleType

from pulsar_ml.campaign.suite import Suite
from pulsar_ml.harness.build_checked import load_checked
from pulsar_ml.harness.engine import CHOICES
from pulsar_ml.harness.explore import explore
from pulsar_ml.harness.failure import Failure
from pulsar_ml.harness.program import Program, generate
from pulsar_ml.harness.shrink import shrink
from pulsar_ml.harness.subject import Subject
from stress.mutants.build import build
from stress.mutants.catalogue import Mutant
from stress.registry import SUITES

PER_PROGRAM = 200
SEEDS = range(5)
# Settings of a controlled execution are drawn from the suite's range below these: few operations shall
# cross the ends of chunks and meet at the same places.
SMALL = {
    "keys": 4,
    "chunk_bits": 2,
    "queue_chunk_bits": 2,
    "objects": 1,
    "spread": 1,
    "caches": 2,
    "length_shift": 0,
}


@dataclass(frozen=True, slots=True)
class Hunt:
    """Executions made until the first failure, or in all; and the failure as it was found."""

    executions: int
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Found:
    """How a mutant was found: executions by seed (None: not within the budget) and the smallest failure."""

    mutant: Mutant
    mode: str
    executions: tuple[int | None, ...]
    smallest: Failure | None

    @property
    def median(self) -> float | None:
        known = [made for made in self.executions if made is not None]
        return median(known) if len(known) == len(self.executions) else None


@cache
def mutants() -> ModuleType:
    """The checked module with all mutants."""
    return load_checked(build(checked=True))


def small_settings(suite: Suite, subject: Subject) -> Mapping[str, tuple[int, int]]:
    settings = dict(suite.settings)
    for setting in subject.settings:
        if setting.name in SMALL:
            low = setting.low if setting.name == "keys" else settings.get(setting.name, (setting.low, 0))[0]
            settings[setting.name] = (low, max(low, SMALL[setting.name]))
    return settings


def program_of(suite: Suite, subject: Subject, seed: int) -> Program:
    """Two or three threads with three to six operations each."""
    return generate(
        subject,
        seed,
        threads=2 + seed % 2,
        operations=3 + seed % 4,
        mix=suite.mix or None,
        settings=small_settings(suite, subject),
        noise=False,
    )


def hunt(module: ModuleType, suite: Suite, *, seed: int, mode: str, budget: int, races: bool = True) -> Hunt:
    """Up to ``budget`` executions of programs 1000 * seed, 1000 * seed + 1, ..., until one fails."""
    subject = module.SUBJECTS[suite.subject]
    made = number = 0
    while made < budget:
        program = program_of(suite, subject, 1000 * seed + number)
        rest = min(PER_PROGRAM, budget - made)
        done = explore(subject, program, executions=rest, seed=seed, mode=mode, reuse="mixed", races=races)
        made += done.executions
        number += 1
        if done.failure is not None:
            return Hunt(made, done.failure)
    return Hunt(made, None)


def find(mutant: Mutant, *, budget: int, mode: str = "c11") -> Found:
    """Hunt a mutant with each of SEEDS, and shrink what the first two find."""
    module = mutants()
    suite = SUITES[mutant.suite]
    module.select_mutant(mutant.id)
    try:
        hunts = [hunt(module, suite, seed=seed, mode=mode, budget=budget) for seed in SEEDS]
        failures = [one.failure for one in hunts if one.failure is not None][:2]
        shrunk = [shrink(failure, module.SUBJECTS[suite.subject]) for failure in failures]
    finally:
        module.select_mutant(None)
    return Found(
        mutant,
        mode,
        tuple(one.executions if one.failure else None for one in hunts),
        min(shrunk, key=lambda failure: sum(size(failure).values()), default=None),
    )


def size(failure: Failure) -> dict[str, int]:
    """Threads, operations, and the decisions by kind: preemptions, stale reads and the rest."""
    program = Program.from_json(failure.program)
    kinds = [CHOICES[kind] for _, _, kind, _ in failure.decisions]
    return {
        "threads": sum(len(calls) > 0 for calls in program.threads),
        "operations": sum(len(calls) for calls in program.threads),
        "preemptions": kinds.count("thread"),
        "stale reads": kinds.count("read"),
        "other": sum(kind not in {"thread", "read"} for kind in kinds),
    }
