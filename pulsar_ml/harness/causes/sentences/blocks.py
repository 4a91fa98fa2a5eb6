"""Sentences on a block of memory: its allocation, release and use, and how it was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pulsar_ml.harness.causes.reads_from import WRITES
from pulsar_ml.harness.causes.sentences.steps import Steps
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.race import stack_of


def block_sentences(failure: Failure, steps: Steps, raw: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on a use after free, a double free or a leak, whose EngineFailure is ``raw``."""
    start = int(raw["address"]) - int(raw["offset"])
    allocated = last_of(steps, "allocate", start)
    if allocated is None:
        return
    freed = last_of(steps, "free", start)
    if freed is not None and freed < allocated:
        freed = None
    name = steps.name(allocated) or "the block"
    yield f"{name} was allocated by {who(steps, allocated)}{stack_text(steps, allocated)}"
    if freed is not None:
        yield f"it was released by {who(steps, freed)}{stack_text(steps, freed)}"
    if failure.kind == "leak":
        yield from lost_address(steps, start, name)
        return
    user = int(raw["thread"])
    what = "released again" if failure.kind == "double free" else "used"
    if failure.where:
        yield f"it was {what} by {named(user)}{called_text(failure.where)}"
    yield from origin(steps, start, allocated, user)
    if freed is not None and user >= 0 and user != steps.thread(freed):
        own = steps.own.get(user, [])
        known = bool(own) and steps.known(freed, own[-1])
        order = "is ordered before" if known else "is not ordered before"
        yield f"the release by {who(steps, freed)} {order} this access of thread {user}"


def last_of(steps: Steps, op: str, start: int) -> int | None:
    """The last step of this kind at a block that begins there."""
    return next(
        (
            number
            for number in reversed(range(len(steps.events)))
            if steps.events[number]["op"] == op and int(steps.events[number]["address"]) == start
        ),
        None,
    )


def named(thread: int) -> str:
    return f"thread {thread}" if thread >= 0 else "the main thread"


def who(steps: Steps, number: int) -> str:
    return named(steps.thread(number))


def stack_text(steps: Steps, number: int) -> str:
    return called_text(stack_of(steps.events[number]["frames"]))


def called_text(stack: tuple[str, ...]) -> str:
    return f" at {', called from '.join(stack)}" if stack else ""


def origin(steps: Steps, start: int, allocated: int, user: int) -> Iterator[str]:
    """The atomic location from which the user's thread had the address."""
    for number in reversed(list(steps.between(allocated, len(steps.events), user))):
        event = steps.events[number]
        if event["op"] in WRITES and int(event["value"]) == start and event["op"] == "store":
            return
        read = int(event["before"] if event["op"] in ("rmw", "cas") else event["value"])
        if event["op"] not in ("load", "rmw", "cas") or read != start:
            continue
        source = steps.source(number)
        by = (
            f", where thread {steps.thread(source)} had put it at {steps.at(source)}"
            if source is not None
            else ""
        )
        name = steps.name(number) or "an atomic location"
        yield f"thread {user} read its address from {name} at {steps.at(number)}{by}"
        return


def lost_address(steps: Steps, start: int, name: str) -> Iterator[str]:
    """The store that replaced the last address of a leaked block in an atomic location."""
    holders: dict[int, int] = {}
    replaced: tuple[int, int] | None = None
    for number, event in enumerate(steps.events):
        if event["op"] not in ("store", "rmw", "cas") or event["failed"]:
            continue
        address = int(event["address"])
        if int(event["value"]) == start:
            holders[address] = number
        elif address in holders:
            replaced = holders.pop(address), number
    if holders or replaced is None:
        return
    put, over = replaced
    location = steps.name(put) or "an atomic location"
    yield (
        f"its address was put into {location} at {steps.at(put)}, and {who(steps, over)} replaced "
        f"it there at {steps.at(over)}: no atomic location has it since"
    )
