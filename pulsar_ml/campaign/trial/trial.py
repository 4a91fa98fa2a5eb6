"""Runs one trial on real threads: a seeded program on a fresh instance, checked at quiescence."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.store.sketch import Sketch, hash_of, union
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, judge_counts, wrong_answers
from pulsar_ml.campaign.trial.phases import Phases
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.turns import left_ns, token
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.load import load_extension
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.result import RunResult
from pulsar_ml.harness.subjects.subject import Instance, InvariantViolation, Subject
from pulsar_ml.harness.subjects.threads import (
    draw_program,
    further_seed,
    run_program,
    run_programs,
)

PRODUCT = "pulsar_ml.operations._native"
CHECKED = "pulsar_ml.operations._checked"  # the same sources, compiled for the engine

THREADS = "threads"
CONTROLLED = "controlled"

MIXTURE = "portfolio"  # the usual strategy; guidance steers no other

CLEAN = "clean"
VIOLATION = "violation"
NOTHING_EXERCISED = "nothing_exercised"

RUNNING = "running"
QUIESCENCE = "quiescence"

# The invariant that the runner itself checks: operations keep finishing.
STUCK = "stuck"

# Of a trial whose number of runs is free: the processor time inside runs by that around them, and
# the longest that further runs may take, by the wall time of the trial before them.
INSIDE = 30
LONGEST = 10

# Memory that is never given back, on real threads and under the engine.
LEAK = "leak"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """Options of trials; None means the suite's own number.

    Attributes:
        threads: threads of a program, 1 to 64; more than there are processors is allowed.
        operations: operations per thread.
        noise: whether programs disturb the schedule (spin, yield, move to another processor).
        module: importable name of the native module, or the path of its shared object.
        mutant: catalogue id of the mutant to select in that module; None: no mutant.
        runs: runs on real threads, each on a fresh instance: one of the seed's program, then of
            further programs of the seed. 0: as many as keep the machine inside runs most of the
            time, which depends on the machine.
        engine: "threads" runs each program on real threads; "controlled" makes many
            executions of each program under the engine, in one operating system thread. The
            options below are for the engine alone:
        mode: memory model: "sc", "tso" or "c11".
        strategy: name of the engine's strategy for choosing schedules.
        executions: largest number of executions of a program.
        bound: preemptions or delays of an exhaustive strategy.
        leaks: False when blocks that are never freed are no failure.
        spins: turns of waiting loops that an exhaustive strategy lets go on without a pause.
        turns: turns of loops in one operation that an exhaustive strategy follows.
        stores: stores that a location remembers.
        part: the part of an exhaustive search to run, as text of
            :class:`pulsar_ml.harness.search.partition.Part`; "" runs the whole search.
        corpus: seeds from whose programs guided trials make theirs.
    """

    threads: int | None = None
    operations: int | None = None
    noise: bool = True
    module: str = PRODUCT
    mutant: str | None = None
    runs: int = 1
    engine: str = THREADS
    mode: str = "c11"
    strategy: str = MIXTURE
    executions: int = 2000
    bound: int = 2
    part: str = ""
    leaks: bool = True
    spins: int = 2
    turns: int = 16
    stores: int = 8
    corpus: tuple[int, ...] = ()


def is_guided(seed: int) -> bool:
    """Return True for a seed whose program is made from the corpus, where there is one.

    Every second seed: the others are the floor of unguided trials, and the corpora of later rounds.
    """
    return seed % 2 == 1


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant. ``phase`` is "running" or "quiescence".

    ``places`` are source positions that distinguish this violation from others of the same
    invariant, where they are known. ``record`` is JSON that replays exactly this violation, where
    it says more than the trial's replay record.
    """

    invariant: str
    message: str
    phase: str
    places: tuple[str, ...] = ()
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """Counts, verdict and violations of one trial.

    Attributes:
        operations: operations that all threads together finished (under the engine: in
            complete executions).
        overlaps: how often an operation started while another thread was inside an operation;
            counted on real threads only.
        pairs: ``overlaps`` by the names of both operations, in the order of the subject's table.
        duration_ns: wall time from the start barrier to the end of the last thread.
        verdict: "clean", "violation", or "nothing_exercised". Nothing was exercised when several
            threads ran and no two operations overlapped, or, under the engine, when no execution
            had a location that two threads touched: such a trial says nothing about concurrency.
        runs: number of runs on real threads; 0 under the engine.
        executions, steps: numbers of executions and steps under the engine; 0 on real threads, as
            are ``classes`` and ``once``.
        classes: number of classes of executions: executions that differ in which store each load
            read from.
        once: number of classes seen exactly once (for Good and Turing's estimate of unseen mass).
        cut: number of executions that the bound on steps ended.
        exhausted: what an exhaustive search proved: "completely", or within which bounds; or "".
        bounds: the bounds that left executions out of an exhaustive search, in words.
        rest: the part of an exhaustive search that was not reached; "" when there is none.
        judged: number of histories compared with the suite's model in this trial.
        unknown: number of judged histories whose check ran out of its budget; not known to be
            right.
        sketch: sketch of the pairs of operations that overlapped, or of the program's classes of
            executions (see :mod:`pulsar_ml.campaign.store.sketch`).
        spent: processor time by phase.
    """

    suite: str
    seed: int
    build_id: str
    threads: int
    operations: int
    overlaps: int
    pairs: Mapping[tuple[str, str], int]
    duration_ns: int
    verdict: str
    violations: tuple[Violation, ...]
    replay: ReplayRecord
    runs: int = 0
    executions: int = 0
    steps: int = 0
    classes: int = 0
    once: int = 0
    cut: int = 0
    exhausted: str = ""
    bounds: str = ""
    rest: str = ""
    judged: int = 0
    unknown: int = 0
    sketch: Sketch = ()
    spent: Phases = dataclasses.field(default_factory=Phases, compare=False)


