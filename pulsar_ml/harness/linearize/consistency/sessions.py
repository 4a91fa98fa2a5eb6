"""The guarantees of sessions (Terry et al., 1994), for registers and maps of registers.

A session is a thread. A guarantee holds when all writes can be put in one order, each key's first
value before its writes, such that (after Viotti and Vukolic, 2016)

    read-your-writes     a read of a key returns no value that comes before a write of its own
                         thread to that key, made earlier
    monotonic-reads      a read returns no value that comes before one that its thread read from
                         that key earlier
    writes-follow-reads  a write comes after every write whose value its thread read earlier
    session              all three, and the writes of each thread are in the thread's order

and every value that is read was written. The order says nothing about time. Each condition puts
one write before another, so that the guarantee fails exactly when these conditions form a cycle.
Monotonic writes, the addition of "session", cannot fail alone: a read shows only one write.

A write that did not return may have taken effect at any time after its invocation, also after later
writes of its thread: it comes after what its thread did earlier, and nothing has to come after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize.consistency.names import FOLLOW, GUARANTEES, READS, YOURS
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, UNKNOWN
from pulsar_ml.harness.models.cells import CasRegister, Register
from pulsar_ml.harness.models.collections import KeyValueMap
from pulsar_ml.harness.models.model import Keyed, describe_call

WRITES = "monotonic-writes"  # no criterion alone
MOST_STARTS = 20  # writes of a cycle from which a shorter one is searched
FIRST = "first value"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer for a guarantee: see Consistency."""

    answer: str
    reason: str = ""
    order: tuple[int, ...] = ()
    core: tuple[int, ...] = ()
    contradiction: tuple[str, ...] = ()


class Access(NamedTuple):
    """A read of a key's ``value`` by a call, or its write.

    ``sure`` is False for a call that did not return, and for a read of which only one value is
    known that it did not find.
    """

    at: int
    thread: int
    write: bool
    key: object
    value: object
    sure: bool = True


class Edge(NamedTuple):
    """A write that comes before another: the reason, and the calls that show it."""

    kind: str
    calls: tuple[int, ...] = ()


def check_sessions(history: History, model: Any, guarantee: str) -> Found:
    """Check a guarantee; see the definitions above."""
    all_four = (YOURS, READS, FOLLOW, WRITES)
    graph = Graph(history, model, all_four if guarantee == GUARANTEES[-1] else (guarantee,))
    if graph.unwritten is not None:
        index = graph.unwritten
        return Found(ILLEGAL, core=(index,), contradiction=(
            f"{graph.described(index)}: no operation writes that value",))  # fmt: skip
    order = graph.order()
    if order is None:
        core = graph.core()
        part = Graph(history.select(core), model, graph.guarantees)
        return Found(ILLEGAL, core=core, contradiction=tuple(part.sentences(graph, core)))
    if graph.unclear:
        return Found(UNKNOWN, reason=graph.unclear)
    return Found(LEGAL, order=order)


def accesses_of(history: History, model: Any) -> Iterator[Access]:
    """Yield the reads and writes, thread by thread, in program order.

    Raises UsageError for calls that are neither.
    """
    inner = model.model if type(model) is Keyed else model
    if type(inner) not in (Register, CasRegister, KeyValueMap):
        raise UsageError(
            "guarantees of sessions are defined for registers and maps of them: register, "
            f"cas-register (also with --keyed) and map, not for the model {type(inner).__name__}"
        )
    keyed = (type(model) is Keyed) + (type(inner) is KeyValueMap)
    records = history.records
    order = np.lexsort((np.arange(len(records)), records["invoked"], records["thread"]))
    for index in order.tolist():
        call = history.call(index)
        thread, ended = int(records["thread"][index]), not call.pending
        key, words = call.arguments[:keyed], call.arguments[keyed:]
        if call.name in ("read", "get"):
            if ended:
                yield Access(index, thread, False, key, call.result)
        elif call.name in ("write", "put"):
            yield Access(index, thread, True, key, words[0], ended)
        elif call.name == "delete":
            yield Access(index, thread, True, key, None, ended)
        elif call.name == "cas":
            if ended:
                yield Access(index, thread, False, key, words[0], call.result is not False)
            if call.result is not False:
                yield Access(index, thread, True, key, words[1], ended)
        else:
            raise UsageError(
                f"operation {index}, {call}, is neither a read nor a write of a whole value, which "
                "a guarantee of sessions needs"
            )


