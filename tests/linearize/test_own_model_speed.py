"""A user's model in Python: each question is put to it once, and a guide changes no answer."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.peers.porcupine.histories import flipped
from benchmarks.peers.porcupine.models import Exchanged, Text, Texts
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.histories.published import key_value
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, Options, check
from pulsar_ml.harness.linearize.core import Shrinking
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.parts import guide
from pulsar_ml.harness.linearize.search._answers import StatesFull, with_key_of
from pulsar_ml.harness.linearize.searches import Searches
from pulsar_ml.harness.models import CasRegister, KeyValueMap, Queue
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.histories import SHAPES, histories
from tests.linearize.oracle import REAL_TIME, oracle, relation, respects
from tests.linearize.parts.counted import Counted

QUICK = Options(explain=False)
ALONE = Options(explain=False, natively=False)  # without a guide
BUSY = key_value(2, clients=50, operations=1300, keys=10)


def test_a_state_and_a_call_are_asked_once() -> None:
    """Keys share the states of their model, and rounds of the search its answers."""
    operations = [Operation(at, "write", (at % 3,), None, 0, 100) for at in range(12)]
    operations += [
        Operation(20, "read", (), value, 101 + at, 102 + at) for at, value in ((0, 1), (5, 2))
    ]
    model = Counted(Exchanged())
    verdict = check(history_of(operations), model, options=ALONE)
    assert (verdict.answer, set(model.questions.values())) == (ILLEGAL, {1})
    history = key_value(1, clients=10, operations=300, keys=10)
    model = Counted(Text())
    verdict = check(history, Keyed(model), options=ALONE)
    assert verdict.answer == LEGAL
    assert max(model.questions.values()) <= 10, "once for each key"
    assert model.questions.total() < 2 * verdict.steps


def test_the_guides_order_is_confirmed_by_the_model() -> None:
    """Without the guide, the search ends without an answer."""
    few = 20_000
    for model in (Texts(), Keyed(Text())):
        verdict = check(BUSY, model, options=Options(explain=False, most_steps=few))
        assert verdict.answer == LEGAL and verdict.linearization is not None
        assert sorted(verdict.linearization) == list(range(len(BUSY)))
        assert respects_time(BUSY, verdict.linearization)
        state = KeyValueMap().init()
        for index in verdict.linearization:
            (state,) = KeyValueMap().step(state, BUSY.call(index))
        alone = Options(explain=False, most_steps=few, natively=False)
        assert check(BUSY, model, options=alone).answer == UNKNOWN


def test_an_order_is_followed_until_the_time_is_over() -> None:
    """The clock is looked at behind each step of the model."""
    model = Counted(Texts())
    searches = Searches(BUSY, model, QUICK, Effort(10**9, deadline_ns=1))
    assert not guide.follows(searches, list(range(len(BUSY))))
    assert model.questions.total() == 1


def test_the_calls_with_an_equal_key() -> None:
    keys = [1, "1", True, 2, 1.0, float("nan"), None]
    history = history_of(
        Operation(at, "put", (key, at), None, at, at) for at, key in enumerate(keys)
    )

    def calls(records: Any, call: int) -> list[int] | None:
        found = with_key_of(records, history.values, call)
        return None if found is None else found[1].tolist()

    assert [calls(history.records, call) for call in range(len(keys))] == [
        [0, 2, 4], [1], [0, 2, 4], [3], [0, 2, 4], None, [6],
    ]  # fmt: skip
    without = history.records.copy()
    without["arguments"][3] = -1  # a call without a key
    assert calls(without, 0) is None


class PartsOfKeys(Texts):
    """A map whose parts are a function of the key; ``questions`` counts the calls of partition."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts
        self.questions = 0

    def partition(self, call: Call) -> Hashable:
        self.questions += 1
        return self.parts(call.arguments[0])  # type: ignore[no-any-return]


def test_the_calls_of_a_part_among_calls_that_are_alike() -> None:
    """They are those of a split by the model's symbols, and equal calls are one question."""
    history = key_value(0, clients=10, operations=300, keys=10)
    keys = sorted({history.call(at).arguments[0] for at in range(300)}, key=str)
    ways: list[Any] = [
        lambda key: key,
        lambda key: keys.index(key) // 3,
        lambda key: float(keys.index(key) > 4),
        lambda key: 0,
        lambda key: None if key == keys[3] else key,
    ]
    for way in ways:
        model = PartsOfKeys(way)
        searches = Searches(history, model, QUICK, Effort(10**6))
        own = guide.Guide(searches)
        native = Searches(history, KeyValueMap(), QUICK, Effort(10**6)).all_parts()
        assert native is not None
        own.proposal = guide.Proposal(None, None, native)
        for call in range(0, 300, 37):
            split = searches.checker.part_with(searches.sorted_symbols(), call)
            model.questions = 0
            found = searches.part_with(call, own.alike)
            assert model.questions <= len({history.call(at)[:3] for at in range(300)}) + 1
            assert (found is None) == (split is None)
            if found is not None and split is not None:
                assert found[0] == split[0]
                assert found[1].tolist() == split[1].tolist()


