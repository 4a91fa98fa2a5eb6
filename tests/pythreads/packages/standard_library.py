"""Tests of ``queue.Queue`` and of ``functools``, in the form that is written in Python."""

from __future__ import annotations

import functools
import importlib.util
import queue
import sys
import threading
from typing import Any

from tests.pythreads.packages.running import together


def functools_in_python() -> Any:
    """Import functools once more, without its native half."""
    spec = importlib.util.find_spec("functools")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    native = sys.modules.pop("_functools", None)
    sys.modules["_functools"] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["_functools"]
        if native is not None:
            sys.modules["_functools"] = native
    assert isinstance(module.lru_cache()(int).__wrapped__, type)
    assert not isinstance(module.lru_cache()(len), type(functools.lru_cache()(len)))
    return module


in_python = functools_in_python()


def bounded_queue() -> None:
    items: queue.Queue[int] = queue.Queue(1)
    taken: list[int] = []

    def take() -> None:
        taken.append(items.get())

    together(lambda: items.put(1), lambda: items.put(2), take, take)
    assert sorted(taken) == [1, 2]
    assert items.empty()


def joined_queue() -> None:
    items: queue.Queue[int] = queue.Queue()
    done: list[int] = []

    def work() -> None:
        done.append(items.get())
        items.task_done()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    items.put(1)
    items.put(2)
    items.join()
    assert sorted(done) == [1, 2]
    for worker in workers:
        worker.join()


def double(number: int) -> int:
    return 2 * number


def bounded_lru_cache() -> None:
    cached = in_python.lru_cache(maxsize=1)(double)

    def check(number: int) -> None:
        assert cached(number) == 2 * number

    together(lambda: check(1), lambda: check(2), lambda: check(1))
    information = cached.cache_info()
    assert information.hits + information.misses == 3
    assert information.currsize == 1
    check(1)
    check(2)


def lru_cache_called_once() -> None:
    calls: list[int] = []

    def noted(number: int) -> int:
        calls.append(number)
        return 2 * number

    cached = in_python.lru_cache(maxsize=2)(noted)
    together(lambda: cached(1), lambda: cached(1))
    assert calls == [1]


def unbounded_lru_cache_counts() -> None:
    cached = in_python.lru_cache(maxsize=None)(double)
    cached(1)
    together(lambda: cached(1), lambda: cached(1))
    assert cached.cache_info().hits == 2


class Part:
    """Waits for the property of another object, which the other thread computes."""

    def __init__(self, begun: threading.Event, awaited: threading.Event) -> None:
        self.begun = begun
        self.awaited = awaited

    @in_python.cached_property  # type: ignore[untyped-decorator]
    def value(self) -> int:
        self.begun.set()
        self.awaited.wait()
        return 1


def cached_properties_of_two_objects() -> None:
    first, second = threading.Event(), threading.Event()
    parts = [Part(first, second), Part(second, first)]
    together(lambda: parts[0].value, lambda: parts[1].value)
