from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from pulsar_ml import InMemoryDelayedDeliveryTrackerFactory
from pulsar_ml.errors import ClosedError, InvalidPositionError, InvalidSizeError, UsageError


def factory(**settings: int) -> InMemoryDelayedDeliveryTrackerFactory:
    return InMemoryDelayedDeliveryTrackerFactory(
        tick_time_ms=settings.get("tick", 10),
        strict=bool(settings.get("strict", 0)),
        fixed_delay_detection_lookahead=settings.get("lookahead", 0),
        prune_interval_ms=0,
    )


def test_a_message_is_kept_once_and_comes_to_each_view() -> None:
    topics = factory()
    first, second = topics.new_tracker("a"), topics.new_tracker("a")
    assert first.add_message((3, 7), 100, now_ms=0)
    assert second.add_message((3, 7), 100, now_ms=0)
    assert first.topic_delayed_messages == 1
    assert first.topic_buckets == 1
    assert first.topic_buffer_memory_bytes > 0
    assert not first.has_message_available(now_ms=50)
    for view in (first, second):
        assert view.number_of_delayed_messages() == 1
        assert view.has_message_available(now_ms=100)
        assert view.get_scheduled_messages(10, now_ms=100) == [(3, 7)]
        assert view.get_scheduled_messages(10, now_ms=100) == []
        assert view.number_of_delayed_messages() == 0


def test_a_message_whose_time_has_come_is_not_kept() -> None:
    view = factory().new_tracker("a")
    assert not view.add_message((3, 7), 10, now_ms=0)
    assert not view.add_message((3, 7), -1, now_ms=0)
    assert view.topic_delayed_messages == 0


def test_what_all_views_have_marked_is_pruned() -> None:
    topics = factory()
    first, second = topics.new_tracker("a"), topics.new_tracker("a")
    first.add_message((3, 7), 100, now_ms=0)
    first.update_mark_delete_position((3, 7), now_ms=0)
    assert first.topic_delayed_messages == 1
    second.update_mark_delete_position((3, 8), now_ms=0)
    assert first.topic_delayed_messages == 0


def test_a_subscription_that_comes_back_gets_its_view_with_its_position() -> None:
    topics = factory()
    calls: list[str] = []
    view = topics.new_tracker("a", lambda: calls.append("old"), subscription="s")
    view.update_mark_delete_position((3, 7), now_ms=0)
    again = topics.new_tracker("a", lambda: calls.append("new"), subscription="s")
    assert again is view and view.subscription == "s"
    assert topics.new_tracker("b", subscription="s") is not view
    assert topics.new_tracker("a", subscription="t") is not view
    gc.collect()  # the view of "t" would block pruning
    view.add_message((3, 8), 100, now_ms=0)
    view.fire(now_ms=200)
    assert calls == ["new"]
    view.update_mark_delete_position((3, 8), now_ms=200)
    assert view.topic_delayed_messages == 0


def test_a_closed_or_forgotten_view_is_not_returned_again() -> None:
    topics = factory()
    view = topics.new_tracker("a", subscription="s")
    view.close()
    again = topics.new_tracker("a", subscription="s")
    assert again is not view and not again.closed
    again.add_message((3, 7), 100, now_ms=0)
    del again
    gc.collect()
    assert topics.new_tracker("a", subscription="s").topic_delayed_messages == 0
    assert view.close() is False


def test_an_idle_topic_keeps_its_messages_for_a_while() -> None:
    topics = InMemoryDelayedDeliveryTrackerFactory(topic_manager_idle_ms=50)
    view = topics.new_tracker("a")
    view.add_message((3, 7), 5000, now_ms=0)
    view.close(now_ms=0)
    assert topics.expire(now_ms=49) == 0
    view = topics.new_tracker("a")
    assert view.get_scheduled_messages(10, now_ms=6000) == [(3, 7)]
    view.close()  # without a time: it counts from the next call
    assert topics.expire(now_ms=6000) == 0 and len(topics) == 1
    other = topics.new_tracker("b")
    other.fire(now_ms=6050)
    assert len(topics) == 1 and "a" not in topics
    for ratio in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidSizeError, match="prune_eligible_ratio"):
            InMemoryDelayedDeliveryTrackerFactory(prune_eligible_ratio=ratio)


