"""Objects whose methods are called by generated programs, and judged by a sequential model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness import InterleavingFailure, Interleavings
from pulsar_ml.harness import check as checked


class Stack:
    """A stack whose pop looks and takes in two steps."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, value: int) -> None:
        self.items.append(value)

    def pop(self) -> int | None:
        if not self.items:
            return None
        last = self.items[-1]
        del self.items[-1]
        return last


class LockedStack(Stack):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def push(self, value: int) -> None:
        with self.lock:
            super().push(value)

    def pop(self) -> int | None:
        with self.lock:
            return super().pop()


class Accounts:
    """Money that is moved in two steps; an amount that is not there raises ValueError."""

    def __init__(self) -> None:
        self.left, self.right = 5, 5

    def move(self, amount: int) -> None:
        if amount > self.left:
            raise ValueError("not so much")
        self.left -= amount
        self.right += amount

    def total(self) -> int:
        return self.left + self.right

    def names(self) -> list[str]:
        return ["left", "right"]


class LockedAccounts(Accounts):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()

    def move(self, amount: int) -> None:
        with self.lock:
            super().move(amount)

    def total(self) -> int:
        with self.lock:
            return super().total()


def check(factory: Callable[[], object], **options: Any) -> Interleavings:
    found = checked(factory, **options)
    assert isinstance(found, Interleavings)
    return found


METHODS: dict[str, list[tuple[int, int]]] = {"move": [(1, 4)], "total": [], "names": []}


@pytest.mark.parametrize("seed", range(5))
def test_answers_of_no_sequential_order_are_found(seed: int) -> None:
    with pytest.raises(InterleavingFailure) as raised:
        check(Stack, model="stack", seed=seed, isolated=False)
    failure = raised.value.failure
    assert failure.kind in ("wrong answers", "exception")  # or IndexError, by a list too short
    assert "test_objects.py" in str(raised.value)


def test_the_mended_stack_is_silent() -> None:
    found = check(LockedStack, model="stack", isolated=False, executions=3000)
    assert found.failure is None
    assert found.executions == 3000


def test_a_class_with_the_same_methods_is_a_model() -> None:
    with pytest.raises(InterleavingFailure) as raised:
        check(Accounts, model=Accounts, methods=METHODS, isolated=False)
    text = str(raised.value)
    assert "total() -> " in text
    program = raised.value.failure.program
    assert program.count("[[") <= 3  # shrunk: two threads, of a call or two
    found = check(
        LockedAccounts, model=Accounts, methods=METHODS, isolated=False, executions=3000, threads=3
    )
    assert found.failure is None


def test_exceptions_are_answers_that_the_model_must_give() -> None:
    class Careless(LockedAccounts):
        def move(self, amount: int) -> None:
            with self.lock:
                if amount > 3:
                    raise KeyError(amount)
            super().move(amount)

    with pytest.raises(InterleavingFailure, match="raises KeyError"):
        check(Careless, model=Accounts, methods=METHODS, isolated=False)


def test_an_assertion_in_a_method_is_a_failure() -> None:
    class Asserting(LockedAccounts):
        def total(self) -> int:
            assert self.left == 5, "moved"
            return super().total()

    with pytest.raises(InterleavingFailure, match="moved"):
        check(Asserting, model=Accounts, methods=METHODS, isolated=False)


def test_races_of_methods_with_free_semantics() -> None:
    class Peeking(LockedAccounts):
        def names(self) -> list[str]:
            assert self.left >= -100
            return super().names()

    options: dict[str, Any] = {"model": Accounts, "methods": METHODS, "isolated": False}
    with pytest.raises(InterleavingFailure, match="Peeking.left"):
        check(Peeking, semantics="free", **options)
    assert check(Peeking, executions=1000, **options).failure is None


def test_wrong_options_are_named() -> None:
    with pytest.raises(UsageError, match="has no method 'put'"):
        check(Stack, model="stack", methods=["put"])
    with pytest.raises(UsageError, match="no operation 'names'"):
        check(LockedAccounts, model="stack", methods=["names"])
    with pytest.raises(UsageError, match="neither the name of a model nor a class"):
        check(Stack, model=7)


def test_a_child_process_makes_the_executions_by_default() -> None:
    with pytest.raises(InterleavingFailure):
        check(Accounts, model=Accounts, methods=METHODS, executions=5000)
