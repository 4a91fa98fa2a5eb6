"""One trial: a seeded program on real threads over a fresh instance, checked when it is quiet."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pulsar_ml.campaign.store.sketch import Sketch, hash_of, union
from pulsar_ml.campaign.trial.judging import LINEARIZABILITY, asked, wrong_answers
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.load import load_extension
from pulsar_ml.harness.subjects.program import Program, generate
from pulsar_ml.harness.subjects.result import RunResult
from pulsar_ml.harness.subjects.subject import Instance, InvariantViolation, Subject
from pulsar_ml.harness.subjects.threads import run

PRODUCT = "pulsar_ml.operations._native"
CHECKED = "pulsar_ml.operations._checked"  # the same sources, compiled for the engine

THREADS = "threads"
CONTROLLED = "controlled"

CLEAN = "clean"
VIOLATION = "violation"
NOTHING_EXERCISED = "nothing_exercised"

RUNNING = "running"
QUIESCENCE = "quiescence"

# The invariant that the runner itself watches: some operation finishes again and again.
STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """How trials are run; None takes the suite's own number.

    Attributes:
        threads: threads of a program, 1 to 64; more than there are processors is allowed.
        operations: operations per thread.
        noise: whether programs disturb the schedule (spin, yield, move to another processor).
        module: importable name of the native module, or the path of its shared object.
        mutant: catalogue id of the mutant to select in that module; None: no mutant.
        engine: "threads": real threads, one run of each program; "controlled": many executions of
            it under the engine, in one thread of the system. The others are for the engine alone:
        mode: memory model: "sc", "tso" or "c11".
        strategy: how schedules are chosen; a name that the engine knows.
        executions: executions of a program at most.
        bound: preemptions or delays of an exhaustive strategy.
        part: what of its search is made, as text of :class:`pulsar_ml.harness.search.partition.Part`; "": all.
    """

    threads: int | None = None
    operations: int | None = None
    noise: bool = True
    module: str = PRODUCT
    mutant: str | None = None
    engine: str = THREADS
    mode: str = "c11"
    strategy: str = "portfolio"
    executions: int = 2000
    bound: int = 2
    part: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant. ``phase`` is "running" or "quiescence".

    ``places`` are the places in the source that tell it from others of the same invariant, where
    they are known; ``record`` is the JSON from which exactly this violation is made again, if
    there is more to say than the trial's replay record does.
    """

    invariant: str
    message: str
    phase: str
    places: tuple[str, ...] = ()
    record: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What one trial did and found.

    Attributes:
        operations: operations that all threads together finished (under the engine: in the
            executions that came to their end).
        overlaps: how often an operation, when it started, saw another thread inside one; counted
            for real threads only.
        pairs: the same by names of the two operations, in the order of the subject's table.
        duration_ns: wall time from the start barrier to the end of the last thread.
        verdict: "clean", "violation", or "nothing_exercised": several threads ran and yet no two
            operations were seen to overlap, so that the trial says nothing about concurrency;
            under the engine, when no execution had a location that two threads touched.
        executions, steps: made under the engine; 0 for real threads, and so are the next two.
        classes: executions that differ in what read from what.
        once: those of them that were seen once (Good and Turing's estimate of what was not seen).
        cut: executions that the bound on steps ended.
        exhausted: "", or what an exhaustive search proved: "completely", or within which bounds.
        bounds: what left something out of an exhaustive search, in words.
        rest: what an exhaustive search did not come to, as a part of it; "" when nothing is left.
        judged: histories that were compared with the suite's model, by this process in this trial.
        unknown: those of them that took too long to tell; they are not known to be right.
        sketch: of what was met: pairs of operations that overlapped, or classes of executions of the
            program (see :mod:`pulsar_ml.campaign.store.sketch`).
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


def run_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Run the program of ``seed``. The program follows from the arguments alone; its schedule does not.

    The threads run without the GIL. Raises UsageError for options that do not fit the suite or the
    module, ImportError when the module is missing and MemoryError. KeyboardInterrupt stops the
    threads and is passed on.
    """
    module = load_native(options.module)
    select_mutant(module, options.mutant)
    subject = find_subject(module, suite)
    program = generate(
        subject,
        seed,
        threads=suite.threads if options.threads is None else options.threads,
        operations=suite.operations if options.operations is None else options.operations,
        mix=suite.mix,
        settings=suite.settings,
        noise=options.noise,
    )
    instance = subject.create(threads=len(program.threads), settings=program.settings)
    result = run(instance, program)
    violations = running_violations(result) + quiescent_violations(instance, result)
    del instance
    before = asked(suite)
    if not violations:
        violations = answer_violations(suite, subject, program, noise=options.noise)
    told = to_result(suite, options, subject, program, result, violations)
    judged, unknown = (after - at for after, at in zip(asked(suite), before, strict=True))
    return dataclasses.replace(told, judged=judged, unknown=unknown)


def replay_trial(suite: Suite, record: ReplayRecord, *, module: str | None = None) -> TrialResult:
    """Run a record's program once more, on the record's module or on another one.

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
    )
    pinned = {name: (value, value) for name, value in record.settings.items()}
    suite = dataclasses.replace(suite, settings={**suite.settings, **pinned})
    return run_trial(suite, record.seed, options)


