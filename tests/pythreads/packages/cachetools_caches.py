"""Tests of cachetools: decorators without a lock, with a lock and with a condition."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from tests.pythreads.packages.running import together

cachetools: Any = import_module("cachetools")


def double(number: int) -> int:
    return 2 * number


def without_lock() -> None:
    cached = cachetools.cached(cachetools.LRUCache(maxsize=1))(double)
    together(lambda: cached(1), lambda: cached(2))
    assert cached(1) == 2


def expiring_without_lock() -> None:
    cached = cachetools.cached(cachetools.TTLCache(maxsize=1, ttl=600))(double)
    together(lambda: cached(1), lambda: cached(2))
    assert cached(1) == 2


def call_twice(**options: Any) -> list[int]:
    calls: list[int] = []

    def noted(number: int) -> int:
        calls.append(number)
        return 2 * number

    cached = cachetools.cached(cachetools.LRUCache(maxsize=2), **options)(noted)

    def check() -> None:
        assert cached(3) == 6

    together(check, check)
    return calls


def called_once_with_lock() -> None:
    assert call_twice(lock=threading.Lock()) == [3]


def called_once_with_condition() -> None:
    assert call_twice(condition=threading.Condition()) == [3]


def failing_with_condition() -> None:
    failures: list[int] = []

    def fail(number: int) -> int:
        failures.append(number)
        raise ValueError(number)

    cache, condition = cachetools.LRUCache(maxsize=2), threading.Condition()
    cached = cachetools.cached(cache, condition=condition)(fail)

    def call() -> None:
        try:
            cached(1)
        except ValueError:
            return
        raise AssertionError("the failure is lost")

    together(call, call)
    assert failures == [1, 1]
