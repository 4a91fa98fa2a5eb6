"""Chooses the steps of a failing execution that a short table shows.

These are the accesses of a race, with the store and the load that should have met, or the failing
access; stale reads with the stores that they read and that they missed; updates that were lost; the
switches that shrinking could not remove; what happened to the block of memory in question; for
threads that wait the locks and their last steps; and for wrong answers the operations and what they
wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pulsar_ml.harness.causes.missing import missing_order
from pulsar_ml.harness.causes.reads_from import lost_update
from pulsar_ml.harness.engine import CHOICES
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.stale import stale_reads
from pulsar_ml.harness.search.timeline import guilty

Event = Mapping[str, Any]

THREAD = CHOICES.index("thread")
WAITS = ("deadlock", "livelock", "not lock-free", "endless loop")
OF_LOCKS = ("lock", "unlock", "wait", "wake")
CHANGES = ("store", "rmw", "cas", "flush", "write")
CALLS = ("call", "return")


def essential(failure: Failure, trace: Sequence[Event], values: Sequence[int] = ()) -> set[int]:
    """Return the indexes of the steps that a short table shows.

    ``values`` are steps whose values the failing check compared, and those that wrote them.
    """
    own = [index for index, event in enumerate(trace) if int(event["thread"]) >= 0]
    marks = guilty(failure, trace)
    found = set(marks) | set(values)
    if failure.race is not None and len(marks) == 2:
        found |= set(of_missing_order(trace, min(marks), max(marks)))
    found |= set(stale_steps(trace))
    for index in values:
        found |= set(lost_update(trace, index) or ())
    for decision in failure.decisions:
        if decision[2] == THREAD:
            found |= set(switch(trace, own, decision[0], decision[1]))
    if failure.kind in ("use after free", "double free", "leak"):
        found |= set(of_block(failure, trace))
    if failure.kind in WAITS:
        found |= {index for index in own if trace[index]["op"] in OF_LOCKS}
        found |= set({trace[index]["thread"]: index for index in own}.values())  # the last of each
    if failure.kind == WRONG_ANSWERS:
        found |= {index for index in own if trace[index]["op"] in (*CALLS, *CHANGES[:-1])}
    found |= set(own[-1:])
    return found | set(calls_of(trace, found))


def of_missing_order(trace: Sequence[Event], first: int, second: int) -> Iterator[int]:
    """Yield the store and the load that would have ordered the two accesses of a race."""
    missing = missing_order(trace, (first, second))
    if missing is not None:
        yield from (missing[0].start, missing[0].end)


def stale_steps(trace: Sequence[Event]) -> Iterator[int]:
    """Yield stale reads, the store that each one read, and the newest store that it missed.

    A store, or a read-modify-write, that went before newer stores is shown as well.
    """
    index_of = {id(event): index for index, event in enumerate(trace)}
    found = {index_of[id(event)] for event in stale_reads(trace)}
    found |= {index for index, event in enumerate(trace) if event["stale"]}
    for index in sorted(found):
        event = trace[index]
        yield index
        if int(event["from"]) >= 0:
            yield int(event["from"])
        newest = last_change(trace, int(event["address"]), index)
        if newest is not None:
            yield newest


def last_change(trace: Sequence[Event], address: int, before: int) -> int | None:
    """Return the step before ``before`` whose value is the newest at ``address``; None for none."""
    for index in range(before - 1, -1, -1):
        event = trace[index]
        if (
            int(event["address"]) == address
            and event["op"] in CHANGES
            and not event["failed"]
            and not event["stale"]  # a store that went before newer ones
        ):
            return index
    return None


def switch(trace: Sequence[Event], own: Sequence[int], points: int, thread: int) -> Iterator[int]:
    """Yield the steps around a switch: the last of ``thread``, and the first of the other one."""
    for at, following in pairwise(own):
        if int(trace[at]["thread"]) == thread != int(trace[following]["thread"]):
            later = next((n for n in own if n > at and int(trace[n]["thread"]) == thread), None)
            reached = points if later is None else int(trace[later]["points"])
            if int(trace[at]["points"]) < points <= reached:
                yield from (at, following)
                return


def of_block(failure: Failure, trace: Sequence[Event]) -> Iterator[int]:
    """Yield where the block of memory at which the execution ended was allocated and freed."""
    marked = guilty(failure, trace)
    address = int(trace[max(marked)]["address"]) if marked else None
    blocks = [event for event in trace if event["op"] == "allocate"]
    for index, event in enumerate(trace):
        if event["op"] not in ("allocate", "free") or int(event["thread"]) < 0:
            continue
        start = int(event["address"])
        size = next((int(one["value"]) for one in blocks if int(one["address"]) == start), 0)
        if address is None or start <= address < start + max(size, 1):
            yield index


def calls_of(trace: Sequence[Event], chosen: set[int]) -> Iterator[int]:
    """Yield the beginnings of the operations of the chosen steps."""
    wanted = {(trace[index]["thread"], trace[index]["call"]) for index in chosen}
    for index, event in enumerate(trace):
        if event["op"] == "call" and (event["thread"], event["call"]) in wanted:
            yield index
