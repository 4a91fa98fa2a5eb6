"""The state of an execution behind one of its steps, as far as the trace knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.replays.essence import last_change
from pulsar_ml.harness.search.lanes import Places, is_left_out, signed
from pulsar_ml.harness.search.symbols import FIRST_INTERPRETED, interpreted_value
from pulsar_ml.harness.subjects.program import Program, call_text
from pulsar_ml.harness.subjects.subject import Subject

Event = Mapping[str, Any]

MOST_LOCATIONS = 20


def state_lines(
    trace: Sequence[dict[str, Any]], number: int, program: Program, subject: Subject, names: Names
) -> list[str]:
    """Describe the state behind step ``number``, counted from 1: threads, locks, locations."""
    own = [index for index, event in enumerate(trace) if int(event["thread"]) >= 0]
    end = own[number - 1] + 1
    places = Places(trace)
    numbers = {index: place + 1 for place, index in enumerate(own)}
    return [
        f"behind step {number} of {len(own)}:",
        *threads(trace, end, program, subject, places, numbers),
        *locks(trace[:end], names, numbers),
        *locations(trace, end, names, places, numbers),
    ]


def threads(
    trace: Sequence[Event],
    end: int,
    program: Program,
    subject: Subject,
    places: Places,
    numbers: Mapping[int, int],
) -> list[str]:
    """Say where each thread is, and which step it takes next."""
    lines = []
    for thread in sorted({int(event["thread"]) for event in trace} - {-1}):
        mine = [index for index in numbers if int(trace[index]["thread"]) == thread]
        done = [index for index in mine if index < end]
        where = "has not begun"
        if done and trace[done[-1]]["op"] == "return":
            where = "is between two operations"
        elif done:
            place = next(
                (places.of(trace[at]) for at in reversed(done) if trace[at]["op"] != "call"), ""
            )
            call = int(trace[done[-1]]["call"])
            text = f"code that {'the test' if program.is_test else 'an operation'} started"
            if thread < len(program.threads):
                text = call_text(program, thread, call, subject)
            where = f"is in {text}" + (f", at {place}" if place else "")
        rest = [index for index in mine if index >= end]
        following = f"goes on with step {numbers[rest[0]]}" if rest else "takes no more step"
        lines.append(f"  thread {thread} {where}; {following}")
    return lines


def locks(trace: Sequence[Event], names: Names, numbers: Mapping[int, int]) -> list[str]:
    """Name the locks that a thread holds."""
    held: dict[tuple[int, int], int] = {}
    for index, event in enumerate(trace):
        key = int(event["address"]), int(event["thread"])
        if event["op"] == "lock" and not event["failed"]:
            held[key] = index
        elif event["op"] == "unlock":
            held.pop(key, None)
    return [
        f"  lock {names.of(trace[index])}: held by thread {thread} since step {numbers[index]}"
        for (_, thread), index in held.items()
        if thread >= 0
    ]


def locations(
    trace: Sequence[dict[str, Any]],
    end: int,
    names: Names,
    places: Places,
    numbers: Mapping[int, int],
) -> list[str]:
    """Name the values of the locations that the table shows, and the steps that wrote them."""
    last: dict[int, int] = {}
    for index in range(end):
        event = trace[index]
        shown = event["op"] in ("load", "store", "rmw", "cas", "flush", "read", "write")
        if shown and int(event["thread"]) >= 0 and not is_left_out(event, names, trace):
            last[int(event["address"])] = index
    lines = []
    for address, seen in list(last.items())[:MOST_LOCATIONS]:
        written = last_change(trace, address, end)
        name = names.of(trace[seen])
        if written is None:
            event = trace[seen]
            if event["op"] == "load":
                lines.append(f"  {name} = {value_of(event, names)}, which no step wrote")
            continue
        event = trace[written]
        step = f"step {numbers[written]}" if written in numbers else "the main thread"
        by = f"by {step}, {places.of(event)}" if written in numbers else f"by {step}"
        value = f" = {value_of(event, names)}," if event["op"] != "write" else ":"
        lines.append(f"  {name}{value} written {by}")
    if len(last) > MOST_LOCATIONS:
        lines.append(f"  and {len(last) - MOST_LOCATIONS} more locations")
    return lines


def value_of(event: Event, names: Names) -> str:
    if int(event["pc"]) >= FIRST_INTERPRETED:
        return interpreted_value(int(event["value"]))
    return names.value(signed(event["value"]))
