"""Models of concurrent answers accept the answers of one thread, and refuse wrong twins."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import pytest

from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations import _native
from pulsar_ml.specs import (
    answer,
    entry,
    manager_answers,
    object_pool,
    pass_answers,
    policy_answers,
    read_count,
    refcount,
    stamped_lock,
    wrapper_answers,
)
from tests.answers import Row, history

ANSWERS = {
    "entry_wrapper": wrapper_answers,
    "range_cache": importlib.import_module("pulsar_ml.specs.range_answers"),
    "removal_queue": pass_answers,
    "eviction_policy": policy_answers,
    "cache_manager": manager_answers,
}
RELEASED_QUEUE = 1  # the policy whose read counts go below zero
CACHES = {"caches": 1, "keys": 8, "length_shift": 0, "policy": 0, "max_size": 4096, "watermark": 90}


def refused(model: Any, settings: dict[str, int], *rows: Row, fresh: bool = False) -> bool:
    return ModelJudge(model.Model).message(history(rows, settings), 3, fresh=fresh) != ""


@pytest.mark.parametrize("structure", ANSWERS)
@pytest.mark.parametrize("fresh", [False, True])
def test_what_threads_get_one_after_the_other_is_accepted(structure: str, fresh: bool) -> None:
    subject = _native.SUBJECTS[structure]
    strict = importlib.import_module(f"pulsar_ml.specs.{structure}").Model
    for seed in range(8):
        program = Program.generate(
            subject, seed, threads=3, operations=40, settings={"keys": (4, 8)}
        )
        model, rows = strict(program.settings, 3), []
        for row in range(40):
            for thread, lane in enumerate(program.threads):
                operation = subject.operations[int(lane[row]["code"])]
                arguments = tuple(
                    int(word) for word in lane[row]["arguments"][: len(operation.arguments)]
                )
                rows.append((operation.name, arguments, thread))
        recorded: list[Row] = []
        for moment, (name, arguments, thread) in enumerate(rows):
            seen = model.step(name, arguments, thread=thread)
            recorded.append((thread, name, arguments, seen, 2 * moment, 2 * moment + 1))
        message = ModelJudge(ANSWERS[structure].Model).message(
            history(recorded, dict(program.settings)), 3, fresh=fresh
        )
        assert message == "", f"seed {seed}: {message}"


def fill(value: int, start: int, thread: int = 0) -> Row:
    return (thread, "fill", (0,), answer(0, value), start, start + 1)


def value(number: int, thread: int = 0) -> int:
    return ((number * 3 + thread) << 4) + 1


FIRST = fill(value(1), 1)
CLEARED: Row = (1, "clear", (0,), answer(0, value(1) % 1009 + 1, 0, 0), 3, 4)


def read(status: int, word: int, start: int, thread: int = 0) -> Row:
    return (thread, "read", (0,), answer(status, word), start, start + 1)


def drain(recycled: int, requeued: int, start: int, end: int) -> Row:
    return (0, "drain", (4,), answer(0, recycled, requeued), start, end)


@pytest.mark.parametrize(
    ("rows", "legal"),
    [
        ([FIRST, read(0, value(1), 5)], True),
        ([FIRST, read(0, value(2), 5)], False),  # never filled in
        ([FIRST, read(2, 0, 5)], False),  # nobody cleared it
        ([FIRST, read(0, 0, 5)], False),
        ([FIRST, read(2, 0, 5, thread=2)], True),  # who does not know of it
        ([FIRST, CLEARED, read(0, value(1), 5)], True),  # who does not know that it is gone
        ([FIRST, CLEARED, read(0, value(1), 5, thread=1)], False),  # who cleared it
        ([FIRST, CLEARED, CLEARED], False),  # cleared twice
        ([FIRST, drain(0, 0, 5, 6)], False),  # it is queued
        ([FIRST, drain(1, 0, 5, 6)], False),  # and not empty
        ([FIRST, drain(0, 4, 5, 6)], True),
        ([FIRST, CLEARED, drain(1, 0, 5, 6)], True),
        ([FIRST, CLEARED, drain(0, 1, 5, 6)], False),  # a requeue that the clear has not shown
    ],
)
def test_what_wrappers_may_answer(rows: Sequence[Row], legal: bool) -> None:
    assert refused(wrapper_answers, {"keys": 1}, *rows) is not legal


def test_a_pass_takes_what_it_says_and_leaves_nothing_it_could_have_taken() -> None:
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    missed: Row = (0, "get", (0, 3), answer(0), 9, 10)
    found: Row = (0, "get", (0, 3), answer(1, 1, 0, 2), 9, 10)

    def free(entries: int, size: int, thread: int = 1) -> Row:
        return (thread, "free", (20, 0), answer(0, entries, size, 0, 0), 3, 4)

    assert not refused(pass_answers, CACHES, put, free(1, 48), missed)
    assert refused(pass_answers, CACHES, put, free(0, 0), missed)
    assert refused(pass_answers, CACHES, put, free(1, 40), missed)
    assert refused(pass_answers, CACHES, put, free(1, 48), found, fresh=True)
    assert refused(pass_answers, CACHES, put, free(0, 0, thread=0))  # it knew of it
    assert not refused(
        pass_answers, CACHES | {"policy": 3}, put, free(0, 0, thread=0)
    )  # the scan may


@pytest.mark.parametrize("queued", [False, True], ids=["under way", "seen in the cache"])
def test_a_pass_may_leave_what_only_a_duplicate_showed(queued: bool) -> None:
    put: Row = (1, "put", (0, 3, 0), answer(0, 1 << 40 | 1, 48), 1, 20)
    duplicate: Row = (0, "put", (0, 3, 0), answer(1), 3, 4)
    seen: Row = (0, "get", (0, 3), answer(1, 1 << 40 | 1, 0, 2), 5, 6)
    free: Row = (0, "free", (20, 0), answer(0), 7, 8)
    rows = (put, duplicate, *[seen] * queued, free)
    for fresh in (False, True):
        waits = refused(pass_answers, CACHES, *rows, fresh=fresh)
        released = CACHES | {"policy": RELEASED_QUEUE}
        assert refused(pass_answers, released, *rows, fresh=fresh) is queued
        assert waits is (fresh or queued)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("shown", "legal"), [(1, True), (2, True), (3, False)])
def test_a_raised_count_is_seen_before_it_is_answered(fresh: bool, shown: int, legal: bool) -> None:
    """Thread 0 raises the count to 1, thread 1 sees that and raises it to 2, thread 0 answers."""
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    rows: list[Row] = [
        put,
        (0, "hold", (0, 3, 1), answer(1, 1, 0, 2), 3, 4),
        (0, "expect", (1,), answer(1, 1, shown), 5, 20),
        (1, "hold", (0, 3, 1), answer(1, 1, 1, 3), 6, 7),
        (1, "expect", (1,), answer(1, 1, 2), 8, 9),
    ]
    for model in (ANSWERS["range_cache"], pass_answers, manager_answers):
        assert refused(model, CACHES, *rows, fresh=fresh) is not legal


@pytest.mark.parametrize(
    "structure", ["range_cache", "removal_queue", "eviction_policy", "cache_manager"]
)
@pytest.mark.parametrize("fresh", [False, True])
def test_a_dispatch_ends_after_its_copy_was_seen_to_be_released(
    structure: str, fresh: bool
) -> None:
    put: Row = (1, "put", (0, 3, 0), answer(0, 1 << 40 | 1, 48), 1, 2)
    said: Row = (2, "put", (0, 3, 2), answer(1), 8, 9)

    def dispatch(left: int, start: int = 3) -> Row:
        return (1, "dispatch", (0, 3, -1), answer(1, 1 << 40 | 1, 0, 2, left), start, 20)

    def get(expected: int) -> Row:
        return (0, "get", (0, 3), answer(1, 1 << 40 | 1, expected, 3), 5, 6)

    def wrong(*rows: Row) -> bool:
        below_zero = CACHES | {"policy": RELEASED_QUEUE}
        return refused(ANSWERS[structure], below_zero, *rows, fresh=fresh)

    assert not wrong(put, dispatch(2), get(-1), said)
    assert wrong(put, dispatch(2), get(-2), said)  # more copies than there are
    assert wrong(put, dispatch(2, start=7), get(-1), said)  # before there is one
    assert wrong(put, dispatch(3), get(-1), said)  # more reads than were said
    assert wrong(put, dispatch(2), get(-1))
    assert wrong(
        put, (1, "dispatch", (0, 3, -1), answer(0), 3, 20), get(-1)
    )  # a miss makes no copy


@pytest.mark.parametrize("look", [("get", (0,)), ("dispatch", (0, 4))])
def test_the_last_miss_is_held_against_what_was_told(look: tuple[str, tuple[int, ...]]) -> None:
    rows: list[Row] = [
        (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2),
        (0, "put", (0, 4, 0), answer(0, 2, 56), 3, 4),
        (1, "free", (20, 0), answer(0, 1, 48, 0, 0), 5, 6),
    ]
    name, arguments = look
    for key, legal in ((3, True), (4, False)):
        miss: Row = (0, name, (arguments[0], key, *arguments[1:]), answer(0), 7, 8)
        for fresh in (False, True):
            assert refused(pass_answers, CACHES, *rows, miss, fresh=fresh) is not legal


def test_what_is_found_is_found_before_its_counts_are_read() -> None:
    entry_1, entry_2 = 1 << 40 | 1, 2 << 40 | 1
    rows: list[Row] = [
        (1, "put", (0, 3, 0), answer(0, entry_1, 48), 1, 2),
        (1, "hold", (0, 3, 5), answer(1, entry_1, 0, 2), 3, 4),
        (1, "remove_range", (0, 3, 0), answer(0, 0, 0, 1, 48), 7, 8),
        (2, "put", (0, 3, 0), answer(0, entry_2, 48), 9, 10),
        (1, "expect", (5,), answer(1, entry_1, 1), 11, 12),
    ]

    def get(expected: int, start: int) -> Row:
        return (0, "get", (0, 3), answer(1, entry_1, expected, 2), start, 14)

    ranges = ANSWERS["range_cache"]
    assert not refused(ranges, CACHES, *rows, get(1, 5), fresh=True)
    assert refused(ranges, CACHES, *rows, get(2, 5), fresh=True)
    assert refused(ranges, CACHES, *rows, get(1, 13), fresh=True)  # it is gone by then
    assert not refused(ranges, CACHES, *rows, get(1, 13))  # not for those who do not know


def test_what_was_released_too_often_may_be_anything_and_other_keys_may_not() -> None:
    ranges = ANSWERS["range_cache"]
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    other: Row = (0, "put", (0, 4, 0), answer(0, 2, 56), 3, 4)
    broken: Row = (0, "over_release", (0, 3), answer(1, 1, 0, 2), 5, 6)
    cleared: Row = (0, "clear", (0,), answer(0, 0, 0, 2, 104), 9, 10)

    def missed(key: int) -> Row:
        return (0, "get", (0, key), answer(0), 7, 8)

    assert not refused(ranges, CACHES, put, other, broken, missed(3), cleared)
    assert refused(ranges, CACHES, put, other, broken, missed(4), cleared)
    assert refused(ranges, CACHES, put, (0, "over_release", (0, 3), answer(1, 2, 0, 2), 5, 6))
    assert refused(ranges, CACHES, put, (0, "over_release", (0, 3), answer(0), 5, 6))


def test_a_digest_tells_who_went() -> None:
    puts: list[Row] = [
        (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2),
        (0, "put", (0, 4, 0), answer(0, 2, 56), 3, 4),
    ]
    free: Row = (1, "free", (20, 8), answer(0, 1, 48, 0, 4), 5, 6)
    assert not refused(policy_answers, CACHES, *puts, free, (0, "get", (0, 3), answer(0), 7, 8))
    assert refused(policy_answers, CACHES, *puts, free, (0, "get", (0, 4), answer(0), 7, 8))
    other: Row = (1, "free", (20, 8), answer(0, 1, 48, 0, 7), 5, 6)
    assert refused(policy_answers, CACHES, *puts, other)


def test_a_manager_evicts_only_above_its_threshold() -> None:
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    missed: Row = (0, "get", (0, 3), answer(0), 9, 10)
    small = CACHES | {"max_size": 40}
    assert not refused(manager_answers, small, put, missed)
    assert refused(manager_answers, CACHES, put, missed)
    assert not refused(manager_answers, CACHES, put, (1, "tick", (), answer(0), 3, 4), missed)
    disabled: Row = (1, "configure", (0, 90, 0), answer(0), 3, 4)
    assert not refused(manager_answers, CACHES, put, disabled, missed)


@pytest.mark.parametrize(
    ("counts", "legal"),
    [((48, 1, 0, 0), True), ((48, 2, 0, 0), False), ((48, 0, 0, 0), False), ((48, 1, 1, 0), False),
     ((96, 1, 0, 0), False)],
)  # fmt: skip
def test_counters_were_true_at_some_moment(counts: tuple[int, ...], legal: bool) -> None:
    put: Row = (0, "put", (0, 3, 0), answer(0, 1, 48), 1, 2)
    stats: Row = (0, "stats", (), answer(0, *counts), 3, 4)
    assert refused(manager_answers, CACHES, put, stats) is not legal


def test_counters_of_one_answer_are_of_different_moments() -> None:
    rows: list[Row] = [
        (1, "put", (0, 4, 0), answer(0, 1 << 40 | 1, 56), 1, 2),
        (1, "remove_range", (0, 4, 0), answer(0, 0, 0, 1, 56), 5, 6),
        (1, "put", (0, 0, 0), answer(0, 1 << 40 | 2, 24), 7, 8),
    ]

    def stats(size: int, start: int) -> Row:
        return (0, "stats", (), answer(0, size, 2, 0, 0), start, 9)

    assert not refused(manager_answers, CACHES, *rows, stats(56, 3), fresh=True)
    assert refused(manager_answers, CACHES, *rows, stats(104, 3), fresh=True)
    assert refused(
        manager_answers, CACHES, *rows, (0, "stats", (), answer(0, 56, 2, 0, 0), 9, 10), fresh=True
    )


def test_a_stamp_is_refused_for_a_write_section_only() -> None:
    changed: Row = (0, "read_optimistic", (), answer(1), 3, 4)
    shared: Row = (1, "read_shared", (), answer(0), 2, 5)
    assert refused(stamped_lock, {}, shared, changed)
    assert not refused(stamped_lock, {}, (1, "write", (5,), answer(0, 5, 1), 2, 5), changed)
    assert refused(
        stamped_lock, {}, (0, "write", (5,), answer(0, 5, 1), 1, 2), changed
    )  # its own is over


def test_a_pool_is_exhausted_only_if_no_object_was_free() -> None:
    taken: list[Row] = [(0, "take", (), answer(0, number), number, number) for number in (1, 2)]
    back: Row = (0, "give", (0,), answer(0, 1), 3, 4)
    refusal: Row = (0, "take", (), answer(1, 1), 5, 6)
    assert refused(object_pool, {"limit": 3}, *taken, back, refusal)
    between: Row = (1, "take", (), answer(0, 1), 4, 7)
    assert not refused(object_pool, {"limit": 3}, *taken, back, between, refusal)


def test_publish_and_retain_are_refused_for_an_owner_only() -> None:
    objects = {"objects": 1}
    published: Row = (0, "publish", (0,), answer(0, 1, 1), 1, 2)
    last: Row = (0, "release", (0, 1), answer(3), 3, 4)
    assert refused(refcount, objects, (0, "publish", (0,), answer(1), 1, 2))
    assert not refused(refcount, objects, published, (1, "publish", (0,), answer(1), 3, 4))
    assert refused(refcount, objects, published, last, (0, "publish", (0,), answer(1), 5, 6))
    assert not refused(refcount, objects, published, last, (1, "publish", (0,), answer(1), 5, 6))
    held: Row = (1, "retain", (0,), answer(0, 1, 1), 3, 4)
    back: Row = (1, "release", (0, 1), answer(0), 5, 6)
    refusal: Row = (1, "retain", (0,), answer(1), 7, 8)
    assert refused(refcount, objects, published, held, back, refusal)
    assert not refused(refcount, objects, published, refusal)


def test_a_release_is_not_the_last_only_beside_somebody_with_a_stale_handle() -> None:
    settings = {"limit": 8, "counts_of_4": 0, "shared": 0}
    new: Row = (0, "new", (0, 0, 0), answer(0, 1), 1, 2)
    released: Row = (0, "release", (0,), answer(0), 5, 8)
    assert refused(entry, settings, new, released)
    before: list[Row] = [
        (1, "new", (0, 0, 0), answer(0, 1), 1, 2),
        (1, "release", (0,), answer(4), 3, 4),
    ]
    stale: Row = (1, "retain_stale", (), answer(0), 6, 7)
    assert not refused(entry, settings, new, *before, stale, released)


@pytest.mark.parametrize("look", ["value", "mark_read"])
@pytest.mark.parametrize(
    ("thread", "passed", "legal"),
    [(1, "before", True), (1, "after", False), (0, "before", False)],
    ids=["of another thread", "known with the reference", "of its own"],
)
def test_a_count_may_be_as_old_as_its_holder_knows(
    look: str, thread: int, passed: str, legal: bool
) -> None:
    increment: tuple[Any, ...] = (0, "increment", (0,), answer(0, 1))
    pass_on: tuple[Any, ...] = (0, "pass_on", (1,), answer(0, 1))
    calls = [
        (0, "new", (0,), answer(0, 1)),
        (0, "retain", (0,), answer(0, 2)),
        *([pass_on, increment] if passed == "before" else [increment, pass_on]),
        (1, "pass_on", (1,), answer(0, 1, 1)),
        (thread, look, (0,), answer(0, 1, 0)),
    ]
    rows: list[Row] = [(*call, 2 * at, 2 * at + 1) for at, call in enumerate(calls)]
    settings = {"limit": 8, "below_zero": 0}
    for fresh in (False, True):
        assert refused(read_count, settings, *rows, fresh=fresh) is (fresh or not legal)
