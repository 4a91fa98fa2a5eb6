"""Delayed messages of a cursor: they follow its acknowledgements and wait while it is paused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pulsar_ml import InMemoryDelayedDeliveryTrackerFactory, Position
from pulsar_ml.managed_ledger import DelayedDelivery
from tests.managed_ledger.kit import SECONDS, Broker, open_broker, texts
from tests.managed_ledger.test_acks import TWO_RANGES


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Subscription:
    """A cursor over twelve entries; ``delay`` gives some the delivery times 10, 20, ..."""

    def __init__(self, broker: Broker) -> None:
        self.clock = Clock()
        self.cursor = broker.ledger.open_cursor("sub", earliest=True)
        self.positions = [broker.ledger.add_entry(str(number).encode()) for number in range(12)]
        self.triggered = 0
        factory = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1)
        self.delayed = DelayedDelivery(self.cursor, factory, clock=self.clock, trigger=self.trigger)

    def trigger(self) -> None:
        self.triggered += 1

    def delay(self, *numbers: int) -> None:
        for at, number in enumerate(numbers, 1):
            assert self.delayed.add(self.positions[number], 10 * at)

    def pause(self) -> None:
        """Acknowledges three ranges, of which two fit."""
        for number in (1, 3, 5):
            self.cursor.delete(self.positions[number])


@pytest.fixture
def subscription() -> Iterator[Subscription]:
    with open_broker(settings=TWO_RANGES) as broker:
        yield Subscription(broker)


def replayed(subscription: Subscription) -> list[str]:
    return texts(subscription.cursor.replay_entries(12).result(SECONDS))


def test_messages_that_are_due_are_replayed_and_others_wait(subscription: Subscription) -> None:
    subscription.delay(7, 9)
    assert subscription.delayed.fire() == 0
    subscription.clock.now = 15
    assert subscription.delayed.fire() == 1 and subscription.triggered == 1
    assert subscription.delayed.replay_scheduled(5) == [subscription.positions[7]]
    assert replayed(subscription) == ["7"]
    assert subscription.delayed.replay_scheduled(5) == []


def test_what_is_acknowledged_does_not_come(subscription: Subscription) -> None:
    subscription.delay(2, 7)
    subscription.cursor.mark_delete(subscription.positions[4])
    subscription.clock.now = 100
    assert subscription.delayed.replay_scheduled(5) == [subscription.positions[7]]


def test_a_view_begins_at_the_mark_delete_position(subscription: Subscription) -> None:
    subscription.delay(2, 7)
    subscription.cursor.mark_delete(subscription.positions[4])
    factory = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1)
    again = DelayedDelivery(subscription.cursor, factory, clock=subscription.clock)
    again.add(subscription.positions[2], 10)
    again.add(subscription.positions[7], 10)
    subscription.clock.now = 100
    assert again.replay_scheduled(5) == [subscription.positions[7]]


def test_due_messages_wait_while_the_state_does_not_fit_and_are_told_of_when_it_does(
    subscription: Subscription,
) -> None:
    subscription.delay(7)
    subscription.pause()
    subscription.clock.now = 10
    # The timer triggers once for the message, and no view may take it.
    assert subscription.delayed.fire() == 1 and subscription.triggered == 1
    assert subscription.delayed.replay_scheduled(5) == []
    subscription.cursor.delete(subscription.positions[4])
    assert subscription.triggered == 2
    assert subscription.delayed.replay_scheduled(5) == [subscription.positions[7]]


def test_nobody_is_called_for_messages_that_are_not_due(subscription: Subscription) -> None:
    subscription.delay(7)
    subscription.pause()
    assert subscription.delayed.replay_scheduled(5) == []
    subscription.cursor.delete(subscription.positions[4])
    assert subscription.triggered == 0


def test_a_closed_one_hears_of_nothing(subscription: Subscription) -> None:
    subscription.delay(7)
    subscription.pause()
    subscription.clock.now = 10
    assert subscription.delayed.replay_scheduled(5) == []
    subscription.delayed.close()
    subscription.cursor.delete(subscription.positions[4])
    subscription.cursor.mark_delete(subscription.positions[6])
    assert subscription.triggered == 0
    assert subscription.cursor.mark_delete_position == Position(*subscription.positions[6])
