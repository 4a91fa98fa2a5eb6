"""The manager keeps its caches below a size and an age: with or without a thread."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from pulsar_ml import (
    CacheStats,
    ClosedError,
    EntryCacheManager,
    Evicted,
    InvalidSizeError,
    UsageError,
)
from pulsar_ml._core import DEFAULT_MAX_SIZE, EVICTION_POLICIES
from tests.core.conftest import assert_nothing_in_use
from tests.core.present import present

MS = 1_000_000


def fill(manager: EntryCacheManager, count: int, *, name: str = "a", first: int = 0) -> None:
    cache = manager.range_cache(name)
    for i in range(first, first + count):
        assert cache.put((1, i), bytes(10))


def until(condition: Callable[[], bool]) -> None:
    """Returns when another thread has made it true; what never comes true hangs the test."""
    turn = threading.Event()
    while not condition():
        turn.wait(0.001)


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", EVICTION_POLICIES)
def test_a_put_without_a_thread_evicts_before_it_returns(policy: str) -> None:
    with EntryCacheManager(max_size=1000, watermark=0.5, policy=policy) as manager:
        assert manager.policy == policy
        fill(manager, 98)
        assert (manager.size, manager.stats().evictions) == (980, 0)
        fill(manager, 1, first=98)
        assert (manager.size, manager.stats().evictions) == (500, 1)


def test_a_manager_has_a_size_unless_told_otherwise() -> None:
    assert EntryCacheManager().max_size == DEFAULT_MAX_SIZE == 128 << 20
    with EntryCacheManager(max_size=None) as manager:
        assert manager.max_size is None
        fill(manager, 1000)
        assert manager.trigger_eviction() is False
        assert manager.size == 10_000


def test_a_smaller_size_takes_effect_at_once(manager: EntryCacheManager) -> None:
    fill(manager, 100)
    manager.max_size = 500
    assert (manager.size, manager.max_size) == (450, 500)
    manager.configure(watermark=float(Fraction(1, 5)))
    assert manager.size == 450
    fill(manager, 5, first=100)
    assert manager.size == 100


def test_a_size_of_zero_refuses_puts_and_finds_nothing() -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        fill(manager, 3)
        with present(cache.get((1, 0))) as held:
            manager.max_size = 0
            assert manager.size == 0
            assert cache.put((1, 7), b"x") is False
            with manager.entry((1, 8), b"x") as entry:
                assert cache.put((1, 8), entry) is False
            assert cache.get((1, 0)) is None
            assert (1, 0) not in cache
            assert cache.get_range((0, 0), (2, 0)) == []
            assert bytes(held) == bytes(10)
        manager.max_size = 100
        assert cache.put((1, 7), b"x") is True


@pytest.mark.parametrize(
    "setting",
    [
        {"max_size": -1}, {"max_size": 2**63}, {"watermark": 0}, {"watermark": 1.01},
        {"watermark": float("nan")}, {"eviction_interval_ms": 0}, {"eviction_interval_ms": 2**63},
        {"time_threshold_ms": -1}, {"max_requeue_count": 65536},
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_setting_names_itself_and_changes_nothing(
    manager: EntryCacheManager, setting: dict[str, Any]
) -> None:
    (name,) = setting
    with pytest.raises(InvalidSizeError, match=name):
        EntryCacheManager(**setting)
    with pytest.raises(InvalidSizeError, match=name):
        manager.configure(**{"max_size": 77} | setting)
    assert manager.max_size == DEFAULT_MAX_SIZE


@pytest.mark.parametrize(
    "name", ["eviction_interval_ms", "time_threshold_ms", "time_threshold_max_ms"]
)
def test_a_time_is_a_whole_number_of_milliseconds(manager: EntryCacheManager, name: str) -> None:
    for wrong in (0.5, 10.0, "10", None):
        setting: dict[str, Any] = {name: wrong}
        with pytest.raises(TypeError):
            EntryCacheManager(**setting)
        with pytest.raises(TypeError):
            manager.configure(**setting)


def test_an_unknown_policy_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"no eviction policy 'fifo'; use one of: central_queue, .*lru"
    ):
        EntryCacheManager(policy="fifo")


# Time --------------------------------------------------------------------------------------------


def test_time_passes_follow_the_clock_that_was_given() -> None:
    time = [0]
    with EntryCacheManager(clock=lambda: time[0], time_threshold_ms=5) as manager:
        for i in range(10):
            time[0] = i * MS
            fill(manager, 1, first=i)
        assert manager.periodic_eviction() == Evicted(4, 40, 0, 0)
        assert manager.periodic_eviction(now_ns=11 * MS) == Evicted(2, 20, 0, 0)
        time[0] = 100 * MS
        assert manager.periodic_eviction() == Evicted(4, 40, 0, 0)
        assert manager.stats().evictions == 0


def test_the_periodic_eviction_ends_with_the_size_pass() -> None:
    with EntryCacheManager(
        max_size=None, watermark=0.5, time_threshold_ms=1000, clock=lambda: 0
    ) as manager:
        fill(manager, 20)
        assert manager.evict_to_watermark() == Evicted(0, 0, 0, 0)
        manager.configure(max_size=210)
        assert manager.size == 200
        fill(manager, 1, first=20)
        assert manager.size == 100


def test_an_error_of_the_clock_reaches_the_caller(manager: EntryCacheManager) -> None:
    time: list[int] = [1]
    with EntryCacheManager(clock=lambda: time[0]) as other:
        time.clear()
        with pytest.raises(IndexError):
            other.range_cache("a").put((1, 1), b"x")
        assert other.size == 0
        time.append(1)


def test_a_clock_of_its_own_and_a_thread_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="monotonic clock"):
        EntryCacheManager(clock=lambda: 0, start=True)
    with (
        EntryCacheManager(clock=lambda: 0) as manager,
        pytest.raises(UsageError, match="periodic_eviction"),
    ):
        manager.start()


# The thread --------------------------------------------------------------------------------------


def test_the_thread_evicts_what_puts_triggered_and_stop_waits_for_it() -> None:
    with EntryCacheManager(max_size=1000, watermark=0.5, time_threshold_ms=10**9) as manager:
        manager.start()
        manager.start()
        assert manager.stats().serving
        fill(manager, 1000)
        manager.stop()
        assert not manager.stats().serving
        assert manager.size <= 980
        assert manager.stats().evictions > 0
        assert manager.stats().tasks == 0
        manager.stop()
        fill(manager, 200, first=1000)
        assert manager.size <= 980


def test_the_thread_evicts_by_age_without_being_asked() -> None:
    with EntryCacheManager(start=True, eviction_interval_ms=1, time_threshold_ms=0) as manager:
        fill(manager, 100)
        until(lambda: manager.size == 0)
        assert manager.stats().evictions == 0


def test_a_shorter_interval_wakes_the_thread() -> None:
    with EntryCacheManager(start=True, eviction_interval_ms=10**9, time_threshold_ms=0) as manager:
        fill(manager, 100)
        manager.configure(eviction_interval_ms=1)
        until(lambda: manager.size == 0)


def test_closing_ends_the_thread_and_gives_everything_back() -> None:
    manager = EntryCacheManager(max_size=1000, start=True, eviction_interval_ms=1)
    fill(manager, 500)
    manager.close()
    assert not manager.stats().serving
    assert manager.size == 0
    assert_nothing_in_use(manager)
    with pytest.raises(ClosedError):
        manager.start()


def test_a_manager_that_is_dropped_ends_its_thread() -> None:
    threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
    manager = EntryCacheManager(max_size=1000, start=True, eviction_interval_ms=1)
    cache = manager.range_cache("a")
    assert not threads or len(os.listdir("/proc/self/task")) == threads + 1
    del manager
    gc.collect()
    assert not threads or len(os.listdir("/proc/self/task")) == threads
    for i in range(200):
        assert cache.put((1, i), bytes(10))
    assert cache.size <= 980


def test_the_books_are_right_after_many_threads_and_changing_settings() -> None:
    with EntryCacheManager(max_size=2000, start=True, eviction_interval_ms=1) as manager:

        def work(name: str) -> None:
            cache = manager.range_cache(name)
            for i in range(2000):
                cache.put((1, i), bytes(10 + i % 7), expected_reads=i % 2)
                entry = cache.get((1, i - i % 5))
                if entry is not None:
                    entry.copy().release()
                    entry.release()
                if i % 100 == 0:
                    manager.configure(max_size=1000 + i, max_requeue_count=i % 3)
                    cache.remove_range((1, 0), (1, i // 2))

        workers = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        manager.stop()
        stats = manager.stats()
        assert stats.size == sum(manager.range_cache(name).size for name in "abcd")
        assert stats.inserted_bytes - stats.evicted_bytes == stats.size
        assert stats.tasks == 0


def test_a_child_of_a_fork_has_no_thread_and_evicts_by_itself() -> None:
    with EntryCacheManager(max_size=1000, start=True, eviction_interval_ms=1) as manager:
        fill(manager, 50)
        child = os.fork()
        if child == 0:
            good = not manager.stats().serving
            fill(manager, 500, name="b")
            good &= manager.size <= 980
            manager.start()
            good &= manager.stats().serving
            manager.close()
            os._exit(0 if good and manager.size == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert manager.stats().serving


# Counters ----------------------------------------------------------------------------------------


def test_every_counter_counts_what_it_says() -> None:
    with EntryCacheManager(max_size=1000, watermark=0.5, clock=lambda: 0) as manager:
        cache = manager.range_cache("a")
        fill(manager, 99)
        cache.put((1, 98), b"taken")
        cache.remove_range((1, 90), (1, 91))
        present(cache.get((1, 98))).release()
        assert cache.get((1, 0)) is None
        for entry in cache.get_range((1, 95), (1, 200)):
            entry.release()
        cache.count_misses(3, 30)
        assert manager.stats() == CacheStats(
            size=480, max_size=1000, inserted_entries=99, inserted_bytes=990, evicted_entries=51,
            evicted_bytes=510, evictions=1, requeued=0, dropped=0, hits=5, hit_bytes=50, misses=3,
            miss_bytes=30, tasks=0, serving=False,
        )  # fmt: skip
        cache.clear()
        manager.periodic_eviction()
        assert (manager.stats().dropped, manager.stats().evicted_entries) == (50, 99)


def test_a_range_that_is_left_early_counts_what_was_handed_out(manager: EntryCacheManager) -> None:
    fill(manager, 20)
    entries = manager.range_cache("a").iterate((1, 0), (1, 100))
    for _ in range(3):
        next(entries).release()
    del entries
    assert (manager.stats().hits, manager.stats().hit_bytes) == (3, 30)


@pytest.mark.parametrize("entries, size", [(-1, 0), (0, -1), (2**63, 0)])
def test_a_count_of_misses_is_not_negative(
    manager: EntryCacheManager, entries: int, size: int
) -> None:
    with pytest.raises(InvalidSizeError):
        manager.range_cache("a").count_misses(entries, size)
