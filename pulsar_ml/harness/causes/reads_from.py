"""The stores that a thread read behind a step of another thread: where the two could have met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]

READS = ("load", "rmw", "cas")
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
