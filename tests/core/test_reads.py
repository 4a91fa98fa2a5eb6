"""The limiter and the pending reads as Python objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, cast

import pytest

from pulsar_ml import (
    ClosedError,
    Entry,
    EntryCacheManager,
    InflightReadsLimiter,
    InvalidPositionError,
    InvalidSizeError,
    PendingReadsManager,
    Permits,
    ReadLimitError,
    ReadTimeoutError,
    StorageError,
    UsageError,
)
from tests.core.present import present

MILLI = 1_000_000


# The limiter -------------------------------------------------------------------------------------


def limiter(**options: Any) -> InflightReadsLimiter:
    return InflightReadsLimiter(**{"max_bytes": 100, "acquire_timeout_ms": 10, **options})


def refuse(permits: Permits | None) -> None:
    raise AssertionError("nothing waits here")


def test_permits_are_taken_and_given_back() -> None:
    limits = limiter()
    permits = limits.acquire(60, refuse)
    assert permits is not None
    assert (permits.amount, limits.remaining) == (60, 40)
    permits.release()
    permits.release()
    assert (permits.amount, limits.remaining) == (0, 100)


def test_permits_that_are_collected_go_back() -> None:
    limits = limiter()
    permits = limits.acquire(60, refuse)
    del permits
    gc.collect()
    assert limits.remaining == 100


def test_a_request_that_waits_is_told_once() -> None:
    limits = limiter()
    first = present(limits.acquire(100, refuse))
    answers: list[Permits | None] = []
    assert limits.acquire(30, answers.append) is None
    assert answers == []
    first.release()
    assert [present(permits).amount for permits in answers] == [30]
    assert limits.remaining == 70


def test_a_request_fails_when_its_time_is_over() -> None:
    limits = limiter()
    first = present(limits.acquire(100, refuse, now_ns=0))
    answers: list[Permits | None] = []
    limits.acquire(30, answers.append, now_ns=0)
    limits.expire(now_ns=9 * MILLI)
    assert limits.next_expiry_ns() == 10 * MILLI
    assert answers == []
    limits.expire(now_ns=10 * MILLI)
    assert limits.next_expiry_ns() is None
    assert answers == [None]
    first.release()


def test_a_full_or_closed_limiter_refuses() -> None:
    limits = limiter(acquire_queue_size=1)
    first = present(limits.acquire(100, refuse))
    answers: list[Permits | None] = []
    limits.acquire(1, answers.append)
    with pytest.raises(ReadLimitError, match="1 bytes"):
        limits.acquire(1, refuse)
    limits.close()
    assert answers == [None]
    with pytest.raises(ReadLimitError):
        limits.acquire(0, refuse)
    first.release()
    assert limits.remaining == 100


def test_a_callback_that_raises_gives_its_permits_back(unraisable: list[BaseException]) -> None:
    limits = limiter()
    first = present(limits.acquire(100, refuse))
    answers: list[Permits | None] = []

    def rejected(permits: Permits | None) -> None:
        answers.append(permits)
        raise RuntimeError("no room")

    limits.acquire(40, rejected)
    limits.acquire(70, answers.append)
    first.release()
    assert [str(error) for error in unraisable] == ["no room"]
    assert [present(permits).amount for permits in answers] == [0, 70]
    assert limits.remaining == 30


def test_a_callback_that_raises_after_it_gave_them_back_gives_nothing_twice(
    unraisable: list[BaseException],
) -> None:
    limits = limiter()
    first = present(limits.acquire(100, refuse))

    def released(permits: Permits | None) -> None:
        present(permits).release()
        raise RuntimeError("afterwards")

    limits.acquire(40, released)
    first.release()
    assert len(unraisable) == 1
    assert limits.remaining == 100


def test_without_a_limit_everything_is_granted() -> None:
    limits = InflightReadsLimiter()
    permits = present(limits.acquire(2**62, refuse))
    assert (permits.amount, limits.remaining) == (0, -1)


def test_permits_last_as_long_as_the_copies(manager: EntryCacheManager) -> None:
    limits = limiter()
    permits = present(limits.acquire(50, refuse))
    entries = [manager.entry((1, i), b"x") for i in range(3)]
    permits.share(entries)
    # The copies may be the last that know of the limiter.
    entries[0].release()
    entries[1].release()
    assert limits.remaining == 50
    entries[2].release()
    assert limits.remaining == 100
    outlived = limiter()
    present(outlived.acquire(50, refuse)).share(last := [manager.entry((1, 9), b"x")])
    del outlived, permits
    gc.collect()
    last[0].release()


def test_permits_of_an_empty_read_go_back_at_once() -> None:
    limits = limiter()
    present(limits.acquire(50, refuse)).share([])
    assert limits.remaining == 100


@pytest.mark.parametrize(
    "options",
    [{"max_bytes": 2**63}, {"acquire_timeout_ms": 2**63}, {"acquire_queue_size": 2**40}],
)
def test_sizes_that_cannot_be_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidSizeError, match=next(iter(options))):
        InflightReadsLimiter(**options)
    with pytest.raises(InvalidSizeError, match="permits=-1"):
        limiter().acquire(-1, refuse)


def test_a_request_above_the_maximum_gets_all_there_is_when_nothing_is_in_flight() -> None:
    limits = limiter()
    permits = present(limits.acquire(150, refuse))
    assert (permits.amount, limits.remaining) == (100, 0)
    permits.release()
    assert limits.remaining == 100


@pytest.mark.parametrize("maximum", [0, -1, -(2**63)])
def test_a_maximum_of_zero_or_less_is_no_limit(maximum: int) -> None:
    limits = limiter(max_bytes=maximum)
    assert [present(limits.acquire(2**62, refuse)).amount for _ in range(3)] == [0, 0, 0]
    assert (limits.max_bytes, limits.remaining) == (maximum, -1)


@pytest.mark.parametrize("timeout", [0, -1, -(2**63)])
def test_a_timeout_of_zero_or_less_is_none(timeout: int) -> None:
    limits = limiter(acquire_timeout_ms=timeout)
    first = present(limits.acquire(100, refuse, now_ns=0))
    answers: list[Permits | None] = []
    assert limits.acquire(1, answers.append, now_ns=0) is None
    limits.expire(now_ns=2**62)
    assert limits.next_expiry_ns() is None
    assert answers == []
    first.release()
    assert [present(permits).amount for permits in answers] == [1]


def test_permits_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError, match="acquire"):
        Permits()


# Pending reads -----------------------------------------------------------------------------------


class Storage:
    """Keeps what it was asked for."""

    def __init__(self, manager: EntryCacheManager, **options: Any) -> None:
        self.manager = manager
        self.started: list[tuple[int, int, int, int, object]] = []
        self.answers: list[tuple[list[str] | None, BaseException | None]] = []
        self.reads = PendingReadsManager(manager, self.start, **options)

    def start(self, *started: Any) -> None:
        self.started.append(started)

    def read(self, first: int, last: int, **options: Any) -> None:
        self.reads.read(7, first, last, self.listen, **options)

    def listen(self, entries: list[Entry] | None, error: BaseException | None) -> None:
        texts = None
        if entries is not None:
            texts = []
            for entry in entries:
                with entry:
                    texts.append(bytes(entry).decode())
        self.answers.append((texts, error))

    def entries(self, first: int, last: int) -> list[Entry]:
        return [self.manager.entry((7, i), str(i).encode()) for i in range(first, last + 1)]

    def answer(self, index: int = 0) -> bool:
        token, _, first, last, _ = self.started.pop(index)
        return self.reads.complete(token, self.entries(first, last))


@pytest.fixture
def storage(manager: EntryCacheManager) -> Iterator[Storage]:
    yield Storage(manager, read_timeout_ms=10)


def test_a_read_is_answered_whole(storage: Storage) -> None:
    storage.read(2, 4, expected_reads="of mine")
    assert [started[1:] for started in storage.started] == [(7, 2, 4, "of mine")]
    assert storage.answer()
    assert storage.answers == [(["2", "3", "4"], None)]
    assert storage.reads.running == 0


def test_overlapping_reads_are_joined_and_counted(storage: Storage) -> None:
    storage.read(0, 3)
    storage.read(2, 5)
    assert [started[2:4] for started in storage.started] == [(0, 3), (4, 5)]
    storage.answer(1)
    storage.answer(0)
    assert sorted(present(texts) for texts, _ in storage.answers) == [
        ["0", "1", "2", "3"],
        ["2", "3", "4", "5"],
    ]
    counts = storage.reads.counts()
    assert (counts["entries_read"], counts["entries_notread"]) == (6, 2)
    assert counts["matched_overlapping_miss_right"] == 2


def test_the_storages_own_error_reaches_who_waits(storage: Storage) -> None:
    storage.read(0, 3)
    storage.read(5, 6)
    storage.read(0, 6)
    error = OSError("disk")
    assert storage.reads.fail(storage.started[0][0], error)
    assert storage.answers == [(None, error)]
    storage.started.pop(0)
    storage.answer()
    storage.answer()
    # The one that failed first is told when all its parts are done.
    assert storage.answers[1:] in (
        [(["5", "6"], None), (None, error)],
        [(None, error), (["5", "6"], None)],
    )


def test_a_start_that_raises_fails_the_read(manager: EntryCacheManager) -> None:
    def start(*started: Any) -> None:
        raise ConnectionError("no bookie")

    answers: list[Any] = []
    PendingReadsManager(manager, start).read(1, 0, 0, lambda *options: answers.append(options))
    assert answers[0][0] is None
    assert isinstance(answers[0][1], ConnectionError)


def test_an_answer_may_come_before_start_returns(manager: EntryCacheManager) -> None:
    def start(token: int, ledger_id: int, first: int, last: int, expected: object) -> None:
        reads.complete(token, [manager.entry((ledger_id, first), b"x")])

    answers: list[Any] = []
    reads = PendingReadsManager(manager, start)
    reads.read(
        1, 5, 5, lambda entries, error: answers.append([e.entry_id for e in present(entries)])
    )
    assert answers == [[5]]


def test_short_late_and_second_answers(storage: Storage) -> None:
    storage.read(0, 1, now_ns=0)
    token = storage.started.pop()[0]
    assert storage.reads.complete(token, storage.entries(0, 0))
    assert isinstance(storage.answers[0][1], StorageError)
    late = storage.entries(0, 1)
    assert not storage.reads.complete(token, late)
    assert late[0].released
    storage.read(0, 1, now_ns=0)
    assert storage.reads.expire(now_ns=9 * MILLI) == 0
    assert storage.reads.expire(now_ns=10 * MILLI) == 1
    assert isinstance(storage.answers[1][1], ReadTimeoutError)
    assert not storage.answer()


def test_closing_fails_what_is_under_way(storage: Storage) -> None:
    storage.read(0, 1)
    storage.reads.close()
    assert isinstance(storage.answers[0][1], ClosedError)
    with pytest.raises(ClosedError):
        storage.read(0, 1)


def test_an_invalidated_ledger_is_read_again(storage: Storage) -> None:
    storage.read(0, 1)
    storage.reads.invalidate_ledger(7)
    storage.read(0, 1)
    assert len(storage.started) == 2
    storage.answer()
    storage.answer()
    assert len(storage.answers) == 2


def test_a_listener_that_raises_is_reported(
    storage: Storage, unraisable: list[BaseException]
) -> None:
    def listen(entries: list[Entry] | None, error: BaseException | None) -> None:
        present(entries)[0].release()
        raise ValueError("mine")

    storage.reads.read(7, 0, 0, listen)
    storage.answer()
    assert [str(error) for error in unraisable] == ["mine"]


def test_ranges_and_answers_that_cannot_be_are_refused(storage: Storage) -> None:
    for first, last in ((3, 2), (-1, 2), (0, 2**31)):
        with pytest.raises(InvalidPositionError):
            storage.read(first, last)
    storage.read(0, 0)
    token = storage.started[0][0]
    with (
        EntryCacheManager() as other,
        other.entry((7, 0), b"x") as foreign,
        pytest.raises(UsageError, match="another manager"),
    ):
        storage.reads.complete(token, [foreign])
    own = storage.entries(0, 0)
    with memoryview(own[0]), pytest.raises(UsageError, match="view"):
        storage.reads.complete(token, own)
    for never in (0, 2**40 + 63, 2**63, 12_345, -1, 2**64):
        with pytest.raises(UsageError, match=f"token={never} "):
            storage.reads.complete(never, own)
        with pytest.raises(UsageError, match=f"token={never} "):
            storage.reads.fail(never, OSError())
    with pytest.raises(UsageError, match="twice"):
        storage.reads.complete(token, own * 2)
    with pytest.raises(TypeError, match="None is not an Entry"):
        storage.reads.complete(token, [*own, cast(Entry, None)])
    assert storage.reads.complete(token, own)
