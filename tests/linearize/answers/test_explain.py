"""Descriptions of illegal histories and of unanswered ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.generated import Cell, DigitMap, Keys, simulate
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize import (
    ILLEGAL,
    LEGAL,
    QUIESCENT,
    SEQUENTIAL,
    UNKNOWN,
    ModelChecker,
    Options,
    Verdict,
    check,
    core,
    explain,
)
from pulsar_ml.harness.linearize.check import Check
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.parts.rounds import Outcome
from pulsar_ml.harness.linearize.picture import describe_verdict, lanes
from pulsar_ml.harness.linearize.searches import MEMORY_FULL, Searches
from pulsar_ml.harness.models import MODELS, Counter, KeyValueMap, Queue, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.histories import SHAPES, hard_queue, histories
from tests.linearize.oracle import (
    PROGRAM_ORDER,
    QUIESCENCE,
    REAL_TIME,
    allowed,
    oracle,
    relation,
    respects,
)


def history(*rows: tuple[int, str, tuple[object, ...], object, int, int | None]) -> History:
    return history_of([Operation(*row) for row in rows])


STALE = history(
    (0, "write", (1,), None, 0, 1),
    (0, "write", (2,), None, 2, 3),
    (0, "write", (3,), None, 4, 9),
    (1, "read", (), 2, 4, 5),
    (1, "read", (), 1, 6, 7),
    (2, "read", (), 3, 8, 9),
)


def test_a_stale_read_is_explained() -> None:
    verdict = check(STALE, Register())
    assert verdict.answer == ILLEGAL
    assert verdict.blocked == 4
    assert set(verdict.core) == {0, 1, 4}
    # There was no quiet moment, but one thread sample the writes and another the reads.
    assert verdict.weaker == {SEQUENTIAL: ILLEGAL, QUIESCENT: ILLEGAL}
    assert verdict.criterion == "neither"


def test_a_search_just_in_time_leaves_the_order_to_the_explanation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It finds the blocked call, and no order."""
    options = Options(natively=False)
    by_search = check(STALE, Register(), options=options)
    monkeypatch.setattr(Check, "outcome", lambda *_: Outcome(MEMORY_FULL))
    verdict = check(STALE, Register(), options=options)
    assert (verdict.answer, verdict.method) == (ILLEGAL, "just in time")
    assert (verdict.blocked, verdict.core) == (by_search.blocked, by_search.core)
    assert len(verdict.prefix) == len(by_search.prefix) > 0
    monkeypatch.setattr(explain, "BLOCKED_STEPS", 1)
    verdict = check(STALE, Register(), options=options)
    assert (verdict.blocked, verdict.prefix) == (by_search.blocked, ())
    assert verdict.unexplained == "an order up to the blocked operation"
    assert "  no order of operations leads to operation 4," in describe_verdict(STALE, verdict)


def test_the_lanes_show_the_core() -> None:
    verdict = check(STALE, Register())
    assert lanes(STALE, verdict.core, mark=4).splitlines() == [
        "thread 0  |- write(1) -||- write(2) -|",
        "thread 1                              *- read() -> 1 -*",
    ]
    assert "nothing leads to operation 4, read() -> 1" in describe_verdict(
        STALE, verdict, Register()
    )


def test_the_ladder_of_criteria() -> None:
    sequential = history((0, "write", (1,), None, 0, 1), (1, "read", (), None, 2, 3))
    assert check(sequential, Register()).criterion == "sequentially consistent"
    # The operations of one thread are out of order, while another thread is always busy.
    quiescent = history(
        (0, "write", (1,), None, 1, 2), (0, "read", (), None, 3, 4), (1, "write", (7,), None, 0, 9)
    )
    assert check(quiescent, Register()).criterion == "quiescently consistent"


