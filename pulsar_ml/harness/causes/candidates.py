"""Changes that might mend a failure, from the steps of its execution; the likely ones come first.

A failure of weak memory has a *victim*: an access that does not see another thread's earlier one, a
stale read or the second access of a data race. Where a thread read, before its victim, what the
other one wrote behind the unseen access, the two should have met there: a release on the one side
and an acquire on the other order the victim (C11 5.1.2.4, 7.17.3). Where they only write and look,
sequentially consistent fences do. Failures that no order mends come from steps that others come
between: a lock around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import NamedTuple

from pulsar_ml.harness.causes.changes import Change, Lock, Order, Stretch, cost_of
from pulsar_ml.harness.causes.reads_from import PLAIN, READS, Event, hand_overs
from pulsar_ml.harness.causes.trace import Trace, is_access, place_of
from pulsar_ml.harness.search.symbols import FIRST_INTERPRETED

WAITS = ("join", "wait")
MOST_STRETCHES = 4  # of one lock
MOST_PAIRED = 6  # locations

Candidate = tuple[Change, ...]


def order_candidates(trace: Trace, race: tuple[int, int] | None) -> list[Candidate]:
    """Stronger orders and more fences. ``race`` is the pair of events of a data race."""
    victims = [race] if race else []
    victims += stale_pairs(trace)
    found = chain(
        *(meetings(trace, unseen, victim) for unseen, victim in victims),
        *(looks(trace, unseen, victim) for unseen, victim in victims),
        singles(trace),
    )
    return distinct(candidate for candidate in found if is_native(candidate))


def is_native(candidate: Candidate) -> bool:
    """False for a change of interpreted code, which has no orders and no fences."""
    return all(pc < FIRST_INTERPRETED for change in candidate for pc, *_ in change.engine())


def distinct(candidates: Iterator[Candidate]) -> list[Candidate]:
    kept: dict[frozenset[Change], Candidate] = {}
    for candidate in candidates:
        if candidate:
            kept.setdefault(frozenset(candidate), candidate)
    return list(kept.values())


def stale_pairs(trace: Trace) -> list[tuple[int, int]]:
    """Each stale read behind the first store of another thread that it did not see.

    Under TSO such a store stands in a buffer, or left one after the read.
    """
    pairs = []
    for number in trace.accesses:
        event = trace.events[number]
        if event["op"] not in READS:
            continue
        unseen: dict[int, int] = {}
        for other in trace.accesses:
            one = trace.events[other]
            if (
                other < number
                and other > event["from"]
                and one["address"] == event["address"]
                and one["thread"] != event["thread"]
                and one["op"] in ("store", "rmw", "cas", "buffer")
                and not one["failed"]
            ):
                unseen.setdefault(one["thread"], other)
        if event["stale"] or any(trace.events[one]["op"] == "buffer" for one in unseen.values()):
            pairs += [(other, number) for other in unseen.values()]
    return pairs


def meetings(trace: Trace, unseen: int, victim: int) -> Iterator[Candidate]:
    """Orders and fences where the victim's thread read a store of the other, behind ``unseen``."""
    for store, load in hand_overs(trace.events, unseen, victim):
        released, acquired = releases(trace, unseen, store), acquires(trace, load, victim)
        yield from sorted(
            (together(a, b) for a, b in product(released, acquired)),
            key=lambda both: (len(both), cost_of(both)),
        )


def together(released: Candidate, acquired: Candidate) -> Candidate:
    """Both; one order of both sides where one compare-exchange reads another's store."""
    match released, acquired:
        case (Order(order="release") as first,), (Order(order="acquire") as second,) if (
            first.pcs == second.pcs
        ):
            return (replace(first, order="acq_rel"),)
    return released + acquired


def releases(trace: Trace, unseen: int, store: int) -> list[Candidate]:
    """How ``store`` comes to publish ``unseen``: an empty candidate if it does already."""
    found: list[Candidate] = []
    if trace.fenced(unseen, store, "release"):
        return [()]
    if store != unseen:
        found = [(trace.fence(trace.after(unseen) or store, "release"),)]
        found.append((trace.fence(store, "release"),))
    order = trace.stronger(store, "release")
    return [(order,), *found] if order else [()]


def acquires(trace: Trace, load: int, victim: int) -> list[Candidate]:
    """How the thread of ``load`` comes to see, at ``victim``, what its store publishes."""
    if trace.fenced(load, victim, "acquire"):
        return [()]
    order = trace.stronger(load, "acquire")
    if order is None:
        return [()]
    if load == victim:
        return [(order,)]
    return [
        (order,),
        (trace.fence(victim, "acquire"),),
        (trace.fence(trace.after(load) or victim, "acquire"),),
    ]


def looks(trace: Trace, unseen: int, victim: int) -> Iterator[Candidate]:
    """Sequential consistency for threads that write and then look at what the other wrote."""
    before = trace.fence(victim, "seq_cst")
    behind = trace.after(unseen)
    yield (before,)
    if behind is not None:
        other = trace.fence(behind, "seq_cst")
        yield (other,)
        yield (other, before)
    pair = tuple(filter(None, (trace.of_seq_cst(unseen), trace.of_seq_cst(victim))))
    yield from ((one,) for one in pair)
    yield pair


