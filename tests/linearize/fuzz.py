"""Compare every configuration of the checker with every order of small histories.

``python -m tests.linearize.fuzz --histories N --seed S``: exit code 1 for a disagreement. Each
order is replayed; each core is illegal by itself, and no call of it can be left out; the blocked
call and the weaker criteria are those of the definition. Searches with and without looking ahead,
monitors, models in Python with and without optional methods, histories of words, and histories
that are followed event by event agree; one of ten histories is checked by worker processes, too.
The judge (``fuzzing/specifications.py``) shares no code
with the package.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pulsar_ml.harness.histories.history import FLAG, NONE, WORD, Call, History, Signature
from pulsar_ml.harness.histories.words import with_signatures
from pulsar_ml.harness.linearize import LEGAL, Options, check
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.consistency.criteria import check_criterion
from pulsar_ml.harness.linearize.following.follower import Follower
from pulsar_ml.harness.linearize.monitors import judge as by_monitor
from pulsar_ml.harness.linearize.searches import parts_for
from pulsar_ml.harness.models import MODELS
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.fuzzing.draws import (
    DRAWS,
    drawn,
    legalized,
    maybe,
    nothing,
    rows_of,
    small,
    truth,
)
from tests.linearize.fuzzing.side_by_side import CONFIGURATIONS, workers_at_once
from tests.linearize.fuzzing.specifications import Judge, Row
from tests.linearize.fuzzing.verdicts import Claims

__all__ = ["DRAWS", "drawn", "legalized", "run", "small", "wrong_in"]

EVERY_BY_WORKERS = 10  # histories; a fork takes longer than all other checks of a small one

# The signatures of histories of words, by the function that draws results.
KINDS = {maybe: WORD, small: WORD, truth: FLAG, nothing: NONE}


def in_words(history: History, name: str, keyed: bool) -> History | None:
    """Return the history with words instead of values; None if a value is no word."""
    signatures = [
        Signature(call, keyed + arguments, KINDS[result])
        for call, arguments, result in DRAWS[name]
        if result in KINDS
    ]
    for index in range(len(history)):
        call = history.call(index)
        if not all(type(word) is int for word in call.arguments):
            return None
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


class Users:
    """A user's model: the required methods of a shipped one."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.by_thread = getattr(model, "by_thread", False)

    def init(self) -> Any:
        return self.model.init()

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        return list(self.model.step(state, call))


def configurations() -> Iterator[Options]:
    """Every choice of an algorithm."""
    for partition in (True, False):
        for natively in (True, False):
            for monitors in (True, False):
                yield Options(partition=partition, natively=natively, monitors=monitors)


@contextmanager
def monitors_first() -> Iterator[None]:
    """Let monitors judge short histories, too, which a search answers otherwise."""
    module = sys.modules["pulsar_ml.harness.linearize.check"]
    most = module.MANY_RECORDS
    module.MANY_RECORDS = -1  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.MANY_RECORDS = most  # type: ignore[attr-defined]


class Found(NamedTuple):
    """The mistakes found for a history, the correct answer, and two counts.

    Attributes:
        unexplained: the number of unexplained cores.
        workers: the number of worker processes.
    """

    wrong: list[str]
    legal: bool
    unexplained: int
    workers: int = 0


def wrong_in(history: History, name: str, keyed: bool, *, by_workers: bool = False) -> Found:
    """Compare all configurations for a history."""
    model = Keyed(MODELS[name]()) if keyed else MODELS[name]()
    judge = Judge(name, rows_of(history), keyed=keyed)
    claims = Claims(judge, history, model)
    wrong = []
    for options in configurations():
        verdict = check(history, model, options=options)
        wrong += [f"{one} by {options}" for one in claims.wrong(verdict)]
    with monitors_first():
        wrong += [f"{one} by monitors" for one in claims.wrong(check(history, model))]
    quick = check(history, model, options=Options(explain=False))
    wrong += [f"{one} without explanation" for one in claims.wrong(quick, explained=False)]
    users = check(history, Users(model), options=Options(explain=False))
    wrong += [f"{one} by a user's model" for one in claims.wrong(users, explained=False)]
    began: list[int] = []
    if by_workers:
        with workers_at_once() as began:
            for options in CONFIGURATIONS:
                verdict = check(history, model, options=options)
                wrong += [f"{one} by {options}" for one in claims.wrong(verdict)]
    wrong += wrong_criteria(history, model, judge, claims)
    legal = claims.legal
    judgement = None if keyed else by_monitor(getattr(model, "monitor", ""), history, model)
    if judgement is not None and judgement.legal != legal:
        wrong.append(f"monitor: {judgement.legal}, should be {legal}")
    native: Parts | None = parts_for(model, history, 1 << 26)
    if native is not None:
        for ahead in (True, False):
            number = native.search(history.records, together=not ahead, ahead=ahead)[0]
            if number != (0 if legal else 1):
                wrong.append(f"native search, ahead {ahead}: {number}, should be {legal}")
    words = in_words(history, name, keyed)
    if words is not None and (check(words, model).answer == LEGAL) != legal:
        wrong.append(f"in words: not {legal}")
    return Found(wrong, legal, claims.unexplained, len(began))


