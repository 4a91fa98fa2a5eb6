"""What a restart delivers again, against a model that knows each message: what was never stored, what was
left out by the limits or by the fall-back store, and nothing else. Storage may fail, and so may the process.
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
from pulsar_ml.managed_ledger import LedgerSettings, ManagedCursor, MemoryStorage, cursor_store
from pulsar_ml.managed_ledger.cursor_metadata import Omitted
from tests.managed_ledger.kit import World, read

BATCH = 4  # messages of an entry
PER_LEDGER = 4
SECOND = 1000  # milliseconds; a mark is kept once in one
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
class Known:
    """A cursor: the messages that were acknowledged by entry, and what goes with them."""

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

    def stored(self, limits: Limits, *, in_metadata_store: bool) -> tuple[Known, Omitted]:
        """What is kept of it, and what is not: written from the words of the proposal."""
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
        kept = Known(passed=self.passed)
        for key, value, size in properties:
            if size > room:
                break
            room -= size
            kept.properties[key] = value
        for name, last, size in ids:
            if len(kept.properties) < len(properties) or size > room:
                break
            room -= size
            kept.sequence_ids[name] = last
        if (len(kept.properties), len(kept.sequence_ids)) != (len(properties), len(ids)):
            room = 0
        most = limits.max_ranges if limits.max_bytes is None else int(room // 32)
        if in_metadata_store:
            most = min(most, limits.max_store_ranges)
        room -= 32 * len(ranges[:most])
        fitting = batches[: limits.max_batches]
        fitting = fitting[: len(fitting) if limits.max_bytes is None else int(room // 32)]
        kept.messages = {entry: WHOLE for run in ranges[:most] for entry in run}
        kept.messages |= {entry: self.messages[entry] for entry in fitting}
        return kept, Omitted(
            properties=len(properties) - len(kept.properties),
            sequence_ids=len(ids) - len(kept.sequence_ids),
            ranges=len(ranges) - len(ranges[:most]),
            batches=len(batches) - len(fitting),
        )


class RestartMachine(RuleBasedStateMachine):
    """One durable cursor. ``now`` is the cursor as it should be, ``stored`` as a start would find it."""

    @initialize(
        limits=draw.sampled_from(
            [
                Limits(None, 2, 1, 1),
                Limits(None, 10_000, 10_000, 1000),
                # The number of ranges has no effect.
                Limits(1024, 0, 3, 2),
            ]
        )
    )
    def begin(self, limits: Limits) -> None:
        self.limits = limits
        self.inner = MemoryStorage()
        self.positions: list[Position] = []
        self.now, self.stored = Known(), Known()
        self.kept = 0  # entries up to the mark-delete position that was kept by itself
        self.millis = 0
        self.start()
        for _ in range(PER_LEDGER + 1):
            self.add()

    def start(self) -> None:
        self.world = World(self.inner, settings=self.limits.settings())
        self.world.clock.pass_millis(self.millis)
        self.keep_from = self.millis
        self.current = 0  # entries of the ledger that takes them
        self.left = None if not self.positions else self.world.ledger.ledger_ids
        self.cursor: ManagedCursor = self.world.ledger.open_cursor("sub", earliest=True)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    # What happens ---------------------------------------------------------------------------------

    @rule()
    def add(self) -> None:
        self.positions.append(self.world.ledger.add_entry(str(len(self.positions)).encode()))
        self.trimmed()

    def trimmed(self) -> None:
        """When ledgers went, the position was kept before."""
        ids = self.world.ledger.ledger_ids
        if self.left and ids[:1] != self.left[:1]:
            self.kept = max(self.kept, self.now.passed)
        self.left = ids

    def changed(self, before: int) -> None:
        """A mark that moved is kept, once in a second."""
        if self.now.passed > before and self.millis >= self.keep_from:
            self.kept = self.now.passed
            self.keep_from = self.millis + SECOND
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
            with suppress(StorageError):
                self.cursor.mark_delete(self.positions[entry], sequence_ids=ids)
                raise AssertionError("neither place was there, and nobody said so")
        else:
            self.cursor.mark_delete(self.positions[entry], sequence_ids=ids)
            self.stored, left = self.now.stored(self.limits, in_metadata_store=False)
            assert self.cursor.state.omitted == left
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
        self.world.storage.fail_appends = FOREVER * appends
        self.world.storage.fail_properties = FOREVER * properties

    @rule(appends=draw.booleans(), properties=draw.booleans())
    def flush(self, appends: bool, properties: bool) -> None:
        self.failing(appends=appends, properties=properties)
        if appends and properties:
            with suppress(StorageError):
                self.cursor.flush()
                raise AssertionError("neither place was there, and nobody said so")
        else:
            kept, left = self.now.stored(self.limits, in_metadata_store=appends)
            assert self.cursor.flush() == left
            self.stored = kept
        self.failing()

    @rule(millis=draw.sampled_from([1, SECOND, FLUSH_SECONDS * SECOND]), fail=draw.booleans())
    def tick(self, millis: int, fail: bool) -> None:
        self.millis += millis
        self.world.clock.pass_millis(millis)
        due = self.world.clock() >= self.world.ledger.flush_at_ns
        self.failing(appends=fail, properties=fail)
        self.world.factory.expire()
        self.failing()
        if due and not fail:
            assert not self.cursor.is_dirty
            self.all_stored()

    def all_stored(self) -> None:
        if self.cursor.store.revision:
            self.stored, _ = self.now.stored(self.limits, in_metadata_store=False)
        self.kept = self.now.passed

    # Starting again -------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.world.close()
        self.all_stored()
        self.start_again()

    @rule()
    def crash(self) -> None:
        self.failing(appends=True, properties=True)
        with suppress(StorageError):
            self.world.close()
        self.world.manager.close()
        self.start_again()

    def start_again(self) -> None:
        self.now = copy.deepcopy(self.stored)
        self.now.pass_up_to(self.kept)
        self.start()
        delivered = []
        while said := read(self.cursor):
            delivered += said
        assert delivered == [
            str(entry)
            for entry in range(len(self.positions))
            if self.now.acknowledged(entry) != WHOLE
        ]

    @invariant()
    def the_cursor_is_as_the_model(self) -> None:
        if not hasattr(self, "world"):
            return
        left = self.world.ledger.ledger_ids
        for entry, at in enumerate(self.positions):
            if at.ledger_id in left:
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
    honest = cursor_store.encode

    def forgetful(acks: AckState, **given: Any) -> tuple[bytes, Omitted]:
        return honest(acks, **{**given, "sequence_ids": {}})

    monkeypatch.setattr(cursor_store, "encode", forgetful)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(
            RestartMachine, settings=settings(TestRestart.settings, phases=[Phase.generate])
        )
