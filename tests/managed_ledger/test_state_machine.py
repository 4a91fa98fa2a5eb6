"""A managed ledger against a model of lists, with holes, faults and evictions at any moment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as draw
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from pulsar_ml import Position, StorageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings, ManagedCursor
from tests.managed_ledger.kit import SECONDS, Broker, stored, texts

NAMES = ("a", "b", "c")
cursors = draw.sampled_from(NAMES)


def numbered(entries: list[int]) -> list[str]:
    """The payloads of entries by number."""
    return [str(entry) for entry in entries]


class CursorModel:
    """The model of a cursor."""

    def __init__(self, at: int) -> None:
        self.read = at  # index of the next entry
        self.acknowledged: set[int] = set(range(at))
        self.replay: set[int] = set()

    @property
    def mark(self) -> int:
        """The first entry that is not acknowledged."""
        return next(i for i in range(len(self.acknowledged) + 1) if i not in self.acknowledged)


class LedgerMachine(RuleBasedStateMachine):
    """Rules over a broker and its model. Payloads are the numbers of the entries."""

    kind = "memory"

    @initialize(
        most=draw.integers(1, 5),
        by_expected=draw.booleans(),
        by_mark_delete=draw.booleans(),
        limited=draw.booleans(),
    )
    def begin(self, most: int, by_expected: bool, by_mark_delete: bool, limited: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.broker = Broker(
            stored(self.kind, Path(self.folder.name)),
            settings=LedgerSettings(
                managed_ledger_max_entries_per_ledger=most,
                cache_eviction_by_expected_read_count=by_expected,
                cache_eviction_by_mark_deleted_position=by_mark_delete,
            ),
            limit=100_000 if limited else 0,
        )
        self.positions: list[Position] = []
        self.known: dict[str, CursorModel] = {}
        for name in NAMES[:2]:
            self.open_cursor(name, earliest=False, active=True)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
            self.folder.cleanup()

    @property
    def trimmed(self) -> int:
        """The number of entries before the first ledger that is not deleted."""
        ids = self.broker.ledger.ledger_ids
        return sum(at.ledger_id < ids[0] for at in self.positions) if ids else 0

    def cursor(self, name: str) -> tuple[ManagedCursor, CursorModel] | None:
        if name not in self.known:
            return None
        return self.broker.ledger.cursors[name], self.known[name]

    @rule(name=cursors, earliest=draw.booleans(), active=draw.booleans())
    def open_cursor(self, name: str, earliest: bool, active: bool) -> None:
        self.broker.ledger.open_cursor(name, earliest=earliest, active=active)
        if name not in self.known:
            self.known[name] = CursorModel(self.trimmed if earliest else len(self.positions))

    @rule(name=cursors)
    def delete_cursor(self, name: str) -> None:
        if self.known.pop(name, None) is not None:
            self.broker.ledger.delete_cursor(name)

    @rule(name=cursors)
    def set_inactive(self, name: str) -> None:
        if found := self.cursor(name):
            found[0].set_inactive()

    @rule(count=draw.integers(1, 4))
    def add(self, count: int) -> None:
        for _ in range(count):
            self.positions.append(self.broker.ledger.add_entry(str(len(self.positions)).encode()))

    @rule(behind=draw.integers(1, 8), count=draw.integers(1, 5))
    def evict(self, behind: int, count: int) -> None:
        """Evicts entries near the end, where cursors still need them."""
        first = max(len(self.positions) - behind, 0)
        for at in self.positions[first : first + count]:
            self.broker.ledger.cache.cached.remove_range(at, at)

    @rule(
        faults=draw.lists(
            draw.sampled_from([fault for fault in Fault if fault is not Fault.STALL]), max_size=2
        )
    )
    def plan(self, faults: list[Fault]) -> None:
        self.broker.storage.plan(*faults)

    @rule(name=cursors, most=draw.integers(1, 6))
    def read(self, name: str, most: int) -> None:
        if not (found := self.cursor(name)):
            return
        cursor, model = found
        first = max(model.read, self.trimmed)
        ledger = self.positions[first].ledger_id if first < len(self.positions) else None
        due = [
            i for i in range(first, min(first + most, len(self.positions)))
            if self.positions[i].ledger_id == ledger
        ]  # fmt: skip
        read = cursor.read_entries(most)
        error = read.exception(SECONDS)
        if error is not None:
            assert isinstance(error, StorageError)
            return
        assert texts(read.result()) == numbered([i for i in due if i not in model.acknowledged])
        if due:
            model.read = due[-1] + 1

    @rule(name=cursors, further=draw.integers(0, 3))
    def mark_delete(self, name: str, further: int) -> None:
        if (found := self.cursor(name)) and (which := found[1].mark + further) < len(
            self.positions
        ):
            cursor, model = found
            cursor.mark_delete(self.positions[which])
            model.acknowledged |= set(range(which + 1))
            model.read = max(model.read, model.mark)

    @rule(name=cursors, further=draw.integers(0, 4))
    def delete(self, name: str, further: int) -> None:
        if (found := self.cursor(name)) and (which := found[1].mark + further) < len(
            self.positions
        ):
            cursor, model = found
            before = model.mark
            cursor.delete(self.positions[which])
            model.acknowledged.add(which)
            if model.mark > before:
                model.read = max(model.read, model.mark)

    @rule(name=cursors, further=draw.integers(-1, 6))
    def replay_later(self, name: str, further: int) -> None:
        which = self.known[name].mark + further if name in self.known else -1
        if (found := self.cursor(name)) and self.trimmed <= which < len(self.positions):
            cursor, model = found
            cursor.replay_later([self.positions[which]])
            model.replay.add(which)

    @rule(name=cursors, most=draw.integers(1, 4))
    def replay(self, name: str, most: int) -> None:
        if not (found := self.cursor(name)):
            return
        cursor, model = found
        model.replay -= model.acknowledged
        due = sorted(model.replay)[:most]
        read = cursor.replay_entries(most)
        error = read.exception(SECONDS)
        if error is not None:
            assert isinstance(error, StorageError)
            return
        assert texts(read.result()) == numbered(due)
        model.replay -= set(due)

    @invariant()
    def positions_and_backlogs_agree(self) -> None:
        for name, model in getattr(self, "known", {}).items():
            cursor = self.broker.ledger.cursors[name]
            waiting = [
                i for i in range(self.trimmed, len(self.positions)) if i not in model.acknowledged
            ]
            assert cursor.backlog == len(waiting)

    @invariant()
    def nothing_is_trimmed_that_somebody_needs(self) -> None:
        for model in getattr(self, "known", {}).values():
            assert self.trimmed <= model.mark

    @invariant()
    def nothing_is_in_flight(self) -> None:
        if hasattr(self, "broker"):
            assert self.broker.factory.limiter.remaining == (self.broker.limit or -1)
            assert self.broker.ledger.cache.pending.running == 0


def options(examples: int, **others: Any) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=40, deadline=None, derandomize=True,
        suppress_health_check=list(HealthCheck), **others,
    )  # fmt: skip


class DiskMachine(LedgerMachine):
    kind = "disk"


@pytest.mark.parametrize(("machine", "examples"), [(LedgerMachine, 60), (DiskMachine, 10)])
def test_a_managed_ledger_answers_as_its_model(machine: type[LedgerMachine], examples: int) -> None:
    run_state_machine_as_test(machine, settings=options(examples))


def test_the_model_notices_a_cursor_that_forgets_what_was_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        ManagedCursor, "is_deleted", lambda self, at: at <= self.mark_delete_position
    )
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(
            LedgerMachine, settings=options(60, database=None, phases=[Phase.generate])
        )
