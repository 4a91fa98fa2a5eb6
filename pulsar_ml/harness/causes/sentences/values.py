"""Sentences on a failed assertion, invariant or final check: the values it read, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.causes.reads_from import WRITES, lost_update, overlap
from pulsar_ml.harness.causes.sentences.steps import Steps
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
            yield from update_sentences(steps, value.writer)


def is_own(steps: Steps, value: Value, thread: int | None) -> bool:
    """True when the reading thread stored the value, and no other one stored at its address."""
    if value.step is None or value.writer is None or steps.thread(value.writer) != thread:
        return False
    return all(
        steps.thread(number) == thread
        for number, event in enumerate(steps.events)
        if event["op"] in (*WRITES, "write") and overlap(event, value.event) and not event["failed"]
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


def update_sentences(steps: Steps, store: int | None) -> Iterator[str]:
    """The store that was overwritten unseen: another thread made it between a read and a store."""
    found = None if store is None else lost_update(steps.events, store)
    if store is None or found is None:
        return
    read, unseen = found
    # A plain write has no value in the steps.
    plain = steps.events[unseen]["op"] == "write"
    what = "wrote there" if plain else f"stored {steps.value(unseen)}"
    yield (
        f"between its read of {steps.name(store) or 'the location'} at {steps.at(read)} and its "
        f"store at {steps.at(store)}, thread {steps.thread(unseen)} {what} at {steps.at(unseen)}: "
        f"that update is lost"
    )
