"""Histories that are illegal as a whole only, and longer random ones for two searches to agree on.

``python -m tests.linearize.chains --histories N --seed S`` compares, for queues, stacks and
priority queues with distinct and with repeated values, the monitor, the search of the kind and the
search of states; exit code 1 for a disagreement.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from pulsar_ml.harness.histories.history import RETURNED, History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL
from pulsar_ml.harness.linearize.monitors import judge
from pulsar_ml.harness.linearize.searches import parts_for
from pulsar_ml.harness.models import MODELS
from tests.linearize.oracle import REAL_TIME, allowed, relation, respects

MEMORY = 1 << 28
MOST_STEPS = 300_000
CONTAINERS = {
    "queue": ("enqueue", "dequeue"),
    "stack": ("push", "pop"),
    "priority-queue": ("insert", "delete_min"),
}


def chain(length: int, *, legal: bool = False) -> list[list[Operation]]:
    """Return the calls of each value of a stack whose values lie on each other in a circle.

    Value ``k`` surely is on the stack from 10k to 10k + 12, so that a value is there all the time.
    One has to lie at the bottom from the beginning to the end. Each but the first was pushed too
    late for that, and each but the last left too soon. Without any one of the values, each of the
    stretches that are left has a bottom. With ``legal`` the first value may leave after the end.
    """
    end = 10 * (length - 1) + 12
    values = []
    for at in range(length):
        pushed = -1 if at == 0 else 1
        popped = end + 9 if legal or at == length - 1 else end - 1
        values.append(
            [
                Operation(2 * at, "push", (at,), None, pushed, 10 * at),
                Operation(2 * at + 1, "pop", (), at, 10 * at + 12, max(popped, 10 * at + 12)),
            ]
        )
    # The first push returns when the stretch begins, the others begin later.
    values[0][0] = values[0][0]._replace(returned=0)
    return values


def covered(name: str, length: int, *, legal: bool = False) -> list[list[Operation]]:
    """Return the calls of values of which one is there all the time, while a call finds none.

    In a priority queue, that call takes a greater value. With ``legal`` it begins before them.
    """
    put, take = CONTAINERS[name]
    begins = -9 if legal else 1
    if name == "stack":
        found = Operation(90, take, (), None, begins, 10 * (length - 1) + 11)
        return [*chain(length, legal=True), [found]]
    least = name == "priority-queue"
    values = [
        [
            Operation(2 * at, put, (at,), None, 10 * at - 5, 10 * at),
            Operation(2 * at + 1, take, (), at, 10 * at + 12, 10 * at + 15),
        ]
        for at in range(length)
    ]
    found = Operation(90, take, (), 99 if least else None, begins, 10 * (length - 1) + 11)
    extra = [Operation(91, put, (99,), None, -20, -19)] if least else []
    return [*values, [*extra, found]]


def whole(values: list[list[Operation]]) -> History:
    return history_of(one for calls in values for one in calls)


def drawn(draw: random.Random, name: str, *, distinct: bool) -> History:
    """Draw calls in long and short intervals; most histories are legal, or nearly so."""
    put, take = CONTAINERS[name]
    threads = draw.choice((2, 3, 4, 5))
    values, wide = draw.choice((1, 2, 3)), draw.choice((2, 6, 12, 30))
    crashes, puts = 0.0 if distinct else draw.choice((0, 0, 0.05, 0.15)), draw.choice((0.5, 0.6))
    clock, ended = [draw.randrange(4) for _ in range(threads)], [False] * threads
    calls: list[Operation] = []
    for number in range(draw.randrange(4, draw.choice((8, 14, 24)))):
        free = [thread for thread in range(threads) if not ended[thread]]
        if not free:
            break
        thread = draw.choice(free)
        invoked = clock[thread] + draw.randrange(1, 4)
        clock[thread] = invoked + draw.randrange(wide)
        ended[thread] = draw.random() < crashes
        returned = None if ended[thread] else clock[thread]
        value = number if distinct else draw.randrange(values)
        name_, arguments = (put, (value,)) if draw.random() < puts else (take, ())
        calls.append(Operation(thread, name_, arguments, None, invoked, returned))
    ends = [one.invoked + 20 if one.returned is None else one.returned for one in calls]
    intervals = [(float(one.invoked), float(end)) for one, end in zip(calls, ends, strict=True)]
    moments = [draw.uniform(begin, end) for begin, end in intervals]
    held: list[Any] = []
    for at in sorted(range(len(calls)), key=moments.__getitem__):
        one = calls[at]
        if one.returned is None and draw.random() < 0.5:
            continue
        if one.name == put:
            held.append(one.arguments[0])
            held.sort(key=None if name == "priority-queue" else lambda _: 0)
        elif held:
            calls[at] = one._replace(result=held.pop(-1 if name == "stack" else 0))
    takes = [at for at, one in enumerate(calls) if one.name == take]
    for _ in range(draw.choice((0, 0, 0, 1, 2)) if takes else 0):
        first, second = draw.choice(takes), draw.choice(takes)
        results = calls[first].result, calls[second].result
        calls[first] = calls[first]._replace(result=results[1])
        calls[second] = calls[second]._replace(result=results[0])
    return history_of(calls)


class Compared(NamedTuple):
    """Complaints about the answers for a history, and the answer of the search of states."""

    wrong: list[str]
    answer: str


def compare(name: str, history: History) -> Compared:
    """Compare the searches of one history, and the monitor if it has distinct values."""
    model = MODELS[name]()
    answers = {}
    wrong = []
    for ahead in (True, False):
        native = parts_for(model, history, MEMORY)
        assert native is not None
        answer, order, _, _ = native.search(history.records, ahead=ahead, most_steps=MOST_STEPS)
        answers[ahead] = {0: LEGAL, 1: ILLEGAL}.get(answer, "")
        if answer == 0:
            missing = set(np.flatnonzero(history.records["ending"] == RETURNED)) - set(order)
            follows = respects(order, relation(history, REAL_TIME))
            if missing or not follows or not allowed(history, model, order):
                wrong.append(f"the order {order}")
    if answers[False] and answers[True] != answers[False]:
        wrong.append(f"{answers[True]}, but {answers[False]} by states")
    judgement = judge(name, history, model)
    if judgement is not None and answers[False]:
        judged = LEGAL if judgement.legal else ILLEGAL
        if judged != answers[False]:
            wrong.append(f"{judged} by the monitor, but {answers[False]} by states")
    return Compared(wrong, answers[False])


def run(histories: int, seed: int) -> tuple[list[str], Counter[tuple[str, bool, str]]]:
    """Compare so many histories; return what is wrong, and the counts of answers."""
    failures, counts = [], Counter[tuple[str, bool, str]]()
    for number in range(histories):
        name = sorted(CONTAINERS)[number % 3]
        distinct = number % 2 == 0
        draw = random.Random(seed * 1_000_003 + number)
        found = compare(name, drawn(draw, name, distinct=distinct))
        counts[name, distinct, found.answer] += 1
        failures += [f"{number} {name}: {one}" for one in found.wrong]
    return failures, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures, counts = run(options.histories, options.seed)
    for line in failures[:50]:
        print(line)
    answers = Counter[str]()
    for (_, _, answer), count in counts.items():
        answers[answer or "unknown by states"] += count
    parts = ", ".join(f"{count} {answer}" for answer, count in sorted(answers.items()))
    print(f"{options.histories} histories: {parts}; {len(failures)} disagreements")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
