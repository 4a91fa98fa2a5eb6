"""Seeded traces of operations, as the lines that both sides run."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tools.conformance import acks, delayed, manager, pending

KEYS, PLACES, NAMES, REQUESTS = 12, 8, "abcdefghijkl", 6

Trace = list[str]


def caches(random: Random, length: int) -> Trace:
    """Two range caches over one removal queue. Time goes on by a tick an operation."""
    trace = [f"new caches {random.choice((0, 1, 2, 5))} {random.randrange(2)}"]
    now = 1000
    for _ in range(length):
        now += 1
        cache, key, place = random.randrange(2), random.randrange(KEYS), random.randrange(PLACES)
        last = key + random.randrange(5)
        operation = random.choices(
            ["put", "get", "dispatch", "release", "expect", "range", "exists", "remove", "clear",
             "size", "expire", "free"],
            [30, 10, 16, 12, 6, 4, 2, 4, 1, 3, 6, 6],
        )[0]  # fmt: skip
        trace.append(
            {
                "put": f"put {cache} {key} {8 + key} {random.randrange(4)} {now}",
                "dispatch": f"dispatch {cache} {key} {place}",
                "release": f"release {place}",
                "expect": f"expect {place}",
                "range": f"range {cache} {key} {last}",
                "remove": f"remove {cache} {key} {last} {random.randrange(2)}",
                "clear": f"clear {cache}",
                "size": f"size {cache}",
                "expire": f"expire {now - random.randrange(40)} {now}",
                "free": f"free {random.randrange(1, 80)} {now}",
            }.get(operation, f"{operation} {cache} {key}")
        )
    return trace


def cursors(kind: str) -> Callable[[Random, int], Trace]:
    """Cursors that come, go and move; a name is added once until it is removed."""

    def trace_of(random: Random, length: int) -> Trace:
        trace = [f"new {kind}"]
        names: set[str] = set()
        span = random.choice((3, 8, 30))
        known = NAMES[: random.choice((4, 8, 12))]
        removals, updates = random.choice((0.05, 0.2)), random.choice((0.4, 0.7))
        questions = ["slowest", "size"] if kind == "heap" else ["slowest", "size", "rank"]
        for _ in range(length):
            name, at = random.choice(known), random.randrange(span)
            if name not in names:
                names.add(name)
                trace.append(f"add {name} {at}")
            elif random.random() < removals:
                names.discard(name)
                trace.append(f"remove {name}")
            elif random.random() < updates:
                trace.append(f"update {name} {at}")
            else:
                question = random.choice(questions)
                trace.append(f"rank {name}" if question == "rank" else question)
        return trace

    return trace_of


def limiter(random: Random, length: int) -> Trace:
    """Requests for permits and their release, in ticks of the timeout."""
    maximum = random.choice((-1, 0, 10, 10, 10, 20))
    setting = f"{maximum} {random.randrange(1, 5)} {random.choice((-1, 0, 3, 6))}"
    trace = [f"new limiter {setting} {random.randrange(2)}"]
    number = 0
    for _ in range(length):
        operation = random.choices(["acquire", "release", "pass"], [5, 5, 2])[0]
        if operation == "acquire":
            number += 1
            trace.append(f"acquire {number} {random.choice((0, 1, 3, 5, 8, 15, 30))}")
        elif operation == "release" and number:
            trace.append(f"release {random.randrange(max(1, number - REQUESTS), number + 1)}")
        else:
            trace.append(f"pass {random.randrange(4)}")
    return trace


CURSORS = ("new active", "new sorted", "new heap")

SUBJECTS: dict[str, Callable[[Random, int], Trace]] = {
    "caches": caches,
    "active": cursors("active"),
    "sorted": cursors("sorted"),
    "heap": cursors("heap"),
    "limiter": limiter,
    "manager": manager.trace,
    "pending": pending.trace,
    "delayed": delayed.trace,
    "acks": acks.trace,
}


def is_allowed(trace: Trace) -> bool:
    """False for a trace that adds a name twice, or moves one that is not there."""
    names: set[str] = set()
    for operation, *words in (line.split(" ") for line in trace[1:]):
        if operation == "add" and trace[0] in CURSORS:
            if words[0] in names:
                return False
            names.add(words[0])
        elif operation == "remove" and trace[0] in CURSORS:
            names.discard(words[0])
        elif operation in ("update", "rank") and words[0] not in names:
            return False
    return True


def trace_of(subject: str, seed: int, length: int) -> Trace:
    return SUBJECTS[subject](Random(f"{subject} {seed}"), length)
