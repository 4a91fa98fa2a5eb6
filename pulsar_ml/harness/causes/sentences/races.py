"""Sentences on a data race: how its threads synchronised last, and where they should have met."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.causes.reads_from import hand_overs, overlap
from pulsar_ml.harness.causes.sentences.steps import (
    ACCESSES,
    ACQUIRES,
    RELEASES,
    Steps,
)
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.symbols import describe_pc, own_pc

MOST_MEETINGS = 2


def race_sentences(failure: Failure, steps: Steps) -> Iterator[str]:
    """Sentences on the data race in which the execution ended; none if its steps are not known."""
    pair = race_pair(failure, steps)
    if pair is None:
        return
    first, second = pair
    met = list(meetings(steps, first, second))
    yield from met
    yield from lock_text(steps, first, second)
    yield learned_text(steps, first, second)
    if not met:
        reader, writer = steps.thread(second), steps.thread(first)
        yield (
            f"thread {writer} stored nothing after {steps.text(first)} that thread {reader} read "
            f"before {steps.text(second)}"
        )


def race_pair(failure: Failure, steps: Steps) -> tuple[int, int] | None:
    """The numbers of both accesses: the last step, and the unordered one of the other thread."""
    race = failure.race
    if race is None or not steps.events:
        return None
    second = len(steps.events) - 1
    last = steps.events[second]
    if steps.thread(second) != race.second.thread or last["op"] not in ACCESSES:
        return None
    unordered = [
        number
        for number in steps.between(-1, second, race.first.thread)
        if steps.events[number]["op"] in ACCESSES
        and overlap(steps.events[number], last)
        and not steps.known(number, second)
        and {steps.events[number]["op"], last["op"]} - {"read", "load"}
    ]
    there = [one for one in unordered if place_at(steps, one) == race.first.place]
    return (there[-1], second) if there else None


def place_at(steps: Steps, number: int) -> str:
    return describe_pc(own_pc(steps.events[number]["frames"]))


def learned_text(steps: Steps, first: int, second: int) -> str:
    """How the thread of ``second`` last came to know of the other's steps, all before ``first``."""
    reader, writer = steps.thread(second), steps.thread(first)
    step = steps.last_learned(reader, writer, second)
    behind = f"{steps.text(first)} came after that"
    if step is None:
        start = steps.start_of(writer)
        if start is not None and steps.thread(start) == reader:
            return (
                f"thread {reader} started thread {writer} at {steps.at(start)}, and has learned of "
                f"none of its steps since"
            )
        return f"thread {reader} has learned of no step of thread {writer}"
    start = steps.start_of(reader)
    if step not in steps.previous and start is not None:
        origin = steps.thread(start)
        if origin == writer:
            return (
                f"thread {reader} last learned of thread {writer} when thread {writer} started it "
                f"at {steps.at(start)}: {behind}"
            )
        if steps.knows(start, writer) == steps.knows(step, writer):
            return (
                f"thread {reader} last learned of thread {writer} when thread {origin} started it "
                f"at {steps.at(start)}: {behind}, or thread {origin} did not know it"
            )
    sent = steps.released(writer, steps.knows(step, writer), step)
    if sent is None:
        return f"thread {reader} last learned of thread {writer} by {steps.text(step, order=True)}"
    return (
        f"thread {reader} last learned of thread {writer} by {steps.text(step, order=True)}, "
        f"behind {steps.text(sent, order=True)}: {behind}"
    )


def meetings(steps: Steps, unseen: int, victim: int) -> Iterator[str]:
    """Sentences on stores that the victim's thread read, and that did not synchronise with it.

    A store of the other thread behind ``unseen`` would have made it known, had the store released
    and the load acquired.
    """
    said: set[str] = set()
    for store, load in hand_overs(steps.events, unseen, victim):
        text = meeting_text(steps, unseen, store, load, victim)
        if text and text not in said and len(said) < MOST_MEETINGS:
            said.add(text)
            yield text


def meeting_text(steps: Steps, unseen: int, store: int, load: int, victim: int) -> str:
    """The orders of a store and the load that read it, if one is missing; else ""."""
    releases = steps.order(store) in RELEASES or steps.fenced(unseen, store, RELEASES)
    acquires = steps.order(load) in ACQUIRES or steps.fenced(load, victim, ACQUIRES)
    if store == unseen:
        releases = steps.order(store) in RELEASES
    if load == victim:
        acquires = steps.order(load) in ACQUIRES
    wrote, read = steps.text(store), steps.text(load)
    match releases, acquires:
        case True, True:
            return ""
        case False, True:
            orders = f"{wrote} is {steps.order(store)} and {read}, which read it, acquires"
        case True, False:
            orders = f"{wrote} releases and {read}, which read it, is {steps.order(load)}"
        case _:
            orders = f"{wrote} is {steps.order(store)} and so is {read}, which read it"
            if steps.order(store) != steps.order(load):
                orders = (
                    f"{wrote} is {steps.order(store)} and {read}, which read it, is "
                    f"{steps.order(load)}"
                )
    return f"{orders}: they do not synchronise"


def lock_text(steps: Steps, first: int, second: int) -> Iterator[str]:
    """The locks of both threads at their accesses, if one of them held any."""
    mine, others = steps.held(steps.thread(second), second), steps.held(steps.thread(first), first)
    if not mine and not others:
        return
    parts = []
    for number, locks in ((first, others), (second, mine)):
        names = [f"{steps.name(at)}, locked at {steps.at(at)}," for at in locks.values()]
        held = f"held {' and '.join(names)}".rstrip(",") if names else "held no lock"
        parts.append(f"thread {steps.thread(number)} {held}")
    yield f"at the two accesses {' and '.join(parts)}"
