"""RC11: the outcomes and execution graphs that the repaired C11 memory model allows a program.

Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency in C/C++11", PLDI 2017,
with the release sequences of C++20 (P0982: read-modify-writes only). Graphs are built event by
event in every order that program order and reads-from permit; inconsistent prefixes are dropped,
which loses nothing, because the model is closed under taking away an event without successors.
Relations are lists of bit masks. Nothing here knows the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.memory_model.litmus import (
    ACQ_REL,
    ACQUIRE,
    CAS,
    CELLS,
    EXCHANGE,
    FAILED_CAS,
    FENCE,
    LOAD,
    LOCK,
    RELAXED,
    RELEASE,
    SEQ_CST,
    STORE,
    UNLOCK,
    Litmus,
    Operation,
    Outcome,
)

MUTEX = CELLS  # the mutex is one more location: 0 unlocked, 1 locked
ACQUIRING = (ACQUIRE, ACQ_REL, SEQ_CST)
RELEASING = (RELEASE, ACQ_REL, SEQ_CST)
INITIAL = -1  # the thread of the initial writes

Relation = list[int]


@dataclass(frozen=True, slots=True)
class Event:
    """An access or fence of a graph; ``read`` and ``written`` are values, None for none."""

    thread: int
    location: int  # -1 for a fence
    order: int
    read: int | None
    written: int | None


# A graph: its events, which write each read sees, and the writes of each location in their order.
@dataclass(frozen=True, slots=True)
class Graph:
    """A prefix of an execution; an event is named by its thread and its index in the thread."""

    positions: tuple[int, ...]
    events: tuple[tuple[tuple[int, int], Event], ...]
    reads_from: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    modification: tuple[tuple[tuple[int, int], ...], ...]


def compose(first: Relation, second: Relation) -> Relation:
    """Return the relation first;second."""
    found = []
    for row in first:
        joined = 0
        while row:
            low = row & -row
            joined |= second[low.bit_length() - 1]
            row ^= low
        found.append(joined)
    return found


def closure(relation: Relation) -> Relation:
    """Return the transitive closure."""
    rows = list(relation)
    for k, _ in enumerate(rows):
        bit, reached = 1 << k, rows[k]
        for i, row in enumerate(rows):
            if row & bit:
                rows[i] = row | reached
    return rows


def union(*relations: Relation) -> Relation:
    """Return the union of relations."""
    rows = list(relations[0])
    for relation in relations[1:]:
        for i, row in enumerate(relation):
            rows[i] |= row
    return rows


def reflexive(relation: Relation) -> Relation:
    """Return the relation with the identity."""
    return [row | 1 << i for i, row in enumerate(relation)]


def irreflexive(relation: Relation) -> bool:
    """Return True when no event is related to itself."""
    return not any(row >> i & 1 for i, row in enumerate(relation))


def between(relation: Relation, left: int, right: int) -> Relation:
    """Return the pairs with a first event in the set ``left`` and a second in ``right``."""
    return [row & right if left >> i & 1 else 0 for i, row in enumerate(relation)]


def consistent(graph: Graph, *, strengthened: bool) -> bool:
    """Return True when a graph satisfies coherence, atomicity, SC and no-thin-air.

    ``strengthened`` asks more than RC11, as the engine does: psc, coherence order between seq_cst
    accesses, program order and reads-from together have no cycle.
    """
    names = [name for name, _ in graph.events]
    events = [event for _, event in graph.events]
    number = {name: i for i, name in enumerate(names)}
    n = len(events)
    program = [0] * n
    for i, a in enumerate(events):
        for j, b in enumerate(events):
            before = a.thread == b.thread and names[i][1] < names[j][1]
            if before or (a.thread == INITIAL and b.thread != INITIAL):
                program[i] |= 1 << j
    reads_from, order = [0] * n, [0] * n
    for read, write in graph.reads_from:
        reads_from[number[write]] |= 1 << number[read]
    for writes in graph.modification:
        later = 0
        for name in reversed(writes):
            order[number[name]] = later
            later |= 1 << number[name]
    from_reads = [0] * n
    for read, write in graph.reads_from:
        # A read-modify-write does not come before itself.
        from_reads[number[read]] = order[number[write]] & ~(1 << number[read])
    # Atomicity: a read-modify-write follows at once the write that it reads from.
    for read, write in graph.reads_from:
        if events[number[read]].written is not None:
            writes = graph.modification[events[number[read]].location]
            if writes.index(read) != writes.index(write) + 1:
                return False
    coherence = closure(union(reads_from, order, from_reads))
    if not irreflexive(coherence):
        return False
    happens = closure(union(program, synchronises(events, program, reads_from)))
    if not irreflexive(happens) or not irreflexive(compose(happens, coherence)):
        return False
    if not irreflexive(closure(union(program, reads_from))):
        return False
    psc = partial_sc(events, program, happens, coherence, order, from_reads)
    if strengthened:
        accesses = mask(events, lambda e: e.order == SEQ_CST and e.location >= 0)
        total = between(coherence, accesses, accesses)
        return irreflexive(closure(union(psc, total, program, reads_from)))
    return irreflexive(closure(psc))


def synchronises(events: list[Event], program: Relation, reads_from: Relation) -> Relation:
    """Return sw = [release]; ([F]; sb)?; [W]; (rf; [RMW])*; rf; [R]; (sb; [F])?; [acquire]."""
    n = len(events)
    everything = (1 << n) - 1
    writes = mask(events, lambda e: e.written is not None and e.thread != INITIAL)
    updates = mask(events, lambda e: e.read is not None and e.written is not None)
    fences = mask(events, lambda e: e.location < 0)
    releases = mask(
        events, lambda e: e.order in RELEASING and (e.location < 0 or e.written is not None)
    )
    acquires = mask(
        events, lambda e: e.order in ACQUIRING and (e.location < 0 or e.read is not None)
    )
    identity = [1 << i for i in range(n)]
    chain = reflexive(closure(between(reads_from, everything, updates)))
    head = union(between(identity, releases, writes), between(program, releases & fences, writes))
    tail = union(
        between(identity, everything, acquires & ~fences),
        between(program, everything, acquires & fences),
    )
    return compose(compose(compose(head, chain), reads_from), tail)


def partial_sc(
    events: list[Event],
    program: Relation,
    happens: Relation,
    coherence: Relation,
    order: Relation,
    from_reads: Relation,
) -> Relation:
    """Return psc = psc_base | psc_F of RC11."""
    n = len(events)
    everything = (1 << n) - 1
    same = [0] * n
    for i, a in enumerate(events):
        for j, b in enumerate(events):
            if a.location >= 0 and a.location == b.location:
                same[i] |= 1 << j
    elsewhere = [row & ~same[i] for i, row in enumerate(program)]
    # sb minus sb on one location: a fence has no location, so its pairs stay.
    scb = union(
        program,
        compose(compose(elsewhere, happens), elsewhere),
        [row & same[i] for i, row in enumerate(happens)],
        order,
        from_reads,
    )
    accesses = mask(events, lambda e: e.order == SEQ_CST and e.location >= 0)
    fences = mask(events, lambda e: e.order == SEQ_CST and e.location < 0)
    identity = [1 << i for i in range(n)]
    at_once = reflexive(happens)
    left = union(between(identity, accesses, accesses), between(at_once, fences, everything))
    right = union(between(identity, accesses, accesses), between(at_once, everything, fences))
    base = compose(compose(left, scb), right)
    around = union(happens, compose(compose(happens, coherence), happens))
    return union(base, between(around, fences, fences))


def mask(events: list[Event], holds: object) -> int:
    """Return the set of the events for which ``holds`` is true."""
    assert callable(holds)
    return sum(1 << i for i, event in enumerate(events) if holds(event))


def start(program: Litmus) -> Graph:
    """Return the graph of the initial writes."""
    initial = tuple(
        ((INITIAL, at), Event(INITIAL, at, RELAXED, None, 0)) for at in range(CELLS + 1)
    )
    writes = tuple((name,) for name, _ in initial)
    return Graph((0,) * len(program.threads), initial, (), writes)


def extensions(graph: Graph, thread: int, call: Operation) -> Iterator[Graph]:
    """Yield the graphs with one more event of a thread: every write to read or place to write."""
    name = (thread, graph.positions[thread])
    positions = list(graph.positions)
    positions[thread] += 1
    after = tuple(positions)
    known = dict(graph.events)
    if call.kind == FENCE:
        event = Event(thread, -1, call.order, None, None)
        yield Graph(after, (*graph.events, (name, event)), graph.reads_from, graph.modification)
        return
    location = MUTEX if call.kind in (LOCK, UNLOCK) else call.cell
    order = {LOCK: ACQUIRE, UNLOCK: RELEASE}.get(call.kind, call.order)
    writes = graph.modification[location]

    def grown(event: Event, source: tuple[int, int] | None, at: int | None) -> Graph:
        reads = graph.reads_from if source is None else (*graph.reads_from, (name, source))
        changed = graph.modification
        if at is not None:
            row = (*writes[:at], name, *writes[at:])
            changed = (*changed[:location], row, *changed[location + 1 :])
        return Graph(after, (*graph.events, (name, event)), tuple(sorted(reads)), changed)

    if call.kind in (STORE, UNLOCK):
        value = 0 if call.kind == UNLOCK else call.value
        for at in range(1, len(writes) + 1):
            yield grown(Event(thread, location, order, None, value), None, at)
        return
    for at, source in enumerate(writes):
        seen = known[source].written
        if call.kind == LOAD:
            yield grown(Event(thread, location, order, seen, None), source, None)
        elif call.kind == CAS and seen != call.expected:
            yield grown(Event(thread, location, RELAXED, seen, None), source, None)
        elif call.kind != LOCK or seen == 0:
            value = 1 if call.kind == LOCK else call.value
            yield grown(Event(thread, location, order, seen, value), source, at + 1)


def graphs(program: Litmus, *, strengthened: bool = False) -> list[Graph]:
    """Return all complete consistent graphs of a program."""
    first = start(program)
    seen = {key(first)}
    waiting, complete = [first], []
    while waiting:
        graph = waiting.pop()
        ended = True
        for thread, calls in enumerate(program.threads):
            if graph.positions[thread] == len(calls):
                continue
            ended = False
            for longer in extensions(graph, thread, calls[graph.positions[thread]]):
                if key(longer) not in seen:
                    seen.add(key(longer))
                    if consistent(longer, strengthened=strengthened):
                        waiting.append(longer)
        if ended:
            complete.append(graph)
    return complete


def key(graph: Graph) -> object:
    """Return the same value for graphs that differ in the order of their making only."""
    return graph.positions, graph.reads_from, graph.modification


def outcome_of(program: Litmus, graph: Graph) -> Outcome:
    """Return what the calls of a complete graph returned, and the final values."""
    known = dict(graph.events)
    results = []
    for thread, calls in enumerate(program.threads):
        row = []
        for index, call in enumerate(calls):
            event = known[thread, index]
            value = (event.read or 0) if call.kind in (LOAD, EXCHANGE, CAS) else 0
            if call.kind == CAS:
                value = call.expected if event.written is not None else call.expected | FAILED_CAS
                if event.written is None:
                    value = (event.read or 0) | FAILED_CAS
            row.append(value)
        results.append(tuple(row))
    finals = tuple(known[writes[-1]].written or 0 for writes in graph.modification[:CELLS])
    return tuple(results), finals


def outcomes(program: Litmus, *, strengthened: bool = False) -> set[Outcome]:
    """Return the outcomes that the model allows a program."""
    return {outcome_of(program, graph) for graph in graphs(program, strengthened=strengthened)}
