"""Hunts for mutants in the engine: executions until each is found, and the size of its failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from types import ModuleType

import numpy as np

from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.engine import CHOICES, SEARCHES
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import brief, shrink
from pulsar_ml.harness.subjects.program import CALL, Program, resolve_mix
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import build
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.markdown import head, row

PER_PROGRAM = 200
HUNTED = tuple(mutant for mutant in CATALOGUE if mutant.within)
SEEDS = range(5)
SHRINKING = 50_000  # executions
USUAL = ControlledSize()
# Upper limits of settings in small programs: few operations shall cross the ends of chunks and
# collide at the same places.
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
    """The executions until the first failure, or in all; and that failure before shrinking."""

    executions: int
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Found:
    """The executions of each seed (None: over the budget) and the smallest failure of a mutant."""

    mutant: Mutant
    mode: str
    executions: tuple[int | None, ...]
    smallest: Failure | None

    @property
    def median(self) -> float | None:
        known = [count for count in self.executions if count is not None]
        return median(known) if len(known) == len(self.executions) else None


@cache
def mutants() -> ModuleType:
    """The checked module with all mutants."""
    return load_checked(build(checked=True))


def small_settings(suite: Suite, subject: Subject) -> Mapping[str, tuple[int, int]]:
    settings = dict(suite.settings)
    for setting in subject.settings:
        if setting.name in SMALL:
            low = (
                setting.low
                if setting.name == "keys"
                else settings.get(setting.name, (setting.low, 0))[0]
            )
            settings[setting.name] = (low, max(low, SMALL[setting.name]))
    return settings


def program_of(
    suite: Suite,
    subject: Subject,
    seed: int,
    programs: ControlledSize = USUAL,
    settings: Mapping[str, tuple[int, int]] | None = None,
) -> Program:
    """A small program: by default two or three threads with three to six operations each."""
    return Program.generate(
        subject,
        seed,
        threads=in_turn(programs.threads, seed),
        operations=in_turn(programs.operations, seed),
        mix=programs.mix or usual_mix(suite, subject),
        settings={**small_settings(suite, subject), **(settings or {})},
        noise=False,
    )


def usual_mix(suite: Suite, subject: Subject) -> Mapping[str, int]:
    """The suite's weights, without operations that have thousands of steps."""
    weights = zip(subject.operations, resolve_mix(subject, suite.mix), strict=True)
    return {
        one.name: weight for one, weight in weights if one.name not in suite.controlled.left_out
    }


def program_of_calls(suite: Suite, subject: Subject, mutant: Mutant) -> Program:
    """The program of a mutant that lists its calls."""
    program = Program.generate(
        subject,
        0,
        threads=len(mutant.calls),
        operations=1,
        settings={**small_settings(suite, subject), **mutant.settings},
        noise=False,
    )
    threads = []
    for calls in mutant.calls:
        rows = np.zeros(len(calls), dtype=CALL)
        for call, (name, *arguments) in zip(rows, calls, strict=True):
            call["code"] = subject.operation(name).code
            call["arguments"][: len(arguments)] = arguments
        threads.append(rows)
    return replace(program, threads=tuple(threads))


def in_turn(limits: tuple[int, int], seed: int) -> int:
    low, high = limits
    return low + seed % (high - low + 1)


def hunt(
    module: ModuleType,
    mutant: Mutant,
    *,
    seed: int,
    mode: str,
    budget: int,
    races: bool = True,
    judged: bool = True,
    answers_only: bool = False,
    explained: bool = True,
) -> Hunt:
    """Runs up to ``budget`` executions of the mutant's programs until one fails.

    The programs are 1000 * seed and the following. The caller selects the active mutant, if any.
    If ``judged``, the suite's model judges the answers; with ``answers_only`` other failures do not
    count. Unless ``explained``, a failure says that answers are wrong, and not which: that is the
    slow part.
    """
    suite = SUITES[mutant.suite]
    judge = judge_of(suite.model if judged else "")
    subject = module.SUBJECTS[suite.subject]
    spent = number = 0
    searching = mutant.strategy in SEARCHES
    while spent < budget:
        if mutant.calls:
            program, rest = program_of_calls(suite, subject, mutant), budget - spent
        else:
            program = program_of(
                suite, subject, 1000 * seed + number, mutant.programs, mutant.settings
            )
            rest = min(PER_PROGRAM, budget - spent)
        done = explore(
            subject,
            program,
            executions=rest,
            seed=seed,
            mode=mode,
            strategy=mutant.strategy,
            reuse="quarantine" if searching else "mixed",
            races=races,
            judge=judge if explained else brief(judge),
            answers_only=answers_only,
        )
        spent += done.executions
        number += 1
        if done.failure is not None:
            return Hunt(spent, done.failure)
        if done.exhausted:
            break
    return Hunt(spent, None)


def find(
    mutant: Mutant,
    *,
    mode: str = "c11",
    races: bool = True,
    judged: bool = True,
    seeds: Sequence[int] = SEEDS,
    shrinking: int = SHRINKING,
) -> Found:
    """Hunts a mutant with each of the seeds, and shrinks the first two failures.

    Shrinking one takes up to ``shrinking`` executions.

    Without ``races`` only behaviour counts, not the orders in the source; without ``judged`` only
    invariants count, not answers.
    """
    module = mutants()
    suite = SUITES[mutant.suite]
    module.select_mutant(mutant.id)
    try:
        hunts = [
            hunt(
                module,
                mutant,
                seed=seed,
                mode=mode,
                budget=mutant.within,
                races=races,
                judged=judged,
                explained=False,
            )
            for seed in seeds
        ]
        judge = judge_of(suite.model) if judged else None
        failures = [one.failure for one in hunts if one.failure is not None][:2]
        shrunk = [
            shrink(failure, module.SUBJECTS[suite.subject], budget=shrinking, judge=judge)
            for failure in failures
        ]
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


def hunt_table(mutants: Iterable[Mutant]) -> Iterator[str]:
    """Yields the lines of a table in Markdown, one for each mutant as soon as it was hunted."""
    sizes = ("threads", "operations", "preemptions", "stale reads")
    executions = "executions to the first failure, median"
    yield head("mutant", "mistake", "suite", "mode", executions, "reported as", *sizes)
    for mutant in mutants:
        found = find(mutant)
        middle = "not found" if found.median is None else f"{found.median:,.0f}"
        failure: list[object] = ["-"] * (1 + len(sizes))
        if found.smallest is not None:
            measures = size(found.smallest)
            verdict = found.smallest.rule or found.smallest.kind
            failure = [verdict, *(measures[name] for name in sizes)]
        yield row(mutant.id, mutant.title, mutant.suite, found.mode, middle, *failure)
