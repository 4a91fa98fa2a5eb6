"""The monitors of queues, stacks and priority queues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pulsar_ml.harness.histories.history import ABSENT, NEVER
from pulsar_ml.harness.linearize._monitors import bottomless, earliest, nowhere_empty
from pulsar_ml.harness.linearize.core import reduced
from pulsar_ml.harness.linearize.monitors.view import (
    LEGAL,
    Ints,
    Judgement,
    NotDistinct,
    View,
    found_in,
    sorted_distinct,
)


def container(view: View, put: str, take: str, kind: str) -> Judgement:
    """Check queues by bad patterns (Henzinger, Sezgin, Vafeiadis), and stacks from the bottom.

    Priority queues are checked from the least value on; see :func:`priorities`.
    """
    view.known(put, take)
    puts = np.flatnonzero(view.of(put))
    takes = np.flatnonzero(view.of(take))
    if not np.all(view.ended[takes]):
        raise NotDistinct  # the value that such a call took is unknown
    empty = takes[view.result[takes] == ABSENT]
    takes = takes[view.result[takes] != ABSENT]
    order = sorted_distinct(view.argument[puts])
    puts = puts[order]
    at = found_in(view.argument[puts], view.result[takes])
    if np.any(at < 0):
        return Judgement(False, (int(takes[np.argmin(at)]),))
    taker = np.full(len(puts), -1)
    taker[at] = takes
    if len(np.unique(at)) < len(at):
        twice = np.flatnonzero(np.bincount(at) > 1)[0]
        return Judgement(False, (int(puts[twice]), *takes[at == twice].tolist()))
    times = 2 * len(view.operation) + 1
    taken = taker >= 0
    # A put that neither returned nor was seen had no effect.
    use = view.ended[puts] | taken
    puts, taker, taken = puts[use], taker[use], taken[use]
    values = Values(
        puts,
        taker,
        view.invoked[puts],
        np.minimum(view.returned[puts], times),
        np.where(taken, view.invoked[taker], times - 1),
        np.where(taken, view.returned[taker], times),
    )
    wrong = np.flatnonzero(values.taken_by < values.put_from)
    if len(wrong):
        return values.witness(wrong[:1])
    sure = np.flatnonzero(values.put_by < values.taken_from)
    if kind == "priority-queue":
        return priorities(view, values, view.order(puts), empty, times)
    judgement = empties(view, values, sure, empty, times)
    if judgement is None:
        judgement = lifo(values, sure, times) if kind == "stack" else fifo(values)
    return judgement


@dataclass(frozen=True, slots=True)
class Values:
    """For each value the calls that put and took it (-1: none), and the intervals of both."""

    putter: Ints
    taker: Ints
    put_from: Ints
    put_by: Ints
    taken_from: Ints
    taken_by: Ints

    def witness(self, which: Ints, *more: int) -> Judgement:
        calls = {*self.putter[which].tolist(), *self.taker[which].tolist(), *more} - {-1}
        return Judgement(False, tuple(sorted(calls)))


def fifo(values: Values) -> Judgement:
    """No value that was certainly put before another one is certainly taken after it."""
    order = np.argsort(values.put_from)
    reverse = values.taken_by[order][::-1]
    soonest = np.minimum.accumulate(reverse)[::-1]  # the first removal of the values put later
    later = np.searchsorted(values.put_from[order], values.put_by, side="right")
    overtaken = np.append(soonest, NEVER)[later] < values.taken_from
    if not np.any(overtaken):
        return LEGAL
    first = int(np.argmax(overtaken))
    others = order[later[first] :]
    second = others[np.argmin(values.taken_by[others])]
    return values.witness(np.array([first, second]))


def empties(view: View, values: Values, sure: Ints, empty: Ints, times: int) -> Judgement | None:
    """A take that found nothing needs a moment at which no value was certainly present."""
    steps = np.zeros(times + 1, np.int64)
    np.add.at(steps, values.put_by[sure], 1)
    np.add.at(steps, values.taken_from[sure], -1)
    free = np.append(0, np.cumsum(np.cumsum(steps) == 0))  # free moments before each rank
    wrong = np.flatnonzero(free[view.returned[empty]] == free[view.invoked[empty]])
    if len(wrong) == 0:
        return None
    call = int(empty[wrong[0]])
    now, until = int(view.invoked[call]), int(view.returned[call])
    chain = []
    while now < until:
        reach = np.where(values.put_by[sure] <= now, values.taken_from[sure], -1)
        best = int(np.argmax(reach))
        chain.append(int(sure[best]))
        now = int(reach[best])
    return values.witness(np.array(chain), call)


def lifo(values: Values, sure: Ints, times: int) -> Judgement:
    """A stretch of time without a value that can be at the bottom makes a stack illegal."""

    def without_bottom(which: Ints) -> Ints:
        return which[
            bottomless(
                values.put_by[which],
                values.taken_from[which],
                values.put_from[which],
                values.taken_by[which],
                times + 1,
            )
        ]

    stretch = without_bottom(sure)
    if len(stretch) == 0:
        return LEGAL
    return values.witness(reduced(stretch, lambda some: len(without_bottom(some)) > 0))


def priorities(view: View, values: Values, rank: Ints, empty: Ints, times: int) -> Judgement:
    """A value is taken at a moment at which no lesser value is there.

    The values are placed in ascending order. Each one is put as late and taken as early as the
    lesser ones allow, so that it is there for the shortest possible time; nothing is gained by
    another choice. Behind all of them come the calls that found nothing.
    """
    order = np.argsort(rank, kind="stable")

    def intervals(some: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        return (
            values.put_from[some],
            values.put_by[some],
            values.taken_from[some],
            values.taken_by[some],
        )

    failed = earliest(*intervals(order), times)
    if failed >= 0:
        late = order[failed : failed + 1]

        def still_late(some: Ints) -> bool:
            return earliest(*intervals(np.concatenate((some, late))), times) >= 0

        return values.witness(np.concatenate((reduced(order[:failed], still_late), late)))
    found = nowhere_empty(*intervals(order), view.invoked[empty], view.returned[empty], times)
    if found < 0:
        return LEGAL
    call = empty[found : found + 1]

    def still_there(some: Ints) -> bool:
        chosen = intervals(some)
        return nowhere_empty(*chosen, view.invoked[call], view.returned[call], times) >= 0

    return values.witness(reduced(order, still_there), int(call[0]))
