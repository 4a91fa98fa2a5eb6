"""Sentences on a failed assertion, invariant or final check: the values read last, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.causes.sentences.steps import READS, WRITES, Steps

MOST_READS = 3  # locations


def value_sentences(steps: Steps, thread: int) -> Iterator[str]:
    """The locations that the failing thread read last, and the threads that stored their values.

    The final check is of thread -1.
    """
    seen: set[int] = set()
    for number in reversed(steps.own.get(thread, [])):
        event = steps.events[number]
        if event["op"] in ("call", "return") and seen:
            return
        address = int(event["address"])
        if event["op"] not in READS or address in seen or not shared(steps, address):
            continue
        seen.add(address)
        if (event["op"] == "load" or event["failed"]) and not event["stale"]:
            yield read_sentence(steps, number, thread)
            yield from lost_update(steps, number)
        if len(seen) == MOST_READS:
            return


def shared(steps: Steps, address: int) -> bool:
    """True for a location that two threads access, of which one stores."""
    events = [event for event in steps.events if int(event["address"]) == address]
    threads = {event["thread"] for event in events if event["op"] in (*READS, *WRITES)}
    return len(threads) > 1 and any(event["op"] in WRITES for event in events)


def read_sentence(steps: Steps, number: int, thread: int) -> str:
    source = steps.source(number)
    name = steps.name(number)
    event = steps.events[number]
    before = int(event["before"]) if event["op"] in ("rmw", "cas") else None
    value = steps.value(number) if before is None else str(before)
    who = f"thread {thread}" if thread >= 0 else "the final check"
    by = ""
    if source is not None:
        writer = steps.thread(source)
        whom = "itself" if writer == thread else f"thread {writer}"
        if writer < 0:
            whom = "the main thread"
        by = f", stored by {whom} at {steps.at(source)}"
    read = f"{name} as {value}" if name else value
    return f"{who} last read {read} at {steps.at(number)}{by}"


def lost_update(steps: Steps, read: int) -> Iterator[str]:
    """The store that was overwritten unseen: another thread made it between a read and a store."""
    store = steps.source(read)
    if store is None or steps.events[store]["op"] != "store":
        return
    thread, address = steps.thread(store), steps.events[store]["address"]
    own = [
        number
        for number in steps.between(-1, store, thread)
        if steps.events[number]["address"] == address and steps.events[number]["op"] in READS
    ]
    if not own:
        return
    between = [
        number
        for number in range(own[-1] + 1, store)
        if steps.events[number]["address"] == address
        and steps.events[number]["op"] in WRITES
        and not steps.events[number]["failed"]
        and steps.thread(number) != thread
    ]
    if between:
        yield (
            f"between its read of {steps.name(store) or 'the location'} at {steps.at(own[-1])} and "
            f"its store at {steps.at(store)}, thread {steps.thread(between[-1])} stored "
            f"{steps.value(between[-1])} at {steps.at(between[-1])}: that update is lost"
        )
