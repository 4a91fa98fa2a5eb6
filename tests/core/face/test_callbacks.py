"""Callbacks of the limiter and the pending reads: any number of them, whatever one raises."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from pulsar_ml import Entry, EntryCacheManager, InflightReadsLimiter, PendingReadsManager, Permits
from tests.core.present import present

Entries = list[Entry] | None


@pytest.mark.parametrize("waiting", [5_000, 100_000])
def test_permits_that_are_released_at_once_reach_every_request_that_waits(waiting: int) -> None:
    limits = InflightReadsLimiter(max_bytes=1, acquire_queue_size=waiting)
    first = present(limits.acquire(1, print))
    answers = 0

    def release(permits: Permits | None) -> None:
        nonlocal answers
        answers += 1
        present(permits).release()

    for _ in range(waiting):
        limits.acquire(1, release)
    first.release()
    assert (answers, limits.remaining) == (waiting, 1)


def test_permits_that_are_collected_in_a_callback_reach_every_request_that_waits() -> None:
    limits = InflightReadsLimiter(max_bytes=1, acquire_queue_size=5_000)
    first = present(limits.acquire(1, print))
    answers: list[int] = []
    for _ in range(5_000):
        limits.acquire(1, lambda permits: answers.append(present(permits).amount))
    first.release()
    assert (len(answers), limits.remaining) == (5_000, 1)


def test_every_second_callback_that_raises_costs_the_others_nothing(
    unraisable: list[BaseException | None],
) -> None:
    limits = InflightReadsLimiter(max_bytes=1, acquire_queue_size=5_000)
    first = present(limits.acquire(1, print))
    answers: list[int] = []

    def release(permits: Permits | None) -> None:
        answers.append(present(permits).amount)
        if len(answers) % 2:
            raise RuntimeError("odd")
        present(permits).release()

    for _ in range(5_000):
        limits.acquire(1, release)
    first.release()
    assert (len(answers), limits.remaining) == (5_000, 1)
    assert [str(error) for error in unraisable] == ["odd"] * 2_500


def test_listeners_that_complete_the_next_read_are_called_in_any_number(
    manager: EntryCacheManager,
) -> None:
    count = 5_000
    tokens: list[int] = []
    reads = PendingReadsManager(manager, lambda token, *read: tokens.append(token))
    answers = 0

    def complete_next(entries: Entries, error: BaseException | None) -> None:
        nonlocal answers
        answers += 1
        for entry in present(entries):
            entry.release()
        if answers < count:
            reads.complete(tokens[answers], [manager.entry((1, answers), b"x")])

    for i in range(count):
        reads.read(1, i, i, complete_next)
    reads.complete(tokens[0], [manager.entry((1, 0), b"x")])
    assert (answers, reads.running) == (count, 0)


def test_listeners_that_read_on_are_called_in_any_number(manager: EntryCacheManager) -> None:
    # The storage answers at once.
    reads: PendingReadsManager = PendingReadsManager(
        manager,
        lambda token, ledger_id, first, last, expected: reads.complete(
            token, [manager.entry((ledger_id, i), b"x") for i in range(first, last + 1)]
        ),
    )
    answers: list[int] = []

    def read_on(entries: Entries, error: BaseException | None) -> None:
        [entry] = present(entries)
        with entry:
            answers.append(entry.entry_id)
        if entry_id_after := len(answers) % 100_000:
            reads.read(1, entry_id_after, entry_id_after, read_on)

    reads.read(1, 0, 0, read_on)
    assert answers == list(range(100_000))


def test_a_callback_may_wait_for_what_it_makes_due(manager: EntryCacheManager) -> None:
    reads: PendingReadsManager = PendingReadsManager(
        manager,
        lambda token, ledger_id, first, last, expected: reads.complete(
            token, [manager.entry((ledger_id, first), b"x")]
        ),
    )
    answers: list[str] = []

    def outer(entries: Entries, error: BaseException | None) -> None:
        present(entries)[0].release()
        reads.read(1, 1, 1, inner)
        # Waiting for an event would end, too.
        answers.append("outer")

    def inner(entries: Entries, error: BaseException | None) -> None:
        present(entries)[0].release()
        answers.append("inner")

    reads.read(1, 0, 0, outer)
    assert answers == ["inner", "outer"]


def test_the_latest_failure_reaches_listeners_that_wait_in_the_loop(
    manager: EntryCacheManager,
) -> None:
    # More failures than are kept for requests that still wait.
    tokens: list[int] = []
    reads = PendingReadsManager(manager, lambda token, *read: tokens.append(token))
    errors: list[str] = []

    def fail_next(entries: Entries, error: BaseException | None) -> None:
        errors.append(str(error))
        if len(errors) < 5_000:
            reads.fail(tokens[len(errors)], OSError(f"{len(errors)}"))

    for i in range(5_000):
        reads.read(1, i, i, fail_next)
    reads.fail(tokens[0], OSError("0"))
    assert errors == [str(i) for i in range(5_000)]


def test_callbacks_of_several_threads_are_all_called() -> None:
    limits = InflightReadsLimiter(max_bytes=3, acquire_queue_size=10_000)
    answers: list[None] = []

    def release(permits: Permits | None) -> None:
        present(permits).release()
        answers.append(None)

    def acquire() -> None:
        for _ in range(2_000):
            permits = limits.acquire(1, release)
            if permits is not None:
                release(permits)

    threads = [threading.Thread(target=acquire) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), limits.remaining) == (8_000, 3)


def test_callbacks_of_the_last_objects_do_not_hurt_the_end_of_the_interpreter() -> None:
    text = """
from pulsar_ml import InflightReadsLimiter
limits = InflightReadsLimiter(max_bytes=1)
first = limits.acquire(1, print)
limits.acquire(1, lambda permits: permits.release())
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("wrong", [None, 5, "print"])
def test_a_callback_has_to_be_callable(manager: EntryCacheManager, wrong: object) -> None:
    limits = InflightReadsLimiter(max_bytes=1)
    with pytest.raises(TypeError, match="must be callable"):
        limits.acquire(1, wrong)  # type: ignore[arg-type]
    assert limits.remaining == 1
    reads = PendingReadsManager(manager, lambda *read: None)
    with pytest.raises(TypeError, match="must be callable"):
        reads.read(1, 1, 1, wrong)  # type: ignore[arg-type]
    assert reads.running == 0
    with pytest.raises(TypeError, match="must be callable"):
        PendingReadsManager(manager, wrong)  # type: ignore[arg-type]
