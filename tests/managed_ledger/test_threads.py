"""Many Python threads on one managed ledger: what each must see, whatever the schedule."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_ml.managed_ledger import Fault, LedgerSettings, ManagedCursor
from tests.managed_ledger.kit import SECONDS, World, stored, texts, world

ENTRIES = 120


def together(works: list[Callable[[], None]]) -> None:
    """All works at the same time; the first exception of any of them."""
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
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def consume(cursor: ManagedCursor, seed: int, said: list[str]) -> None:
    """Reads everything, acknowledging now and then; failures are tried again."""
    drawn = random.Random(seed)
    while len(said) < ENTRIES:
        future = cursor.read_entries(drawn.randint(1, 9))
        if future.exception(SECONDS) is not None:
            continue
        entries = future.result()
        at = [entry.position for entry in entries]
        said += texts(entries)
        if at and drawn.random() < 0.5:
            cursor.mark_delete(at[-1])


def evict(made: World, seed: int, done: threading.Event) -> None:
    drawn = random.Random(seed)
    while not done.is_set():
        ids = made.ledger.ledger_ids
        if ids:
            ledger, first = drawn.choice(ids), drawn.randint(0, 15)
            made.ledger.cache.cached.remove_range(
                (ledger, first), (ledger, first + drawn.randint(0, 5))
            )
        made.manager.evict_entries_before(2**62)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("by_expected", [True, False], ids=["expected", "slowest"])
def test_every_cursor_reads_every_entry_once_and_in_order(
    kind: str, seed: int, by_expected: bool, tmp_path: Path
) -> None:
    settings = LedgerSettings(
        managed_ledger_max_entries_per_ledger=20, cache_eviction_by_expected_read_count=by_expected
    )
    with world(stored(kind, tmp_path), settings=settings, limit=3000) as made:
        cursors = [made.ledger.open_cursor(name) for name in "abc"]
        drawn = random.Random(seed)
        made.storage.plan(
            *drawn.choices([fault for fault in Fault if fault is not Fault.STALL], k=30)
        )
        said: list[list[str]] = [[] for _ in cursors]
        done = threading.Event()

        def produce() -> None:
            for i in range(ENTRIES):
                made.ledger.add_entry(str(i).encode())

        def consume_all() -> None:
            together(
                [
                    lambda cursor=cursor, number=number: consume(
                        cursor, seed + number, said[number]
                    )
                    for number, cursor in enumerate(cursors)
                ]
            )
            done.set()

        together([produce, consume_all, lambda: evict(made, seed, done)])
        assert said == [[str(i) for i in range(ENTRIES)]] * 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reads_completed_by_other_threads_are_answered_once(seed: int) -> None:
    """The storage stalls every read; threads let them go on in any order while others ask."""
    settings = LedgerSettings(managed_ledger_read_entry_timeout_millis=10)
    with world(settings=settings) as made:
        made.ledger.open_cursor("a")
        positions = made.add(40)
        made.evict()
        made.storage.plan(*[Fault.STALL] * 400)
        answers: list[int] = []
        over = threading.Event()

        def ask(number: int) -> None:
            drawn = random.Random(seed * 10 + number)
            for _ in range(30):
                at = drawn.choice(positions)
                future = made.ledger.cache.read(
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
                    made.storage.resume(drawn.choice([0, -1]))
                except IndexError:
                    made.clock.pass_millis(1)
                    made.factory.expire()

        def ask_all() -> None:
            together([lambda number=number: ask(number) for number in range(3)])
            over.set()

        together([ask_all, lambda: answer(0), lambda: answer(1)])
        made.storage.planned.clear()
        while made.storage.stalled:
            made.storage.resume()
        assert sorted(answers) == sorted([0, 1, 2] * 30)


def test_one_appender_at_a_time() -> None:
    with world(settings=LedgerSettings(managed_ledger_max_entries_per_ledger=7)) as made:
        cursor = made.ledger.open_cursor("a")
        positions: list[tuple[int, int]] = []
        together([lambda: positions.extend(made.ledger.add_entry(b"x") for _ in range(30))] * 3)
        assert len(set(positions)) == 90
        assert cursor.backlog == 90