def run_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Run the program of ``seed``: the arguments decide the program, but not its schedule.

    The threads run without the GIL. Raises UsageError for options that do not fit the suite or the
    module, ImportError when the module is missing and MemoryError. KeyboardInterrupt stops the
    threads and is passed on.
    """
    module = load_native(options.module)
    select_mutant(module, options.mutant)
    subject = find_subject(module, suite)
    spent, began = Phases(), time.monotonic_ns()
    with spent.of("draw"):
        program = program_of(subject, suite, seed, options)
    with spent.of("create"):
        instance = subject.create(threads=len(program.threads), settings=program.settings)
    with spent.of_threads() as times:
        result = run_program(instance, program)
        times.append(result.core_time)
    with spent.of("check"):
        violations = running_violations(result) + quiescent_violations(instance, result)
    before = judge_counts(suite)
    if not violations:
        violations = answer_violations(suite, subject, program, spent, noise=options.noise)
    with spent.of("check"):
        del instance
    if not violations and options.runs != 1 and (options.runs or left_ns()):
        rest = further_runs(subject, suite, seed, options, spent, time.monotonic_ns() - began)
        violations = running_violations(rest)
        if rest.program >= 0:
            program = program_of(subject, suite, further_seed(seed, rest.program), options)
        result = added(result, rest)
    trial = to_result(suite, seed, options, subject, program, result, violations)
    judged, unknown = (after - at for after, at in zip(judge_counts(suite), before, strict=True))
    return dataclasses.replace(trial, judged=judged, unknown=unknown, spent=spent)


def further_runs(
    subject: Subject, suite: Suite, seed: int, options: TrialOptions, spent: Phases, wall_ns: int
) -> RunResult:
    """Run further programs of a seed, each on fresh instances, up to the first violation.

    With free runs, as many as make the time inside runs INSIDE times that around them, and as begin
    before the time of the sweep is over. ``wall_ns`` is the time of the trial so far.
    """
    size = size_of(suite, options)
    bounds: dict[str, Any]
    with token(size["threads"]), spent.of_threads() as times:
        if options.runs:
            most = sys.maxsize // 2
            bounds = {"inside_ns": most, "most_ns": most, "most_runs": options.runs - 1}
        else:
            inside = INSIDE * spent.around - spent.run
            bounds = {"inside_ns": inside, "most_ns": min(LONGEST * wall_ns, left_ns())}
        rest = run_programs(subject, seed, **size, **bounds)
        times.append(rest.core_time)
    return rest


def added(first: RunResult, rest: RunResult) -> RunResult:
    """Return the sum of a trial's first run and of its further ones."""
    pairs = zip(first.overlaps, rest.overlaps, strict=True)
    return rest._replace(
        operations=first.operations + rest.operations,
        completed=tuple(map(sum, zip(first.completed, rest.completed, strict=True))),
        duration_ns=first.duration_ns + rest.duration_ns,
        overlaps=tuple(tuple(map(sum, zip(*rows, strict=True))) for rows in pairs),
        runs=first.runs + rest.runs,
    )