class Joker(Text):
    """A text of which "?" may be read at any time, which its guide does not know."""

    def step(self, state: str, call: Call) -> Iterable[str]:
        joker = call.name == "get" and call.result == "?"
        return [state] if joker else Text.step(self, state, call)


def test_calls_behind_the_one_that_blocks_the_guide_explain_those_that_overlap_it() -> None:
    """The guide is blocked at the joker; a call that began by then reads what comes later."""
    operations = [
        Operation(0, "put", ("a", "x"), None, 0, 1),
        Operation(1, "get", ("a",), "?", 2, 3),
        Operation(2, "get", ("a",), "y", 2, 10),
        Operation(3, "put", ("a", "y"), None, 4, 5),
        Operation(4, "put", ("b", "x"), None, 0, 1),
    ]
    assert check(history_of(operations), Keyed(Joker()), options=QUICK).answer == LEGAL
    operations.append(Operation(5, "get", ("a",), "x", 11, 12))
    assert check(history_of(operations), Keyed(Joker()), options=QUICK).answer == ILLEGAL


@pytest.mark.parametrize("model", [Texts, lambda: Keyed(Text())])
def test_the_blocked_call_does_not_depend_on_the_guide(model: Any) -> None:
    """With a guide, calls behind it are not read."""
    same = 0
    for seed in range(20):
        history = flipped(key_value(seed, clients=8, operations=120, keys=3), seed, 2)
        own, alone = (check(history, model(), options=options) for options in (QUICK, ALONE))
        assert own.answer == alone.answer
        if own.answer == ILLEGAL and own.key == alone.key:
            assert own.blocked == alone.blocked
            assert len(own.prefix) >= len(alone.prefix) > 0
            same += 1
    assert same >= 5


class Keeping(Texts):
    """A map that keeps some of the calls, and the arguments of others, that it is asked about."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, Any]] = []

    def keep(self, call: Call) -> None:
        kept: Any = (call, call.arguments, call)[len(self.kept) % 3]
        copy = (*kept,) if kept is call.arguments else Call(*list(kept))
        self.kept.append((kept, copy))

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        self.keep(call)
        return super().step(state, call)

    def partition(self, call: Call) -> Hashable:
        if len(self.kept) % 2:
            self.keep(call)
        self.kept.append((call.result, call.result))
        return super().partition(call)


@pytest.mark.parametrize("flips", [0, 1, 15])
def test_a_call_that_the_model_keeps_stays_as_it_is(flips: int) -> None:
    """A call that nobody keeps is filled again for the next question."""
    model = Keeping()
    history = key_value(3, clients=10, operations=300, keys=10)
    check(flipped(history, 3, flips) if flips else history, model, options=QUICK)
    assert len(model.kept) > 50
    assert all(kept == copy for kept, copy in model.kept)


def test_a_model_without_parts_has_none_among_calls_that_are_alike() -> None:
    class Whole:
        init, step = Texts.init, Texts.step

    history = key_value(0, clients=2, operations=8, keys=2)
    searches = Searches(history, Whole(), QUICK, Effort(10**6))
    alike = np.arange(8, dtype=np.int32)
    assert searches.part_with(0, alike) is None
    assert Searches(history, Texts(), QUICK, Effort(10**6)).part_with(0, alike) is not None


def respects_time(history: History, order: Iterable[int]) -> bool:
    """Return True if no call in the order returned before an earlier one was invoked."""
    latest = -1
    for index in order:
        record = history.records[index]
        if int(record["returned"]) < latest:
            return False
        latest = max(latest, int(record["invoked"]))
    return True


class Lasting(Texts):
    """A map of which no key can be deleted."""

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        return [] if call.name == "delete" else super().step(state, call)


class Choosy(Queue):
    """A queue that never gives the value 0, nor is ever empty."""

    monitor = ""

    def step(self, state: tuple[Any, ...], call: Call) -> Iterable[tuple[Any, ...]]:
        if call.name == "dequeue" and not call.pending and not call.result:
            return []
        return super().step(state, call)


class Whole(CasRegister):
    """A register of another class, and so a user's model, that is exactly the guide's."""

    monitor = ""


@pytest.mark.parametrize(
    ("name", "model"), [("map", Lasting()), ("queue", Choosy()), ("cas-register", Whole())]
)
def test_a_guide_that_is_wrong_about_the_model_changes_no_answer(
    name: str, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("pulsar_ml.harness.linearize.check")
    monkeypatch.setattr(module, "FIRST_STEPS", 0)
    monkeypatch.setattr(module, "GUIDED_STEPS", 0)  # the guide is asked at once
    seen: Counter[str] = Counter()

    def counted(searches: Searches, steps: int = 64) -> guide.Proposal:
        seen["requests"] += 1
        return proposal(searches, steps)

    proposal = guide.proposal
    monkeypatch.setattr(guide, "proposal", counted)

    @settings(max_examples=60)
    @given(histories(SHAPES[name]))
    def run(history: History) -> None:
        legal = oracle(history, model)
        verdict = check(history, model, options=QUICK)
        assert verdict.answer == (LEGAL if legal else ILLEGAL)
        if verdict.linearization is not None:
            assert respects(verdict.linearization, relation(history, REAL_TIME))
        searches = Searches(history, model, QUICK, Effort(10**6))
        found = proposal(searches, 64)
        seen["wrong" if found.order is not None and not legal else "right"] += 1

    run()
    assert seen["requests"] and seen["right"] and (bool(seen["wrong"]) != (type(model) is Whole))


class Clearing(Texts):
    """A map whose delete is about all keys."""

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        return [frozenset()] if call.name == "delete" else super().step(state, call)

    def partition(self, call: Call) -> Hashable:
        return None if call.name == "delete" else super().partition(call)


class Forgetful(Texts):
    """A map that may lose what is put; the state behind a get is named twice."""

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        if call.name == "delete":
            return [frozenset(one for one in state if one[0] != call.arguments[0])]
        return [*super().step(state, call), *([state] if call.name == "put" else ())] * 2


@pytest.mark.parametrize("model", [Clearing(), Forgetful()])
def test_orders_with_calls_of_all_keys_and_with_several_states(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide's order cannot be followed state by state, and the model answers all the same."""
    module = importlib.import_module("pulsar_ml.harness.linearize.check")
    monkeypatch.setattr(module, "GUIDED_STEPS", 0)
    seen: Counter[int] = Counter()

    def counted(searches: Searches, order: Any) -> bool:
        allowed = follows(searches, order)
        first = searches.checker.states[searches.checker.start]
        found = searches.checker.follow(searches.records, order, first, False, 2**63 - 1)
        seen[min(found, 0)] += 1
        return allowed

    follows = guide.follows
    monkeypatch.setattr(guide, "follows", counted)

    @settings(max_examples=60)
    @given(histories(SHAPES["map"]))
    def run(history: History) -> None:
        answer = check(history, model, options=QUICK).answer
        assert answer == (LEGAL if oracle(history, model) else ILLEGAL)

    run()
    assert seen[-1] and seen[0]


