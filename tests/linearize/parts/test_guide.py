"""The key that is searched first for a model in Python, as its guide finds it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.peers.porcupine.histories import flipped
from benchmarks.peers.porcupine.models import ForeseenText, Text, Texts
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.linearize import ILLEGAL, Options, check
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.parts import guide
from pulsar_ml.harness.linearize.searches import Searches
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.parts.counted import Counted

QUICK = Options(explain=False)
ALONE = Options(explain=False, natively=False)  # without a guide
BUSY = key_value(2, clients=50, operations=1300, keys=10)


@pytest.mark.parametrize("flips", [1, 65])
def test_the_key_that_the_model_refutes_first_is_searched_first(flips: int) -> None:
    """Another key is refuted first by the guide, which looks ahead, or keys are searched in turn.

    The model is asked a fraction of what it is asked without the guide.
    """
    history = flipped(key_value(0, clients=50, operations=1300, keys=10), 0, flips)
    for kind in (Text, Texts):
        questions = {}
        for options in (QUICK, ALONE):
            model = Counted(kind())
            if kind is Texts:
                model.partition = model.model.partition  # type: ignore[attr-defined]
            whole = Keyed(model) if kind is Text else model
            assert check(history, whole, options=options).answer == ILLEGAL
            questions[options.natively] = model.questions.total()
        assert questions[True] < questions[False] / 3


@pytest.mark.parametrize("kind", [Text, ForeseenText])
def test_where_most_keys_are_illegal_a_short_one_is_searched_first(kind: type[Text]) -> None:
    """They are too many calls for a guess at the first one that is wrong."""
    shortest = 0
    for seed in range(5):
        history = flipped(key_value(seed, clients=50, operations=4200, keys=10), seed, 420)
        calls = Counter(history.call(at).arguments[0] for at in range(len(history)))
        verdict = check(history, Keyed(kind()), options=QUICK)
        assert verdict.answer == ILLEGAL and verdict.steps < 1_000
        shortest += verdict.key == min(calls, key=calls.__getitem__)
    assert shortest >= 2


@pytest.mark.parametrize("kind", [Text, ForeseenText])
def test_the_key_of_the_first_wrong_read_is_searched_first(kind: type[Text]) -> None:
    for seed in range(3):
        history = flipped(key_value(seed, clients=50, operations=1300, keys=10), seed, 130)
        own = guide.Guide(Searches(history, Keyed(kind()), QUICK, Effort(10**9)))
        found = own.ask(64)
        assert found.native is not None and found.suspect is not None
        parts = found.native.pieces(history.records)
        assert found.suspect.tolist() == parts[found.native.likely].tolist()
        verdict = check(history, Keyed(kind()), options=QUICK)
        assert verdict.answer == ILLEGAL and verdict.steps < 40
        assert verdict.key == history.call(int(found.suspect[0])).arguments[0]


@pytest.mark.parametrize("left", [0, 1, 100, 4_000])
def test_the_search_for_the_easiest_key_keeps_the_limit_of_steps(left: int) -> None:
    """A search notices its limit one step behind it."""
    history = flipped(key_value(0, clients=50, operations=1300, keys=10), 0, 1)
    searches = Searches(history, Keyed(Text()), QUICK, Effort(10**9))
    own = guide.Guide(searches)
    found = own.ask(64)
    assert found.native is not None and found.suspect is not None
    searches.effort.most_steps = searches.effort.steps + left
    spent = Spent(found.native)
    own.proposal = found._replace(native=spent)  # type: ignore[arg-type]
    own.easiest(64)
    assert sum(spent.steps) - len(spent.steps) <= left
    searches.effort.most_steps = 10**9
    own.easiest(64)
    assert sum(spent.steps) > 4_000, "without the limit it takes more"


def test_the_steps_of_a_hard_key_are_counted_unless_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = flipped(BUSY, 2, 1)
    own = guide.Guide(Searches(history, Texts(), QUICK, Effort(10**9)))
    own.ask(64)
    hard = own.easiest(64)
    assert hard.steps > 32 * len(history) / 10
    assert 0 < hard.until < history.records["returned"].max()
    monkeypatch.setattr(guide, "MOST_STEPS", 1_000)
    assert own.easiest(64) == guide.Suspect(hard.call)


class Spent:
    """Parts that keep the steps of each search."""

    def __init__(self, parts: Parts) -> None:
        self.pieces = parts.pieces
        self.likely = parts.likely
        self.search = parts.search_part
        self.blocked_at = 0
        self.steps: list[int] = []

    def search_part(self, records: Any, chosen: Any, **more: Any) -> Any:
        found = self.search(records, chosen, **more)
        self.steps.append(found[2])
        return found