def test_an_idle_topic_may_go_after_its_factory() -> None:
    """Without a GIL a thread may still hold it; here a walk over the references does."""
    topics = InMemoryDelayedDeliveryTrackerFactory(topic_manager_idle_ms=50)
    view = topics.new_tracker("a")
    view.add_message((3, 7), 5000, now_ms=0)
    assert [name for name, _ in topics.index_sizes()] == ["a"]
    view.close(now_ms=0)
    [(name, size)] = topics.index_sizes()
    assert name == "a" and size > 0
    dictionaries = [each for each in gc.get_referents(topics) if isinstance(each, dict)]
    [idle] = [each["a"] for each in dictionaries if type(each.get("a")).__name__ == "IdleTopic"]
    assert [name for name in dir(idle) if not name.startswith("__")] == []
    del topics, view, dictionaries
    gc.collect()
    with pytest.raises(TypeError, match="comes with the factory"):
        type(idle)()
    del idle


def test_the_timer_calls_the_triggers_of_views_with_a_message() -> None:
    triggered: list[str] = []
    topics = factory()
    first = topics.new_tracker("a", lambda: triggered.append("first"))
    second = topics.new_tracker("a", lambda: triggered.append("second"))
    assert first.next_fire_ms() is None
    first.add_message((3, 7), 100, now_ms=0)
    second.update_mark_delete_position((3, 7), now_ms=0)
    at = first.next_fire_ms()
    assert at is not None
    assert second.fire(now_ms=at - 1) == 0
    assert second.fire(now_ms=at) == 1
    assert triggered == ["first"]


def test_a_trigger_may_close_its_view() -> None:
    topics = factory()
    view = topics.new_tracker("a", lambda: view.close())
    view.add_message((3, 7), 100, now_ms=0)
    assert view.fire(now_ms=100) == 1
    assert view.closed
    assert "a" not in topics


def test_the_last_close_forgets_the_topic() -> None:
    topics = factory()
    first, second = topics.new_tracker("a"), topics.new_tracker("a")
    first.add_message((3, 7), 100, now_ms=0)
    assert first.close()
    assert not first.close()
    assert len(topics) == 1
    with pytest.raises(ClosedError, match="'a' is closed"):
        first.add_message((3, 7), 100, now_ms=0)
    second.close()
    assert len(topics) == 0
    assert topics.new_tracker("a").topic_delayed_messages == 0


def test_a_fixed_delay_pauses() -> None:
    view = factory(lookahead=2).new_tracker("a")
    for entry in range(2):
        assert not view.should_pause_all_deliveries(now_ms=0)
        view.add_message((3, entry), 100, now_ms=0)
    assert view.should_pause_all_deliveries(now_ms=0)


def test_a_paused_dispatcher_gets_nothing_and_loses_nothing() -> None:
    triggered: list[str] = []
    open_ = False
    view = factory().new_tracker("a", lambda: triggered.append("read"), may_dispatch=lambda: open_)
    view.add_message((3, 7), 100, now_ms=0)
    view.fire(now_ms=100)
    assert triggered == ["read"]
    assert view.get_scheduled_messages(10, now_ms=100) == []
    assert view.next_fire_ms() is None
    assert view.number_of_delayed_messages() == 1
    open_ = True
    assert view.resume(now_ms=100)
    assert triggered == ["read", "read"]
    assert view.get_scheduled_messages(10, now_ms=100) == [(3, 7)]
    assert not view.resume(now_ms=100)
    assert triggered == ["read", "read"]


