"""Arguments at the edges of their types: a named error before anything changed, or the truth."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable

import pytest

from pulsar_ml import (
    AckState,
    ActiveManagedCursorContainer,
    EntryCacheManager,
    InvalidPositionError,
    InvalidSizeError,
    ManagedCursorContainer,
    PendingReadsManager,
    RangeCache,
)
from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory
from tests.core.present import present


def test_an_entry_expects_no_more_reads_than_fit(manager: EntryCacheManager) -> None:
    with manager.entry((1, 1), b"x", expected_reads=2**31 - 1) as entry:
        with pytest.raises(InvalidSizeError, match="2147483647"):
            entry.expect_read()
        assert entry.expected_reads == 2**31 - 1
        with entry.copy() as copy, pytest.raises(InvalidSizeError):
            copy.expect_read()
    for wrong in (2**31, 2**63, -1):
        with pytest.raises(InvalidSizeError, match="expected_reads"):
            manager.entry((1, 1), b"x", expected_reads=wrong)


def test_duplicates_under_stash_queue_do_not_add_reads_beyond_32_bits() -> None:
    with EntryCacheManager(policy="stash_queue") as manager:
        cache = manager.range_cache("a")
        assert cache.put((1, 1), b"x", expected_reads=2**31 - 1)
        for _ in range(3):
            cache.put((1, 1), b"x", expected_reads=2**31 - 1)
        with present(cache.get((1, 1))) as entry:
            assert entry.expected_reads > 0


BEYOND: dict[str, tuple[type[Exception], Callable[[int], object]]] = {
    "following": (InvalidPositionError, lambda n: AckState((1, -1)).end_ledger(1, 1, n)),
    "end of a ledger": (InvalidPositionError, lambda n: AckState((1, -1)).end_ledger(n, 1, 2)),
    "ledger_id": (
        InvalidPositionError,
        lambda n: PendingReadsManager(EntryCacheManager(), print).invalidate_ledger(n),
    ),
    "metadata_bytes": (InvalidSizeError, lambda n: AckState((1, -1)).set_metadata_bytes(n)),
    "max_size": (InvalidSizeError, lambda n: EntryCacheManager(max_size=n)),
    "time_threshold_ms": (InvalidSizeError, lambda n: EntryCacheManager(time_threshold_ms=n)),
}


@pytest.mark.parametrize("role", BEYOND)
@pytest.mark.parametrize("number", [2**63, 2**64, 2**1000])
def test_numbers_beyond_64_bits_are_named(role: str, number: int) -> None:
    error, use = BEYOND[role]
    with pytest.raises(error, match=role):
        use(number)


@pytest.mark.parametrize("token", [1.5, 1.0, "1", None])
def test_a_token_is_a_whole_number(manager: EntryCacheManager, token: object) -> None:
    tokens: list[int] = []
    reads = PendingReadsManager(manager, lambda token, *read: tokens.append(token))
    reads.read(1, 1, 1, lambda entries, error: None)
    with pytest.raises(TypeError, match="integer"):
        reads.complete(token, [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="integer"):
        reads.fail(token, OSError())  # type: ignore[arg-type]
    assert reads.running == 1
    with pytest.raises(TypeError, match="must be an exception"):
        reads.fail(tokens[0], "broken")  # type: ignore[arg-type]
    assert reads.running == 1
    reads.close()


def test_objects_of_the_face_are_true() -> None:
    manager = EntryCacheManager()
    buffer = manager.receive_buffer(1)
    things: list[object] = [
        manager.entry((1, 1), b""),
        buffer,
        buffer.slice(0, 0),
        ActiveManagedCursorContainer(),
        ManagedCursorContainer(),
        InMemoryDelayedDeliveryTrackerFactory(),
    ]
    assert all(len(thing) == 0 for thing in things)  # type: ignore[arg-type]
    assert all(things)


# Objects that are collected ----------------------------------------------------------------------


class Simulation:
    """Is the clock of its manager and holds what the manager hands out."""

    def __init__(self) -> None:
        self.manager = EntryCacheManager(clock=self)
        self.cache = self.manager.range_cache("a")
        self.cache.put((1, 1), b"x")
        self.cache.put((1, 2), b"x")
        self.entry = self.cache.get((1, 1))
        self.iterator = self.cache.iterate((0, 0), (9, 9))
        next(self.iterator)
        self.buffer = self.manager.receive_buffer(10)
        self.slice = self.buffer.slice(0, 0)
        self.reads = PendingReadsManager(self.manager, self.start)
        self.acks = AckState((1, -1), on_resume=self.start)

    def start(self, *read: object) -> None:
        raise AssertionError

    def __call__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "dropped", ["manager", "cache", "entry", "iterator", "buffer", "slice", "reads", "acks", ""]
)
def test_a_clock_that_holds_what_its_manager_made_is_collected(dropped: str) -> None:
    simulation = Simulation()
    if dropped:
        delattr(simulation, dropped)
    seen = weakref.ref(simulation)
    del simulation
    gc.collect()
    assert seen() is None


def test_a_clock_that_holds_only_a_cache_is_collected() -> None:
    class Clock:
        cache: RangeCache

        def now(self) -> int:
            return 0

    clock = Clock()
    clock.cache = EntryCacheManager(clock=clock.now).range_cache("a")
    seen = weakref.ref(clock)
    del clock
    gc.collect()
    assert seen() is None


def test_a_clock_has_to_be_callable() -> None:
    with pytest.raises(TypeError, match="must be callable"):
        EntryCacheManager(clock=5)  # type: ignore[arg-type]


# Closing beside everything else ------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cache", "manager"])
@pytest.mark.parametrize("turn", range(10))
def test_close_beside_putting_threads_leaves_nothing(what: str, turn: int) -> None:
    manager = EntryCacheManager(max_size=None)
    cache = manager.range_cache("a")
    begun = threading.Barrier(5)

    def put(thread: int) -> None:
        begun.wait()
        number = 0
        while True:
            number += 1
            try:
                manager.range_cache("b").put((thread, number), b"x")
                cache.put((thread, number), b"x")
            except RuntimeError:
                return

    threads = [threading.Thread(target=put, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    while cache.size < 100 * turn:
        pass
    if what == "cache":
        cache.close()
        assert cache.size == 0
    else:
        manager.close()
        assert manager.size == 0
    for thread in threads:
        thread.join()
    assert cache.size == 0
    manager.close()
    assert manager.size == 0
    in_use = manager.objects_in_use()
    assert (in_use["entries"], in_use["wrappers"]) == (0, 0)
