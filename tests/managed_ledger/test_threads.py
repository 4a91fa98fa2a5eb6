"""Many Python threads on one managed ledger, with checks that hold in every schedule."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pulsar_ml.managed_ledger import Fault, LedgerSettings, ManagedCursor
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, stored, texts

ENTRIES = 120


def together(works: list[Callable[[], None]]) -> None:
    """Runs functions in threads at the same time; raises the first exception."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def consume(cursor: ManagedCursor, seed: int, delivered: list[str]) -> None:
    """Reads all entries, retries failures, and acknowledges now and then."""
    drawn = random.Random(seed)
    while len(delivered) < ENTRIES:
        future = cursor.read_entries(drawn.randint(1, 9))
        if future.exception(SECONDS) is not None:
            continue
        entries = future.result()
        at = [entry.position for entry in entries]
        delivered += texts(entries)
        if at and drawn.random() < 0.5:
            cursor.mark_delete(at[-1])


def evict(broker: Broker, seed: int, done: threading.Event) -> None:
    drawn = random.Random(seed)
    while not done.is_set():
        ids = broker.ledger.ledger_ids
        if ids:
            ledger, first = drawn.choice(ids), drawn.randint(0, 15)
            broker.ledger.cache.cached.remove_range(
                (ledger, first), (ledger, first + drawn.randint(0, 5))
            )
        broker.manager.evict_entries_before(2**62)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("by_expected", [True, False], ids=["expected", "slowest"])
def test_every_cursor_reads_every_entry_once_and_in_order(
    kind: str, seed: int, by_expected: bool, tmp_path: Path
) -> None:
    settings = LedgerSettings(
        managed_ledger_max_entries_per_ledger=20, cache_eviction_by_expected_read_count=by_expected
    )
    with open_broker(stored(kind, tmp_path), settings=settings, limit=3000) as broker:
        cursors = [broker.ledger.open_cursor(name) for name in "abc"]
        drawn = random.Random(seed)
        broker.storage.plan(
            *drawn.choices([fault for fault in Fault if fault is not Fault.STALL], k=30)
        )
        delivered: list[list[str]] = [[] for _ in cursors]
        done = threading.Event()

        def produce() -> None:
            for i in range(ENTRIES):
                broker.ledger.add_entry(str(i).encode())

        def consume_all() -> None:
            together(
                [
                    partial(consume, cursor, seed + number, delivered[number])
                    for number, cursor in enumerate(cursors)
                ]
            )
            done.set()

        together([produce, consume_all, lambda: evict(broker, seed, done)])
        assert delivered == [[str(i) for i in range(ENTRIES)]] * 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reads_completed_by_other_threads_are_answered_once(seed: int) -> None:
    """The storage stalls every read; two threads resume reads in any order while three read."""
    settings = LedgerSettings(managed_ledger_read_entry_timeout_millis=10)
    with open_broker(settings=settings) as broker:
        broker.ledger.open_cursor("a")
        positions = broker.add(40)
        broker.evict()
        broker.storage.plan(*[Fault.STALL] * 400)
        answers: list[int] = []
        over = threading.Event()

        def ask(number: int) -> None:
            drawn = random.Random(seed * 10 + number)
            for _ in range(30):
                at = drawn.choice(positions)
                future = broker.ledger.cache.read(
                    at.ledger_id, at.entry_id, min(at.entry_id + drawn.randint(0, 6), 39), average=1
                )
                error = future.exception(SECONDS)
                if error is None:
                    texts(future.result())
                answers.append(number)

        def answer(number: int) -> None:
            drawn = random.Random(seed * 100 + number)
            while not over.is_set():
                try:
                    broker.storage.resume(drawn.choice([0, -1]))
                except IndexError:
                    broker.clock.pass_millis(1)
                    broker.factory.expire()

        def ask_all() -> None:
            together([partial(ask, number) for number in range(3)])
            over.set()

        together([ask_all, lambda: answer(0), lambda: answer(1)])
        broker.storage.planned.clear()
        while broker.storage.stalled:
            broker.storage.resume()
        assert sorted(answers) == sorted([0, 1, 2] * 30)


def test_one_appender_at_a_time() -> None:
    with open_broker(settings=LedgerSettings(managed_ledger_max_entries_per_ledger=7)) as broker:
        cursor = broker.ledger.open_cursor("a")
        positions: list[tuple[int, int]] = []
        together([lambda: positions.extend(broker.ledger.add_entry(b"x") for _ in range(30))] * 3)
        assert len(set(positions)) == 90
        assert cursor.backlog == 90