def test_a_model_of_other_operations_has_no_guide() -> None:
    history = history_of([Operation(0, "jump", (1,), None, 0, 1)])
    assert guide.guide_for(object(), history) is None
    assert isinstance(guide.guide_for(Texts(), BUSY), KeyValueMap)
    assert isinstance(guide.guide_for(Keyed(Text()), BUSY), KeyValueMap)


def test_a_key_that_is_null_is_a_key() -> None:
    def history(read: int) -> History:
        return history_of(
            [
                Operation(0, "write", (None, 1), None, 0, 1),
                Operation(0, "write", ("a", 2), None, 2, 3),
                Operation(0, "read", (None,), read, 4, 5),
            ]
        )

    for options in (QUICK, ALONE, Options(explain=False, partition=False)):
        assert check(history(1), Keyed(Exchanged()), options=options).answer == LEGAL
        assert check(history(2), Keyed(Exchanged()), options=options).answer == ILLEGAL


def test_keys_that_are_equal_are_one() -> None:
    """A guide names a key; one that is not equal to itself is found without it."""

    def history(read: int, *, key: object) -> History:
        calls: list[tuple[str, tuple[object, ...], int | None]]
        calls = [("write", (1, 5), None), ("write", ("a", 7), None), ("write", (key, 6), None)]
        calls += [("read", (True,), read), ("read", ("a",), 7)]
        return history_of([Operation(0, *one, 2 * at, 2 * at + 1) for at, one in enumerate(calls)])

    for key, last in ((1.0, 6), (float("nan"), 5)):
        for options in (QUICK, ALONE):
            assert (
                check(history(last, key=key), Keyed(Exchanged()), options=options).answer == LEGAL
            )
            verdict = check(history(11 - last, key=key), Keyed(Exchanged()), options=options)
            assert (verdict.answer, verdict.key) == (ILLEGAL, 1)


class Slow:
    """A register whose every step takes a second of a clock that it moves itself."""

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        self.clock[0] += 1
        if call.name == "read":
            return [state] if call.pending or call.result == state else []
        return [state + 1]


def test_checks_of_a_models_contract_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    history = history_of([Operation(at, "write", (at,), None, 0, 9) for at in range(20)])
    check_model(Slow(clock), history, seconds=10)
    assert 10 < clock[0] <= 16, "the step that was under way, and its repetitions, end"
    clock[0] = 0
    check_model(Slow(clock), history)
    assert clock[0] > 1_000


def test_a_core_asks_the_model_nothing_when_the_time_is_over() -> None:
    history = history_of([Operation(0, "write", (1,), None, 0, 1)])
    searches = Searches(history, Exchanged(), ALONE, Effort(10**6))
    shrinking = Shrinking(searches)
    assert shrinking.answer(searches.checker.start, int(searches.symbols[0]))
    late = Shrinking(searches)
    searches.effort.deadline_ns = 1
    with pytest.raises(StatesFull, match="of time"):
        late.answer(searches.checker.start, int(searches.symbols[0]))
