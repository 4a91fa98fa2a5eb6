"""Results of a run on real threads."""

from __future__ import annotations

from typing import NamedTuple


class ThreadViolation(NamedTuple):
    """The first broken invariant that a thread saw.

    Attributes:
        thread, call: the thread and the number of its call; -1 for a violation seen by the runner.
        invariant: its id; "stuck" for threads that no longer finish operations.
        message: the values seen and expected.
    """

    thread: int
    call: int
    invariant: str
    message: str


class CoreTime(NamedTuple):
    """Nanoseconds of processor time of all threads of a run, without those of waiting.

    Attributes:
        inside: inside runs.
        draw: drawing the programs of many runs; the next two likewise.
        create: creating their instances.
        check: checking and destroying these.
    """

    inside: int = 0
    draw: int = 0
    create: int = 0
    check: int = 0


class RunResult(NamedTuple):
    """The result of :func:`run_program`, or the sum of :func:`run_programs`.

    Attributes:
        operations: number of operations that all threads finished.
        completed: number of operations that each thread finished.
        duration_ns: nanoseconds from opening the start barrier to the end of the last thread.
        overlaps: ``overlaps[a][b]`` counts how often a thread that started operation ``a`` found
            another thread inside operation ``b`` (codes of operations).
        violations: at most one for each thread.
        stuck: True when no operation finished for ``patience_ns``. The threads are left behind
            inside the instance, which is therefore never destroyed; end the process soon.
        runs: number of runs; the last ones may have ended early, with a violation.
        broken: invariants that did not hold at quiescence behind many runs.
        program: number of the first violation's program among those of many runs; -1 otherwise.
        core_time: processor time of the threads; none of a stuck run.
    """

    operations: int
    completed: tuple[int, ...]
    duration_ns: int
    overlaps: tuple[tuple[int, ...], ...]
    violations: tuple[ThreadViolation, ...]
    stuck: bool
    runs: int = 1
    broken: tuple[ThreadViolation, ...] = ()
    program: int = -1
    core_time: CoreTime = CoreTime()
