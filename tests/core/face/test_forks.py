"""Forks at any moment: the child has no lock that another thread held."""

from __future__ import annotations

import gc
import os
import select
import signal
import threading
import traceback
from collections.abc import Callable

import pytest

from pulsar_ml import (
    AckState,
    ActiveManagedCursorContainer,
    EntryCacheManager,
    InflightReadsLimiter,
    ManagedCursorContainer,
    PendingReadsManager,
    Permits,
    Position,
)
from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory

CHILDREN = 30
PATIENCE = 300.0  # seconds until a child counts as stuck


def cache_work() -> Callable[[int], object]:
    manager = EntryCacheManager(max_size=2_000)
    cache = manager.range_cache("a")

    def work(number: int) -> None:
        cache.put((1, number), b"x" * 10, expected_reads=1)
        manager.range_cache(f"{number % 3}").put((1, number), b"x")
        for entry in cache.iterate((1, number - 5), (1, number + 5)):
            entry.release()
        cache.remove_range((1, number - 20), (1, number - 10))
        manager.evict_bytes(5)
        manager.stats()

    return work


def cursors_work() -> Callable[[int], object]:
    active, slowest = ActiveManagedCursorContainer(), ManagedCursorContainer()

    def work(number: int) -> None:
        name = f"{number % 7}"
        for container in (active, slowest):
            container.add(name, (1, number))
            container.slowest_cursor_position()
            list(container)
        active.number_of_cursors_at_same_position_or_before(name)
        slowest.update_cursor(name, (1, number + 1))
        for container in (active, slowest):
            container.remove_cursor(f"{number % 5}")

    return work


def acks_work() -> Callable[[int], object]:
    acks = AckState((1, -1))

    def work(number: int) -> None:
        acks.acknowledge((1, number * 2 % 5_000))
        acks.acknowledge_index((1, number * 2 % 5_000 + 1), 1, batch_size=3)
        acks.may_dispatch()
        assert acks.mark_delete_position <= Position(1, 10_000)
        if number % 50 == 0:
            acks.encode()

    return work


def delayed_work() -> Callable[[int], object]:
    factory = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1)
    view = factory.new_tracker("t", lambda: None)

    def work(number: int) -> None:
        view.add_message((1, number), number + 5, now_ms=number)
        view.fire(now_ms=number)
        view.get_scheduled_messages(10, now_ms=number)
        other = factory.new_tracker(f"{number % 3}", lambda: None)
        other.add_message((1, number), number + 5, now_ms=number)
        other.close()
        assert view.topic in factory

    return work


def reads_work() -> Callable[[int], object]:
    manager = EntryCacheManager()
    limits = InflightReadsLimiter(max_bytes=2)
    reads: PendingReadsManager = PendingReadsManager(
        manager,
        lambda token, ledger_id, first, last, expected: reads.complete(
            token, [manager.entry((ledger_id, i), b"x") for i in range(first, last + 1)]
        ),
    )

    def work(number: int) -> None:
        permits = limits.acquire(1, give_back)
        reads.read(1, number, number + 3, lambda entries, error: None)
        reads.invalidate_ledger(1)
        reads.counts()
        if permits is not None:
            permits.share([manager.entry((1, number), b"x")])

    return work


def give_back(permits: Permits | None) -> None:
    if permits is not None:
        permits.release()


WORKS = {
    "cache": cache_work,
    "cursors": cursors_work,
    "acks": acks_work,
    "delayed": delayed_work,
    "reads": reads_work,
}


def in_child(work: Callable[[], object]) -> int:
    """Forks, works in the child, and returns its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def ends(child: int) -> bool:
    """True if the child ended well; one that is stuck is killed."""
    process = os.pidfd_open(child)
    if not select.select([process], [], [], PATIENCE)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(process)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", WORKS)
def test_a_child_forked_beside_native_calls_works(name: str) -> None:
    work = WORKS[name]()
    stop = threading.Event()

    def repeat(first: int) -> None:
        number = first
        while not stop.is_set():
            number += 1
            work(number)

    threads = [threading.Thread(target=repeat, args=(i * 1_000,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(CHILDREN):
            child = in_child(lambda: [work(number) for number in range(100, 130)])
            assert ends(child), f"child {turn} did not end well"
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_while_a_trigger_runs_fires_and_closes_its_view() -> None:
    inside, go_on = threading.Event(), threading.Event()
    triggered: list[int] = []

    def trigger() -> None:
        triggered.append(os.getpid())
        if len(triggered) == 1:
            inside.set()
            go_on.wait(PATIENCE)

    view = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1).new_tracker("t", trigger)
    view.add_message((1, 1), 50, now_ms=0)
    firing = threading.Thread(target=lambda: view.fire(now_ms=100))
    firing.start()
    assert inside.wait(PATIENCE)

    def child() -> None:
        view.resume(now_ms=100)
        assert triggered[-1] == os.getpid()
        view.close()

    assert ends(in_child(child))
    go_on.set()
    firing.join()
    view.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_trigger_and_a_callback_may_fork() -> None:
    children: list[int] = []
    view = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1).new_tracker(
        "t", lambda: children.append(in_child(view.close))
    )
    view.add_message((1, 1), 50, now_ms=0)
    view.fire(now_ms=100)
    limits = InflightReadsLimiter(max_bytes=1)
    held = limits.acquire(1, print)
    limits.acquire(1, lambda permits: children.append(in_child(limits.close)))
    assert held is not None
    held.release()
    assert len(children) == 2
    assert all(ends(child) for child in children)


def test_a_child_may_close_and_drop_a_manager_whose_thread_ran_in_the_parent() -> None:
    managers = [EntryCacheManager(start=True, eviction_interval_ms=10_000)]

    def child() -> None:
        managers[0].start()
        managers[0].stop()
        managers.pop().close()
        gc.collect()

    # The thread begins, and then it sleeps.
    assert all(ends(in_child(child)) for _ in range(10))
    managers[0].close()


def test_threads_that_fork_at_the_same_time_do_not_wait_for_each_other() -> None:
    work = cache_work()
    good: list[bool] = []

    def fork() -> None:
        good.extend(ends(in_child(lambda: work(5))) for _ in range(5))

    threads = [threading.Thread(target=fork) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * 15
