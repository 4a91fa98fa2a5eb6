"""Positions as Python values, and what the cache accepts as one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml import Evicted, InvalidPositionError, Position, RangeCache, Removed
from tests.core.conftest import FIXED
from tests.core.present import present

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# Around the edges of pages (64 ids), branches (4,096 ids) and of 64-bit numbers.
EDGES = sorted(
    {
        edge + step
        for edge in (0, 64, 128, 4096, 8192, 2**31, 2**32, INT64_MAX - 4096, INT64_MAX - 64)
        for step in (-2, -1, 0, 1)
        if edge + step >= 0
    }
    | {INT64_MAX - 1, INT64_MAX}
)
LEDGERS = [0, 1, 2, 7, INT64_MAX - 1, INT64_MAX]

stored = st.tuples(
    st.sampled_from(LEDGERS) | st.integers(0, 3),
    st.sampled_from(EDGES) | st.integers(0, 200) | st.integers(0, INT64_MAX),
)
bounds = stored | st.tuples(
    st.sampled_from([INT64_MIN, -1, *LEDGERS]), st.sampled_from([INT64_MIN, -2, -1, *EDGES])
)


@FIXED
@given(st.tuples(bounds, bounds))
def test_positions_order_and_compare_like_tuples(
    pair: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    a, b = Position(*pair[0]), Position(*pair[1])
    assert (a < b, a == b, a > b) == (pair[0] < pair[1], pair[0] == pair[1], pair[0] > pair[1])
    assert hash(a) == hash(pair[0])


def test_positions_are_values_with_names() -> None:
    position = Position(ledger_id=7, entry_id=3)
    assert position == (7, 3)
    assert str(position) == "7:3"
    assert position._replace(entry_id=4) == Position(7, 4)
    by_pair: dict[tuple[int, int], str] = {position: "x"}
    assert by_pair[7, 3] == "x"


def test_results_are_values_with_names() -> None:
    assert Removed(entries=2, bytes=20) == (2, 20)
    assert Evicted(entries=1, bytes=2, requeued=3, missing=4) == (1, 2, 3, 4)


@pytest.mark.parametrize("at", [Position(7, 3), (7, 3), [7, 3], (7, True)], ids=repr)
def test_any_pair_of_integers_serves_as_a_position(cache: RangeCache, at: Any) -> None:
    assert cache.put(at, b"x")
    assert at in cache
    with present(cache.get(at)) as entry:
        assert entry.position == tuple(at)
    assert len(cache.get_range(at, at)) == 1
    assert cache.remove_range(at, at) == (1, 1)


class Odd:
    """An integer-like object, as NumPy has them."""

    def __index__(self) -> int:
        return 5


def test_integer_like_ids_serve(cache: RangeCache) -> None:
    import numpy

    at: Any = (Odd(), numpy.int64(3))
    assert cache.put(at, b"x")
    assert (5, 3) in cache


NOT_POSITIONS = [
    None, 5, (), (1,), (1, 2, 3), "ab", ("1", "2"), (1.0, 2), (1, 2.5), (1, None), int,
    {1: 2}, b"a",
]  # fmt: skip
TOO_LARGE = [(2**63, 0), (0, 2**63), (-(2**63) - 1, 0), (0, 2**200)]
NOT_STORED = [(-1, 0), (0, -1), (INT64_MIN, INT64_MIN)]


def calls_with(cache: RangeCache, at: Any) -> dict[str, Any]:
    return {
        "put": lambda: cache.put(at, b"x"),
        "get": lambda: cache.get(at),
        "in": lambda: at in cache,
        "get_range first": lambda: cache.get_range(at, (9, 9)),
        "get_range last": lambda: cache.get_range((0, 0), at),
        "visit_range": lambda: cache.visit_range((0, 0), at, print),
        "iterate": lambda: cache.iterate(at, (9, 9)),
        "remove_range first": lambda: cache.remove_range(at, (9, 9)),
        "remove_range last": lambda: cache.remove_range((0, 0), at),
    }


@pytest.mark.parametrize("at", NOT_POSITIONS, ids=repr)
def test_what_is_no_pair_of_integers_is_refused_everywhere(cache: RangeCache, at: Any) -> None:
    cache.put((1, 1), b"kept")
    for call in calls_with(cache, at).values():
        with pytest.raises(
            InvalidPositionError, match=r"a Position or a \(ledger_id, entry_id\) pair"
        ):
            call()
    assert cache.clear() == (1, 4)


@pytest.mark.parametrize("at", TOO_LARGE, ids=repr)
def test_ids_beyond_64_bits_are_refused_everywhere(cache: RangeCache, at: tuple[int, int]) -> None:
    cache.put((1, 1), b"kept")
    for call in calls_with(cache, at).values():
        with pytest.raises(InvalidPositionError, match="does not fit signed 64-bit ids"):
            call()
    assert cache.clear() == (1, 4)


@pytest.mark.parametrize("at", NOT_STORED, ids=repr)
def test_negative_ids_are_bounds_and_no_stored_positions(
    cache: RangeCache, at: tuple[int, int]
) -> None:
    cache.put((1, 1), b"kept")
    calls = calls_with(cache, at)
    for name in ("put", "get", "in"):
        with pytest.raises(InvalidPositionError, match="both ids must be >= 0"):
            calls[name]()
    assert len(cache.get_range(at, (9, 9))) == 1
    assert cache.get_range(at, at) == []
    assert cache.size == 4


def test_an_error_of_the_pair_itself_passes_through(cache: RangeCache) -> None:
    class Broken:
        def __iter__(self) -> None:
            raise KeyError("of the pair")

    with pytest.raises(KeyError, match="of the pair"):
        broken: Any = Broken()
        cache.get(broken)


def test_the_error_names_the_argument_and_its_value(cache: RangeCache) -> None:
    with pytest.raises(InvalidPositionError, match=r"^last must be .*, not 'x'$"):
        wrong: Any = "x"
        cache.get_range((0, 0), wrong)
    with pytest.raises(InvalidPositionError, match=r"^the range 2:0 .. 1:9 ends before it begins$"):
        cache.get_range((2, 0), (1, 9))
