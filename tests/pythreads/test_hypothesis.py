"""Hypothesis draws arguments, schedule and seed of a Python function from one tape."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pulsar_ml.harness import InterleavingFailure
from pulsar_ml.harness.search.failure import Decision
from pulsar_ml.harness.testing.python_strategies import PythonInterleaving, python_interleavings


def withdraw(amount: int, locked: bool = False) -> None:
    """Loses money when both threads look before one of them takes, and only for large amounts."""
    balance, lock = [10], threading.Lock()

    def take() -> None:
        if balance[0] >= amount:
            balance[0] -= amount

    def take_locked() -> None:
        with lock:
            take()

    target = take_locked if locked else take
    threads = [threading.Thread(target=target) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert balance[0] >= 0


AMOUNTS = {"amount": st.integers(1, 10)}
QUIET = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def test_a_failing_example_is_shrunk_with_its_argument() -> None:
    failing: list[PythonInterleaving] = []

    @QUIET
    @given(python_interleavings(withdraw, AMOUNTS))
    def test(interleaving: PythonInterleaving) -> None:
        try:
            interleaving.run(executions=30)
        except InterleavingFailure:
            failing.append(interleaving)
            raise

    with pytest.raises(InterleavingFailure, match=r"balance\[0\] >= 0"):
        test()
    assert failing[-1].arguments == {"amount": 6}  # the least with which two are too many
    assert repr(failing[-1]).startswith("withdraw(amount=6), decisions=[")


def test_a_drawn_schedule_alone_repeats_a_failure() -> None:
    assert not fails({"amount": 9}, ())
    found = PythonInterleaving(withdraw, {"amount": 9}, (), 0, "gil", (), {})
    with pytest.raises(InterleavingFailure) as raised:
        found.run(executions=50)
    decisions = raised.value.failure.decisions
    assert fails({"amount": 9}, decisions)
    assert not fails({"amount": 9, "locked": True}, decisions)
    assert not fails({"amount": 5}, decisions)


def fails(arguments: dict[str, int], decisions: tuple[Decision, ...]) -> bool:
    drawn = PythonInterleaving(withdraw, arguments, decisions, 0, "gil", (), {})
    try:
        drawn.run(executions=0)
    except InterleavingFailure:
        return True
    return False


def test_the_mended_function_passes_with_both_semantics() -> None:
    for semantics in ("gil", "free"):

        @QUIET
        @given(python_interleavings(withdraw, {**AMOUNTS, "locked": st.just(True)},
                                    semantics=semantics))  # fmt: skip
        def test(interleaving: PythonInterleaving) -> None:
            interleaving.run(executions=20)

        test()
