"""The cursor containers against a list that is sorted anew for every question."""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pulsar_ml import (
    ActiveManagedCursorContainer,
    CursorInfo,
    InvalidPositionError,
    InvalidSizeError,
    ManagedCursorContainer,
    Position,
    UsageError,
)

MILLISECOND = 1_000_000
MOST_CURSORS = 40
NAMES = st.integers(0, MOST_CURSORS - 1).map("cursor-{}".format)
# Few positions, so that cursors share them, over the edge of a ledger; and the two ends.
POSITIONS = st.one_of(
    st.builds(Position, st.integers(1, 2), st.integers(-1, 6)),
    st.sampled_from([Position(-1, -1), Position(2**63 - 1, 2**63 - 1)]),
)
PLACES = st.none() | POSITIONS

Container = ActiveManagedCursorContainer | ManagedCursorContainer


class Oracle:
    """Each registered cursor's position and durability, in the order of registration."""

    def __init__(self) -> None:
        self.cursors: dict[str, tuple[Position | None, bool]] = {}
        self.left_at = 0

    def tracked(self) -> list[Position]:
        return sorted(at for at, _ in self.cursors.values() if at is not None)

    def slowest(self) -> Position | None:
        return next(iter(self.tracked()), None)

    def info(self, name: str) -> CursorInfo | None:
        return CursorInfo(name, *self.cursors[name]) if name in self.cursors else None

    def rank(self, name: str) -> int:
        own = self.cursors.get(name, (None, False))[0]
        return 0 if own is None else sum(at <= own for at in self.tracked())

    def update(self, name: str, at: Position | None) -> bool:
        if name not in self.cursors:
            return False
        self.cursors[name] = (at, self.cursors[name][1])
        return True

    def remove(self, name: str, now: int) -> bool:
        if self.cursors.pop(name, None) is None:
            return False
        if not self.cursors:
            self.left_at = now
        return True


class ContainerMachine(RuleBasedStateMachine):
    """The common part of both containers."""

    container: Container

    @initialize()
    def begin(self) -> None:
        self.oracle = Oracle()
        self.now = 0
        self.version = self.container.data_version

    def changed(self, known: bool) -> None:
        assert (self.container.data_version > self.version) is known
        self.version = self.container.data_version

    @rule(name=NAMES, at=PLACES, durable=st.booleans())
    def add(self, name: str, at: Position | None, durable: bool) -> None:
        self.container.add(name, at, durable=durable)
        self.oracle.cursors[name] = (at, durable)
        self.changed(True)

    @rule(first=st.integers(0, 20), count=st.integers(2, 20), at=POSITIONS)
    def add_many(self, first: int, count: int, at: Position) -> None:
        for number in range(first, first + count):
            self.add(f"cursor-{number}", at._replace(entry_id=at.entry_id - number % 3), False)

    @rule()
    def ask_for_the_slowest(self) -> None:
        slowest = self.oracle.slowest()
        assert self.container.slowest_cursor_position() == slowest
        at_it = [name for name, (at, _) in self.oracle.cursors.items() if at == slowest]
        found = self.container.slowest_cursor()
        assert found == (self.oracle.info(at_it[0]) if slowest is not None else None)

    @rule(name=NAMES)
    def look_up(self, name: str) -> None:
        assert self.container.get(name) == self.oracle.info(name)

    @rule(names=st.lists(NAMES, max_size=6), at=POSITIONS)
    def update_many(self, names: list[str], at: Position) -> None:
        moved = 0
        places = [at._replace(entry_id=at.entry_id - number % 3) for number in range(len(names))]
        for name, place in zip(names, places, strict=True):
            if self.moves(name):
                moved += self.oracle.update(name, place)
        assert self.container.update_cursors(names, places) == moved
        self.changed(moved > 0)

    def moves(self, name: str) -> bool:
        """True if a cursor of this name can be moved to a position."""
        return name in self.oracle.cursors

    @invariant()
    def names_are_those_registered(self) -> None:
        assert list(self.container) == list(self.oracle.cursors)
        assert len(self.container) == len(self.oracle.cursors)
        assert self.container.is_empty is (not self.oracle.cursors)
        assert self.container.has_durable_cursors is any(d for _, d in self.oracle.cursors.values())
        assert all(name in self.container for name in self.oracle.cursors)

    def teardown(self) -> None:
        self.ask_for_the_slowest()