class Graph:
    """The writes of a history, and those that have to come before others.

    A node is the index of a write, a negative number for the first value of a key, or a number
    above all indices for a set of writes that comes before a common one.
    """

    def __init__(self, history: History, model: Any, guarantees: Iterable[str]) -> None:
        self.history = history
        self.model = model
        self.guarantees = tuple(guarantees)
        self.before: dict[int, dict[int, Edge]] = {}  # by node, the nodes that come before it
        self.next_set = len(history)
        self.unwritten: int | None = None
        self.unclear = ""
        inner = model.model if type(model) is Keyed else model
        self.initial = getattr(inner, "initial", None)
        self.accesses = list(accesses_of(history, model))
        self.keys: dict[object, int] = {}
        self.writers: dict[tuple[object, object], list[int]] = {}
        self.source: dict[int, int] = {}  # the write that each read returns
        for access in self.accesses:
            first = -1 - self.keys.setdefault(access.key, len(self.keys))
            if access.write:
                self.writers.setdefault((access.key, access.value), []).append(access.at)
                self.put(first, access.at, Edge(FIRST))
        self.find_sources()
        session: Session | None = None
        for access in self.accesses:
            if session is None or session.thread != access.thread:
                session = Session(self, access.thread)
            session.add(access)

    def find_sources(self) -> None:
        for access in self.accesses:
            if access.write:
                continue
            if not access.sure:
                self.unclear = self.unclear or (
                    f"{self.described(access.at)} failed, so the value that it found is not "
                    "known; without such operations the guarantee can be decided"
                )
                continue
            found = list(self.writers.get((access.key, access.value), ()))
            if access.value == self.initial:
                found.insert(0, -1 - self.keys[access.key])
            if not found and self.unwritten is None:
                self.unwritten = access.at
            if len(found) == 1:
                self.source[access.at] = found[0]
            elif found:
                one, two = (
                    "the first value" if writer < 0 else self.described(writer)
                    for writer in found[:2]
                )
                self.unclear = self.unclear or (
                    f"{self.described(access.at)} may return the value of {one} or of {two}; "
                    "a guarantee can be decided where the values that are read are written once"
                )

    def put(self, one: int, other: int, edge: Edge) -> None:
        """Say that ``one`` comes before ``other``."""
        self.before.setdefault(other, {}).setdefault(one, edge)

    def new_set(self) -> int:
        self.next_set += 1
        return self.next_set

    def order(self) -> tuple[int, ...] | None:
        """Return an order of the writes; None: there is a cycle."""
        try:
            nodes = list(TopologicalSorter(self.before).static_order())
        except CycleError:
            return None
        return tuple(node for node in nodes if 0 <= node < len(self.history))

    def cycle(self) -> list[tuple[int, Edge, int]]:
        """Return a short cycle: edges between nodes, each with what comes first first."""
        try:
            TopologicalSorter(self.before).prepare()
        except CycleError as error:
            nodes = list(dict.fromkeys(error.args[1]))
        else:
            return []
        shortest: list[int] = []
        for start in nodes[:MOST_STARTS]:
            found = self.around(start, len(shortest) or len(nodes))
            if found and (not shortest or len(found) < len(shortest)):
                shortest = found
        pairs = zip(shortest, [*shortest[1:], shortest[0]], strict=True)
        return [(one, self.before[other][one], other) for other, one in pairs][::-1]

    def around(self, start: int, most: int) -> list[int]:
        """Return the shortest way from ``start`` back to it, against the order: ``most`` nodes."""
        came: dict[int, int] = {}
        waiting = deque([(start, 0)])
        while waiting:
            node, length = waiting.popleft()
            for before in self.before.get(node, ()):
                if before == start:
                    way = [node]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return way[::-1]
                if before not in came and length < most:
                    came[before] = node
                    waiting.append((before, length + 1))
        return []

    def core(self) -> tuple[int, ...]:
        """Return the calls of a short cycle, of which none can be left out."""
        calls = {index for _, edge, _ in self.cycle() for index in edge.calls}
        calls |= {
            node for one, _, other in self.cycle() for node in (one, other)
            if 0 <= node < len(self.history)
        }  # fmt: skip
        calls |= {self.source[index] for index in calls if self.source.get(index, -1) >= 0}
        kept = sorted(calls)
        for index in list(kept):
            rest = [other for other in kept if other != index]
            if any(self.source.get(other) == index for other in rest):
                continue  # its value is read
            part = Graph(self.history.select(rest), self.model, self.guarantees)
            if part.unwritten is None and part.order() is None:
                kept = rest
        return tuple(kept)

    # Sentences
    # -------------------------------------------------------------------------------------------

    def described(self, index: int) -> str:
        place = self.history.place(index)
        number = f"operation {index}" + f", {place}" * bool(place)
        return f"{describe_call(self.model, self.history.call(index))} ({number})"

    def sentences(self, whole: Graph, core: tuple[int, ...]) -> Iterator[str]:
        """Describe a cycle of this graph, whose calls are those of ``core`` in ``whole``."""

        def name(index: int) -> str:
            return whole.described(core[index])

        # A way through sets of writes is one step, from the write before them to the one behind.
        steps = self.cycle()
        at_write = next((at for at, step in enumerate(steps) if step[0] < len(core)), 0)
        steps = steps[at_write:] + steps[:at_write]
        begun = steps[0][0]
        calls: list[int] = []
        for one, edge, other in steps:
            if one < len(core):
                begun, calls = one, []
            calls += [index for index in edge.calls if index not in calls]
            if other >= len(core):
                continue
            first = "the first value" if begun < 0 else name(begun)
            second = "the first value" if other < 0 else name(other)
            if edge.kind == FIRST:
                yield f"{first} comes before {second}"
                continue
            thread = whole.history.thread_name(int(self.history.records["thread"][calls[-1]]))
            shown = sorted(calls, key=lambda index: int(self.history.records["invoked"][index]))
            yield (
                f"thread {thread}: {', then '.join(name(index) for index in shown)}; so "
                f"{first} comes before {second}"
            )


