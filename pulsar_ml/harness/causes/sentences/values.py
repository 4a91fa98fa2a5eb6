"""Sentences on a failed assertion, invariant or final check: the values it read, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.causes.reads_from import READS
from pulsar_ml.harness.causes.sentences.steps import WRITES, Steps
from pulsar_ml.harness.replays.ending import Value, values_of
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.symbols import own_pc


def value_sentences(failure: Failure, again: Replayed, steps: Steps) -> Iterator[str]:
    """The values that the failing check read last, and the updates that they lack.

    Stale ones are left to the sentences on stale reads. Values say nothing when they are numbers
    without a name that no thread wrote, or when the reading thread alone wrote there.
    """
    for value in values_of(failure, again):
        said = value.writer is not None or bool(steps.names.known(value.event))
        said = said and not is_own(steps, value, again.thread)
        if said and (value.step is None or not value.event["stale"]):
            yield read_sentence(steps, value, again.thread)
            yield from lost_update(steps, value.writer)


def is_own(steps: Steps, value: Value, thread: int | None) -> bool:
    """True when the reading thread stored the value, and no other one stored at its address."""
    if value.step is None or value.writer is None or steps.thread(value.writer) != thread:
        return False
    return all(
        steps.thread(number) == thread
        for number, event in enumerate(steps.events)
        if event["address"] == value.event["address"]
        and event["op"] in WRITES
        and not event["failed"]
    )


def read_sentence(steps: Steps, value: Value, thread: int | None) -> str:
    who = "the final check" if value.step is None else f"thread {thread}"
    name = steps.names.known(value.event)
    number = steps.value_of(value.event)
    by = ""
    if value.writer is not None:
        writer = steps.thread(value.writer)
        whom = "itself" if writer == thread else f"thread {writer}"
        by = f", stored by {'the main thread' if writer < 0 else whom} at {steps.at(value.writer)}"
    read = f"{name} as {number}" if name else number
    return f"{who} read {read} at {steps.at_pc(own_pc(value.event['frames']))}{by}"


def lost_update(steps: Steps, store: int | None) -> Iterator[str]:
    """The store that was overwritten unseen: another thread made it between a read and a store."""
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