class ActiveMachine(ContainerMachine):
    grace = 5 * MILLISECOND

    def __init__(self) -> None:
        super().__init__()
        self.container: ActiveManagedCursorContainer = ActiveManagedCursorContainer(
            continue_caching_added_entries_after_last_active_cursor_leaves_ms=5, now_ns=0
        )

    @rule(name=NAMES, at=PLACES)
    def update(self, name: str, at: Position | None) -> None:
        known = self.oracle.update(name, at)
        assert self.container.update_cursor(name, at) is known
        self.changed(known)

    @rule(name=NAMES, entries=st.integers(1, 99), queried=st.booleans())
    def seek(self, name: str, entries: int, queried: bool) -> None:
        at = self.oracle.cursors.get(name, (None, False))[0]
        if at is not None and at.ledger_id < 2**63 - 1:
            self.update(name, Position(at.ledger_id, at.entry_id + entries))
        if queried:
            self.ask_for_a_rank(name)

    @rule(name=NAMES)
    def ask_for_a_rank(self, name: str) -> None:
        assert self.container.number_of_cursors_at_same_position_or_before(
            name
        ) == self.oracle.rank(name)

    @rule()
    def ask_for_all_ranks(self) -> None:
        for name in self.oracle.cursors:
            self.ask_for_a_rank(name)

    @rule(name=NAMES, later=st.integers(0, 6))
    def remove(self, name: str, later: int) -> None:
        self.now += later * MILLISECOND
        known = self.oracle.remove(name, self.now)
        assert self.container.remove_cursor(name, now_ns=self.now) is known
        self.changed(known)

    @rule(later=st.integers(0, 6))
    def ask_whether_to_cache(self, later: int) -> None:
        self.now += later * MILLISECOND
        expected = bool(self.oracle.cursors) or self.now - self.oracle.left_at < self.grace
        assert self.container.should_cache_added_entry(now_ns=self.now) is expected

    def teardown(self) -> None:
        super().teardown()
        self.ask_for_all_ranks()


class HeapMachine(ContainerMachine):
    def __init__(self) -> None:
        super().__init__()
        self.container: ManagedCursorContainer = ManagedCursorContainer()

    def moves(self, name: str) -> bool:
        return self.oracle.cursors.get(name, (None, False))[0] is not None

    @rule(name=NAMES, at=PLACES)
    def update(self, name: str, at: Position | None) -> None:
        tracked = self.oracle.cursors.get(name, (None, False))[0] is not None
        previous = self.oracle.slowest()
        if tracked:
            self.oracle.update(name, at)
        expected = (previous, self.oracle.slowest()) if tracked else None
        assert self.container.update_cursor(name, at) == expected
        self.changed(tracked)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        known = self.oracle.remove(name, 0)
        assert self.container.remove_cursor(name) is known
        self.changed(known)
        self.ask_for_the_slowest()


TestActive = ActiveMachine.TestCase
TestHeap = HeapMachine.TestCase
TestActive.settings = TestHeap.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None, derandomize=True
)


# Mistakes of the original -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "moved", "target", "ranks"),
    [
        ((1, 1), 1, 2, [1, 2]),
        ((1, 2), 1, 1, [2, 2]),
        ((1, 1, 1, 1), 3, 2, [3, 3, 3, 4]),
        ((1, 1, 1, 2), 3, 1, [4, 4, 4, 4]),
    ],
)
def test_the_tail_leaves_and_joins_shared_positions(
    entries: tuple[int, ...], moved: int, target: int, ranks: list[int]
) -> None:
    container = ActiveManagedCursorContainer()
    names = [f"c{number}" for number in range(len(entries))]
    for name, entry in zip(names, entries, strict=True):
        container.add(name, (1, entry))
    container.number_of_cursors_at_same_position_or_before(names[0])
    container.update_cursor(names[moved], (1, target))
    assert [container.number_of_cursors_at_same_position_or_before(name) for name in names] == ranks