def program_of(subject: Subject, suite: Suite, seed: int, options: TrialOptions) -> Program:
    """Make the program of a seed for real threads; UsageError for what does not fit the subject."""
    draw = draw_program if isinstance(subject, Subject) else Program.generate
    return draw(subject, seed, **size_of(suite, options))


def size_of(suite: Suite, options: TrialOptions) -> dict[str, Any]:
    """Return what decides programs but for their seeds."""
    return {
        "threads": suite.threads if options.threads is None else options.threads,
        "operations": suite.operations if options.operations is None else options.operations,
        "mix": suite.mix,
        "settings": suite.settings,
        "noise": options.noise,
    }


def replay_trial(suite: Suite, record: ReplayRecord, *, module: str | None = None) -> TrialResult:
    """Run the program of a record again, on the record's module or on ``module``.

    Raises what :func:`run_trial` raises, and UsageError when ``suite`` is not the record's suite.
    """
    if suite.name != record.suite:
        raise UsageError(f"the record is of suite {record.suite!r}, not of {suite.name!r}")
    options = TrialOptions(
        threads=record.threads,
        operations=record.operations,
        noise=record.noise,
        module=record.module if module is None else module,
        mutant=record.mutant,
        runs=record.runs,
    )
    pinned = {name: (value, value) for name, value in record.settings.items()}
    suite = dataclasses.replace(suite, settings={**suite.settings, **pinned})
    return run_trial(suite, record.seed, options)


def load_native(module: str) -> ModuleType:
    """Load the native module named ``module``, or the shared object at that path.

    A path is loaded once and does not become importable by name, so that one process can use both
    the product and a mutated build of the product. Raises ImportError that names what is missing.
    """
    if module.endswith(".so") or "/" in module:
        path = Path(os.path.realpath(module))
        if not os.path.isfile(path):  # the loader would block on a pipe
            raise ImportError(f"there is no file {path}")
        return load_path(path)
    found = importlib.import_module(module)
    if is_python(found):
        from pulsar_ml.campaign.trial.python_tests import with_tests

        return with_tests(found)
    return found


def is_python(module: ModuleType) -> bool:
    """True for a module of Python code outside this package, which may be one of tests."""
    own = module.__name__.partition(".")[0] == "pulsar_ml"
    return not own and (module.__file__ or "").endswith(".py")


def load_path(path: Path) -> ModuleType:
    before = dict(sys.modules)
    module = load_extension(path)
    # A compiled module registers itself under the name it was built with. That name may be the
    # product's, so the earlier entry is restored.
    for key, value in list(sys.modules.items()):
        if value is module and key != module.__name__ and before.get(key) is not module:
            if key in before:
                sys.modules[key] = before[key]
            else:
                del sys.modules[key]
    return module


def find_subject(module: ModuleType, suite: Suite) -> Subject:
    """Return the suite's subject in ``module``; UsageError lists the subjects that exist."""
    subjects: Mapping[str, Subject] = getattr(module, "SUBJECTS", {})
    if suite.subject not in subjects:
        known = ", ".join(sorted(subjects)) or "none"
        raise UsageError(
            f"module {module.__name__} has no subject {suite.subject!r}; it has: {known}"
        )
    return subjects[suite.subject]


