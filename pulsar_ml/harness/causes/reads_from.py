"""The store that each step read, where two threads could have met, and updates that were lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

READS = ("load", "rmw", "cas")
WRITES = ("store", "rmw", "cas", "buffer")
PLAIN = ("read", "write")


def source_of(events: Sequence[Event], number: int) -> int | None:
    """The store that a step read, or the store that left the buffer; None for no store."""
    source = int(events[number]["from"])
    if source < 0 or number == source:
        return None
    return source_of(events, source) if events[source]["op"] == "flush" else source


def hand_overs(events: Sequence[Event], unseen: int, victim: int) -> Iterator[tuple[int, int]]:
    """Atomic stores of ``unseen``'s thread, from it on, and the loads of them up to ``victim``.

    The loads are those of the victim's thread, the last one first. Had such a store released and
    its load acquired, ``unseen`` would be ordered before ``victim`` (C11 5.1.2.4).
    """
    writer, reader = events[unseen]["thread"], events[victim]["thread"]
    for load in range(victim, unseen, -1):
        event = events[load]
        if event["thread"] != reader or event["op"] not in READS:
            continue
        store = source_of(events, load)
        if (
            store is not None
            and store >= unseen
            and events[store]["thread"] == writer
            and events[store]["op"] not in PLAIN
        ):
            yield store, load


def lost_update(events: Sequence[Event], store: int) -> tuple[int, int] | None:
    """The read before a store by its thread, and the last store of others between the two.

    Only a store that is no read-modify-write overwrites what its thread did not read. None when
    there is no such store in between.
    """
    if events[store]["op"] not in ("store", "write"):
        return None
    near = [number for number in range(store) if overlap(events[number], events[store])]
    thread = events[store]["thread"]
    reads = [
        number
        for number in near
        if events[number]["thread"] == thread and events[number]["op"] in (*READS, "read")
    ]
    unseen = [
        number
        for number in near
        if reads
        and number > reads[-1]
        and events[number]["thread"] != thread
        and events[number]["op"] in (*WRITES, "write")
        and not events[number]["failed"]
    ]
    return (reads[-1], unseen[-1]) if unseen else None


def overlap(one: Event, other: Event) -> bool:
    """True for accesses to common bytes; a release of memory accesses the whole block."""
    first, second = int(one["address"]), int(other["address"])
    return first < second + size_of(other) and second < first + size_of(one)


def size_of(event: Event) -> int:
    return max(1, int(event["value"] if event["op"] == "free" else event["width"]))
