"""The supervisor: a small process that runs trials in forked children.

It forks a child for the trials of a chunk. When a trial kills the child, the supervisor writes
that into the trial's row and continues with the next trial in a new child. It starts once, serves
many chunks, and imports only what trials need: no Arrow, no Spark. Children send rows, one line of
JSON each. Nothing that a trial starts outlives it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial.chunk import Job, Trial, checked, row
from pulsar_ml.campaign.trial.crashed_trial import PROCESSES_LEFT, crashed_trial
from pulsar_ml.campaign.trial.engines import is_controlled, prepare, run_trial
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import RUNNING, STUCK, VIOLATION, TrialResult, Violation
from pulsar_ml.campaign.turns import ends_at, share_cores
from pulsar_ml.harness.search.child import (
    ENDED,
    Heart,
    LostError,
    Places,
    Send,
    Tail,
    keep_only,
    nowhere,
    portable,
    watch,
)
from pulsar_ml.harness.search.descendants import adopt, die_with_parent, left_behind

SECOND_TRIES = 16  # of a chunk; further trials that die are not tried again
MOST_ECHO = 1 << 20  # bytes that one child may print
READY = "ready"
M_MMAP_THRESHOLD = -3  # of mallopt
LARGE = 1 << 20  # bytes of a block that comes from the system, which clears pages as they are used


@dataclass(frozen=True, slots=True)
class Order:
    """The trials of one chunk.

    ``only`` is the one seed to run; None: all. With ``ended_supervisor`` that trial does not run
    again: earlier supervisors ended with it, which is what its row says. Trials with free runs make
    no further ones from ``ends`` on, a moment of ``time.monotonic()``; None: it is never over.
    """

    suite: Suite
    chunk: Chunk
    job: Job
    trial: Trial
    echo: bool = False  # copy output of trials to standard error
    only: int | None = None
    ended_supervisor: bool = False
    ends: float | None = None


def main(descriptor: int, parent: int) -> None:
    """Answer each order with rows as JSON lines or with the error, until the parent ends."""
    die_with_parent()
    if os.getppid() != parent:
        return
    adopt()
    fresh_large_blocks()
    gc.freeze()  # imported objects are no garbage, and children share their pages
    with Connection(descriptor) as parents:
        parents.send(READY)
        while True:
            try:
                answer: object = run_order(parents.recv())
            except EOFError:
                return
            except Exception as error:
                answer = portable(error)
            parents.send(answer)


def forked(descriptor: int, parent: int) -> None:
    """Become a supervisor in a fork of a process, of which nothing else stays open."""
    os.setsid()  # the parent handles Ctrl-C of the terminal
    faulthandler.disable()
    keep_only(descriptor, -1)
    main(descriptor, parent)


def fresh_large_blocks() -> None:
    """Let the allocator return each large block to the system, and never clear one by itself.

    It would keep blocks of the sizes that trials free, and clear them for the next instance: up to
    20 MB, of which an instance uses a few pages.
    """
    if choose := getattr(ctypes.CDLL(None), "mallopt", None):
        choose(M_MMAP_THRESHOLD, LARGE)


def run_order(order: Order) -> bytes:
    """Return the rows of all trials of a chunk. Raises what a trial raises."""
    share_cores("" if is_controlled(order.job.options) else order.job.run_id)
    ends_at(order.ends)
    if order.trial is run_trial:
        prepare(order.suite, order.job.options)  # once here instead of in each child
    chunk = order.chunk
    seeds = range(chunk.seed_lo, chunk.seed_hi)
    if order.only is not None:
        seeds = range(order.only, order.only + 1)
    if order.ended_supervisor:
        ended = LostError(ENDED, "the trial ended the process that supervises it", Heart(), "")
        return crashed_row(order, seeds[0], ended, "tried twice", Tail(), None)
    rows: list[bytes] = []
    tries = SECOND_TRIES
    while len(rows) < len(seeds):
        tail = tail_of(order)
        complete, crash = attempt(order, seeds[len(rows) :], tail)
        rows += complete
        if crash is None:
            continue
        if len(rows) == len(seeds):  # the last trial was complete, but its process did not exit
            rows.pop()
        culprit = seeds[len(rows)]
        again, second = "not tried again", None
        if tries:
            tries -= 1
            again, second = try_again(order, culprit)
        rows.append(crashed_row(order, culprit, crash, again, tail, second))
    return b"".join(rows)


def attempt(order: Order, seeds: Sequence[int], tail: Tail) -> tuple[list[bytes], LostError | None]:
    """Run trials in one child; return the rows of complete trials, and how the child died, if so.

    The child ends early, without a crash, when a trial left threads or processes behind.
    """
    heart = Heart()
    rows: list[bytes] = []
    try:
        watch(
            lambda send: run_trials(order, seeds, heart, send),
            rows.append,
            limits=order.job.limits,
            heart=heart,
            tail=tail,
            places=places_of(order),
        )
    except LostError as error:
        return rows, error
    return rows, None


def places_of(order: Order) -> Places:
    """Return the function that describes where the threads of a stuck trial stand.

    Only the engine knows that.
    """
    if not is_controlled(order.job.options):
        return nowhere
    from pulsar_ml.harness.search.sandbox import stuck_places

    return stuck_places


def run_trials(order: Order, seeds: Sequence[int], heart: Heart, send: Send) -> None:
    """Run trials in the child and send a line for each."""
    if is_controlled(order.job.options):
        from pulsar_ml.harness.engine import beat_into

        beat_into(heart.page)
    host = socket.gethostname()
    for seed in seeds:
        heart.begin(seed)
        result = checked(order.job, order.trial(order.suite, seed, order.job.options), host)
        if processes := left_behind():
            result = with_processes(result)
        send(line_of(row(order.job, order.chunk, result, host)))
        if processes or any(found.invariant == STUCK for found in result.violations):
            return


def with_processes(result: TrialResult) -> TrialResult:
    """Return the result of a trial that left processes behind, which is a violation."""
    message = "processes that the trial started were still running after it, and were ended"
    left = Violation(PROCESSES_LEFT, message, RUNNING)
    return replace(result, verdict=VIOLATION, violations=(*result.violations, left))


def try_again(order: Order, seed: int) -> tuple[str, dict[str, Any] | None]:
    """Run a trial that crashed again, alone; describe the result and return its row if complete."""
    rows, crash = attempt(order, [seed], tail_of(order))
    if crash is not None:
        return f"tried again: {crash.message}", None
    before = (
        f", after {seed - order.chunk.seed_lo:,} trials of its chunk"
        if seed > order.chunk.seed_lo
        else ""
    )
    return f"tried again alone, it completed{before}", json.loads(rows[0])


def crashed_row(
    order: Order,
    seed: int,
    crash: LostError,
    again: str,
    tail: Tail,
    second: dict[str, Any] | None,
) -> bytes:
    """Make the row of a trial that crashed, with the findings of its second try."""
    job = order.job
    result = crashed_trial(order.suite, seed, job.options, job.build_id, crash, tail, f"; {again}")
    crashed = row(job, order.chunk, result, socket.gethostname())
    if second is None:
        return line_of(crashed)
    both = [*crashed["violations"], *second["violations"]]  # type: ignore[misc]
    return line_of({**second, "verdict": VIOLATION, "violations": both})


def line_of(content: object) -> bytes:
    return json.dumps(content, default=datetime.isoformat).encode() + b"\n"


class Echo(Tail):
    """Copies a child's output to this process's standard error, which is an executor's log."""

    def __init__(self) -> None:
        super().__init__()
        self._room = MOST_ECHO

    def add(self, data: bytes) -> None:
        super().add(data)
        if self._room > 0:
            os.write(2, data[: self._room])
            self._room -= len(data)


def tail_of(order: Order) -> Tail:
    return Echo() if order.echo else Tail()
