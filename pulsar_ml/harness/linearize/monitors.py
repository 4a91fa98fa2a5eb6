"""Monitors: histories of distinct values, decided in O(n log n).

With distinct values it is known which write a read saw, and which value a call put or took; the
rest is geometry of intervals. A monitor answers only for histories that qualify.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    ANSWER,
    FLAG,
    NEVER,
    RETURNED,
    VALUE,
    WORD,
    History,
    ranks,
)
from pulsar_ml.harness.linearize._monitors import bottomless, earliest, nowhere_empty
from pulsar_ml.harness.linearize.core import reduced

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of a monitor; ``witness`` has calls that are illegal by themselves."""

    legal: bool
    witness: tuple[int, ...] = ()


LEGAL = Judgement(True)


class NotDistinct(Exception):
    """Raised for a history that does not qualify for a monitor."""


def judge(monitor: str, history: History, model: Any) -> Judgement | None:
    """Run the monitor of that name, see Extras in model.py; None for an unsuitable history."""
    try:
        view = View(history)
        if monitor == "register":
            return register(view, view.code(model.initial))
        if monitor in ("set", "multiset"):
            return members(view, counted=monitor == "multiset")
        if monitor in ("queue", "stack", "priority-queue"):
            return container(view, model.put, model.take, monitor)
    except NotDistinct:
        pass
    return None


class View:
    """A history in columns: arguments and results as one number each, times as ranks."""

    def __init__(self, history: History) -> None:
        kinds = {signature.result for signature in history.signatures}
        if ANSWER in kinds or len(set(history.values)) != len(history.values):
            raise NotDistinct  # no monitor for models of answers; 1 and 1.0 have two numbers
        self.history = history
        self.names = {signature.name: code for code, signature in enumerate(history.signatures)}
        self.operation = history.records["operation"]
        self.argument = self.coded(history.records["arguments"][:, 0].copy(), {VALUE})
        self.result = self.coded(history.records["result"][:, 0].copy(), kinds)
        self.invoked, self.returned = ranks(history)
        self.ended = history.records["ending"] == RETURNED
        self.flags = FLAG in kinds or WORD in kinds

    def coded(self, words: Ints, kinds: set[str]) -> Ints:
        if VALUE in kinds and None in self.history.values:
            words[words == self.history.values.index(None)] = ABSENT
        return words

    def code(self, value: object) -> int:
        """The number of a value."""
        if value is None:
            return ABSENT
        if self.history.values:
            return self.history.values.index(value) if value in self.history.values else -2
        return int(value) if isinstance(value, int) else -(2**62)

    def of(self, name: str) -> Bools:
        return np.asarray(self.operation == self.names.get(name, -1))

    def order(self, calls: Ints) -> Ints:
        """The ranks of the first arguments of calls, in the order of the values."""
        words = self.argument[calls]
        if not self.history.values:
            return words
        found = [self.history.values[word] for word in words.tolist()]
        try:
            places = sorted(range(len(found)), key=found.__getitem__)
        except TypeError:
            raise NotDistinct from None
        rank = np.empty(len(found), np.int64)
        rank[places] = np.arange(len(found))
        return rank

    def known(self, *names: str) -> None:
        """Raises NotDistinct for operations other than these."""
        if not set(self.names) <= set(names):
            raise NotDistinct

    def true(self) -> Bools:
        if self.flags:
            return np.asarray(self.result == 1)
        return np.asarray(self.result == (self.code(True) if True in self.history.values else -3))

    def false(self) -> Bools:
        if self.flags:
            return np.asarray(self.result == 0)
        return np.asarray(self.result == (self.code(False) if False in self.history.values else -3))


def found_in(sorted_values: Ints, wanted: Ints) -> Ints:
    """The index of each wanted value in the sorted values; -1 for a missing one."""
    if len(sorted_values) == 0:
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.where(sorted_values[at] == wanted, at, -1)


def sorted_distinct(values: Ints) -> Ints:
    """The order that sorts the values; NotDistinct for a repeated value."""
    order = np.argsort(values, kind="stable")
    if np.any(np.diff(values[order]) == 0):
        raise NotDistinct
    return order


def extreme(count: int, at: Ints, values: Ints, indices: Ints, *, least: bool) -> tuple[Ints, Ints]:
    """The least or greatest value of each of ``count`` non-empty groups, and its index."""
    order = np.lexsort((values if least else -values, at))
    first = np.searchsorted(at[order], np.arange(count))
    return values[order][first], indices[order][first]


# Registers ----------------------------------------------------------------------------------------