@pytest.mark.parametrize(
    "name", ["register", "cas-register", "set", "queue", "counter", "evicting-map"]
)
def test_prefix_blocked_and_core_are_what_they_say(name: str) -> None:
    illegal = 0

    @settings(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name]))
    def run(sample: History) -> None:
        nonlocal illegal
        model = MODELS[name]()
        verdict = check(sample, model, options=Options(partition=False))
        if verdict.answer != ILLEGAL:
            return
        illegal += 1
        assert respects(verdict.prefix, relation(sample, REAL_TIME))
        assert allowed(sample, model, verdict.prefix)
        assert verdict.blocked not in verdict.prefix
        # The prefix has all calls that returned before the blocked call.
        returned = sample.records["returned"]
        assert set(np.flatnonzero(returned < returned[verdict.blocked]).tolist()) <= set(
            verdict.prefix
        )
        assert not oracle(sample.select(verdict.core), model)
        for criterion, kind in ((SEQUENTIAL, PROGRAM_ORDER), (QUIESCENT, QUIESCENCE)):
            assert verdict.weaker[criterion] == (LEGAL if oracle(sample, model, kind) else ILLEGAL)

    run()
    assert illegal >= 10


def test_a_key_may_be_quiet_while_others_are_not() -> None:
    """Quiescently consistent as a whole: an open call of key 0 is under way all the time."""
    busy = history(
        (0, "add", (0,), None, 1, None),
        (1, "add", (1,), True, 1, 1),
        (1, "remove", (1,), False, 2, 2),
    )
    verdict = check(busy, MODELS["set"]())
    assert verdict.answer == ILLEGAL
    assert verdict.weaker == {SEQUENTIAL: ILLEGAL, QUIESCENT: LEGAL}
    assert oracle(busy, MODELS["set"](), QUIESCENCE)


def could(sample: History, model: Any, kept: list[int], spare: list[int]) -> bool:
    """True when the calls of ``kept`` have a legal order with the calls of ``spare`` at any time.

    The spare calls take effect at most as often as their number. This extends the definition in
    :mod:`tests.linearize.oracle`.
    """
    before = relation(sample, REAL_TIME)
    ended = {index for index in kept if not sample.records["ending"][index]}

    def extend(order: list[int], left: int, states: list[Any]) -> bool:
        if not states:
            return False
        if ended <= set(order):
            return True
        for index in kept:
            late = index in order or any(before[index][earlier] for earlier in order)
            if not late and extend([*order, index], left, stepped(states, index)):
                return True
        return left > 0 and any(extend(order, left - 1, stepped(states, index)) for index in spare)

    def stepped(states: list[Any], index: int) -> list[Any]:
        return [after for state in states for after in model.step(state, sample.call(index))]

    return extend([], len(spare), [model.init()])


@pytest.mark.parametrize("name", ["register", "cas-register", "map", "set", "counter", "lock"])
def test_no_call_of_a_core_can_be_left_out(name: str) -> None:
    """Neither a pure call, nor another call, even if it took effect at any time, or never."""
    cores = longer = 0

    @settings(max_examples=250, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name]))
    def run(sample: History) -> None:
        nonlocal cores, longer
        model = MODELS[name]()
        verdict = check(sample, model, options=Options(partition=False))
        if verdict.answer != ILLEGAL:
            return
        kept = list(verdict.core)
        by_then = sample.records["invoked"] <= sample.records["returned"][verdict.blocked]
        spare = [
            index for index in np.flatnonzero(by_then).tolist()
            if index not in kept and not model.pure(sample.call(index))
        ]  # fmt: skip
        assert not could(sample, model, kept, spare)
        cores += 1
        longer += len(kept) > 1
        for index in kept:
            rest = [other for other in kept if other != index]
            assert could(
                sample, model, rest, spare if model.pure(sample.call(index)) else [*spare, index]
            )

    run()
    assert cores >= 20 and longer >= 5


def test_shrinking_ends_with_its_budget_and_leaves_an_illegal_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = history(
        *((0, "increment", (), None, 2 * at, 2 * at + 1) for at in range(30)),
        (1, "read", (), 99, 70, 71),
    )
    assert len(check(sample, Counter()).core) == 1
    monkeypatch.setattr(core, "MOST_LOOKED_UP", 20)
    verdict = check(sample, Counter())
    assert len(verdict.core) > 1
    assert (
        check(sample.select(verdict.core), Counter(), options=Options(explain=False)).answer
        == ILLEGAL
    )


