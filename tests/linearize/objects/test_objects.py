"""The native search for queues, stacks, sets and more, beside every order of small histories."""

from __future__ import annotations

import random
from typing import Any

import pytest

from benchmarks.peers.porcupine.histories import Priorities, RepeatedLine, flipped
from pulsar_ml.harness.histories.generated import simulate
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, check, explain
from pulsar_ml.harness.linearize.searches import parts_for
from pulsar_ml.harness.models import MODELS, Counter, Multiset, PriorityQueue, Queue, Stack
from tests.linearize import fuzz
from tests.linearize.oracle import allowed, disagreements

MEMORY = 1 << 26


def test_every_configuration_agrees_with_the_definition() -> None:
    failures, counts, _, workers = fuzz.run(220, seed=11)
    assert failures == [] and workers
    assert {name for name, _ in counts} == set(fuzz.DRAWS)
    for name in fuzz.DRAWS:
        assert counts[name, True] and counts[name, False]


def test_a_wrong_model_is_noticed_by_the_comparison() -> None:
    """A queue that is compared with the orders of a stack."""
    histories = [fuzz.drawn(random.Random(seed), "queue", False, 6) for seed in range(200)]

    class Last(Queue):
        def step(self, state: tuple[Any, ...], call: Call) -> Any:
            if call.name == "enqueue" or call.pending or call.result is None:
                return super().step(state, call)
            return (state[:-1],) if state and state[-1] == call.result else ()

    def answer(history: History) -> bool:
        return check(history, Queue()).answer == LEGAL

    assert disagreements(answer, Queue(), histories).wrong == 0
    assert disagreements(answer, Last(), histories).wrong > 0


def test_the_order_before_a_blocked_call_has_the_results_of_calls_that_return_later() -> None:
    """Histories of the comparison in which an exchange that failed stood there as a success."""
    keyed = [
        (0, "cas", (1, 2, 0), False, 2, 11),
        (2, "write", (1, 2), None, 3, 8),
        (1, "cas", (1, 0, 2), True, 1, 7),
        (2, "read", (0,), 1, 9, 11),
        (0, "cas", (0, 1, 2), False, 12, 21),
        (2, "read", (1,), 2, 14, 21),
    ]
    plain = [
        (2, "cas", (1, 2), False, 2, 13),
        (1, "read", (), 2, 2, 11),
        (2, "write", (0,), None, 16, 27),
        (0, "write", (1,), None, 2, 3),
    ]
    for rows in (keyed, plain):
        history = history_of(Operation(*row) for row in rows)
        assert fuzz.wrong_in(history, "cas-register", rows is keyed)[:2] == ([], False)


def in_turn(*calls: tuple[str, tuple[Any, ...], Any]) -> History:
    """Calls of one thread, one after the other."""
    return history_of(
        Operation(0, name, arguments, result, 2 * at, 2 * at + 1)
        for at, (name, arguments, result) in enumerate(calls)
    )


@pytest.mark.parametrize("name", ["queue", "stack", "priority-queue", "counter"])
def test_looking_ahead_saves_steps(name: str) -> None:
    """Calls at one time, and then a result that none of their orders gives."""
    put, take = {
        "queue": ("enqueue", "dequeue"),
        "stack": ("push", "pop"),
        "priority-queue": ("insert", "delete_min"),
        "counter": ("increment", "read"),
    }[name]
    arguments: list[tuple[Any, ...]] = [(at % 2,) if name != "counter" else () for at in range(12)]
    calls = [Operation(at, put, words, None, 0, 100) for at, words in enumerate(arguments)]
    calls.append(Operation(0, take, (), 99, 101, 102))
    history = history_of(calls)
    steps = {}
    for ahead in (True, False):
        native = parts_for(MODELS[name](), history, MEMORY)
        assert native is not None
        answer, _, steps[ahead], _ = native.search(history.records, ahead=ahead)
        assert answer == 1
    times = {"counter": 1, "priority-queue": 3}.get(name, 10)
    assert steps[True] * times <= steps[False]


@pytest.mark.parametrize("name", ["queue", "stack", "priority-queue"])
@pytest.mark.parametrize("flips", [0, 1])
def test_repeated_values_need_few_steps(name: str, flips: int) -> None:
    """Five values, and five clients that are nearly always inside a call.

    A search of states gives up for queues.
    """
    system: Any = Priorities(5) if name == "priority-queue" else None
    answers, unanswered = set(), 0
    for seed in range(3):
        line = system or RepeatedLine(5, stack=name == "stack")
        history = simulate(line, seed=seed, clients=5, operations=300, busy=0.95)
        line.held.clear()
        history = flipped(history, seed, flips) if flips else history
        native = parts_for(MODELS[name](), history, MEMORY)
        assert native is not None
        answer, order, steps, _ = native.search(history.records)
        assert steps < 100 * len(history)
        assert answer == 1 or allowed(history, MODELS[name](), order)
        answers.add(answer)
        found = native.search(history.records, ahead=False, most_steps=100 * len(history))[0]
        unanswered += found > 1
    assert answers <= ({0, 1} if flips else {0})
    assert unanswered or name != "queue"


@pytest.mark.parametrize(
    ("model", "history"),
    [
        (Counter(), in_turn(("add", (0.5,), None), ("read", (), 0.5))),
        (Counter(), in_turn(("add", (1 << 50,), None), ("read", (), 1 << 50))),
        (Queue(), in_turn(("enqueue", (float("nan"),), None))),
        (PriorityQueue(), in_turn(("insert", (1,), None), ("insert", ("a",), None))),
        (Queue(), in_turn(("enqueue", (), None))),
    ],
)
def test_values_that_it_cannot_number_are_left_to_the_model(model: Any, history: History) -> None:
    assert parts_for(model, history, MEMORY) is None


def test_a_subclass_is_a_model_of_its_own() -> None:
    class Other(Queue):
        pass

    assert parts_for(Other(), in_turn(("enqueue", (1,), None)), MEMORY) is None


def test_a_priority_queue_and_a_multiset() -> None:
    least = [("insert", (2,), None), ("insert", (1,), None)]
    for value, answer in ((1, LEGAL), (2, ILLEGAL), (None, ILLEGAL)):
        assert check(in_turn(*least, ("delete_min", (), value)), PriorityQueue()).answer == answer
    twice: list[Any] = [("add", ("a",), None), ("add", ("a",), None), ("remove", ("a",), True)]
    for name, seen, answer in (
        ("contains", True, LEGAL),
        ("count", 1, LEGAL),
        ("count", 2, ILLEGAL),
    ):
        assert check(in_turn(*twice, (name, ("a",), seen)), Multiset()).answer == answer


def test_a_verdict_is_explained_when_its_explanation_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained: list[int] = []
    whole = explain.explained

    def counted(*found: Any) -> Any:
        explained.append(1)
        return whole(*found)

    monkeypatch.setattr(explain, "explained", counted)
    verdict = check(in_turn(("push", (1,), None), ("pop", (), 2)), Stack())
    assert (verdict.answer, explained) == (ILLEGAL, [])
    assert verdict.blocked == 1 and verdict.core
    assert verdict.weaker and explained == [1]
    plain = check(
        in_turn(("push", (1,), None), ("pop", (), 2)), Stack(), options=Options(explain=False)
    )
    assert plain.core == () and explained == [1]
