"""Sentences on threads that wait for ever: the cycle of a deadlock, and a lost wake-up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_ml.harness.causes.sentences.steps import Steps
from pulsar_ml.wording import counted

KIND = re.compile(r"thread (?P<thread>\d+) waits for (?P<kind>[a-z'-]+(?: [a-z]+)*)")
OF_END = re.compile(r"thread (\d+) waits for the end of thread (\d+)")


@dataclass(frozen=True, slots=True)
class Wait:
    """One waiting thread: the place, the address of the object, and the threads that hold it.

    Attributes:
        name: of the object; "" if it has none.
        holders: by thread the step that took the object; -1 for a thread whose end is awaited.
    """

    thread: int
    place: str
    address: int
    kind: str
    name: str
    holders: Mapping[int, int]


def wait_sentences(steps: Steps, raw: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on a deadlock, whose fields of EngineFailure are ``raw``."""
    waits = {wait.thread: wait for wait in waits_of(steps, raw)}
    cycle = cycle_of(waits)
    for thread in cycle or waits:
        wait = waits[thread]
        if is_condition(wait):
            yield from condition_texts(steps, wait)
        elif thread in wait.holders:
            yield own_text(steps, wait)
        else:
            yield from wait_texts(steps, wait)
    if len(cycle) > 1:
        threads = " and ".join(f"thread {thread}" for thread in sorted(cycle))
        yield f"{threads} wait for each other: a cycle"


def waits_of(steps: Steps, raw: Mapping[str, Any]) -> Iterator[Wait]:
    message = str(raw["message"])
    kinds = {int(found["thread"]): found["kind"] for found in KIND.finditer(message)}
    joins = {int(thread): int(other) for thread, other in OF_END.findall(message)}
    for thread, pc in raw["waiting"].items():
        address = int(raw["waits_for"].get(thread, 0))
        place = steps.at_pc(int(pc)) if pc else ""
        if thread in joins:
            yield Wait(thread, place, 0, "thread end", "", {joins[thread]: -1})
            continue
        if not address:
            continue
        holders = {
            other: held[address]
            for other in steps.own
            if other >= 0 and address in (held := steps.held(other, len(steps.events)))
        }
        kind = kinds.get(thread, "").removesuffix(" held by thread")
        yield Wait(thread, place, address, kind, steps.name_at(address, int(pc)), holders)


def is_condition(wait: Wait) -> bool:
    return wait.kind.startswith(("condition", "futex"))


def cycle_of(waits: Mapping[int, Wait]) -> list[int]:
    """The threads of a cycle of waits in the order of the waits; empty if there is none."""
    for first in waits:
        way = [first]
        while (wait := waits.get(way[-1])) is not None and len(wait.holders) == 1:
            (holder,) = wait.holders
            if holder in way:
                return way[way.index(holder) :]
            way.append(holder)
    return []


def object_text(wait: Wait) -> str:
    return wait.name or ("a lock" if wait.kind in ("", "mutex") else f"a {wait.kind}")


def own_text(steps: Steps, wait: Wait) -> str:
    """A thread that waits for a lock of its own, as a condition of Python makes a thread wait."""
    taken = steps.at(wait.holders[wait.thread])
    return (
        f"thread {wait.thread} waits at {wait.place or 'an unknown place'} for {object_text(wait)} "
        f"that it took itself at {taken}, until another thread releases it, as the wait of a "
        f"condition does: no thread did"
    )


def wait_texts(steps: Steps, wait: Wait) -> Iterator[str]:
    """The locks that a thread holds, the object that it waits for, and the threads that hold it."""
    at = f" at {wait.place}" if wait.place else ""
    own = [
        f"{steps.name(number) or 'a lock'}, locked at {steps.at(number)},"
        for address, number in steps.held(wait.thread, len(steps.events)).items()
        if address != wait.address
    ]
    held = f"holds {' and '.join(own)} and " if own else ""
    if wait.kind == "thread end":
        (other,) = wait.holders
        yield f"thread {wait.thread} {held}waits{at} for the end of thread {other}"
        return
    by = " and ".join(
        f"thread {other} holds since {steps.at(number)}" for other, number in wait.holders.items()
    )
    yield (
        f"thread {wait.thread} {held}waits for {object_text(wait)}{at}"
        + (f", which {by}" if by else "")
    )


def condition_texts(steps: Steps, wait: Wait) -> Iterator[str]:
    """The wake-ups of what a thread waits for: those that came before its wait woke nobody."""
    own = steps.own.get(wait.thread, [])
    began = own[-1] if own else -1
    at = f" at {wait.place}" if wait.place else ""
    wakes = [
        number
        for number, event in enumerate(steps.events)
        if event["op"] == "wake" and int(event["address"]) == wait.address
    ]
    early = [one for one in wakes if one < began and not int(steps.events[one]["value"])]
    later = [one for one in wakes if one > began]
    name = object_text(wait)
    yield from wait_texts(steps, wait)
    if early and not later:
        yield (
            f"the wake-up of {name} at {steps.at(early[-1])} by thread {steps.thread(early[-1])} "
            f"found no thread waiting, and thread {wait.thread} began to wait{at} after it: "
            "the wake-up is lost"
        )
    elif later:
        yield (
            f"{counted(len(later), 'wake-up')} of {name} came after thread {wait.thread} began to "
            f"wait, the last at {steps.at(later[-1])}, and woke other threads"
        )
    elif not wakes:
        yield f"no thread woke {name} in this execution"


def loop_sentences(steps: Steps, raw: Mapping[str, Any]) -> Iterator[str]:
    """The reads of threads that loop on what nobody changes."""
    for thread, pc in raw["waiting"].items():
        if pc:
            continue  # it is blocked
        loads = [one for one in steps.own.get(thread, ()) if steps.events[one]["op"] == "load"]
        if len(loads) < 2 or steps.at(loads[-1]) != steps.at(loads[-2]):
            continue
        read = loads[-1]
        source = steps.source(read)
        name = steps.name(read) or "a location"
        by = (
            f", which thread {steps.thread(source)} stored last at {steps.at(source)}"
            if source is not None
            else ""
        )
        yield (
            f"thread {thread} reads {name} as {steps.value(read)} again and again at "
            f"{steps.at(read)}{by}"
        )