def test_the_core_of_a_long_history_is_small() -> None:
    for seed in range(4):
        sample = simulate(Cell(300), seed=seed, clients=4, operations=400, stale_at=0.5)
        verdict = check(sample, Register())
        if verdict.answer == ILLEGAL:
            assert len(verdict.core) <= 5
            assert not oracle(sample.select(verdict.core), Register())
            break
    else:
        raise AssertionError("no seed sample an illegal history")


def test_the_illegal_part_is_named() -> None:
    sample = history(
        (0, "put", ("a", 1), None, 0, 1),
        (1, "put", ("b", 1), None, 0, 1),
        (0, "get", ("b",), None, 2, 3),
    )
    verdict = check(sample, KeyValueMap())
    assert (verdict.answer, verdict.key, verdict.core) == (ILLEGAL, "b", (1, 2))


def test_parts_together_and_one_by_one_agree() -> None:
    answers = set()
    for seed in range(12):
        sample = simulate(
            Keys(3),
            seed=seed,
            clients=3,
            operations=60,
            crashes=0.02,
            stale_at=0.5 if seed % 2 else None,
        )
        apart = check(sample, DigitMap(), options=Options(explain=False))
        together = check(sample, DigitMap(), options=Options(explain=False, partition=False))
        assert apart.answer == together.answer
        answers.add(apart.answer)
    assert answers == {LEGAL, ILLEGAL}


def test_keyed_models_are_one_for_each_key() -> None:
    sample = history(
        (0, "write", ("a", 1), None, 0, 1),
        (0, "read", ("b",), None, 2, 3),
        (0, "read", ("a",), 1, 4, 5),
    )
    for options in (Options(), Options(partition=False)):
        assert check(sample, Keyed(Register()), options=options).answer == LEGAL
    assert check(sample.select([1, 2]), Keyed(Register())).answer == ILLEGAL


HARD = history_of(hard_queue())


def test_a_bound_on_steps_makes_the_answer_unknown() -> None:
    verdict = check(HARD, Queue(), options=Options(monitors=False, most_steps=1_000))
    assert verdict.answer == UNKNOWN
    assert "out of steps" in verdict.reason
    assert verdict.criterion == UNKNOWN


class Plain:
    """A model with the required methods only."""

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> list[int]:
        return [state + 1]


@pytest.mark.parametrize(
    ("model", "reason", "present", "absent"),
    [
        (Queue(), "out of steps after 9", "more --steps may help", "more --memory"),
        (Queue(), "out of memory after 9", "more --memory may help", "more --steps"),
        (
            Queue(),
            "",
            "up to 14 operations overlapped, and 0 of 32 did not return",
            "--steps",
        ),
        (Queue(), "", "histories in which each value is put only once have a quick answer", "pure"),
        (Plain(), "", "the model has no pure(call)", "quick answer"),
    ],
)
def test_an_unknown_verdict_says_what_may_help(
    model: Any, reason: str, present: str, absent: str
) -> None:
    text = describe_verdict(HARD, Verdict(UNKNOWN, reason=reason), model)
    assert present in text
    assert absent not in text


def test_the_state_is_shown_if_it_can_be_read() -> None:
    sample = history((0, "write", ("x" * 100,), None, 0, 1), (1, "read", (), "y", 2, 3))
    verdict = check(sample, Register())
    assert (verdict.prefix, verdict.blocked) == ((0,), 1)
    text = describe_verdict(sample, verdict, Register())
    assert "it leads to the state" not in text and "that order" not in text
    text = describe_verdict(STALE, check(STALE, Register()), Register())
    assert "  that order: write(1); write(2); read() -> 2\n  it leads to the state 2\n" in text
    longer = history(
        *((0, "write", (at,), None, 2 * at, 2 * at + 1) for at in range(6)),
        (1, "read", (), 3, 20, 21),
    )
    text = describe_verdict(longer, check(longer, Register()), Register())
    assert "  that order ends: write(2); write(3); write(4); write(5)\n" in text


