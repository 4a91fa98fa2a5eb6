"""Objects that only the core makes: Python code cannot construct them by any way."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_ml import EntryCacheManager, InflightReadsLimiter, UsageError, _core
from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory
from tests.core.present import present


def handed_out() -> dict[str, Any]:
    """One object of each class, by the method that hands it out."""
    manager = EntryCacheManager()
    cache = manager.range_cache("a")
    cache.put((1, 1), b"x")
    buffer = manager.receive_buffer(10)
    buffer.write(b"abc")
    return {
        "EntryCacheManager.entry": manager.entry((1, 2), b"x"),
        "EntryCacheManager.range_cache": cache,
        "EntryCacheManager.receive_buffer": buffer,
        "ReceiveBuffer.slice": buffer.slice(0, 3),
        "RangeCache.iterate": cache.iterate((0, 0), (9, 9)),
        "InflightReadsLimiter.acquire": present(InflightReadsLimiter().acquire(1, print)),
        "new_tracker": InMemoryDelayedDeliveryTrackerFactory().new_tracker("t"),
    }


WAYS: dict[str, Callable[[Any], object]] = {
    "call": lambda kind: kind(),
    "call with None": lambda kind: kind(None, 0, 0, 1, 1),
    "call with keywords": lambda kind: kind(owner=None),
    "__new__": lambda kind: kind.__new__(kind),
    "__new__ with None": lambda kind: kind.__new__(kind, None, 0, 0, 1, 1),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_class_that_is_handed_out_says_where_its_objects_come_from(way: str) -> None:
    for source, thing in handed_out().items():
        with pytest.raises(TypeError) as raised:
            WAYS[way](type(thing))
        assert source in str(raised.value)


def test_neither_object_new_nor_a_copy_makes_one() -> None:
    for thing in handed_out().values():
        with pytest.raises(TypeError):
            object.__new__(type(thing))
        with pytest.raises(TypeError):
            copy.copy(thing)


def test_the_classes_that_only_the_core_uses_cannot_be_made_either() -> None:
    limits = InflightReadsLimiter(max_bytes=1)
    held = limits.acquire(1, print)
    limits.acquire(1, lambda permits: None)
    inside: set[Any] = {
        type(thing)
        for thing in gc.get_objects()
        if type(thing).__module__ == "pulsar_ml._core" and not hasattr(_core, type(thing).__name__)
    }
    assert "WaitingPermits" in {kind.__name__ for kind in inside}
    for kind in inside - {type(print), type(handed_out)}:
        if kind.__name__ != "cython_function_or_method":
            with pytest.raises(TypeError):
                kind.__new__(kind)
    del held


CRASHES = {
    "a view": "view = core.InMemoryTopicDelayedDeliveryTrackerView; view.__new__(view).fire(now_ms=1)",
    "a view's count": "core.InMemoryTopicDelayedDeliveryTrackerView().topic_buckets",
    "an iterator": "next(type(cache.iterate((0, 0), (1, 1)))(None, 0, 0, 1, 1))",
    "permits over None": "permits.share([None])",
    "permits over a repeat": "permits.share([entry, entry])",
    "an answer of None": "reads.complete(tokens[0], [None])",
}
BEGIN = """
from pulsar_ml import _core as core
manager = core.EntryCacheManager()
cache = manager.range_cache("a")
permits = core.InflightReadsLimiter(max_bytes=9).acquire(5, print)
entry = manager.entry((1, 1), b"x")
tokens = []
reads = core.PendingReadsManager(manager, lambda token, *read: tokens.append(token))
reads.read(1, 1, 1, print)
try:
    {line}
except (TypeError, core.UsageError) as error:
    print("error", error)
"""


@pytest.mark.parametrize("line", CRASHES.values(), ids=CRASHES)
def test_misuse_is_an_error_and_no_crash(line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN.format(line=line)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout[:6]) == (0, "error "), done.stderr[-500:]


def test_entries_have_the_permits_of_one_read() -> None:
    with EntryCacheManager() as manager:
        limits = InflightReadsLimiter(max_bytes=10)
        first, second = (present(limits.acquire(5, print)) for _ in range(2))
        entry = manager.entry((1, 1), b"x")
        first.share([entry])
        with pytest.raises(UsageError, match="has permits already"):
            second.share([entry])
        # Nothing changed.
        assert (second.amount, limits.remaining) == (5, 0)
        entry.release()
        assert limits.remaining == 5
        second.release()
        assert limits.remaining == 10


def test_permits_are_not_shared_with_an_entry_that_another_holds() -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        cache.put((1, 1), b"x")
        permits = present(InflightReadsLimiter(max_bytes=10).acquire(5, print))
        with (
            present(cache.get((1, 1))) as cached,
            pytest.raises(UsageError, match="held elsewhere"),
        ):
            permits.share([cached])
        assert permits.amount == 5
