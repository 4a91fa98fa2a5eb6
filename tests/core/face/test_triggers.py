"""Triggers of delayed messages: one that raises, closes, fires again or runs elsewhere."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import partial

import pytest

from pulsar_ml import ClosedError, InvalidSizeError
from pulsar_ml._core import (
    InMemoryDelayedDeliveryTrackerFactory,
    InMemoryTopicDelayedDeliveryTrackerView,
)

PATIENCE = 300.0  # seconds until a thread counts as stuck


@pytest.fixture
def factory() -> InMemoryDelayedDeliveryTrackerFactory:
    return InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1)


def run(*works: Callable[[], object]) -> None:
    """Runs each in a thread; fails when one does not end."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)


def test_a_trigger_that_raises_does_not_starve_the_others(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    triggered: list[int] = []

    def trigger(number: int) -> None:
        triggered.append(number)
        if number % 200 == 7:
            raise RuntimeError(f"view {number}")

    views = [factory.new_tracker("t", partial(trigger, i)) for i in range(800)]
    views[0].add_message((1, 1), 50, now_ms=0)
    with pytest.raises(ExceptionGroup) as raised:
        views[0].fire(now_ms=100)
    assert sorted(triggered) == list(range(800))
    assert sorted(str(error) for error in raised.value.exceptions) == [
        "view 207", "view 407", "view 607", "view 7",
    ]  # fmt: skip
    # Nothing is left for the next fire.
    assert views[0].fire(now_ms=200) == 0
    assert len(triggered) == 800


def test_what_a_single_trigger_raises_is_raised(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    def trigger() -> None:
        raise KeyError("mine")

    view = factory.new_tracker("t", trigger)
    view.add_message((1, 1), 50, now_ms=0)
    with pytest.raises(KeyError, match="mine"):
        view.fire(now_ms=100)
    with pytest.raises(KeyError, match="mine"):
        view.resume(now_ms=100)


def test_two_triggers_that_close_each_others_view_do_not_wait_for_each_other(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    for turn in range(20):
        both = threading.Barrier(2)
        views: list[InMemoryTopicDelayedDeliveryTrackerView] = []

        def trigger(
            other: int,
            views: list[InMemoryTopicDelayedDeliveryTrackerView] = views,
            both: threading.Barrier = both,
        ) -> None:
            both.wait(PATIENCE)
            views[other].close()

        for i in range(2):
            views.append(factory.new_tracker(f"{turn}/{i}", partial(trigger, 1 - i)))
            views[i].add_message((1, 1), 50, now_ms=0)
        run(*[partial(view.fire, now_ms=100) for view in views])
        assert all(view.closed for view in views)


def test_two_triggers_that_fire_each_others_view_do_not_wait_for_each_other(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    both = threading.Barrier(2)
    views: list[InMemoryTopicDelayedDeliveryTrackerView] = []
    turns: list[int] = []

    def trigger(own: int) -> None:
        turns.append(own)
        if turns.count(own) == 1:
            both.wait(PATIENCE)
            views[1 - own].resume(now_ms=100)

    for i in range(2):
        views.append(factory.new_tracker(f"{i}", partial(trigger, i)))
        views[i].add_message((1, 1), 50, now_ms=0)
    run(*[partial(view.fire, now_ms=100) for view in views])
    # Each ran for its fire, and at least once more for the other's resume.
    assert all(turns.count(i) >= 2 for i in range(2))


def test_a_trigger_that_resumes_its_own_view_runs_again_afterwards(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    depth = deepest = turns = 0

    def trigger() -> None:
        nonlocal depth, deepest, turns
        depth += 1
        turns += 1
        deepest = max(deepest, depth)
        if turns < 10_000:
            view.resume(now_ms=100)
        depth -= 1

    view = factory.new_tracker("t", trigger)
    view.add_message((1, 1), 50, now_ms=0)
    view.fire(now_ms=100)
    assert (turns, deepest) == (10_000, 1)


def test_close_waits_for_a_trigger_of_another_thread(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def trigger() -> None:
        inside.set()
        go_on.wait(PATIENCE)
        order.append("triggered")

    def close() -> None:
        view.close()
        order.append("closed")

    view = factory.new_tracker("t", trigger)
    view.add_message((1, 1), 50, now_ms=0)
    firing = threading.Thread(target=lambda: view.fire(now_ms=100))
    firing.start()
    assert inside.wait(PATIENCE)
    closing = threading.Thread(target=close)
    closing.start()
    # The view is closed at once, although close() still waits.
    while not view.closed:
        closing.join(0.001)
    assert order == []
    go_on.set()
    firing.join(PATIENCE)
    closing.join(PATIENCE)
    assert order == ["triggered", "closed"]


def test_a_trigger_may_close_its_own_view(factory: InMemoryDelayedDeliveryTrackerFactory) -> None:
    view = factory.new_tracker("t", lambda: view.close())
    view.add_message((1, 1), 50, now_ms=0)
    assert view.fire(now_ms=100) == 1
    assert view.closed
    with pytest.raises(ClosedError):
        view.clear()


def test_views_that_are_dropped_without_close_leave_the_factory(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    kept = factory.new_tracker("kept")
    other = factory.new_tracker("kept")
    for i in range(1_000):
        factory.new_tracker(f"{i}").add_message((1, 1), 50, now_ms=0)
    del other
    gc.collect()
    assert len(factory) == 1
    assert "kept" in factory
    assert "7" not in factory
    # A topic that comes back has none of its messages.
    assert factory.new_tracker("7").topic_delayed_messages == 0
    kept.close()
    gc.collect()
    assert len(factory) == 0


def test_views_in_a_cycle_with_their_trigger_are_collected(
    factory: InMemoryDelayedDeliveryTrackerFactory,
) -> None:
    class Dispatcher:
        def __init__(self) -> None:
            self.view = factory.new_tracker("t", self.trigger)

        def trigger(self) -> None:
            raise AssertionError

    Dispatcher()
    gc.collect()
    assert len(factory) == 0


@pytest.mark.parametrize("wrong", [2.5, "1", None])
def test_times_are_whole_numbers(
    factory: InMemoryDelayedDeliveryTrackerFactory, wrong: object
) -> None:
    view = factory.new_tracker("t")
    for use in (
        lambda: view.add_message((1, 1), wrong, now_ms=0),  # type: ignore[arg-type]
        lambda: view.add_message((1, 1), 5, now_ms=wrong),  # type: ignore[arg-type]
        lambda: view.get_scheduled_messages(1, now_ms=wrong),  # type: ignore[arg-type]
        lambda: view.has_message_available(now_ms=wrong),  # type: ignore[arg-type]
        lambda: view.fire(now_ms=wrong),  # type: ignore[arg-type]
        lambda: view.resume(now_ms=wrong),  # type: ignore[arg-type]
        lambda: view.update_mark_delete_position((1, 1), now_ms=wrong),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="integer"):
            use()
    assert view.topic_delayed_messages == 0


@pytest.mark.parametrize("wrong", [2**63, -(2**63) - 1, 2**200])
def test_times_beyond_64_bits_are_named(
    factory: InMemoryDelayedDeliveryTrackerFactory, wrong: int
) -> None:
    view = factory.new_tracker("t")
    with pytest.raises(InvalidSizeError, match="deliver_at_ms"):
        view.add_message((1, 1), wrong, now_ms=0)
    with pytest.raises(InvalidSizeError, match="now"):
        view.fire(now_ms=wrong)


@pytest.mark.parametrize("wrong", ["trigger", 5])
def test_a_trigger_has_to_be_callable(
    factory: InMemoryDelayedDeliveryTrackerFactory, wrong: object
) -> None:
    with pytest.raises(TypeError, match="must be callable"):
        factory.new_tracker("t", wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be callable"):
        factory.new_tracker("t", may_dispatch=wrong)  # type: ignore[arg-type]
    assert len(factory) == 0
