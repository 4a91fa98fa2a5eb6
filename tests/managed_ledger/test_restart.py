"""Deliveries after a restart, compared with a model of single messages.

A restart delivers again exactly the messages whose acknowledgements were not stored, or were
omitted by the limits or by the metadata store. Storage may fail, and the process may crash.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import dataclass, field
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

from pulsar_ml import AckState, Position, StorageError
from pulsar_ml.managed_ledger import LedgerSettings, ManagedCursor, MemoryStorage
from pulsar_ml.managed_ledger.cursors import cursor_store
from pulsar_ml.managed_ledger.cursors.cursor_metadata import Omitted, encode
from tests.managed_ledger.kit import Broker, read

BATCH = 4  # messages in an entry
PER_LEDGER = 4
SECOND = 1000  # milliseconds; the rate limit allows one write of the mark in this time
FLUSH_SECONDS = 7
FOREVER = 2**31
WHOLE = frozenset(range(BATCH))

numbers = draw.integers(0, 23)
texts = draw.sampled_from(["", "x" * 200, "y" * 700])


@dataclass(frozen=True)
class Limits:
    max_bytes: int | None
    max_ranges: int
    max_batches: int
    max_store_ranges: int

    def settings(self) -> LedgerSettings:
        return LedgerSettings(
            managed_ledger_max_entries_per_ledger=PER_LEDGER,
            managed_ledger_max_ack_state_in_bytes_to_persist=self.max_bytes,
            managed_ledger_max_unacked_ranges_to_persist=self.max_ranges,
            managed_ledger_max_batch_deleted_index_to_persist=self.max_batches,
            managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=self.max_store_ranges,
            managed_ledger_cursor_position_flush_seconds=FLUSH_SECONDS,
        )


@dataclass
class CursorModel:
    """The model of a cursor: acknowledged messages by entry, properties and sequence ids."""

    passed: int = 0  # entries up to the mark-delete position
    messages: dict[int, frozenset[int]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    sequence_ids: dict[str, int] = field(default_factory=dict)

    def acknowledged(self, entry: int) -> frozenset[int]:
        return WHOLE if entry < self.passed else self.messages.get(entry, frozenset())

    def add(self, entry: int, messages: frozenset[int]) -> None:
        self.messages[entry] = self.acknowledged(entry) | messages
        self.pass_up_to(self.passed)

    def pass_up_to(self, passed: int) -> None:
        self.passed = max(self.passed, passed)
        while self.acknowledged(self.passed) == WHOLE:
            self.passed += 1
        self.messages = {
            entry: have for entry, have in self.messages.items() if entry >= self.passed
        }

    def ranges(self) -> list[list[int]]:
        runs: list[list[int]] = []
        for entry in sorted(entry for entry, have in self.messages.items() if have == WHOLE):
            if runs and runs[-1][-1] == entry - 1:
                runs[-1].append(entry)
            else:
                runs.append([entry])
        return runs

    def stored(self, limits: Limits, *, in_metadata_store: bool) -> tuple[CursorModel, Omitted]:
        """The storable part of this state and the omitted counts, written after PIP-299's text."""
        properties = [
            (key, value, 8 + len(key) + len(value))
            for key, value in sorted(self.properties.items())
        ]
        ids = [(name, last, 12 + len(name)) for name, last in sorted(self.sequence_ids.items())]
        ranges, batches = (
            self.ranges(),
            sorted(e for e, have in self.messages.items() if have != WHOLE),
        )
        room = float("inf") if limits.max_bytes is None else limits.max_bytes
        storable = CursorModel(passed=self.passed)
        for key, value, size in properties:
            if size > room:
                break
            room -= size
            storable.properties[key] = value
        for name, last, size in ids:
            if len(storable.properties) < len(properties) or size > room:
                break
            room -= size
            storable.sequence_ids[name] = last
        if (len(storable.properties), len(storable.sequence_ids)) != (len(properties), len(ids)):
            room = 0
        most = limits.max_ranges if limits.max_bytes is None else int(room // 32)
        if in_metadata_store:
            most = min(most, limits.max_store_ranges)
        room -= 32 * len(ranges[:most])
        fitting = batches[: limits.max_batches]
        fitting = fitting[: len(fitting) if limits.max_bytes is None else int(room // 32)]
        storable.messages = {entry: WHOLE for run in ranges[:most] for entry in run}
        storable.messages |= {entry: self.messages[entry] for entry in fitting}
        return storable, Omitted(
            properties=len(properties) - len(storable.properties),
            sequence_ids=len(ids) - len(storable.sequence_ids),
            ranges=len(ranges) - len(ranges[:most]),
            batches=len(batches) - len(fitting),
        )


class RestartMachine(RuleBasedStateMachine):
    """One durable cursor.

    ``now`` models the cursor, ``stored`` the state that a restart would load.
    """

    @initialize(
        limits=draw.sampled_from(
            [
                Limits(None, 2, 1, 1),
                Limits(None, 10_000, 10_000, 1000),
                # The limit on bytes replaces the limit of 0 ranges.
                Limits(1024, 0, 3, 2),
            ]
        )
    )
    def begin(self, limits: Limits) -> None:
        self.limits = limits
        self.inner = MemoryStorage()
        self.positions: list[Position] = []
        self.now, self.stored = CursorModel(), CursorModel()
        self.marked = 0  # entries up to the mark-delete position in the storage
        self.millis = 0
        self.start()
        for _ in range(PER_LEDGER + 1):
            self.add()

    def start(self) -> None:
        self.broker = Broker(self.inner, settings=self.limits.settings())
        self.broker.clock.pass_millis(self.millis)
        self.next_mark_at = self.millis

        self.ledger_ids = None if not self.positions else self.broker.ledger.ledger_ids
        self.cursor: ManagedCursor = self.broker.ledger.open_cursor("sub", earliest=True)

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()

    # What happens ---------------------------------------------------------------------------------

    @rule()
    def add(self) -> None:
        self.positions.append(self.broker.ledger.add_entry(str(len(self.positions)).encode()))
        self.trimmed()

    def trimmed(self) -> None:
        """After ledgers were deleted, the mark-delete position is in the storage."""
        ids = self.broker.ledger.ledger_ids
        if self.ledger_ids and ids[:1] != self.ledger_ids[:1]:
            self.marked = max(self.marked, self.now.passed)
        self.ledger_ids = ids

    def changed(self, before: int) -> None:
        """A mark-delete position that moved is stored, at most once a second."""
        if self.now.passed > before and self.millis >= self.next_mark_at:
            self.marked = self.now.passed
            self.next_mark_at = self.millis + SECOND
        self.trimmed()

    @rule(number=numbers)
    def delete(self, number: int) -> None:
        entry, before = number % len(self.positions), self.now.passed
        self.cursor.delete(self.positions[entry])
        self.now.add(entry, WHOLE)
        self.changed(before)

    @rule(number=numbers, index=draw.integers(0, BATCH - 1))
    def delete_index(self, number: int, index: int) -> None:
        entry, before = number % len(self.positions), self.now.passed
        self.cursor.delete_index(self.positions[entry], index, batch_size=BATCH)
        self.now.add(entry, frozenset({index}))
        self.changed(before)

    @rule(number=numbers)
    def mark_delete(self, number: int) -> None:
        entry, before = number % 4 % len(self.positions), self.now.passed
        self.cursor.mark_delete(self.positions[entry])
        self.now.pass_up_to(entry + 1)
        self.changed(before)

    @rule(
        number=numbers,
        producer=draw.sampled_from(["a", "b"]),
        last=draw.integers(-1, 9),
        fail=draw.booleans(),
    )
    def mark_delete_with_sequence_ids(
        self, number: int, producer: str, last: int, fail: bool
    ) -> None:
        entry = number % 4 % len(self.positions)
        ids = {**self.now.sequence_ids, producer: last}
        self.now.sequence_ids = ids
        self.now.pass_up_to(entry + 1)
        self.failing(appends=fail, properties=fail)
        if fail:
            with pytest.raises(StorageError):
                self.cursor.mark_delete(self.positions[entry], sequence_ids=ids)
        else:
            self.cursor.mark_delete(self.positions[entry], sequence_ids=ids)
            self.stored, omitted = self.now.stored(self.limits, in_metadata_store=False)
            assert self.cursor.state.omitted == omitted
        self.failing()
        self.trimmed()

    @rule(key=draw.sampled_from(["k", "l"]), value=texts)
    def put_property(self, key: str, value: str) -> None:
        self.cursor.put_property(key, value)
        self.now.properties = {**self.now.properties, key: value}

    @rule(key=draw.sampled_from(["k", "l"]))
    def remove_property(self, key: str) -> None:
        self.cursor.remove_property(key)
        self.now.properties = {
            name: text for name, text in self.now.properties.items() if name != key
        }

    # Storing --------------------------------------------------------------------------------------

    def failing(self, *, appends: bool = False, properties: bool = False) -> None:
        self.broker.storage.fail_appends = FOREVER * appends
        self.broker.storage.fail_properties = FOREVER * properties

    @rule(appends=draw.booleans(), properties=draw.booleans())
    def flush(self, appends: bool, properties: bool) -> None:
        self.failing(appends=appends, properties=properties)
        if appends and properties:
            with pytest.raises(StorageError):
                self.cursor.flush()
        else:
            expected, omitted = self.now.stored(self.limits, in_metadata_store=appends)
            assert self.cursor.flush() == omitted
            self.stored = expected
        self.failing()

    @rule(millis=draw.sampled_from([1, SECOND, FLUSH_SECONDS * SECOND]), fail=draw.booleans())
    def tick(self, millis: int, fail: bool) -> None:
        self.millis += millis
        self.broker.clock.pass_millis(millis)
        due = self.broker.clock() >= self.broker.ledger.flush_at_ns
        self.failing(appends=fail, properties=fail)
        self.broker.factory.expire()
        self.failing()
        if due and not fail:
            assert not self.cursor.is_dirty
            self.all_stored()

    def all_stored(self) -> None:
        if self.cursor.store.revision:
            self.stored, _ = self.now.stored(self.limits, in_metadata_store=False)
        self.marked = self.now.passed

    # Starting again -------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.broker.close()
        self.all_stored()
        self.start_again()

    @rule()
    def crash(self) -> None:
        self.failing(appends=True, properties=True)
        with suppress(StorageError):
            self.broker.close()
        self.broker.manager.close()
        self.start_again()

    def start_again(self) -> None:
        self.now = copy.deepcopy(self.stored)
        self.now.pass_up_to(self.marked)
        self.start()
        delivered = []
        while batch := read(self.cursor):
            delivered += batch
        assert delivered == [
            str(entry)
            for entry in range(len(self.positions))
            if self.now.acknowledged(entry) != WHOLE
        ]

    @invariant()
    def the_cursor_is_as_the_model(self) -> None:
        if not hasattr(self, "broker"):
            return
        present = self.broker.ledger.ledger_ids
        for entry, at in enumerate(self.positions):
            if at.ledger_id in present:
                have = self.cursor.deleted_indexes(at, batch_size=BATCH)
                assert frozenset(have) == self.now.acknowledged(entry)
        assert self.cursor.properties == self.now.properties
        assert self.cursor.sequence_ids == self.now.sequence_ids
        assert self.cursor.backlog == sum(
            self.now.acknowledged(entry) != WHOLE for entry in range(len(self.positions))
        )


TestRestart = RestartMachine.TestCase
TestRestart.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def test_a_restart_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real_encode = encode

    def forgetful(acks: AckState, **options: Any) -> tuple[bytes, Omitted]:
        return real_encode(acks, **{**options, "sequence_ids": {}})

    monkeypatch.setattr(cursor_store, "encode", forgetful)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(
            RestartMachine, settings=settings(TestRestart.settings, phases=[Phase.generate])
        )