def register(view: View, initial: int) -> Judgement:
    """A write and the reads of its value need a zone of time to themselves (Gibbons and Korach)."""
    view.known("read", "write")
    writes = np.flatnonzero(view.of("write"))
    reads = np.flatnonzero(view.of("read") & view.ended)
    # The initial value counts as written before all calls.
    values = np.append(view.argument[writes], initial)
    order = sorted_distinct(values)
    values = values[order]
    writer = np.append(writes, -1)[order]
    invoked = np.append(view.invoked[writes], -1)[order]
    returned = np.append(view.returned[writes], -1)[order]
    cluster = found_in(values, view.result[reads])
    if np.any(cluster < 0):
        return Judgement(False, (int(reads[np.argmin(cluster)]),))
    early = view.returned[reads] < invoked[cluster]
    if np.any(early):
        at = int(np.argmax(early))
        return Judgement(False, (int(reads[at]), int(writer[cluster[at]])))
    count = len(values)
    everyone = np.concatenate([np.arange(count), cluster])
    whose = np.concatenate([writer, reads])
    finish, finisher = extreme(
        count, everyone, np.concatenate([returned, view.returned[reads]]), whose, least=True
    )
    start, starter = extreme(
        count, everyone, np.concatenate([invoked, view.invoked[reads]]), whose, least=False
    )

    def witness(*clusters: int) -> Judgement:
        calls = {int(who[one]) for one in clusters for who in (writer, finisher, starter)}
        return Judgement(False, tuple(sorted(calls - {-1})))

    forward = np.flatnonzero(finish < start)
    forward = forward[np.argsort(finish[forward])]
    clash = np.flatnonzero(finish[forward][1:] < start[forward][:-1])
    if len(clash):
        return witness(int(forward[clash[0]]), int(forward[clash[0] + 1]))
    backward = np.flatnonzero(finish >= start)
    around = np.searchsorted(finish[forward], start[backward]) - 1
    inside = (around >= 0) & (finish[backward] < np.append(start[forward], -1)[around])
    if np.any(inside):
        at = int(np.argmax(inside))
        return witness(int(backward[at]), int(forward[around[at]]))
    return LEGAL


# Queues and stacks --------------------------------------------------------------------------------


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
    needed = reduced(
        stretch.tolist(), lambda some: len(without_bottom(np.array(some, np.int64))) > 0
    )
    return values.witness(np.array(needed))


# Priority queues ----------------------------------------------------------------------------------


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
        lesser = order[:failed].tolist()

        def still_late(some: list[int]) -> bool:
            chosen = np.array([*some, order[failed]], np.int64)
            return earliest(*intervals(chosen), times) >= 0

        return values.witness(np.array([*reduced(lesser, still_late), order[failed]], np.int64))
    found = nowhere_empty(*intervals(order), view.invoked[empty], view.returned[empty], times)
    if found < 0:
        return LEGAL
    call = empty[found : found + 1]

    def still_there(some: list[int]) -> bool:
        chosen = intervals(np.array(some, np.int64))
        return nowhere_empty(*chosen, view.invoked[call], view.returned[call], times) >= 0

    return values.witness(np.array(reduced(order.tolist(), still_there), np.int64), int(call[0]))


# Sets ---------------------------------------------------------------------------------------------


def members(view: View, *, counted: bool = False) -> Judgement:
    """Each value was added and removed at most once: all other calls saw it present, or absent.

    ``counted``: of a multiset, to which each call of add adds.
    """
    view.known("add", "remove", "contains")
    true, false = view.true(), view.false()
    if counted:
        added = view.of("add")
        true, false = true | added, false & ~added
    changes = view.of("add") | view.of("remove")
    if np.any(changes & ~(view.ended & (true | false))):
        raise NotDistinct
    kept = np.flatnonzero(view.ended)
    values, which = np.unique(view.argument[kept], return_inverse=True)
    n = len(values)

    def only(name: str) -> tuple[Ints, Ints]:
        calls = np.flatnonzero((view.of(name) & true)[kept])
        if len(np.unique(which[calls])) < len(calls):
            raise NotDistinct
        began, ended = np.full(n, NEVER), np.full(n, NEVER)
        began[which[calls]] = view.invoked[kept[calls]]
        ended[which[calls]] = view.returned[kept[calls]]
        return began, ended

    added_from, added_by = only("add")
    removed_from, removed_by = only("remove")
    there = ((view.of("contains") & true) | (view.of("add") & false))[kept]
    absent = ((view.of("contains") | view.of("remove")) & false)[kept]
    seen_by, seen_from = np.full(n, NEVER), np.full(n, -1)
    np.minimum.at(seen_by, which[there], view.returned[kept[there]])
    np.maximum.at(seen_from, which[there], view.invoked[kept[there]])
    # The latest beginning and the earliest end that the calls which saw the value allow.
    begins = np.minimum(added_by, seen_by)
    ends = np.where(removed_from == NEVER, NEVER, np.maximum(removed_from, seen_from))
    never = added_from == NEVER
    wrong = np.where(never, (seen_from >= 0) | (removed_from != NEVER), begins <= added_from)
    wrong |= ~never & (removed_from != NEVER) & ((ends >= removed_by) | (added_from > removed_by))
    sure = (begins <= ends) & ~never
    inside = view.invoked[kept[absent]] >= begins[which[absent]]
    inside &= view.returned[kept[absent]] <= ends[which[absent]]
    np.logical_or.at(wrong, which[absent], inside & sure[which[absent]])
    if not np.any(wrong):
        return LEGAL
    return Judgement(False, tuple(kept[which == np.argmax(wrong)].tolist()))
