"""A search in a child process under a watchdog: code under test that overwrites the engine's own memory,
blocks in a call that is not modelled, or ends its process ends the child, and is told as a failure of the
execution that was under way.

The child is a fork, so nothing is loaded or compiled again, and an execution costs nothing more: the engine
keeps its number in a page that both processes share.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import os
import pickle
import signal
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import psutil

from pulsar_ml.harness.engine import Campaign, beat_into
from pulsar_ml.harness.explore import SEARCHES, Exploration, explore
from pulsar_ml.harness.failure import ENDED, STUCK, Failure, Replayed
from pulsar_ml.harness.program import Program
from pulsar_ml.harness.subject import Subject

T = TypeVar("T")
TOLD, DONE, RAISED = range(3)
LOOK_SECONDS = 0.1
PR_SET_PDEATHSIG = 1
LEARNING = 1 << 63  # numbers from here on are executions that teach the strategies


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds without a new execution after which the child is stuck: of the clock, and of its processor.

    The engine itself ends loops without any access to shared memory and executions with too many steps,
    long before.
    """

    wall: float = 30.0
    cpu: float = 10.0


class LostError(RuntimeError):
    """The child process ended or had to be ended. ``execution``: the number of the one under way."""

    def __init__(self, kind: str, message: str, execution: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.execution = execution


def call(work: Callable[[], T], *, limits: Limits | None = None) -> T:
    """What ``work`` returns, made in a child process. It must be possible to pickle it.

    Raises what ``work`` raises, and LostError.
    """
    results: list[T] = []
    watch(lambda tell: tell(work()), results.append, limits=limits)
    return results[0]


def watch(
    work: Callable[[Callable[[Any], None]], object],
    told: Callable[[Any], object],
    *,
    limits: Limits | None = None,
) -> None:
    """Run ``work(tell)`` in a child process; ``told`` gets here what is told there, as soon as it is.

    Raises what ``work`` raises, and LostError. An interrupt ends the child; what was told stays told.
    """
    heart = mmap.mmap(-1, mmap.PAGESIZE)
    ours, theirs = Pipe(duplex=False)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        live(work, theirs, heart, parent)
    theirs.close()
    try:
        listen(child, ours, heart, told, limits or Limits())
    finally:
        ours.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def live(
    work: Callable[[Callable[[Any], None]], object], pipe: Connection, heart: mmap.mmap, parent: int
) -> None:
    """The child's life; does not return."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business, which then ends this process
        faulthandler.disable()
        if os.getppid() == parent:
            beat_into(heart)
            try:
                work(lambda result: pipe.send((TOLD, result)))
                pipe.send((DONE, None))
            except Exception as error:
                pipe.send((RAISED, portable(error)))
            status = 0
    finally:
        os._exit(status)  # the parent's buffers and exit handlers are not this process's


def portable(error: Exception) -> Exception:
    """``error`` if it survives pickling, or a RuntimeError that says what it was."""
    try:
        return error if type(pickle.loads(pickle.dumps(error))) is type(error) else RuntimeError(repr(error))
    except Exception:
        return RuntimeError(repr(error))


def listen(
    child: int, pipe: Connection, heart: mmap.mmap, told: Callable[[Any], object], limits: Limits
) -> None:
    process = psutil.Process(child)
    beats = -1
    since = busy = 0.0
    while True:
        if pipe.poll(LOOK_SECONDS):
            try:
                kind, content = pipe.recv()
            except Exception:  # the end, or what a child with broken memory wrote
                raise ended(child, heart) from None
            if kind == DONE:
                return
            if kind == RAISED:
                raise content
            told(content)
        if beaten(heart)[1] != beats:
            beats = beaten(heart)[1]
            since, busy = time.monotonic(), cpu_seconds(process)
        elif time.monotonic() - since > limits.wall:
            text = f"no execution ended within {limits.wall:g} s: the code under test blocks its process"
            raise LostError(STUCK, text, beaten(heart)[0])
        elif cpu_seconds(process) - busy > limits.cpu:
            text = f"no execution ended within {limits.cpu:g} s of the processor: endless, out of control"
            raise LostError(STUCK, text, beaten(heart)[0])


def beaten(heart: mmap.mmap) -> tuple[int, int]:
    """The number of the execution under way, and how many were begun."""
    number, beats = struct.unpack_from("=QQ", heart)
    return number, beats


def cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # gone: the pipe will tell
        return 0.0
    return float(times.user + times.system)


def ended(child: int, heart: mmap.mmap) -> LostError:
    """How the child ended on its own."""
    os.kill(child, signal.SIGKILL)  # it may have closed the pipe and go on; no harm once it has ended
    how = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # who started it reaps it
    if how is not None and how.si_code == os.CLD_EXITED:
        text = f"the code under test ended its process with exit status {how.si_status}"
    else:
        name = "a signal" if how is None else signal.Signals(how.si_status).name
        text = f"{name} ended the process of the code under test"
    return LostError(ENDED, text, beaten(heart)[0])


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
        return call(lambda: explore(subject, program, executions=executions, **options), limits=limits)
    except LostError as lost:
        return lost_exploration(lost, subject, program, options)


def lost_exploration(
    lost: LostError, subject: Subject, program: Program, options: Mapping[str, Any]
) -> Exploration:
    """What is known of a campaign whose process was lost: the execution that was under way."""
    failure = Failure(
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
    )
    first = int(options.get("first", 0))
    made = 0 if lost.execution >= LEARNING else lost.execution - first + 1
    # The counts were lost with the process; the engine was at work in it.
    counts = dict(Campaign(subject, program).statistics()) | {"executions": made, "hooks": 1, "shared": 1}
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


def replay_lost(failure: Failure, subject: Subject, *, limits: Limits | None = None) -> Replayed:
    """Make the execution again that a child was lost in, in a child. There is no trace of it."""

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
            races=failure.races,
        )
        # A search comes to an execution by way of those before it; the first one makes those that teach.
        before = failure.strategy in SEARCHES or failure.execution >= LEARNING
        campaign.run(0 if before else failure.execution, 1 + failure.execution % LEARNING if before else 1)

    found = None
    try:
        call(again, limits=limits)
    except LostError as lost:
        found = replace(failure, kind=lost.kind, message=lost.message, execution=lost.execution)
    return Replayed(found == failure, failure.build_id == str(subject.build_id), found, [])