def test_memory_stays_within_its_bound() -> None:
    bound = 200_000
    checker = ModelChecker(Queue(), HARD.signatures, HARD.values, memory=bound)
    verdict = check(HARD, Queue(), options=Options(monitors=False, memory=bound), checker=checker)
    assert verdict.answer == UNKNOWN
    assert checker.state_bytes <= bound + 1_000
    assert checker.native.bytes() <= 4 * bound
    monitored = check(HARD, Queue(), options=Options(memory=bound))
    assert monitored.answer in (ILLEGAL, UNKNOWN)


def late_put(operations: int) -> History:
    """A long queue in which a value is taken before it is put, far from the end."""
    rows = []
    for place in range(operations // 2):
        rows.append(Operation(0, "enqueue", (place,), None, 10 * place, 10 * place + 1))
        value = place + 1 if place == operations // 4 else place
        rows.append(Operation(1, "dequeue", (), value, 10 * place + 2, 10 * place + 3))
    return history_of(rows)


def test_the_core_of_a_monitor_is_part_of_its_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other calls are tried: an explanation does not grow with the history."""
    sizes = []
    original = core.minimal

    def minimal(part: Any, indices: Any, *more: Any) -> Any:
        sizes.append(len(indices))
        return original(part, indices, *more)

    monkeypatch.setattr(core, "minimal", minimal)
    history = late_put(12_000)  # long enough for a monitor before all searches
    brief = check(history, Queue(), options=Options(explain=False))
    verdict = check(history, Queue())
    assert (brief.method, verdict.answer, verdict.unexplained) == ("monitor", ILLEGAL, "")
    assert set(verdict.core) <= set(brief.core)
    assert sizes and max(sizes) <= len(brief.core)


def test_calls_of_several_keys_have_no_core_in_states_of_one_key() -> None:
    keys = [Operation(key, "write", (key, 1), None, 0, 1) for key in (0, 1)]
    searches = Searches(
        history_of(keys), Keyed(Register()), Options(natively=False), Effort.of(10**6, None)
    )
    with pytest.raises(ValueError, match="a core of several keys needs states of all keys"):
        core.Shrinking(searches)
    whole = searches.of_all_keys()
    both = np.arange(2, dtype=np.int32)
    assert core.Shrinking(whole).run(both).tolist() == [0, 1]  # they are legal: none is left out
    one = searches.of_part(np.array([0], np.int32))
    assert one.of_all_keys() is one


def test_an_operation_that_the_model_does_not_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no operation 'push'; it has: enqueue, dequeue"):
        check(history((0, "push", (1,), None, 0, 1)), Queue())


def test_verdicts_are_remembered_by_canonical_form() -> None:
    sample = simulate(Cell(2), seed=1, clients=1, operations=12)
    rows = np.stack([sample.records] * 50)
    # Other stamps in the same order give the same form.
    rows["invoked"] *= np.arange(1, 51)[:, None]
    rows["returned"] *= np.arange(1, 51)[:, None]
    rows[49]["result"][:, 0] = 77
    checker = ModelChecker(Register(), sample.signatures)
    answers = checker.check_many(rows)
    assert answers.tolist() == [0] * 49 + [1]
    assert (checker.native.searches, checker.native.looked_up) == (2, 48)
    again = checker.native.search_many(rows, state=checker.start, remember=False)
    assert again.tolist() == answers.tolist()
    assert checker.native.searches == 52


@pytest.mark.parametrize("name", ["register", "evicting-map", "lock", "queue"])
def test_the_outcome_table_answers_as_the_definition_does(name: str) -> None:
    seen = set()

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(histories(SHAPES[name], most=5))
    def run(sample: History) -> None:
        checker = ModelChecker(MODELS[name](), sample.signatures, sample.values)
        expected = 0 if oracle(sample, MODELS[name]()) else 1
        assert checker.check_many(np.stack([sample.records] * 2)).tolist() == [expected] * 2
        seen.add(expected)

    run()
    assert seen == {0, 1}
