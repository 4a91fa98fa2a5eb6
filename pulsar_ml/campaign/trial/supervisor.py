"""The small process that runs trials for another one: it forks a child for the trials of a chunk, and when a
trial takes that child along it says so in the trial's row and goes on behind it with a new child.

It is started once and serves many chunks. It imports what trials need and nothing else: no Arrow, no Spark.
Rows are written, one line of JSON each, to a file in memory that outlives the child.
"""

from __future__ import annotations

import gc
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.trial.chunk import Job, Trial, checked, row
from pulsar_ml.campaign.trial.crashed_trial import lost_trial
from pulsar_ml.campaign.trial.engines import is_controlled, prepare, run_trial
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import STUCK, VIOLATION
from pulsar_ml.harness.search.child import Heart, LostError, Tail, die_with_parent, portable, watch

SECOND_TRIES = 16  # of a chunk: where more is lost, each loss is told once and costs half the time
MOST_ECHO = 1 << 20  # bytes of a child
READY = "ready"


@dataclass(frozen=True, slots=True)
class Order:
    """The trials of one chunk."""

    suite: Suite
    chunk: Chunk
    job: Job
    trial: Trial
    echo: bool = False  # what trials print


def main(descriptor: int, parent: int) -> None:
    """Answers orders until the parent goes: with rows as lines of JSON, or with the error that was raised."""
    die_with_parent()
    if os.getppid() != parent:
        return
    gc.freeze()  # what is imported is no garbage, and children need no copies of its pages
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


def run_order(order: Order) -> bytes:
    """The rows of all trials of a chunk. Raises what a trial raises."""
    if order.trial is run_trial:
        prepare(order.suite, order.job.options)  # once, and not in each child
    chunk = order.chunk
    rows: list[bytes] = []
    tries = SECOND_TRIES
    while (seed := chunk.seed_lo + len(rows)) < chunk.seed_hi:
        tail = tail_of(order)
        made, lost = attempt(order, range(seed, chunk.seed_hi), tail)
        rows += made
        if lost is None:
            continue
        if len(rows) == len(chunk):  # the last trial was done, and yet its process did not end well
            rows.pop()
        culprit = chunk.seed_lo + len(rows)
        again, second = "not tried again", None
        if tries:
            tries -= 1
            again, second = try_again(order, culprit)
        rows.append(lost_row(order, culprit, lost, again, tail, second))
    return b"".join(rows)


def attempt(order: Order, seeds: Sequence[int], tail: Tail) -> tuple[list[bytes], LostError | None]:
    """Runs trials in one child: the rows of those that came to their end, and how the child was lost, if so.

    It ends early, without a loss, when a trial left threads behind.
    """
    file = os.memfd_create("rows")
    try:
        heart = Heart()
        lost = None
        try:
            watch(
                lambda tell: run_trials(order, seeds, heart, file),
                forget,
                limits=order.job.limits,
                heart=heart,
                tail=tail,
            )
        except LostError as error:
            lost = error
        text = os.pread(file, os.fstat(file).st_size, 0)
        return text[: text.rfind(b"\n") + 1].splitlines(keepends=True), lost
    finally:
        os.close(file)


def run_trials(order: Order, seeds: Sequence[int], heart: Heart, file: int) -> None:
    """In the child: one line for each trial."""
    if is_controlled(order.job.options):
        from pulsar_ml.harness.engine import beat_into

        beat_into(heart.page)
    host = socket.gethostname()
    for seed in seeds:
        heart.begin(seed)
        result = checked(order.job, order.trial(order.suite, seed, order.job.options), host)
        os.write(file, line_of(row(order.job, order.chunk, result, host)))
        if any(found.invariant == STUCK for found in result.violations):
            return


def try_again(order: Order, seed: int) -> tuple[str, dict[str, Any] | None]:
    """Whether a trial that was lost is lost again when it runs alone, and its row if not."""
    rows, lost = attempt(order, [seed], tail_of(order))
    if lost is not None:
        return f"tried again: {lost.message}", None
    before = (
        f", after {seed - order.chunk.seed_lo:,} trials of its chunk"
        if seed > order.chunk.seed_lo
        else ""
    )
    return f"tried again alone, it came to its end{before}", json.loads(rows[0])


def lost_row(
    order: Order, seed: int, lost: LostError, again: str, tail: Tail, second: dict[str, Any] | None
) -> bytes:
    """The row of a trial that was lost; what its second try found is kept beside the loss."""
    job = order.job
    result = lost_trial(order.suite, seed, job.options, job.build_id, lost, tail, f"; {again}")
    made = row(job, order.chunk, result, socket.gethostname())
    if second is None:
        return line_of(made)
    both = [*made["violations"], *second["violations"]]  # type: ignore[misc]
    return line_of({**second, "verdict": VIOLATION, "violations": both})


def line_of(content: object) -> bytes:
    return json.dumps(content, default=datetime.isoformat).encode() + b"\n"


class Echo(Tail):
    """Copies what a child prints to the standard error of this process: to the log of an executor."""

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


def forget(told: object) -> None:
    """Children tell nothing but their end."""
