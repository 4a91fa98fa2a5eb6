"""Sentences on stale reads: the store that was read, the newer ones, and why they stayed unseen."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.causes.reads_from import WRITES, overlap
from pulsar_ml.harness.causes.sentences.races import learned_text, meetings
from pulsar_ml.harness.causes.sentences.steps import Steps
from pulsar_ml.harness.search.stale import stale_reads
from pulsar_ml.wording import counted

MOST_READS = 2
MOST_MISSED = 3  # stores that are named


def stale_sentences(steps: Steps) -> Iterator[str]:
    """Sentences on the last stale reads of the execution, in its order."""
    stale = {id(event) for event in stale_reads(steps.events)}
    reads = [number for number, event in enumerate(steps.events) if id(event) in stale]
    for read in reads[-MOST_READS:]:
        missed = missed_stores(steps, read)
        yield read_text(steps, read, missed)
        if not missed:
            continue
        unseen = missed[0]  # without it the thread did not see the newer ones either
        if steps.events[unseen]["op"] == "buffer":
            yield (
                f"{steps.text(unseen)} still stood in the buffer of thread {steps.thread(unseen)}, "
                f"which no other thread sees"
            )
            continue
        met = list(meetings(steps, unseen, read))
        yield from met
        yield from crossing(steps, unseen, read)
        yield learned_text(steps, unseen, read)


def missed_stores(steps: Steps, read: int) -> list[int]:
    """The newer stores of other threads that a read did not see; empty if they are not all known.

    Stores follow one another as in the execution, unless one went before others.
    """
    event = steps.events[read]
    source = int(event["from"])
    writes = [
        number
        for number in range(read)
        if steps.events[number]["op"] in WRITES
        and not steps.events[number]["failed"]
        and overlap(steps.events[number], event)
    ]
    if any(steps.events[number]["stale"] for number in writes):
        return []
    flushed = {int(one["from"]) for one in steps.events[:read] if one["op"] == "flush"}
    held = [
        number
        for number in writes
        if steps.events[number]["op"] == "buffer"
        and number not in flushed
        and steps.thread(number) != steps.thread(read)
    ]
    if held:
        return held
    newer = [number for number in writes if number > source]
    return newer if len(newer) == int(event["stale"]) else []


def read_text(steps: Steps, read: int, missed: list[int]) -> str:
    source = steps.source(read)
    value = f"read {steps.value(read)}"
    if source is not None:
        value += f" from {steps.text(source)}"
    if not missed:
        stale = int(steps.events[read]["stale"])
        behind = f" and missed {counted(stale, 'newer store')}" if stale else ""
        return f"{steps.text(read)} {value}{behind}"
    shown = [
        f"{steps.value(number)} by thread {steps.thread(number)} at {steps.at(number)}"
        for number in missed[:MOST_MISSED]
    ]
    more = f" and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
    return (
        f"{steps.text(read)} {value} and missed {counted(len(missed), 'newer store')}: "
        f"{', '.join(shown)}{more}"
    )


def crossing(steps: Steps, unseen: int, read: int) -> Iterator[str]:
    """Two threads that each store and then miss the other's store: release and acquire allow it."""
    reader, writer = steps.thread(read), steps.thread(unseen)
    for load in steps.between(unseen, len(steps.events), writer):
        event = steps.events[load]
        if event["op"] != "load" or event["address"] == steps.events[read]["address"]:
            continue
        source = int(event["from"])
        own = [
            number
            for number in steps.between(-1, read, reader)
            if steps.events[number]["op"] in WRITES
            and not steps.events[number]["failed"]
            and overlap(steps.events[number], event)
        ]
        if own and own[-1] > source:
            yield (
                f"thread {reader} stored at {steps.at(own[-1])} before it read at "
                f"{steps.at(read)}, and thread {writer} stored at {steps.at(unseen)} before it "
                f"read at {steps.at(load)}: each missed the other's store, which only sequential "
                f"consistency of both forbids"
            )
            return
