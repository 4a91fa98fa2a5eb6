"""A managed ledger against a model of lists, with holes, faults and evictions at any moment."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as draw
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pulsar_ml import Position, StorageError
from pulsar_ml.managed_ledger import Fault, LedgerSettings, ManagedCursor
from tests.managed_ledger.kit import SECONDS, World, stored

NAMES = ("a", "b", "c")
cursors = draw.sampled_from(NAMES)


class Subscription:
    """What a cursor should say."""

    def __init__(self, at: int) -> None:
        self.read = at  # index of the next entry
        self.acknowledged: set[int] = set(range(at))
        self.replay: set[int] = set()

    @property
    def mark(self) -> int:
        """The first entry that is not acknowledged."""
        return next(i for i in range(len(self.acknowledged) + 1) if i not in self.acknowledged)


class LedgerMachine(RuleBasedStateMachine):
    """Entries are texts of their number; the model knows positions by number."""

    kind = "memory"

    @initialize(
        most=draw.integers(1, 5),
        by_expected=draw.booleans(),
        by_mark_delete=draw.booleans(),
        limited=draw.booleans(),
    )
    def begin(self, most: int, by_expected: bool, by_mark_delete: bool, limited: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(
            stored(self.kind, Path(self.folder.name)),
            settings=LedgerSettings(
                managed_ledger_max_entries_per_ledger=most,
                cache_eviction_by_expected_read_count=by_expected,
                cache_eviction_by_mark_deleted_position=by_mark_delete,
            ),
            limit=100_000 if limited else 0,
        )
        self.positions: list[Position] = []
        self.known: dict[str, Subscription] = {}
        for name in NAMES[:2]:
            self.open_cursor(name, earliest=False, active=True)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            self.folder.cleanup()

    @property
    def trimmed(self) -> int:
        """Entries whose ledger may be gone: those before the first ledger that is left."""
        left = self.world.ledger.ledger_ids
        return sum(at.ledger_id < left[0] for at in self.positions) if left else 0

    def cursor(self, name: str) -> tuple[ManagedCursor, Subscription] | None:
        if name not in self.known:
            return None
        return self.world.ledger.cursors[name], self.known[name]

    def said(self, entries: list[int]) -> list[str]:
        return [str(entry) for entry in entries]

    def release(self, read: list[object]) -> list[str]:
        said = []
        for entry in read:
            said.append(bytes(entry).decode())  # type: ignore[call-overload]
            entry.release()  # type: ignore[attr-defined]
        return said

    @rule(name=cursors, earliest=draw.booleans(), active=draw.booleans())
    def open_cursor(self, name: str, earliest: bool, active: bool) -> None:
        self.world.ledger.open_cursor(name, earliest=earliest, active=active)
        if name not in self.known:
            self.known[name] = Subscription(self.trimmed if earliest else len(self.positions))

    @rule(name=cursors)
    def delete_cursor(self, name: str) -> None:
        if self.known.pop(name, None) is not None:
            self.world.ledger.delete_cursor(name)

    @rule(name=cursors)
    def set_inactive(self, name: str) -> None:
        if found := self.cursor(name):
            found[0].set_inactive()

    @rule(count=draw.integers(1, 4))
    def add(self, count: int) -> None:
        for _ in range(count):
            self.positions.append(self.world.ledger.add_entry(str(len(self.positions)).encode()))

    @rule(behind=draw.integers(1, 8), count=draw.integers(1, 5))
    def evict(self, behind: int, count: int) -> None:
        """Entries near the end, where they are still wanted."""
        first = max(len(self.positions) - behind, 0)
        for at in self.positions[first : first + count]:
            self.world.ledger.cache.cached.remove_range(at, at)

    @rule(
        faults=draw.lists(
            draw.sampled_from([fault for fault in Fault if fault is not Fault.STALL]), max_size=2
        )
    )
    def plan(self, faults: list[Fault]) -> None:
        self.world.storage.plan(*faults)

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
        assert self.release(read.result()) == self.said(
            [i for i in due if i not in model.acknowledged]
        )
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
        assert self.release(read.result()) == self.said(due)
        model.replay -= set(due)

    @invariant()
    def positions_and_backlogs_agree(self) -> None:
        for name, model in getattr(self, "known", {}).items():
            cursor = self.world.ledger.cursors[name]
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
        if hasattr(self, "world"):
            assert self.world.factory.limiter.remaining == (self.world.limit or -1)
            assert self.world.ledger.cache.pending.running == 0


@pytest.mark.parametrize("kind, examples", [("memory", 60), ("disk", 10)])
def test_a_managed_ledger_answers_as_its_model(kind: str, examples: int) -> None:
    machine = type(f"{kind}_machine", (LedgerMachine,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    case("runTest").runTest()


def test_the_model_notices_a_cursor_that_forgets_what_was_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        ManagedCursor, "is_deleted", lambda self, at: at <= self.mark_delete_position
    )
    case = type("wrong_machine", (LedgerMachine,), {}).TestCase
    case.settings = settings(
        max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    with pytest.raises(AssertionError):
        case("runTest").runTest()