def test_a_removal_from_the_heap_may_have_to_sift_up() -> None:
    container = ManagedCursorContainer()
    for entry in (14, 6, 19, 12, 7, 5, 4):
        container.add(str(entry), (1, entry))
    for entry in (14, 4, 5):
        container.remove_cursor(str(entry))
    assert container.slowest_cursor_position() == Position(1, 6)


def test_untracking_twice_and_tracking_again() -> None:
    container = ActiveManagedCursorContainer()
    for name in "abc":
        container.add(name, (1, 5))
    for at in (None, None, (1, 9), None, (1, 2)):
        container.update_cursor("b", at)
        container.slowest_cursor_position()
    ranks = [container.number_of_cursors_at_same_position_or_before(name) for name in "abc"]
    assert ranks == [3, 1, 3]


@pytest.mark.parametrize("name", ["a", "c", "unknown", None])
def test_cursors_are_counted_at_any_position(name: str | None) -> None:
    container = ActiveManagedCursorContainer()
    for each, entry in zip("abc", (4, 4, 9), strict=True):
        container.add(each, (1, entry))
    positions = [(0, 99), (1, 3), (1, 4), (1, 8), (1, 9), (2, 0)]
    counts = [container.number_of_cursors_at_position_or_before(name, at) for at in positions]
    assert counts == [0, 0, 2, 2, 3, 3]
    container.update_cursor("c", None)
    assert container.number_of_cursors_at_position_or_before(name, (9, 9)) == 2


@pytest.mark.parametrize("kind", [ActiveManagedCursorContainer, ManagedCursorContainer])
def test_a_name_that_is_added_again_has_one_cursor(kind: type[Container]) -> None:
    container = kind()
    container.add("a", (1, 1), durable=True)
    container.add("b", (1, 7), durable=False)
    container.add("a", (1, 9), durable=False)
    assert (len(container), list(container)) == (2, ["a", "b"])
    assert container.slowest_cursor_position() == Position(1, 7)
    assert not container.has_durable_cursors
    container.remove_cursor("a")
    container.remove_cursor("b")
    assert container.slowest_cursor_position() is None


# The binding -----------------------------------------------------------------------------------


def test_caching_ends_with_the_grace_period() -> None:
    setting = {"continue_caching_added_entries_after_last_active_cursor_leaves_ms": 2}
    container = ActiveManagedCursorContainer(**setting, now_ns=-MILLISECOND)
    assert container.should_cache_added_entry(now_ns=MILLISECOND - 1)
    assert not container.should_cache_added_entry(now_ns=MILLISECOND)
    container.add("a")
    assert container.should_cache_added_entry(now_ns=10**15)
    container.remove_cursor("a", now_ns=7)
    assert container.should_cache_added_entry(now_ns=2 * MILLISECOND + 6)
    assert not container.should_cache_added_entry(now_ns=2 * MILLISECOND + 7)


def test_without_a_grace_period_nothing_is_cached_when_nobody_is_active() -> None:
    container = ActiveManagedCursorContainer(
        continue_caching_added_entries_after_last_active_cursor_leaves_ms=0
    )
    assert not container.should_cache_added_entry()


