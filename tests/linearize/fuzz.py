"""Compare every configuration of the checker with every order of small histories.

``python -m tests.linearize.fuzz --histories N --seed S``: exit code 1 for a disagreement. Each
order is replayed, each core is illegal by itself, the weaker criteria are those of the definition,
and native searches with and without looking ahead, monitors, and histories of words agree.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pulsar_ml.harness.histories.history import (
    FLAG,
    NONE,
    WORD,
    History,
    Operation,
    Signature,
    history_of,
)
from pulsar_ml.harness.histories.words import with_signatures
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, QUIESCENT, SEQUENTIAL, Options, check
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.monitors import judge
from pulsar_ml.harness.linearize.searches import parts_for
from pulsar_ml.harness.models import MODELS
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.oracle import (
    PROGRAM_ORDER,
    QUIESCENCE,
    REAL_TIME,
    allowed,
    oracle,
    relation,
    respects,
)

Draw = random.Random
Drawn = tuple[str, tuple[Any, ...], Any]


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


# For each model its operations: the arguments and the result.
DRAWS: dict[str, list[tuple[str, int, Callable[[Draw], Any]]]] = {
    "register": [("read", 0, maybe), ("write", 1, nothing)],
    "cas-register": [("read", 0, maybe), ("write", 1, nothing), ("cas", 2, truth)],
    "map": [("get", 1, maybe), ("put", 2, nothing), ("delete", 1, nothing)],
    "set": [("add", 1, unsure), ("remove", 1, unsure), ("contains", 1, truth)],
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

# The signatures of histories of words, by the function that draws results.
KINDS = {maybe: WORD, small: WORD, truth: FLAG, nothing: NONE}


def drawn(draw: Draw, name: str, keyed: bool, most: int, *, stays: bool = False) -> History:
    """Draw a history of up to ``most`` calls of three threads; most are legal, or nearly so.

    ``stays``: a thread may go on after a call that did not return.
    """
    clock = [0, 0, 0]
    ended = [False] * 3
    operations = []
    wide = draw.choice((2, 6, 12))
    for _ in range(draw.randrange(most + 1)):
        free = [thread for thread in range(3) if not ended[thread]]
        if not free:
            break
        thread = draw.choice(free)
        call, arguments, result = draw.choice(DRAWS[name])
        words = tuple(small(draw) for _ in range(arguments))
        invoked = clock[thread] + draw.randrange(1, 4)
        clock[thread] = invoked + draw.randrange(wide)
        returned: int | None = clock[thread]
        if draw.random() < 0.1:
            returned, ended[thread] = None, not stays
        if keyed:
            words = (draw.randrange(2), *words)
        operations.append(Operation(thread, call, words, result(draw), invoked, returned))
    if draw.random() < 0.7:
        operations = legalized(draw, operations, MODELS[name](), keyed)
    return history_of(operations)


def legalized(draw: Draw, operations: list[Operation], model: Any, keyed: bool) -> list[Operation]:
    """Give calls the results that they have in the order of random moments, most of the time."""
    whole = Keyed(model) if keyed else model
    order = sorted(
        range(len(operations)),
        key=lambda at: draw.uniform(
            float(operations[at].invoked),
            float(operations[at].returned or operations[at].invoked + 9),
        ),
    )
    state, found = whole.init(), list(operations)
    for at in order:
        one = operations[at]
        for result in draw.sample((None, False, True, 0, 1, 2), 6):
            tried = history_of([one._replace(result=result, returned=one.returned or 10**6)])
            after = list(whole.step(state, tried.call(0)))
            if after and (draw.random() < 0.97):
                found[at], state = one._replace(result=result), after[0]
                break
    return found


def in_words(history: History, name: str, keyed: bool) -> History | None:
    """Return the history with words instead of values; None if a value is no word."""
    signatures = [
        Signature(call, keyed + arguments, KINDS[result])
        for call, arguments, result in DRAWS[name]
        if result in KINDS
    ]
    for index in range(len(history)):
        call = history.call(index)
        kinds = {one.name: one.result for one in signatures}
        if call.name not in kinds or call.pending:
            if call.name in kinds:
                continue
            return None
        kind = kinds[call.name]
        fits = {
            WORD: call.result is None or type(call.result) is int,
            FLAG: type(call.result) is bool,
            NONE: True,
        }
        if not fits[kind]:
            return None
    records, _ = with_signatures(history, signatures)
    return History(tuple(signatures), records)


def configurations() -> Iterator[Options]:
    """Every choice of an algorithm."""
    for partition in (True, False):
        for natively in (True, False):
            for monitors in (True, False):
                yield Options(partition=partition, natively=natively, monitors=monitors)


def answer(legal: bool) -> str:
    return LEGAL if legal else ILLEGAL


def wrong_in(history: History, name: str, keyed: bool) -> tuple[list[str], bool]:
    """Return what is wrong for this history, and whether it is legal."""
    model = Keyed(MODELS[name]()) if keyed else MODELS[name]()
    before = {kind: relation(history, kind) for kind in (REAL_TIME, PROGRAM_ORDER, QUIESCENCE)}
    legal = oracle(history, model)
    expected = answer(legal)
    wrong = []
    for options in configurations():
        verdict = check(history, model, options=options)
        if verdict.answer != expected:
            wrong.append(f"{verdict.answer} by {options}, should be {expected}")
            continue
        order = verdict.linearization if legal else verdict.prefix
        if order is not None:
            if not respects(order, before[REAL_TIME]) or not allowed(history, model, order):
                wrong.append(f"order {order} by {options}")
            missing = set(np.flatnonzero(history.records["ending"] == 0).tolist()) - set(order)
            if legal and missing:
                wrong.append(f"order {order} lacks {missing} by {options}")
        if not legal and oracle(history.select(verdict.core), model):
            wrong.append(f"core {verdict.core} is legal by {options}")
        if not legal:
            for criterion, kind in ((SEQUENTIAL, PROGRAM_ORDER), (QUIESCENT, QUIESCENCE)):
                found = oracle(history, model, kind)
                if verdict.weaker[criterion] != answer(found):
                    wrong.append(f"{criterion}: {verdict.weaker[criterion]} by {options}")
    judgement = None if keyed else judge(name, history, model)
    if judgement is not None and judgement.legal != legal:
        wrong.append(f"monitor: {judgement.legal}, should be {legal}")
    native: Parts | None = parts_for(model, history, 1 << 26)
    if native is not None:
        for ahead in (True, False):
            number = native.search(history.records, together=not ahead, ahead=ahead)[0]
            if number != (0 if legal else 1):
                wrong.append(f"native search, ahead {ahead}: {number}, should be {expected}")
    words = in_words(history, name, keyed)
    if words is not None and check(words, model).answer != expected:
        wrong.append(f"in words: not {expected}")
    return wrong, legal


def run(histories: int, seed: int, most: int = 6) -> tuple[list[str], Counter[tuple[str, bool]]]:
    """Compare so many histories; return what is wrong, and the counts by model and answer."""
    failures: list[str] = []
    counts: Counter[tuple[str, bool]] = Counter()
    names = sorted(DRAWS)
    for number in range(histories):
        draw = random.Random(seed * 1_000_003 + number)
        name = names[number % len(names)]
        keyed = draw.random() < 0.2 and name != "map"
        history = drawn(draw, name, keyed, most)
        wrong, legal = wrong_in(history, name, keyed)
        counts[name, legal] += 1
        failures += [f"{number} {name}{' keyed' * keyed}: {one}" for one in wrong]
    return failures, counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=6)
    options = parser.parse_args()
    failures, counts = run(options.histories, options.seed, options.calls)
    for line in failures[:50]:
        print(line)
    legal = sum(count for (_, is_legal), count in counts.items() if is_legal)
    print(
        f"{options.histories} histories, {legal} legal, {options.histories - legal} illegal, "
        f"{len(failures)} disagreements"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
