"""Parsed values of entries: parsed once, shared by copies, dropped with the last entry."""

from __future__ import annotations

import gc
import weakref

import pytest

from pulsar_ml import EntryCacheManager, ReleasedError


class Parsed:
    """A value that tells when it is gone."""

    def __init__(self, data: memoryview) -> None:
        self.text = bytes(data)


def test_a_value_is_parsed_once_and_shared_by_later_copies() -> None:
    calls: list[bytes] = []

    def parse(data: memoryview) -> Parsed:
        calls.append(bytes(data))
        return Parsed(data)

    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        with manager.entry((1, 0), b"bytes") as entry, entry.copy() as earlier:
            assert entry.message_metadata is None
            value = entry.initialize_message_metadata(parse)
            assert entry.initialize_message_metadata(parse) is value is entry.message_metadata
            assert earlier.message_metadata is None
            cache.put((1, 0), entry)
            assert bytes(entry) == b"bytes"
        hit = cache.get((1, 0))
        assert hit is not None
        with hit, hit.copy() as dispatched:
            assert dispatched.message_metadata is value
            assert bytes(dispatched) == b"bytes"
        assert calls == [b"bytes"]
        gone = weakref.ref(value)
        del value
        gc.collect()
        assert gone() is not None
        cache.clear()
        assert gone() is None


def test_an_eviction_drops_the_value() -> None:
    with EntryCacheManager() as manager:
        cache = manager.range_cache("a")
        cache.put((1, 0), b"bytes", timestamp_ns=0)
        hit = cache.get((1, 0))
        assert hit is not None
        with hit:
            gone = weakref.ref(hit.initialize_message_metadata(Parsed))
        manager.configure(extend_ttl_of_recently_accessed=False)
        manager.evict_entries_before(1)
        assert gone() is None


def test_a_parser_that_raises_or_releases_attaches_nothing() -> None:
    def fails(data: memoryview) -> None:
        raise KeyError("no metadata")

    with EntryCacheManager() as manager:
        entry = manager.entry((1, 0), b"bytes")
        with pytest.raises(KeyError):
            entry.initialize_message_metadata(fails)
        assert entry.message_metadata is None
        with pytest.raises(ReleasedError):
            entry.initialize_message_metadata(lambda data: entry.release())
        with pytest.raises(ReleasedError):
            entry.message_metadata  # noqa: B018


def test_the_first_of_two_parsers_wins() -> None:
    with EntryCacheManager() as manager, manager.entry((1, 0), b"bytes") as entry:
        refused: list[weakref.ref[Parsed]] = []

        def parse(data: memoryview) -> Parsed:
            value = Parsed(data)
            if not refused:
                refused.append(weakref.ref(value))
                entry.initialize_message_metadata(parse)
            return value

        value = entry.initialize_message_metadata(parse)
        assert value is entry.message_metadata
        assert refused[0]() is None


def test_none_is_a_value_that_is_parsed_once() -> None:
    calls: list[int] = []
    with EntryCacheManager() as manager, manager.entry((1, 0), b"bytes") as entry:
        for _ in range(2):
            assert entry.initialize_message_metadata(lambda data: calls.append(len(data))) is None
        assert calls == [5]


def test_bytes_of_their_own_have_no_value_of_others() -> None:
    with EntryCacheManager(copy_entries=True) as manager:
        cache = manager.range_cache("a")
        with manager.entry((1, 0), b"bytes") as entry:
            entry.initialize_message_metadata(Parsed)
            cache.put((1, 0), entry)
        hit = cache.get((1, 0))
        assert hit is not None
        with hit:
            assert hit.message_metadata is None