@pytest.mark.parametrize("millis", [-1, 2**63 // MILLISECOND + 1])
def test_a_grace_period_outside_its_range_is_an_error(millis: int) -> None:
    with pytest.raises(InvalidSizeError, match=str(millis)):
        ActiveManagedCursorContainer(
            continue_caching_added_entries_after_last_active_cursor_leaves_ms=millis
        )


@pytest.mark.parametrize("kind", [ActiveManagedCursorContainer, ManagedCursorContainer])
@pytest.mark.parametrize("wrong", [7, "12:5", (1,), (1, 2**63), (1, 2.5)])
def test_a_wrong_position_is_an_error_and_changes_nothing(
    kind: type[Container], wrong: Any
) -> None:
    container = kind()
    with pytest.raises(InvalidPositionError, match="position"):
        container.add("a", wrong)
    assert "a" not in container
    assert container.data_version == 0


@pytest.mark.parametrize("kind", [ActiveManagedCursorContainer, ManagedCursorContainer])
def test_a_name_is_a_string(kind: type[Container]) -> None:
    wrong: Any
    for wrong in (None, 5):
        with pytest.raises(TypeError):
            kind().add(wrong)
        with pytest.raises(TypeError):
            kind().remove_cursor(wrong)


@pytest.mark.parametrize("kind", [ActiveManagedCursorContainer, ManagedCursorContainer])
def test_many_updates_name_the_first_wrong_one_and_change_nothing(kind: type[Container]) -> None:
    container = kind()
    container.add("a", (1, 1))
    version = container.data_version
    wrong: Any
    for wrong, error, message in (
        ((["a", "b"], [(2, 2)]), UsageError, "1 positions have 2 names"),
        ((["a", 5], [(2, 2), (3, 3)]), TypeError, r"names\[1\]=5"),
        ((["a", "b"], [(2, 2), (1, 2.5)]), InvalidPositionError, r"positions\[1\]"),
        ((["a", "b"], [(2, 2), None]), InvalidPositionError, r"positions\[1\]"),
        ((5, [(2, 2)]), TypeError, "not iterable"),
    ):
        with pytest.raises(error, match=message):
            container.update_cursors(*wrong)
        assert container.data_version == version
    assert container.update_cursors(["b", "a"], np.array([[2, 2], [-1, -1]])) == 1
    assert container.get("a") == ("a", (-1, -1), True)


@pytest.mark.parametrize("kind", [ActiveManagedCursorContainer, ManagedCursorContainer])
def test_a_walk_goes_on_beside_changes(kind: type[Container]) -> None:
    container = kind()
    for name in "abcd":
        container.add(name)
    walk = iter(container)
    assert next(walk) == "a"
    container.remove_cursor("c")
    container.add("e")
    assert list(walk) == ["b", "d"]


def test_cursors_of_one_container_mean_nothing_to_another() -> None:
    """They share memory: what one gives back the other takes."""
    first, second = ActiveManagedCursorContainer(), ActiveManagedCursorContainer()
    for turn in range(200):
        first.add("a", (1, turn))
        second.add("a", (2, turn))
        second.add("b", (2, turn))
        assert first.number_of_cursors_at_same_position_or_before("a") == 1
        assert second.number_of_cursors_at_same_position_or_before("a") == 2
        first.remove_cursor("a")
        assert second.slowest_cursor_position() == Position(2, turn)
        second.remove_cursor("b")
    del first, second
    gc.collect()


@pytest.mark.parametrize("seed", [1, 2])
def test_threads_that_name_the_same_cursors_lose_none(seed: int) -> None:
    active, heap = ActiveManagedCursorContainer(), ManagedCursorContainer()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        draw = random.Random(seed * 100 + number)
        own = f"own-{number}"
        for container in (active, heap):
            container.add(own, (1, 50))
        try:
            for _ in range(1500):
                name = f"shared-{draw.randrange(6)}"
                for container in (active, heap):
                    if draw.randrange(3):
                        container.add(name, (1, draw.randrange(100)), durable=False)
                    else:
                        container.remove_cursor(name)
                active.update_cursor(name, (1, draw.randrange(100)))
                for container in (active, heap):
                    found, least = container.get(own), container.slowest_cursor()
                    assert found == (own, (1, 50), True)
                    assert least is not None and least.position is not None
                    assert least.position <= (1, 50)
                    assert least.name == own or least.name.startswith(("shared-", "own-"))
                heap.update_cursor(name, (1, draw.randrange(100)))
                assert active.number_of_cursors_at_same_position_or_before(own) >= 1
                for container in (active, heap):
                    slowest = container.slowest_cursor_position()
                    assert slowest is not None and slowest <= (1, 50)
                    assert own in list(container)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for container in (active, heap):
        assert len(container) == len(list(container))
        for name in list(container):
            container.remove_cursor(name)
        assert container.is_empty
        assert container.slowest_cursor_position() is None
