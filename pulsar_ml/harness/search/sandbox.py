"""Runs executions in a child process under a watchdog; a crash is a failure like any other.

Code under test may overwrite the engine's memory, block in a call that is not modelled, or end its
process. The child ends, and the execution that was under way is reported as failed. Executions are
not slower for it: the engine keeps their number in a page that both processes share.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pulsar_ml.harness.engine import (
    SEARCHES,
    SPINS,
    STEP_LIMIT,
    STORES,
    TURNS,
    Explorer,
    beat_into,
    places_in,
    steps_in,
)
from pulsar_ml.harness.judges.oracle import ON_JUDGING
from pulsar_ml.harness.search import child
from pulsar_ml.harness.search.child import ENDED, Heart, Limits, LostError, Send, Standing
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.partition import Part
from pulsar_ml.harness.search.symbols import describe_pc
from pulsar_ml.harness.subjects.hash_seed import hash_seed
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.recipe import recipe_of
from pulsar_ml.harness.subjects.subject import Subject

T = TypeVar("T")
# Functions of interpreters that know the stack of a stuck child; None for a child without them.
STANDINGS: list[Callable[[int, float], Standing | None]] = []
LEARNING = 1 << 63  # executions from this number on are warm-up runs of a strategy


def call(work: Callable[[], T], *, limits: Limits | None = None) -> T:
    """Run ``work`` in a child process and return its result; each execution counts as progress.

    Raises the exceptions of ``work``, and LostError.
    """
    return child.call(work, limits=limits, watcher=watch)


def watch(
    work: Callable[[Send], object],
    on_result: Callable[[Any], object],
    *,
    limits: Limits | None = None,
) -> None:
    """Run ``work(send)`` in a child process; each execution of the engine counts as progress."""
    heart = Heart()

    def with_heartbeat(send: Send) -> None:
        beat_into(heart.page)
        ON_JUDGING[:] = [heart.note_judging]
        work(send)

    child.watch(
        with_heartbeat, on_result, limits=limits, heart=heart, places=stuck_places, steps=steps_in
    )


def stuck_places(pid: int, quiet: float = 0.0) -> Standing:
    """Return the stack of a stuck child's running thread of Python, or the place of each unfinished
    thread, in brackets.

    Stops the child for that, which the caller ends anyway.
    """
    for of_interpreter in STANDINGS:
        if (standing := of_interpreter(pid, quiet)) is not None:
            return standing
    try:
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        *_, sp, _ = Path(f"/proc/{pid}/syscall").read_text().split()
        found = places_in(pid, int(sp, 16))
    except (OSError, ValueError):  # it is gone, or the system does not show it
        return Standing()
    texts = [
        f"{'the main thread' if thread < 0 else f'thread {thread}'} at {describe_pc(pc)}"
        for thread, pc in found
        if pc
    ]
    return Standing(f" ({', '.join(texts)})" if texts else "")


def lost_failure(
    error: LostError, subject: Subject, program: Program, options: Mapping[str, Any]
) -> Failure:
    """Return the failure of the execution under way when its process ended.

    ``options`` are those of the exploration.
    """
    return Failure(
        subject=subject.name,
        build_id=str(subject.build_id),
        program=program.to_json(),
        mode=options.get("mode", "c11"),
        reuse=options.get("reuse", "quarantine"),
        faults=tuple(options.get("faults", ())),
        step_limit=int(options.get("step_limit", STEP_LIMIT)),
        strategy=options.get("strategy", "portfolio"),
        seed=int(options.get("seed", 0)),
        execution=error.execution,
        decisions=(),
        kind=error.kind,
        rule="",
        message=error.message,
        where=error.stack,
        trace_hash=0,
        races=bool(options.get("races", True)),
        leaks=bool(options.get("leaks", True)),
        bound=int(options.get("bound", 2)),
        spins=int(options.get("spins", SPINS)),
        lock_free=bool(options.get("lock_free", False)),
        part=str(options.get("part") or ""),
        symmetry=bool(options.get("symmetry", False)),
        preemptions=options.get("preemptions"),
        suppress=tuple(options.get("suppress", ())),
        turns=int(options.get("turns", TURNS)),
        stores=int(options.get("stores", STORES)),
        recipe=recipe_of(subject),
        hash_seed=hash_seed() if subject.needs_gil else "",
    )


def replay_lost(failure: Failure, subject: Subject, *, limits: Limits | None = None) -> Replayed:
    """Repeat, in a child process, the execution in which a process ended. It has no trace."""
    part = Part.of(failure.part)

    def again() -> None:
        explorer = Explorer(
            subject,
            Program.from_json(failure.program),
            mode=failure.mode,
            strategy=failure.strategy,
            seed=failure.seed,
            faults=failure.faults,
            reuse=failure.reuse,
            step_limit=failure.step_limit,
            bound=failure.bound,
            spins=failure.spins,
            lock_free=failure.lock_free,
            races=failure.races,
            leaks=failure.leaks,
            symmetry=failure.symmetry,
            preemptions=failure.preemptions,
            **part.begin,
            suppress=failure.suppress,
            turns=failure.turns,
            stores=failure.stores,
        )
        # A search reaches an execution through those before it; execution 0 runs the warm-up.
        before = failure.strategy in SEARCHES or failure.execution >= LEARNING
        explorer.run(
            0 if before else failure.execution, 1 + failure.execution % LEARNING if before else 1
        )

    found = None
    try:
        call(again, limits=limits)
    except LostError as error:
        found = replace(
            failure,
            kind=error.kind,
            message=error.message,
            where=error.stack,
            execution=error.execution,
        )
    exact = (
        found is not None and found.kind == failure.kind and found.execution == failure.execution
    )
    if failure.kind == ENDED:  # compare the signal, too; messages of other kinds name a limit
        exact = found == failure
    same_build = failure.build_id == str(subject.build_id)
    return Replayed(exact, same_build, found, [], failure.hash_seed)
