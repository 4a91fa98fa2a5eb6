"""A search in a child process under a watchdog: code under test that overwrites the engine's own memory,
blocks in a call that is not modelled, or ends its process ends the child, and is told as a failure of the
execution that was under way.

An execution costs nothing more: the engine keeps its number in a page that both processes share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pulsar_ml.harness.engine import SEARCHES, SPINS, Campaign, beat_into
from pulsar_ml.harness.search import child
from pulsar_ml.harness.search.child import ENDED, Heart, Limits, LostError, Tell
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.partition import Part
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

T = TypeVar("T")
LEARNING = 1 << 63  # numbers from here on are executions that teach the strategies


def call(work: Callable[[], T], *, limits: Limits | None = None) -> T:
    """:func:`pulsar_ml.harness.search.child.call`, whose progress is the engine's executions."""
    results: list[T] = []
    watch(lambda tell: tell(work()), results.append, limits=limits)
    return results[0]


def watch(
    work: Callable[[Tell], object], told: Callable[[Any], object], *, limits: Limits | None = None
) -> None:
    """:func:`pulsar_ml.harness.search.child.watch`, whose progress is the engine's executions."""
    heart = Heart()

    def beating(tell: Tell) -> None:
        beat_into(heart.page)
        work(tell)

    child.watch(beating, told, limits=limits, heart=heart)


def explore_in_child(
    subject: Subject,
    program: Program,
    *,
    executions: int,
    limits: Limits | None = None,
    **options: Any,
) -> Exploration:
    """:func:`explore` in a child process. What ends or blocks the child is the failure of its execution."""
    try:
        return call(
            lambda: explore(subject, program, executions=executions, **options), limits=limits
        )
    except LostError as lost:
        return lost_exploration(lost, subject, program, options)


def lost_exploration(
    lost: LostError, subject: Subject, program: Program, options: Mapping[str, Any]
) -> Exploration:
    """What is known of a campaign whose process was lost: the execution that was under way."""
    failure = lost_failure(lost, subject, program, options)
    first = int(options.get("first", 0))
    made = 0 if lost.execution >= LEARNING else lost.execution - first + 1
    # The counts were lost with the process; the engine was at work in it.
    counts = dict(Campaign(subject, program).statistics()) | {
        "executions": made,
        "hooks": 1,
        "shared": 1,
    }
    return Exploration(
        subject=failure.subject,
        mode=failure.mode,
        strategy=failure.strategy,
        seed=failure.seed,
        bound=failure.bound,
        executions=made,
        seconds=0.0,
        statistics=counts,
        failure=failure,
        exhausted="",
        rechecked=0,
    )


def lost_failure(
    lost: LostError, subject: Subject, program: Program, options: Mapping[str, Any]
) -> Failure:
    """The execution that was under way when its process was lost; ``options`` are those of the search."""
    return Failure(
        subject=subject.name,
        build_id=str(subject.build_id),
        program=program.to_json(),
        mode=options.get("mode", "c11"),
        reuse=options.get("reuse", "quarantine"),
        faults=tuple(options.get("faults", ())),
        step_limit=int(options.get("step_limit", 20000)),
        strategy=options.get("strategy", "portfolio"),
        seed=int(options.get("seed", 0)),
        execution=lost.execution,
        decisions=(),
        kind=lost.kind,
        rule="",
        message=lost.message,
        where=(),
        trace_hash=0,
        races=bool(options.get("races", True)),
        bound=int(options.get("bound", 2)),
        spins=int(options.get("spins", SPINS)),
        lock_free=bool(options.get("lock_free", False)),
        part=str(options.get("part") or ""),
        suppress=tuple(options.get("suppress", ())),
    )


def replay_lost(failure: Failure, subject: Subject, *, limits: Limits | None = None) -> Replayed:
    """Make the execution again that a child was lost in, in a child. There is no trace of it."""

    part = Part.of(failure.part)

    def again() -> None:
        campaign = Campaign(
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
            path=part.path,
            floor=part.floor,
            suppress=failure.suppress,
        )
        # A search comes to an execution by way of those before it; the first one makes those that teach.
        before = failure.strategy in SEARCHES or failure.execution >= LEARNING
        campaign.run(
            0 if before else failure.execution, 1 + failure.execution % LEARNING if before else 1
        )

    found = None
    try:
        call(again, limits=limits)
    except LostError as lost:
        found = replace(failure, kind=lost.kind, message=lost.message, execution=lost.execution)
    exact = (
        found is not None and found.kind == failure.kind and found.execution == failure.execution
    )
    if failure.kind == ENDED:  # by the same signal; other messages name the limit
        exact = found == failure
    return Replayed(exact, failure.build_id == str(subject.build_id), found, [])