@dataclass
class Session:
    """The accesses of one thread so far, which say what later ones come behind."""

    graph: Graph
    thread: int
    written: dict[object, list[int]] = field(default_factory=dict)  # its writes, by key
    places: dict[int, int] = field(default_factory=dict)  # of each write among those of its key
    together: dict[object, list[int]] = field(default_factory=dict)  # sets of these writes
    covered: dict[int, int] = field(default_factory=dict)  # writes that came before one's own
    latest_read: dict[object, tuple[int, int]] = field(default_factory=dict)
    latest_write: int | None = None
    seen: int | None = None  # the set of all writes whose values it read
    last_seen: int = -1

    def add(self, access: Access) -> None:
        if access.write:
            self.add_write(access)
        elif access.at in self.graph.source:
            self.add_read(access)

    def add_read(self, access: Access) -> None:
        graph, source = self.graph, self.graph.source[access.at]
        if YOURS in graph.guarantees:
            self.behind_own(access, source)
        if READS in graph.guarantees:
            before = self.latest_read.get(access.key)
            if before is not None and before[1] != source:
                graph.put(before[1], source, Edge(READS, (before[0], access.at)))
            self.latest_read[access.key] = access.at, source
        if FOLLOW in graph.guarantees and source != self.last_seen:
            seen = graph.new_set()
            graph.put(source, seen, Edge(FOLLOW, (access.at,)))
            if self.seen is not None:
                graph.put(self.seen, seen, Edge(""))
            self.seen, self.last_seen = seen, source

    def behind_own(self, access: Access, source: int) -> None:
        """Put all writes of this thread to the key before the one that was read."""
        graph = self.graph
        own = self.written.get(access.key, [])
        if not own:
            return
        if source not in self.places:
            graph.put(self.together[access.key][-1], source, Edge(YOURS, (access.at,)))
            return
        place = self.places[source]
        if place:
            graph.put(self.together[access.key][place - 1], source, Edge(YOURS, (access.at,)))
        for later in own[max(place + 1, self.covered.get(source, 0)) :]:
            graph.put(later, source, Edge(YOURS, (later, access.at)))
        self.covered[source] = len(own)

    def add_write(self, access: Access) -> None:
        graph, index = self.graph, access.at
        if WRITES in graph.guarantees and self.latest_write is not None:
            graph.put(self.latest_write, index, Edge(WRITES, (self.latest_write, index)))
        if FOLLOW in graph.guarantees and self.seen is not None:
            graph.put(self.seen, index, Edge(FOLLOW, (index,)))
        if not access.sure:
            return
        self.latest_write = index
        if YOURS in graph.guarantees:
            own = self.written.setdefault(access.key, [])
            sets = self.together.setdefault(access.key, [])
            every = graph.new_set()
            graph.put(index, every, Edge(YOURS, (index,)))
            if sets:
                graph.put(sets[-1], every, Edge(""))
            self.places[index] = len(own)
            own.append(index)
            sets.append(every)
