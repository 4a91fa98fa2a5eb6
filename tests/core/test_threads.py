"""Many Python threads in one manager: a fixed number of operations, every payload checked."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial

import pytest

from pulsar_ml import ClosedError, Entry, EntryCacheManager, RangeCache, _core
from tests.core.conftest import assert_nothing_in_use

THREADS = 8
OPERATIONS = 1_500
POSITIONS = 200


def payload(name: str, entry_id: int) -> bytes:
    return f"{name}:{entry_id};".encode() * (1 + entry_id % 7)


def check(name: str, entry: Entry) -> None:
    assert entry.ledger_id == 1
    assert bytes(entry) == payload(name, entry.entry_id)


def run_threads(bodies: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(bodies))

    def run(body: Callable[[], None]) -> None:
        try:
            barrier.wait()
            body()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def hammer(manager: EntryCacheManager, seed: int) -> None:
    draw = random.Random(seed)
    held: list[tuple[str, Entry]] = []
    for _ in range(OPERATIONS):
        name = draw.choice("ab")
        cache: RangeCache = manager.range_cache(name)
        entry_id = draw.randrange(POSITIONS)
        match draw.randrange(12):
            case 0 | 1 | 2 | 3:
                cache.put((1, entry_id), payload(name, entry_id), expected_reads=draw.randrange(2))
            case 4 | 5 | 6:
                entry = cache.get((1, entry_id))
                if entry is not None:
                    check(name, entry)
                    held.append((name, entry))
            case 7:
                cache.visit_range((1, entry_id), (1, entry_id + 20), partial(check, name))
            case 8:
                cache.remove_range((1, entry_id), (1, entry_id + 5))
            case 9:
                manager.evict_bytes(200)
            case 10:
                if held:
                    name, entry = held.pop(draw.randrange(len(held)))
                    check(name, entry)
                    with entry.copy() as copied:
                        entry.release()
                        check(name, copied)
            case 11:
                # The numbers mean nothing here; asking for them must do no harm.
                assert manager.objects_in_use()
                assert manager.size >= 0
        if len(held) > 50:
            held.pop(0)[1].release()
    for name, entry in held:
        check(name, entry)


def test_threads_see_whole_payloads_and_leave_nothing(manager: EntryCacheManager) -> None:
    run_threads([partial(hammer, manager, seed) for seed in range(THREADS)])
    for name in "ab":
        cache = manager.range_cache(name)
        entries = cache.get_range((1, 0), (1, POSITIONS))
        assert cache.size == sum(len(entry) for entry in entries)
        for entry in entries:
            check(name, entry)
            entry.release()
    manager.close()
    assert_nothing_in_use(manager)


def test_of_many_puts_of_a_position_one_succeeds(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    won: list[int] = []

    def body(number: int) -> None:
        won.extend(i for i in range(500) if cache.put((1, i), b"%d" % number))

    run_threads([partial(body, number) for number in range(4)])
    assert sorted(won) == list(range(500))
    assert manager.objects_in_use()["entries"] == 500


def test_threads_share_one_cache_of_a_name(manager: EntryCacheManager) -> None:
    found: list[RangeCache] = []
    run_threads([lambda: found.append(manager.range_cache("a"))] * 8)
    assert len({id(cache) for cache in found}) == 1


def test_closing_beside_use_is_an_error_for_the_users_and_leaves_nothing() -> None:
    manager = EntryCacheManager()
    cache = manager.range_cache("a")
    opened = threading.Event()

    def use() -> None:
        with pytest.raises(ClosedError):
            for i in range(10**9):
                cache.put((1, i % 100), b"x")
                if i == 200:
                    opened.set()

    def close() -> None:
        opened.wait()
        manager.close()

    run_threads([use, use, close])
    # A put that was under way may have come after the removal; closing again takes it out.
    manager.close()
    assert cache.size == 0
    assert_nothing_in_use(manager)


def test_counting_objects_beside_changes_does_no_harm(
    manager: EntryCacheManager, cache: RangeCache
) -> None:
    done = threading.Event()

    def change() -> None:
        for _ in range(10):
            for i in range(2_000):
                cache.put((1, i), b"x" * 100)
            cache.clear()
            manager.evict_bytes(1)
        done.set()

    def count() -> None:
        while not done.is_set():
            assert set(manager.objects_in_use()) >= {"entries", "wrappers"}

    run_threads([change, count])
    manager.evict_bytes(1)
    assert_nothing_in_use(manager)


def test_a_start_beside_a_close_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = EntryCacheManager()

    class Closing:
        """The lock of a start, behind which another thread closes the manager."""

        def __enter__(self) -> None:
            pass

        def __exit__(self, *exception: object) -> None:
            manager.close()

    monkeypatch.setattr(_core, "_starting", Closing())
    with pytest.raises(ClosedError, match="manager is closed"):
        manager.start()
    assert not manager.stats().serving
