"""Draws small histories of every shipped model, most of them legal or nearly so."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pulsar_ml.harness.histories.history import History, Operation, history_of
from tests.linearize.fuzzing.specifications import ANY, Judge, Row

Draw = random.Random


def small(draw: Draw) -> int:
    return draw.randrange(3)


def maybe(draw: Draw) -> int | None:
    return draw.choice((None, 0, 1, 2))


def truth(draw: Draw) -> bool:
    return draw.random() < 0.5


def unsure(draw: Draw) -> bool | None:
    return draw.choice((True, False, None))


def nothing(draw: Draw) -> None:
    return None


def some(draw: Draw) -> list[int]:
    return sorted(draw.sample(range(3), draw.randrange(3)))


# For each model its operations: the arguments and the result.
DRAWS: dict[str, list[tuple[str, int, Callable[[Draw], Any]]]] = {
    "register": [("read", 0, maybe), ("write", 1, nothing)],
    "cas-register": [("read", 0, maybe), ("write", 1, nothing), ("cas", 2, truth)],
    "map": [("get", 1, maybe), ("put", 2, nothing), ("delete", 1, nothing), ("append", 2, nothing)],
    "evicting-map": [
        ("get", 1, maybe), ("put", 2, truth), ("remove", 1, maybe), ("scan", 2, some),
    ],
    "set": [("add", 1, unsure), ("remove", 1, unsure), ("contains", 1, truth), ("read", 0, some)],
    "multiset": [
        ("add", 1, nothing), ("remove", 1, unsure), ("contains", 1, truth), ("count", 1, small),
    ],
    "queue": [("enqueue", 1, nothing), ("dequeue", 0, maybe)],
    "stack": [("push", 1, nothing), ("pop", 0, maybe)],
    "priority-queue": [("insert", 1, nothing), ("delete_min", 0, maybe)],
    "counter": [
        ("read", 0, small), ("increment", 0, nothing), ("decrement", 0, nothing),
        ("add", 1, nothing), ("get_and_add", 1, small), ("add_and_get", 1, small),
    ],
    "lock": [("acquire", 0, nothing), ("try_acquire", 0, truth), ("release", 0, nothing)],
}  # fmt: skip
# The operations of these models have no native search: most histories leave them out.
RARE = {("set", "read"), ("map", "append")}
PUTS = ("write", "enqueue", "push", "insert", "put")


def drawn(draw: Draw, name: str, keyed: bool, most: int, *, stays: bool = False) -> History:
    """Draw a history of up to ``most`` calls of three threads.

    ``stays``: a thread may go on after a call that did not return.
    """
    clock = [0, 0, 0]
    ended = [False] * 3
    rows: list[Row] = []
    wide = draw.choice((2, 6, 12))
    rare = draw.random() < 0.3
    distinct = draw.random() < 0.3
    choices = [one for one in DRAWS[name] if rare or (name, one[0]) not in RARE]
    texts = rare and name == "map"
    for _ in range(draw.randrange(most + 1)):
        free = [thread for thread in range(3) if not ended[thread]]
        if not free:
            break
        thread = draw.choice(free)
        call, arguments, draw_result = draw.choice(choices)
        words: tuple[Any, ...] = tuple(small(draw) for _ in range(arguments))
        if call == "scan":
            words = (0, draw.choice((0, 2)))
        elif distinct and call in PUTS:
            words = (*words[:-1], len(rows))
        result = draw_result(draw)
        if texts:
            words = (words[0], *("abc"[word] if word < 3 else f"{word}" for word in words[1:]))
            result = draw.choice((None, "a", "ab")) if call == "get" else result
        invoked = clock[thread] + draw.randrange(1, 4)
        clock[thread] = invoked + draw.randrange(wide)
        returned: int | None = clock[thread]
        if draw.random() < 0.1:
            returned, ended[thread] = None, not stays
        if keyed:
            words = (draw.randrange(2), *words)
        rows.append(Row(thread, call, words, result, invoked, returned))
    if draw.random() < 0.7:
        rows = legalized(draw, name, rows, keyed)
    return history_of(
        Operation(*row, crashed=row.returned is None and draw.random() < 0.5) for row in rows
    )


def legalized(draw: Draw, name: str, rows: list[Row], keyed: bool) -> list[Row]:
    """Give calls the results that they have in the order of random moments, most of the time."""
    judge = Judge(name, rows, keyed=keyed)
    order = sorted(
        range(len(rows)),
        key=lambda at: draw.uniform(
            rows[at].invoked, rows[at].invoked + 9 if rows[at].returned is None
            else float(rows[at].returned or 0),
        ),
    )  # fmt: skip
    states: dict[Any, Any] = {}
    found = list(rows)
    for at in order:
        row = rows[at]
        key = row.arguments[0] if keyed else None
        args = row.arguments[1:] if keyed else row.arguments
        pairs = list(judge.apply(states.get(key, judge.initial), row.name, args, row.thread))
        if pairs and draw.random() < 0.97:
            result, states[key] = draw.choice(pairs)
            if result == "exchanged":
                result = True
            found[at] = row if result is ANY else row._replace(result=result)
    return found


def rows_of(history: History) -> list[Row]:
    """Return the calls of a history as rows."""
    records = history.records
    rows = []
    for index in range(len(history)):
        call = history.call(index)
        returned = None if records["ending"][index] else int(records["returned"][index])
        rows.append(
            Row(
                int(records["thread"][index]), call.name, call.arguments,
                None if call.pending else call.result, int(records["invoked"][index]), returned,
            )
        )  # fmt: skip
    return rows