def wrong_criteria(history: History, model: Any, judge: Judge, claims: Claims) -> list[str]:
    """Return what is wrong with the answers for sequential and quiescent consistency."""
    wrong = []
    for criterion, before in (("sequential", judge.program), ("quiescent", judge.quiet)):
        expected = judge.legal(before)
        for natively in (True, False):
            options = Options(natively=natively)
            found = check_criterion(history, model, criterion, options=options)
            if (found.answer == LEGAL) != expected:
                wrong.append(f"{criterion}: {found.answer}, natively {natively}")
            elif found.order and (
                claims.returned() - set(found.order) or not judge.replays(found.order, before)
            ):
                wrong.append(f"{criterion}: order {found.order}, natively {natively}")
            elif not expected and judge.legal(before, chosen=found.core):
                wrong.append(f"{criterion}: core {found.core} is legal, natively {natively}")
    return wrong


def event_of(row: Row, kind: str) -> dict[str, Any]:
    value = row.result if kind == "ok" else list(row.arguments) or None
    return {"process": row.thread, "type": kind, "f": row.name, "value": value}


def wrong_when_followed(history: History, name: str) -> list[str]:
    """Return what is wrong with the answers for the beginnings of a history, event by event."""
    follower = Follower(MODELS[name](), "history", kept=0)
    rows = rows_of(history)
    moments = sorted({row.invoked for row in rows} | {row.returned or 0 for row in rows})
    inside: dict[int, Row] = {}  # by thread
    for moment in moments:
        for row in rows:
            if row.invoked == moment:
                if row.thread in inside:
                    follower.add(0, event_of(inside[row.thread], "info"))
                inside[row.thread] = row
                follower.add(0, event_of(row, "invoke"))
        for row in rows:
            if row.returned == moment:
                follower.add(0, event_of(inside.pop(row.thread), "ok"))
        until = [
            row if row.returned is not None and row.returned <= moment
            else row._replace(returned=None) for row in rows
        ]  # fmt: skip
        begun_rows = [at for at, row in enumerate(rows) if row.invoked <= moment]
        legal = Judge(name, until).legal(chosen=begun_rows)
        if follower.look(idle=True) == legal:
            return [f"followed until {moment}: should be {legal}"]
        if not legal:
            break
    return []


class Run(NamedTuple):
    """The mistakes found, and counts: of histories by model and answer, of cores and workers."""

    failures: list[str]
    counts: Counter[tuple[str, bool]]
    unexplained: int
    workers: int


def run(histories: int, seed: int, most: int = 6, *, every: int = 0) -> Run:
    """Compare so many histories.

    ``every``: a line is printed after so many; 0: none.
    """
    failures: list[str] = []
    counts: Counter[tuple[str, bool]] = Counter()
    unexplained = workers = 0
    names = sorted(DRAWS)
    for number in range(histories):
        draw = random.Random(seed * 1_000_003 + number)
        name = names[number % len(names)]
        keyed = draw.random() < 0.2 and name not in ("map", "evicting-map")
        history = drawn(draw, name, keyed, most, stays=draw.random() < 0.5)
        by_workers = draw.random() < 1 / EVERY_BY_WORKERS
        wrong, legal, cores, began = wrong_in(history, name, keyed, by_workers=by_workers)
        unexplained += cores
        workers += began
        if not keyed and name != "evicting-map":  # the result of a scan may be its arguments
            wrong += wrong_when_followed(history, name)
        counts[name, legal] += 1
        failures += [f"{number} {name}{' keyed' * keyed}: {one}" for one in wrong]
        if every and (number + 1) % every == 0:
            print(f"{number + 1} histories, {len(failures)} disagreements", flush=True)
    return Run(failures, counts, unexplained, workers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=6)
    options = parser.parse_args()
    found = run(options.histories, options.seed, options.calls, every=5_000)
    failures, counts = found.failures, found.counts
    for line in failures[:50]:
        print(line)
    legal = sum(count for (_, is_legal), count in counts.items() if is_legal)
    print(
        f"{options.histories} histories, {legal} legal, {options.histories - legal} illegal, "
        f"{len(failures)} disagreements, {found.unexplained} cores unexplained, "
        f"{found.workers} worker processes"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
