"""One sentence about a failure, from the facts of its record and, where it was replayed, its steps.

The sentence names the threads, the memory and the places. It is true of each failure of its kind;
texts that only some failures have are left out of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.harness.causes.missing import short_place
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.race import Access
from pulsar_ml.wording import counted

MOST_CHARACTERS = 240  # of a sentence
BLOCK = re.compile(
    r"(?P<who>.*): (use after free|double free|out of bounds|leak) at byte (?P<byte>-?\d+) of a "
    r"block of (?P<size>\d+), allocated at (?P<allocated>.*?)"
    r"(, freed by thread (?P<freer>-?\d+) at (?P<freed>.*))?"
)
ASSERTION = re.compile(r"(.*/)?(?P<place>[^/\s]+:\d+): .*?\bassertion (?P<assertion>.+)")


def sentence_of(
    record: Failure | ReplayRecord | None,
    invariant: str,
    message: str,
    *,
    location: str = "",
    weak: str = "",
    stale: str = "",
) -> str:
    """Return the sentence about a violation; ``record`` is None when it cannot be read.

    ``location`` is the name of the memory in question, ``weak`` the access whose order is too weak
    ("store relaxed at queue.h:14"), and ``stale`` a read of an old value ("thread 1 read an old
    value of y at dekker.cpp:36"); each is "" if unknown.
    """
    if isinstance(record, Failure):
        text = SENTENCES.get(record.kind, other)(record, location)
    else:
        text = first_clause(f"{invariant}: {message}")
    if weak and isinstance(record, Failure) and record.kind == "data race":
        text = text.partition(": ")[0]  # the places of both accesses are in the drawing
    text += f", after {stale}" if stale else ""
    text += f": {weak}" if weak else ""
    text = " ".join(text.split())
    text = text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
    return text[:1].upper() + text[1:]


def of_race(failure: Failure, location: str) -> str:
    race = failure.race
    if race is None:
        return other(failure, location)
    memory = location or "one memory location"
    first, second = sorted((race.first.thread, race.second.thread))
    who = f"threads {first} and {second} race on {memory}"
    return f"{who}: {access_text(race.first)}, {access_text(race.second)}"


def access_text(access: Access) -> str:
    what = "free" if access.what.startswith("release of") else access.what.partition(" of ")[0]
    return f"{what} at {short_place(access.place)}"


def of_block(failure: Failure, location: str) -> str:
    match = BLOCK.fullmatch(failure.message)
    if match is None:
        return other(failure, location)
    place = f" at {short_place(failure.where[0])}" if failure.where else ""
    allocated = short_place(match["allocated"])
    if failure.kind == "leak":
        return f"memory allocated at {allocated} is never freed"
    if failure.kind == "out of bounds":
        block = f"a block of {counted(int(match['size']), 'byte')}"
        return (
            f"{match['who']} accesses byte {match['byte']} of {block}{place}: it is of {allocated}"
        )
    does = "frees" if failure.kind == "double free" else "uses"
    text = f"{match['who']} {does} {location or f'a block of {allocated}'}{place}"
    if not match["freed"]:
        return f"{text} after its release"
    return f"{text}: thread {match['freer']} freed it at {short_place(match['freed'])}"


def of_answers(failure: Failure, location: str) -> str:
    return f"no order of the calls explains the answers: {first_clause(failure.message)}"


def of_assertion(failure: Failure, location: str) -> str:
    match = ASSERTION.fullmatch(failure.message)
    if match is None:
        return other(failure, location)
    return f"assertion {match['assertion']} at {match['place']}"


def other(failure: Failure, location: str) -> str:
    name = f"{failure.kind} {failure.rule}" if failure.rule else failure.kind
    return first_clause(f"{name}: {failure.message}")


def first_clause(text: str) -> str:
    return text.partition("; ")[0]


SENTENCES: dict[str, Callable[[Failure, str], str]] = {
    "data race": of_race,
    "assertion": of_assertion,
    WRONG_ANSWERS: of_answers,
    **dict.fromkeys(("use after free", "double free", "out of bounds", "leak"), of_block),
}
