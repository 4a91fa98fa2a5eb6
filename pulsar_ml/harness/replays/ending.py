"""The last row of a table of steps: the check that failed, the values that it read, who wrote them.

Values are those of atomic operations and of plain reads whose memory the engine sees. Nothing is
said of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.replays.essence import last_change
from pulsar_ml.harness.search.failure import AT_LOCATIONS, WRONG_ANSWERS, Failure, Replayed
from pulsar_ml.harness.search.lanes import Places, signed
from pulsar_ml.harness.search.symbols import (
    FIRST_INTERPRETED,
    describe_pc,
    interpreted_value,
    own_pc,
)

Event = Mapping[str, Any]

MARK = "="  # begins the row
MOST_VALUES = 4
READS = ("load", "read")
INVARIANT, ASSERTION = "invariant", "assertion"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the failing check read.

    ``step`` is the index of the read in the trace, None for one of the final check; ``writer`` is
    that of the newest write before it, None when no thread wrote it.
    """

    event: Event
    step: int | None
    writer: int | None


def values_of(failure: Failure, again: Replayed) -> list[Value]:
    """Return the last values that the failing check read, in the order of the reads."""
    trace = again.trace
    if failure.kind not in (INVARIANT, ASSERTION) or again.thread is None:
        return []
    if again.thread < 0:
        kept = newest(reversed(again.checked))
        return [
            Value(event, None, last_change(trace, int(event["address"]), len(trace)))
            for event in reversed(kept)
        ]
    steps = [index for index, event in enumerate(trace) if event["thread"] == again.thread]
    if failure.kind == INVARIANT and steps:  # all that the operation read
        call = trace[steps[-1]]["call"]
        steps = [index for index in steps if trace[index]["call"] == call]
    reads: list[int] = []
    for index in reversed(steps):
        if trace[index]["op"] in READS:
            reads.append(index)
        elif failure.kind == ASSERTION:
            break  # what the thread read before its last other step is of earlier lines
    names = Names(trace)
    reads = [index for index in reads if known(trace[index]) and names.shared(trace[index])]
    chosen = {id(event) for event in newest(trace[index] for index in reads)}
    return [
        Value(trace[index], index, writer_of(trace, index))
        for index in sorted(reads)
        if id(trace[index]) in chosen
    ]


def known(event: Event) -> bool:
    """Return True if the value of a read is known; of an object of Python only the type is."""
    if int(event["pc"]) >= FIRST_INTERPRETED:
        text = interpreted_value(int(event["value"])) if event["value"] else "nothing"
        return event["op"] == "load" and text != "nothing" and not text.startswith("<")
    return event["op"] == "load" or bool(event["before"])


def newest(events: Iterator[Event] | Any) -> list[Event]:
    """Return the first event at each address, at most MOST_VALUES."""
    found: dict[int, Event] = {}
    for event in events:
        found.setdefault(int(event["address"]), event)
        if len(found) == MOST_VALUES:
            break
    return list(found.values())


def writer_of(trace: Sequence[Event], read: int) -> int | None:
    """Return the step whose value a read found; None for a value from before the threads."""
    origin = int(trace[read]["from"])
    if origin >= 0 or trace[read]["stale"]:
        return origin if origin >= 0 else None
    return last_change(trace, int(trace[read]["address"]), read)


def ending(
    failure: Failure,
    again: Replayed,
    values: Sequence[Value],
    numbers: Mapping[int, int],
    names: Names,
    sentence: str = "",
) -> list[str]:
    """Return the last row and the values below it.

    ``numbers`` are the steps' numbers in the table; ``sentence`` is the invariant's.
    """
    places = Places(again.trace)
    return [
        f"{MARK} {head(failure, again, names, sentence)}",
        *(f"  {value_text(value, again.trace, numbers, names, places)}" for value in values),
    ]


def head(failure: Failure, again: Replayed, names: Names, sentence: str) -> str:
    if failure.kind == INVARIANT:
        check = "the final check"
        if again.thread is not None and again.thread >= 0:
            check = f"the check behind thread {again.thread}'s operation"
        broken = f"{failure.rule} ({sentence})" if sentence else failure.rule
        return f"{check} fails: {broken or 'an invariant'}: {failure.message}"
    if failure.kind == WRONG_ANSWERS:
        return f"the answers are wrong: {failure.message.partition(chr(10))[0]}"
    if failure.kind in AT_LOCATIONS and again.trace:
        location = names.known(again.trace[-1])
        return f"{failure.kind}{' at ' + location if location else ''}"
    if failure.kind == ASSERTION:
        return failure.message
    if failure.where:
        return f"{failure.kind} at {failure.where[0]}"
    return f"{failure.kind}: {failure.message}"


def value_text(
    value: Value, trace: Sequence[Event], numbers: Mapping[int, int], names: Names, places: Places
) -> str:
    event = value.event
    if int(event["pc"]) >= FIRST_INTERPRETED:
        number = interpreted_value(int(event["value"]))
    else:
        number = names.value(signed(event["value"]))
    name = names.of(event)
    if name in names.numbers.values() and value.step is None and value.writer is None:
        function = describe_pc(own_pc(event["frames"]))
        name = f"{name}, read in {function},"
    stale = ""
    if value.step is not None and event["stale"]:
        stale = "; a newer value was there"
    if value.writer is None:
        return f"{name} was {number}, which no step wrote{stale}"
    written = trace[value.writer]
    who = f"thread {written['thread']}" if int(written["thread"]) >= 0 else "the main thread"
    step = f"at step {numbers[value.writer]} " if value.writer in numbers else ""
    return f"{name} was {number}, written {step}by {who} at {places.of(written)}{stale}"