def every_seq_cst(trace: Trace) -> Candidate:
    """All atomic operations on shared memory with sequential consistency."""
    orders = (
        trace.of_seq_cst(one)
        for one in trace.accesses
        if trace.events[one]["address"] in trace.shared
    )
    changes = dict.fromkeys(filter(None, orders))
    return tuple(change for change in changes if is_native((change,)))


def singles(trace: Trace) -> Iterator[Candidate]:
    """Each atomic operation on shared memory, stronger alone; the last ones first."""
    for number in reversed(trace.accesses):
        if trace.events[number]["address"] not in trace.shared:
            continue
        for side in ("acquire", "release"):
            if trace.events[number]["op"] not in PLAIN and (order := trace.stronger(number, side)):
                yield (order,)


# Locks ---------------------------------------------------------------------------------------


def lock_candidates(trace: Trace, race: tuple[int, int] | None) -> list[Candidate]:
    """Locks around the accesses to one location, to two, and around whole calls."""
    addresses = by_importance(trace, race)
    sets: list[tuple[int, ...]] = [(one,) for one in addresses]
    sets += combinations(addresses[:MOST_PAIRED], 2)
    sets.append(tuple(addresses))
    return distinct(lock for chosen in sets for lock in locks_over(trace, set(chosen)))


def by_importance(trace: Trace, race: tuple[int, int] | None) -> list[int]:
    """The shared addresses: of the race, those that another thread wrote in between, the others.

    Of equal ones, those that were accessed last come first.
    """
    first = [trace.events[one]["address"] for one in race or ()]
    later = [
        trace.events[one]["address"]
        for one in reversed(trace.accesses)
        if trace.events[one]["address"] in trace.shared
    ]
    later.sort(key=lambda address: not written_between(trace, address))
    return list(dict.fromkeys((*first, *later)))


def written_between(trace: Trace, address: int) -> bool:
    """True if a thread wrote there between two accesses of a call of another thread."""
    spans: dict[tuple[int, int], list[int]] = {}
    own = [one for one in trace.accesses if trace.events[one]["address"] == address]
    for number in own:
        event = trace.events[number]
        spans.setdefault((event["thread"], event["call"]), []).append(number)
    return any(
        numbers[0] < number < numbers[-1]
        and trace.thread(number) != thread
        and trace.events[number]["op"] not in ("load", "read")
        for (thread, _), numbers in spans.items()
        for number in own
    )


def locks_over(trace: Trace, addresses: set[int]) -> Iterator[Candidate]:
    """A lock from the first access to the addresses to the last one, in each call.

    It is taken before the locks under which the first access stands, and given back where the call
    may wait for others, such as for the end of a thread.
    """
    spans = spans_of(trace.events, addresses, complete=not trace.others)
    reached = {
        place_of(trace.events[one])
        for one in trace.accesses
        if trace.events[one]["address"] in addresses
    }
    for events in trace.others:
        # An address may be that of other memory there.
        more = spans_of(events, addresses, complete=True)
        spans += [span for span in more if place_of(span.first) in reached]
    if len({span.first["thread"] for span in spans}) < 2:
        return
    stretches: dict[tuple[str, str], Stretch] = {}
    for span in spans:
        key = place_of(span.start), place_of(span.last)
        takes, gives = frozenset(trace.code_of(span.start)), frozenset(trace.code_of(span.last))
        if known := stretches.get(key):
            takes, gives = known.takes | takes, known.gives | gives
        stretches[key] = Stretch(*key, takes, gives)
    if len(stretches) <= MOST_STRETCHES:
        yield (Lock(tuple(stretches.values())),)


class Span(NamedTuple):
    """The first and the last access of a call, and where a lock around them is taken."""

    start: Event
    first: Event
    last: Event


def spans_of(events: Sequence[Event], addresses: set[int], *, complete: bool) -> list[Span]:
    """The spans of the accesses to the addresses, of each call that came to its end.

    A call that may wait for others has a span before that and one behind it. In a ``complete``
    execution each call came to its end.
    """
    ended = {(event["thread"], event["call"]) for event in events if event["op"] == "return"}
    unlocked = last_unlocks(events)
    spans: dict[tuple[int, int, int], Span] = {}
    waits: dict[int, int] = {}
    held: dict[tuple[int, int, int], list[Event]] = {}  # in the order in which they were taken
    for number, event in enumerate(events):
        thread = event["thread"]
        waits[thread] = waits.get(thread, 0) + (event["op"] in WAITS)
        key = thread, event["call"], waits[thread]
        own = held.setdefault(key, [])
        if event["op"] == "lock" and not event["failed"]:
            # Interpreted code takes its locks where no change is made.
            if 0 < event["pc"] < FIRST_INTERPRETED and number < unlocked.get(lock_of(event), 0):
                own.append(event)
        elif event["op"] == "unlock":
            held[key] = [one for one in own if one["address"] != event["address"]]
        elif (
            is_access(event)
            and event["address"] in addresses
            and (complete or (thread, event["call"]) in ended)
        ):
            before = spans.get(key, Span(own[0] if own else event, event, event))
            spans[key] = before._replace(last=event)
    return list(spans.values())


def lock_of(event: Event) -> tuple[int, int]:
    return event["thread"], event["address"]


def last_unlocks(events: Sequence[Event]) -> dict[tuple[int, int], int]:
    """The last unlock by each thread of each lock; a semaphore may be given back by another one."""
    return {
        lock_of(event): number for number, event in enumerate(events) if event["op"] == "unlock"
    }
