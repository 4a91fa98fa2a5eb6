"""Entries that are slices of receive buffers: bytes, what is counted and what is pinned."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml import (
    BufferSlice,
    EntryCacheManager,
    InvalidSizeError,
    ReceiveBuffer,
    ReceiveBufferSize,
    ReleasedError,
    UsageError,
)
from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.specs.receive_buffer import Guess
from tests.core.present import present


def received(manager: EntryCacheManager, capacity: int, *parts: bytes) -> list[BufferSlice]:
    """Slices of one buffer, which nobody else keeps."""
    with manager.receive_buffer(capacity) as buffer:
        return [buffer.slice(buffer.write(part), len(part)) for part in parts]


def test_a_slice_is_an_entry_without_a_copy_and_keeps_the_whole_buffer() -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        first, second = received(manager, 4096, b"first", b"second")
        assert manager.receive_buffer_size == 4096
        assert (manager.size, manager.pinned_size) == (0, 0)
        with manager.entry((1, 0), first) as entry:
            assert bytes(entry) == b"first"
            assert cache.put((1, 0), entry)
        assert cache.put((1, 1), second)
        assert (manager.size, manager.pinned_size) == (11, 4096)
        del first, second
        cache.remove_range((1, 0), (1, 0))
        assert (manager.size, manager.pinned_size, manager.receive_buffer_size) == (6, 4096, 4096)
        with present(cache.get((1, 1))) as hit:
            cache.clear()
            assert bytes(hit) == b"second"
            assert (manager.size, manager.pinned_size, manager.receive_buffer_size) == (0, 0, 4096)
        assert manager.receive_buffer_size == 0


def test_entries_of_several_caches_pin_a_buffer_once() -> None:
    with EntryCacheManager() as manager:
        for number, part in enumerate(received(manager, 1000, b"x" * 10, b"y" * 20, b"z" * 30)):
            assert manager.range_cache(str(number)).put((1, 0), part)
        assert manager.range_cache("0").put((1, 1), b"of its own")
        assert (manager.size, manager.pinned_size) == (70, 1010)
        manager.remove_range_cache("1")
        assert (manager.size, manager.pinned_size) == (50, 1010)


def test_copying_on_insert_closes_the_gap() -> None:
    with EntryCacheManager(copy_entries=True) as manager:
        cache = manager.range_cache("a")
        first, second = received(manager, 4096, b"first", b"second")
        assert cache.put((1, 0), first, expected_reads=2)
        with manager.entry((1, 1), second, expected_reads=2) as entry:
            assert cache.put((1, 1), entry)
        del first, second
        assert (manager.size, manager.pinned_size, manager.receive_buffer_size) == (11, 11, 0)
        with present(cache.get((1, 0))) as hit:
            assert bytes(hit) == b"first"
            assert hit.expected_reads == 2
        with present(cache.get((1, 1))) as hit:
            assert hit.expected_reads == 1


def test_a_refused_duplicate_changes_neither() -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        first, second = received(manager, 100, b"first", b"second")
        (other,) = received(manager, 200, b"other")
        assert cache.put((1, 0), first)
        assert not cache.put((1, 0), second)
        assert not cache.put((1, 0), other)
        assert (manager.size, manager.pinned_size) == (5, 100)


@pytest.mark.parametrize("policy", ["central_queue", "released_queue"])
def test_eviction_takes_off_what_it_removes(policy: str) -> None:
    with EntryCacheManager(
        policy=policy, max_requeue_count=0, extend_ttl_of_recently_accessed=False
    ) as manager:
        cache = manager.range_cache("a")
        for ledger in range(4):
            for number, part in enumerate(received(manager, 256, b"a" * 100, b"b" * 100)):
                assert cache.put((ledger, number), part)
        del part
        assert (manager.size, manager.pinned_size) == (800, 1024)
        manager.evict_bytes(300)
        assert (manager.size, manager.pinned_size) == (500, 768)
        manager.evict_bytes(10**6)
        assert (manager.size, manager.pinned_size, manager.receive_buffer_size) == (0, 0, 0)


@pytest.mark.parametrize("policy", EVICTION_POLICIES)
def test_every_policy_takes_off_what_it_removes(policy: str) -> None:
    with EntryCacheManager(
        policy=policy, max_requeue_count=0, extend_ttl_of_recently_accessed=False
    ) as manager:
        for topic in range(3):
            cache = manager.range_cache(str(topic))
            for number, part in enumerate(received(manager, 256, b"a" * 100, b"b" * 100)):
                assert cache.put((1, number), part, timestamp_ns=number)
        del part
        assert (manager.size, manager.pinned_size) == (600, 768)
        manager.evict_bytes(250)
        left = [
            entry
            for topic in range(3)
            for entry in manager.range_cache(str(topic)).get_range((1, 0), (1, 1))
        ]
        topics = [topic for topic in range(3) if manager.range_cache(str(topic)).size]
        assert (manager.size, manager.pinned_size) == (100 * len(left), 256 * len(topics))
        del left
        manager.evict_entries_before(2**40, now_ns=2**40)
        assert (manager.size, manager.pinned_size, manager.receive_buffer_size) == (0, 0, 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("receive"), st.integers(1, 60), st.integers(0, 20)),
            st.tuples(st.just("put"), st.integers(0, 40), st.integers(0, 11)),
            st.tuples(st.just("remove"), st.integers(0, 11), st.just(0)),
            st.tuples(st.just("evict"), st.integers(1, 60), st.just(0)),
        ),
        max_size=40,
    ),
    copy=st.booleans(),
)
def test_both_sizes_are_those_of_a_plain_model(
    steps: list[tuple[str, int, int]], copy: bool
) -> None:
    """The model keeps (length, buffer) for each cached position; a buffer is its number and
    capacity.
    """
    with EntryCacheManager(
        copy_entries=copy, max_requeue_count=0, extend_ttl_of_recently_accessed=False
    ) as manager:
        cache = manager.range_cache("a")
        slices: list[tuple[BufferSlice, tuple[int, int]]] = []
        cached: dict[int, tuple[int, tuple[int, int]]] = {}
        for number, (what, a, b) in enumerate(steps):
            if what == "receive":
                parts = [b"p" * (a // 3)] * 3
                slices += [(item, (number, a + b)) for item in received(manager, a + b, *parts)]
            elif what == "put" and slices:
                part, buffer = slices[a % len(slices)]
                assert cache.put((1, b), part) == (b not in cached)
                cached.setdefault(b, (len(part), buffer))
            elif what == "remove":
                cache.remove_range((1, a), (1, a))
                cached.pop(a, None)
            elif what == "evict":
                freed = 0
                for position in list(cached):
                    if freed >= a:
                        break
                    freed += cached.pop(position)[0]
                manager.evict_bytes(a)
            counted = sum(length for length, _ in cached.values())
            pinned = (
                counted if copy else sum(dict(buffer for _, buffer in cached.values()).values())
            )
            assert (manager.size, manager.pinned_size) == (counted, pinned)


def test_both_sizes_are_exact_after_threads() -> None:
    """Threads cache slices of common buffers under positions they compete for, and remove them."""
    threads, rounds = 4, 300
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        shared = [received(manager, 128 + number, *[b"x" * 10] * 4) for number in range(8)]
        barrier = threading.Barrier(threads)

        def work(seed: int) -> None:
            barrier.wait()
            for turn in range(rounds):
                which = (turn * 7 + seed * 13) % 32
                cache.put((1, which), shared[which % 8][which // 8])
                if turn % 3 == seed % 3:
                    cache.remove_range((1, (which * 5) % 32), (1, (which * 5) % 32 + 3))
                if turn % 50 == 0:
                    manager.evict_bytes(35)

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        entries = cache.get_range((1, 0), (1, 31))
        assert manager.size == 10 * len(entries)
        assert manager.pinned_size == sum({128 + entry.entry_id % 8 for entry in entries})
        cache.clear()
        assert (manager.size, manager.pinned_size) == (0, 0)


def test_misuse_is_named() -> None:
    with EntryCacheManager() as manager, EntryCacheManager() as other:
        buffer = manager.receive_buffer(10)
        assert (buffer.capacity, len(buffer), buffer.write(b"abcdef")) == (10, 0, 0)
        with pytest.raises(InvalidSizeError, match="5 bytes do not fit; 4 of 10 are left"):
            buffer.write(b"12345")
        with pytest.raises(InvalidSizeError, match=r"bytes 4\.\.8 were not received; 6 were"):
            buffer.slice(4, 4)
        with pytest.raises(InvalidSizeError):
            buffer.slice(-1, 2)
        part = buffer.slice(1, 3)
        assert len(part) == 3
        for give in (
            lambda: other.entry((1, 1), part),
            lambda: other.range_cache("a").put((1, 1), part),
        ):
            with pytest.raises(UsageError, match="another manager"):
                give()
        buffer.release()
        for use in (
            lambda: buffer.write(b""),
            lambda: buffer.slice(0, 0),
            lambda: len(buffer),
            buffer.release,
        ):
            with pytest.raises(ReleasedError):
                use()
        with pytest.raises(InvalidSizeError, match=r"outside 1..1073741824"):
            manager.receive_buffer(0)
        for item in (ReceiveBuffer, BufferSlice):
            with pytest.raises(TypeError):
                item()


def test_a_slice_outlives_its_manager() -> None:
    manager = EntryCacheManager()
    (part,) = received(manager, 50, b"bytes")
    entry = manager.entry((1, 1), part)
    manager.close()
    del manager, part
    assert bytes(entry) == b"bytes"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    bounds=st.lists(st.integers(1, 2**30), min_size=3, max_size=3).map(sorted),
    reads=st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 2000) | st.just(-1), max_size=40),
)
def test_the_size_of_the_next_buffer_is_the_models(bounds: list[int], reads: list[int]) -> None:
    minimum, initial, maximum = bounds
    size, guess = (
        ReceiveBufferSize(minimum=minimum, initial=initial, maximum=maximum),
        Guess(*bounds),
    )
    for read in reads:
        read = size.next if read < 0 else read
        size.record(read)
        guess.record(read)
        assert size.next == guess.next()


def test_the_documented_sizes() -> None:
    size = ReceiveBufferSize()
    seen = [size.next]
    for _ in range(3):
        size.record(size.next)
        seen.append(size.next)
    assert seen == [16384, 262144, 1048576, 1048576]
    for _ in range(30):
        size.record(100)
    assert size.next == 1024
    for wrong in ({"minimum": 0}, {"initial": 512}, {"maximum": 8192}, {"maximum": 2**31}):
        with pytest.raises(InvalidSizeError, match="not in order"):
            ReceiveBufferSize(**wrong)
