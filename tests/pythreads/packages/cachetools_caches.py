"""Tests of cachetools: decorators without a lock, with a lock and with a condition."""

from __future__ import annotations

import threading
from typing import Any

import cachetools

from tests.pythreads.packages.running import together


def without_lock() -> None:
    @cachetools.cached(cachetools.LRUCache(maxsize=1))
    def double(number: int) -> int:
        return 2 * number

    together(*[lambda number=number: double(number) for number in (1, 2)])  # type: ignore[misc]
    assert double(1) == 2


def expiring_without_lock() -> None:
    @cachetools.cached(cachetools.TTLCache(maxsize=1, ttl=600))
    def double(number: int) -> int:
        return 2 * number

    together(*[lambda number=number: double(number) for number in (1, 2)])  # type: ignore[misc]
    assert double(1) == 2


def call_twice(**options: Any) -> list[int]:
    calls: list[int] = []

    @cachetools.cached(cachetools.LRUCache(maxsize=2), **options)
    def double(number: int) -> int:
        calls.append(number)
        return 2 * number

    def check() -> None:
        assert double(3) == 6

    together(check, check)
    return calls


def called_once_with_lock() -> None:
    assert call_twice(lock=threading.Lock()) == [3]


def called_once_with_condition() -> None:
    assert call_twice(condition=threading.Condition()) == [3]


def failing_with_condition() -> None:
    failures: list[int] = []

    @cachetools.cached(cachetools.LRUCache(maxsize=2), condition=threading.Condition())
    def fail(number: int) -> int:
        failures.append(number)
        raise ValueError(number)

    def call() -> None:
        try:
            fail(1)
        except ValueError:
            return
        raise AssertionError("the failure is lost")

    together(call, call)
    assert failures == [1, 1]