def test_a_closed_view_refuses_each_call() -> None:
    view = factory().new_tracker("a", may_dispatch=lambda: False)
    view.close()
    for call in (
        lambda: view.get_scheduled_messages(1, now_ms=0),
        lambda: view.has_message_available(now_ms=0),
        lambda: view.should_pause_all_deliveries(now_ms=0),
        view.number_of_delayed_messages,
        lambda: view.update_mark_delete_position((3, 7), now_ms=0),
        view.clear,
        lambda: view.reset_tick_time(5),
        lambda: view.resume(now_ms=0),
    ):
        with pytest.raises(ClosedError, match="'a' is closed"):
            call()


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidSizeError, match="tick_time_ms=-1"):
        InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=-1)
    with pytest.raises(InvalidPositionError):
        factory().new_tracker("a").add_message((3, -2), 100, now_ms=0)


def test_a_view_outlives_the_factorys_name() -> None:
    view = factory().new_tracker("a")
    gc.collect()
    assert view.add_message((3, 7), 100, now_ms=0)


def test_views_close_while_others_are_inside() -> None:
    topics = factory()
    views = [topics.new_tracker("a") for _ in range(4)]
    wrong: list[BaseException] = []

    def add(view: object, first: int) -> None:
        try:
            for entry in range(first, first + 2000):
                view.add_message((3, entry), 100, now_ms=0)  # type: ignore[attr-defined]
                view.get_scheduled_messages(10, now_ms=0)  # type: ignore[attr-defined]
        except ClosedError:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=add, args=(view, 2000 * i)) for i, view in enumerate(views)]
    for thread in threads:
        thread.start()
    for view in views:
        view.close()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(topics) == 0
    assert views[0].topic_delayed_messages == 0


def test_many_messages_are_kept_as_one_by_one() -> None:
    topics = factory()
    view = topics.new_tracker("a")
    ids = np.array([[3, 7], [3, 8], [3, 9]])
    assert view.add_messages(ids, np.array([100, -1, 50]), now_ms=0) == 2
    assert view.add_messages([(3, 1)], [70], now_ms=0) == 1
    assert view.add_messages([], [], now_ms=0) == 0
    assert view.get_scheduled_messages(10, now_ms=100) == [(3, 9), (3, 1), (3, 7)]


@pytest.mark.parametrize(
    ("positions", "times", "error", "message"),
    [
        ([(3, 7), (3, -2)], [100, 100], InvalidPositionError, r"positions\[1\] 3:-2"),
        ([(3, 7), (3, 8)], [100], UsageError, "2 positions have 1 times"),
        ([(3, 7)], [1.5], TypeError, "integer"),
        ([(3, 7), (3, 8)], [100, 2**63], InvalidSizeError, r"deliver_at_ms\[1\]=9223372036854775808"),
        ([(3, 7)], np.zeros((1, 2), np.int64), InvalidSizeError, r"shape \(n,\)"),
        ([(3, 7)], np.zeros(1), InvalidSizeError, "64-bit integers"),
        ([(3, 7)], 5, InvalidSizeError, "must be an array or a sequence"),
    ],
)  # fmt: skip
def test_the_first_wrong_message_of_many_is_named_and_none_is_kept(
    positions: Any, times: Any, error: type[Exception], message: str
) -> None:
    view = factory().new_tracker("a")
    with pytest.raises(error, match=message):
        view.add_messages(positions, times, now_ms=0)
    assert view.number_of_delayed_messages() == 0
    view.close()
    with pytest.raises(ClosedError):
        view.add_messages([(3, 7)], [100], now_ms=0)


def test_a_view_is_looked_up_without_being_made() -> None:
    topics = factory()
    assert topics.get("a", "one") is None
    view = topics.new_tracker("a", subscription="one")
    assert topics.get("a", "one") is view
    assert topics.get("a", "two") is None
    view.close()
    assert topics.get("a", "one") is None
    assert len(topics) == 0