def select_mutant(module: ModuleType, mutant: str | None) -> None:
    """Select ``mutant`` in ``module`` (None: the unchanged code); UsageError for an unknown id."""
    known = getattr(module, "MUTANTS", ())
    if mutant is not None and mutant not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(f"module {module.__name__} has no mutant {mutant!r}; it has: {names}")
    if hasattr(module, "select_mutant"):
        module.select_mutant(mutant)


def running_violations(result: RunResult) -> tuple[Violation, ...]:
    running = tuple(Violation(seen.invariant, seen.message, RUNNING) for seen in result.violations)
    return running + tuple(
        Violation(seen.invariant, seen.message, QUIESCENCE) for seen in result.broken
    )


def quiescent_violations(instance: Instance, result: RunResult) -> tuple[Violation, ...]:
    if result.stuck:
        return ()  # threads are still inside: there is no quiescence to check
    try:
        instance.check()
    except InvariantViolation as violation:
        return (Violation(violation.invariant, violation.message, QUIESCENCE),)
    return ()


def answer_violations(
    suite: Suite, subject: Subject, program: Program, spent: Phases, *, noise: bool
) -> tuple[Violation, ...]:
    """Record short programs of the same seed and compare their histories with the suite's model."""
    message = wrong_answers(subject, suite, program, spent, noise=noise)
    return (Violation(LINEARIZABILITY, message, RUNNING),) if message else ()


def to_result(
    suite: Suite,
    seed: int,
    options: TrialOptions,
    subject: Subject,
    program: Program,
    result: RunResult,
    violations: tuple[Violation, ...],
) -> TrialResult:
    pairs = named_pairs(subject, result)
    overlaps = sum(pairs.values())
    threads = len(program.threads)
    runs = options.runs if result.stuck else 1  # the program of a stuck run is unknown
    return TrialResult(
        suite=suite.name,
        seed=seed,
        build_id=subject.build_id,
        threads=threads,
        operations=result.operations,
        overlaps=overlaps,
        pairs=pairs,
        runs=result.runs,
        duration_ns=result.duration_ns,
        verdict=verdict(
            threads=threads, operations=result.operations, overlaps=overlaps, violations=violations
        ),
        violations=violations,
        replay=ReplayRecord(
            suite=suite.name,
            seed=program.seed,
            threads=threads,
            operations=suite.operations if options.operations is None else options.operations,
            noise=options.noise,
            settings=program.settings if runs == 1 else {},  # each further program draws its own
            build_id=subject.build_id,
            module=options.module,
            mutant=options.mutant,
            invariant=violations[0].invariant if violations else None,
            message=violations[0].message if violations else None,
            program=program.digest() if violations else "",
            thread=result.violations[0].thread if result.violations else -1,
            call=result.violations[0].call if result.violations else -1,
            runs=runs,
        ),
        sketch=union([[hash_of(suite.name, *pair) for pair in pairs]]),
    )


def verdict(
    *, threads: int, operations: int, overlaps: int, violations: tuple[Violation, ...]
) -> str:
    """Give a trial's verdict; several threads without an overlap have exercised nothing."""
    if violations:
        return VIOLATION
    if operations == 0 or (threads >= 2 and overlaps == 0):
        return NOTHING_EXERCISED
    return CLEAN


def named_pairs(subject: Subject, result: RunResult) -> dict[tuple[str, str], int]:
    """Count overlaps by operation names, whichever of the two operations started first."""
    names = [operation.name for operation in subject.operations]
    pairs: dict[tuple[str, str], int] = {}
    for starting, row in enumerate(result.overlaps):
        for running, count in enumerate(row):
            if count:
                key = (names[min(starting, running)], names[max(starting, running)])
                pairs[key] = pairs.get(key, 0) + count
    return pairs