def load_native(module: str) -> ModuleType:
    """The native module called ``module``, or the one in the shared object at that path.

    A path is loaded once and does not become importable by name, so that the product and a mutated
    build of it can be used in one process. ImportError says what is missing.
    """
    if module.endswith(".so") or "/" in module:
        path = Path(os.path.realpath(module))
        if not os.path.isfile(path):  # the loader would wait for a pipe
            raise ImportError(f"there is no file {path}")
        return load_path(path)
    return importlib.import_module(module)


def load_path(path: Path) -> ModuleType:
    before = dict(sys.modules)
    module = load_extension(path)
    # A compiled module enters itself under the name it was built with. That name may be the
    # product's, so what was there before comes back.
    for key, value in list(sys.modules.items()):
        if value is module and key != module.__name__ and before.get(key) is not module:
            if key in before:
                sys.modules[key] = before[key]
            else:
                del sys.modules[key]
    return module


def find_subject(module: ModuleType, suite: Suite) -> Subject:
    """The suite's subject in ``module``; UsageError names those that exist."""
    subjects: Mapping[str, Subject] = getattr(module, "SUBJECTS", {})
    if suite.subject not in subjects:
        known = ", ".join(sorted(subjects)) or "none"
        raise UsageError(
            f"module {module.__name__} has no subject {suite.subject!r}; it has: {known}"
        )
    return subjects[suite.subject]


def select_mutant(module: ModuleType, mutant: str | None) -> None:
    """Select ``mutant`` in ``module``, None the unchanged code; UsageError when there is none such."""
    known = getattr(module, "MUTANTS", ())
    if mutant is not None and mutant not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(f"module {module.__name__} has no mutant {mutant!r}; it has: {names}")
    if hasattr(module, "select_mutant"):
        module.select_mutant(mutant)


def running_violations(result: RunResult) -> tuple[Violation, ...]:
    return tuple(Violation(seen.invariant, seen.message, RUNNING) for seen in result.violations)


def quiescent_violations(instance: Instance, result: RunResult) -> tuple[Violation, ...]:
    if result.stuck:
        return ()  # threads are still inside, nothing is quiet
    try:
        instance.check()
    except InvariantViolation as violation:
        return (Violation(violation.invariant, violation.message, QUIESCENCE),)
    return ()


def answer_violations(
    suite: Suite, subject: Subject, program: Program, *, noise: bool
) -> tuple[Violation, ...]:
    """Short programs of the same seed, recorded and compared with the suite's model."""
    message = wrong_answers(subject, suite, program, noise=noise)
    return (Violation(LINEARIZABILITY, message, RUNNING),) if message else ()


def to_result(
    suite: Suite,
    options: TrialOptions,
    subject: Subject,
    program: Program,
    result: RunResult,
    violations: tuple[Violation, ...],
) -> TrialResult:
    pairs = named_pairs(subject, result)
    overlaps = sum(pairs.values())
    threads = len(program.threads)
    return TrialResult(
        suite=suite.name,
        seed=program.seed,
        build_id=subject.build_id,
        threads=threads,
        operations=result.operations,
        overlaps=overlaps,
        pairs=pairs,
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
            settings=program.settings,
            build_id=subject.build_id,
            module=options.module,
            mutant=options.mutant,
            invariant=violations[0].invariant if violations else None,
            message=violations[0].message if violations else None,
            program=program.digest() if violations else "",
            thread=result.violations[0].thread if result.violations else -1,
            call=result.violations[0].call if result.violations else -1,
        ),
        sketch=union([[hash_of(suite.name, *pair) for pair in pairs]]),
    )


def verdict(
    *, threads: int, operations: int, overlaps: int, violations: tuple[Violation, ...]
) -> str:
    """One thread can only be clean or not; several that never overlapped have exercised nothing."""
    if violations:
        return VIOLATION
    if operations == 0 or (threads >= 2 and overlaps == 0):
        return NOTHING_EXERCISED
    return CLEAN


def named_pairs(subject: Subject, result: RunResult) -> dict[tuple[str, str], int]:
    """Overlaps by names; which of the two operations started first makes no difference."""
    names = [operation.name for operation in subject.operations]
    pairs: dict[tuple[str, str], int] = {}
    for starting, row in enumerate(result.overlaps):
        for running, count in enumerate(row):
            if count:
                key = (names[min(starting, running)], names[max(starting, running)])
                pairs[key] = pairs.get(key, 0) + count
    return pairs
