"""Calls for many positions at once: the same answers as one call for each, and errors by name."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pulsar_ml import AckState, EntryCacheManager, Position, RangeCache
from pulsar_ml.errors import ClosedError, InvalidPositionError, InvalidSizeError, UsageError


@pytest.fixture
def manager() -> Iterator[EntryCacheManager]:
    with EntryCacheManager(max_size=None, clock=lambda: 5) as manager:
        yield manager


@pytest.fixture
def cache(manager: EntryCacheManager) -> RangeCache:
    return manager.range_cache("a")


def native_array(*ids: int) -> memoryview:
    flat = memoryview(array("q", ids).tobytes())
    return flat.cast("q", (len(ids) // 2, 2))


FORMS = [
    [(7, 1), (7, 9), Position(7, 2)],
    np.array([[7, 1], [7, 9], [7, 2]]),
    native_array(7, 1, 7, 9, 7, 2),
    (pair for pair in [(7, 1), (7, 9), (7, 2)]),
]


@pytest.mark.parametrize("places", FORMS, ids=["list", "numpy", "memoryview", "generator"])
def test_all_forms_of_positions_are_read_alike(cache: RangeCache, places: object) -> None:
    assert cache.put_all([(7, 1), (7, 2)], [b"one", bytearray(b"two")]) == 2
    first, missing, second = cache.get_all(places)  # type: ignore[arg-type]
    assert missing is None
    assert first is not None
    assert second is not None
    assert (bytes(first), bytes(second)) == (b"one", b"two")
    assert (first.position, second.position) == (Position(7, 1), Position(7, 2))
    assert first.references == 2


def test_put_all_counts_what_was_not_cached_and_keeps_what_was(
    cache: RangeCache, manager: EntryCacheManager
) -> None:
    cache.put((7, 2), b"old")
    assert cache.put_all([(7, 1), (7, 2), (7, 3)], [b"a", b"new", b""], expected_reads=2) == 2
    found = cache.get_all([(7, 1), (7, 2), (7, 3)])
    assert [None if entry is None else bytes(entry) for entry in found] == [b"a", b"old", b""]
    assert [entry.expected_reads for entry in found if entry] == [2, 2, 2]  # the old adopts
    assert manager.stats().inserted_entries == 3
    assert manager.stats().hits == 3


def test_nothing_is_a_call_for_none(cache: RangeCache) -> None:
    assert cache.put_all([], []) == 0
    assert cache.get_all(np.empty((0, 2), np.int64)) == []
    assert AckState((7, -1)).acknowledge_all(()) == 0


WRONG = [
    [(1.0, 2)],
    [(7, 2**63)],
    [(7, 1), (-1, 0)],
    [None],
    ["\ud800x"],
    5,
    None,
    b"bytes",
    np.zeros((3, 2)),
    np.zeros((3, 3), np.int64),
    np.zeros(4, np.int64),
    np.zeros((3, 2), np.uint64),
    np.zeros((3, 2), np.int32),
    np.zeros((3, 2), ">i8"),
    np.zeros((3, 4), np.int64)[:, ::2],
    np.array([[7, 1], [7, -1]]),
]
CALLS: list[Callable[[RangeCache, AckState, object], object]] = [
    lambda cache, _, places: cache.get_all(places),  # type: ignore[arg-type]
    lambda cache, _, places: cache.put_all(places, [b"x", b"y"]),  # type: ignore[arg-type]
    lambda cache, _, places: cache.remove_all(places),  # type: ignore[arg-type]
    lambda _, state, places: state.acknowledge_all(places),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("places", WRONG, ids=[str(number) for number in range(len(WRONG))])
@pytest.mark.parametrize("call", CALLS, ids=["get_all", "put_all", "remove_all", "acknowledge_all"])
def test_wrong_positions_are_named_before_anything_changes(
    cache: RangeCache, call: Callable[..., object], places: object
) -> None:
    state = AckState((7, -1))
    with pytest.raises(InvalidPositionError):
        call(cache, state, places)
    assert cache.size == 0
    assert state.ranges() == []


def test_other_arguments_of_put_all_are_checked_first(cache: RangeCache) -> None:
    places = [(7, 1), (7, 2)]
    with pytest.raises(UsageError, match="2 positions have 1 values"):
        cache.put_all(places, [b"x"])
    for wrong in ("text", 1.5, None):
        with pytest.raises(TypeError):
            cache.put_all(places, [b"x", wrong])  # type: ignore[list-item]
    for number in (-1, 2**31):
        with pytest.raises(InvalidSizeError):
            cache.put_all(places, [b"x", b"y"], expected_reads=number)
    with pytest.raises(TypeError):
        cache.put_all(places, [b"x", b"y"], expected_reads=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidSizeError):
        cache.put_all(places, [b"x", b"y"], timestamp_ns=2**63)
    assert cache.size == 0


def test_views_of_the_values_end_with_the_call(cache: RangeCache) -> None:
    value = bytearray(b"x")
    cache.put_all([(7, 1)], [value])
    with pytest.raises(TypeError):
        cache.put_all([(7, 2), (7, 3)], [value, 3])  # type: ignore[list-item]
    value.append(1)  # BufferError if a view were left


def test_a_closed_cache_refuses(cache: RangeCache) -> None:
    def closing() -> Iterator[tuple[int, int]]:
        yield 7, 1
        cache.close()

    with pytest.raises(ClosedError):
        cache.put_all(closing(), [b"x"])
    for call in (cache.get_all, cache.remove_all, lambda places: cache.put_all(places, [b"x"])):
        with pytest.raises(ClosedError):
            call([(7, 1)])
    assert cache.size == 0


def test_acknowledgements_of_many_count_the_new_ones_and_resume_once() -> None:
    resumed: list[int] = []
    state = AckState((7, -1), on_resume=lambda: resumed.append(1))
    assert state.acknowledge((7, 1))
    assert state.acknowledge_all(np.array([[7, 0], [7, 1], [7, 3], [7, 3]])) == 2
    assert state.mark_delete_position == Position(7, 1)
    assert state.ranges() == [(Position(7, 3), Position(7, 3))]


def test_an_entry_behind_the_end_of_its_ledger_is_named_and_nothing_changes() -> None:
    resumed: list[int] = []
    state = AckState((7, -1), on_resume=lambda: resumed.append(1))
    state.end_ledger(7, 5, 8)
    with pytest.raises(InvalidPositionError, match=r"positions\[1\]: there is no entry 7:6"):
        state.acknowledge_all([(7, 4), (7, 6), (7, 3)])
    assert state.ranges() == []
    assert state.acknowledge_all([(7, 4), (7, 3)]) == 2


def test_remove_all_removes_what_is_cached(cache: RangeCache, manager: EntryCacheManager) -> None:
    cache.put_all([(7, 1), (7, 2), (8, 3)], [b"a", b"bc", b"def"])
    held = cache.get((7, 2))
    assert cache.remove_all(np.array([[7, 2], [9, 9], [8, 3], [7, 2]])) == (2, 5)
    assert [each.position for each in cache.iterate_cached((0, 0), (9, 9))] == [(7, 1)]
    assert held is not None and bytes(held) == b"bc"
    assert manager.stats().evicted_entries == 2
    assert cache.remove_all([]) == (0, 0)


@pytest.mark.parametrize("number", [0, 2])
def test_the_first_wrong_element_is_named(cache: RangeCache, number: int) -> None:
    places: list[object] = [(7, 1), (7, 2), (7, 3)]
    values: list[object] = [b"x", b"y", b"z"]
    state = AckState((7, -1))
    calls: list[Callable[[Any], object]] = [
        lambda places: cache.put_all(places, [b"x", b"y", b"z"]),
        cache.get_all,
        cache.remove_all,
        state.acknowledge_all,
    ]
    cache.put((7, 3), b"cached")
    for wrong in ("text", (7, -1), (7, 2**63), (7, 1.5)):
        broken = [*places[:number], wrong, *places[number + 1 :]]
        for call in calls:
            with pytest.raises(InvalidPositionError, match=rf"^positions\[{number}\]"):
                call(broken)
    array_of_ids = np.array([[7, 1], [7, 2], [7, 3]])
    array_of_ids[number, 1] = -5
    for call in calls:
        with pytest.raises(InvalidPositionError, match=rf"^positions\[{number}\] 7:-5"):
            call(array_of_ids)
    values[number] = "text"
    with pytest.raises(TypeError, match=rf"values\[{number}\]='text'"):
        cache.put_all(places, values)  # type: ignore[arg-type]
    assert cache.size == len(b"cached")
    assert state.ranges() == []
