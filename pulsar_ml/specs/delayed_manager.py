"""Delayed messages of topics and the views of their subscriptions, one call after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.delay import (
    APART,
    BATCH,
    CHUNK,
    CLOSED,
    DELIVER_NOW,
    ENTRIES,
    MOST_TIME,
    TRACKED,
    Rule,
    clock_start,
    clocks_of,
    digest,
    later,
    message_time,
    signed,
)

TOPICS, SLOTS, VIEWS = 2, 3, 32
FULL = 4
PRUNE_RATIO = 1.0  # of the views, which a fire has to trigger before it prunes
NONE = -1  # before all positions

START = (-1, NONE)


@dataclass(eq=False, slots=True)
class Topic:
    tick: int
    buckets: dict[int, set[int]] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    passed: int = -1
    target: int | None = None
    fire_at: int = 0
    last_run: int | None = None
    last_prune: int | None = None

    @property
    def count(self) -> int:
        return sum(map(len, self.buckets.values()))


@dataclass(eq=False, slots=True)
class View:
    topic: Topic
    mark_delete: int | None = None
    cursor: tuple[int, int] = START  # bucket, message: all up to there was returned
    late: int = MOST_TIME
    highest: int = 0
    varied: bool = False
    closed: bool = False

    def start(self) -> tuple[int, int]:
        """Where it goes on: at its cursor, or at an earlier bucket that got a message."""
        key, message = self.cursor
        if self.late < MOST_TIME and (self.late < key or (self.late == key and message >= 0)):
            return self.late, NONE
        return self.cursor

    def ahead(self, limit: int) -> Iterator[tuple[int, list[int]]]:
        """Buckets up to a limit with the messages that the view did not return or mark."""
        first, returned = self.start()
        marked = NONE if self.mark_delete is None else self.mark_delete
        for key in sorted(key for key in self.topic.buckets if first <= key <= limit):
            above = max(marked, returned) if key == first else marked
            yield key, sorted(message for message in self.topic.buckets[key] if message > above)


class Model:
    """The operations of the subject ``delayed_manager``."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.tick = settings["tick"]
        self.rule = Rule(self.tick, bool(settings["strict"]))
        self.lookahead = settings["lookahead"]
        self.prune_interval = settings["prune_interval"]
        self.start = clock_start(settings)
        self.clocks = clocks_of(settings, threads)
        self.messages = 2 << settings["spread"]
        self.clock = self.start  # of the thread whose call it is
        self.topics: dict[int, Topic] = {}
        self.opened = 0
        self.slots = [self.open(slot) for slot in range(SLOTS)]

    def open(self, slot: int) -> View:
        topic = self.topics.setdefault(slot % TOPICS, Topic(self.tick))
        view = View(topic)
        topic.views.append(view)
        self.opened += 1
        return view

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "pass_time":
            self.clocks[thread] = later(self.clocks[thread], arguments[0])
            return answer(TRACKED)
        self.clock = self.clocks[thread]
        slot, *rest = arguments
        if operation == "open":
            if not self.slots[slot].closed:
                return answer(TRACKED, 0)
            if self.opened == VIEWS:
                return answer(FULL, 1)
            self.slots[slot] = self.open(slot)
            return answer(TRACKED, 1)
        method = getattr(self, f"call_{operation}", None)
        if method is None:
            raise unknown("delayed_manager", operation)
        found: Answer = method(self.slots[slot], *rest)
        return found

    def limit(self, topic: Topic) -> int:
        return self.rule.limit(topic.tick, self.clock)

    # Messages.

    def call_add(self, view: View, message: int, delay: int) -> Answer:
        return answer(self.add(view, [message % self.messages], message_time(delay, self.clock)))

    def call_add_many(self, view: View, entries: int, delay: int) -> Answer:
        return answer(self.add(view, range(entries), message_time(delay, self.clock)))

    def call_add_apart(self, view: View, entries: int, step: int) -> Answer:
        for number in range(entries):
            moment = self.clock + ENTRIES + number * step % APART
            if (status := self.add(view, [number], moment)) != TRACKED:
                return answer(status)
        return answer(TRACKED)

    def add(self, view: View, messages: Sequence[int], deliver_at: int) -> int:
        topic = view.topic
        if view.closed:
            return CLOSED
        if deliver_at < 0 or deliver_at <= self.rule.cutoff(topic.tick, self.clock):
            view.varied = True
            return DELIVER_NOW
        key = self.rule.key(deliver_at)
        topic.buckets.setdefault(key, set()).update(messages)
        if deliver_at < view.highest - topic.tick:
            view.varied = True
        view.highest = max(view.highest, deliver_at)
        if key <= topic.passed:
            for other in topic.views:
                other.late = min(other.late, key)
        self.arm(topic, key)
        return TRACKED

    def call_scheduled(self, view: View, most: int) -> Answer:
        if view.closed:
            return answer(CLOSED)
        taken = self.scheduled(view, most) if most < BATCH else []
        while most >= BATCH:
            more = self.scheduled(view, CHUNK)
            taken += more
            if len(more) < CHUNK:
                break
        return answer(TRACKED, len(taken), digest(taken))

    def scheduled(self, view: View, most: int) -> list[int]:
        topic = view.topic
        taken: list[int] = []
        view.cursor, view.late = view.start(), MOST_TIME
        for key, messages in list(view.ahead(self.limit(topic))):
            if len(taken) == most:
                break
            topic.passed = max(topic.passed, key)
            taken += messages[: most - len(taken)]
            if len(taken) == most:
                view.cursor = key, taken[-1]
            elif key < MOST_TIME:
                view.cursor = key + 1, NONE
            else:
                view.cursor = key, MOST_TIME
        if len(taken) < most:
            self.arm_next(topic)
        if not any(key >= view.cursor[0] for key in topic.buckets):
            view.highest, view.varied = 0, False
        self.prune(topic)
        return taken

    def due(self, view: View) -> bool:
        return any(messages for _, messages in view.ahead(self.limit(view.topic)))

    def pending(self, view: View) -> int:
        return sum(len(messages) for _, messages in view.ahead(MOST_TIME))

    def call_has_message(self, view: View) -> Answer:
        if view.closed:
            return answer(TRACKED, -1)
        due = self.due(view)
        if not due:
            self.arm_next(view.topic)
        return answer(TRACKED, due)

    def call_count(self, view: View, enough: int) -> Answer:
        if view.closed:
            return answer(TRACKED, -1)
        counted = 0
        for _, messages in view.ahead(MOST_TIME):
            if counted >= enough:
                break
            counted += len(messages)
        return answer(TRACKED, counted)

    def call_should_pause(self, view: View) -> Answer:
        if view.closed:
            return answer(TRACKED, -1)
        many = 0 < self.lookahead <= self.pending(view)
        return answer(TRACKED, many and not view.varied and not self.due(view))

    def call_clear(self, view: View) -> Answer:
        if not view.closed:
            view.cursor = START
        return answer(TRACKED, not view.closed)

    # Mark-delete.

    def call_mark_delete(self, view: View, message: int) -> Answer:
        message %= self.messages
        if not view.closed:
            if view.mark_delete is not None and message < view.mark_delete:
                view.cursor = START
            view.mark_delete = message
            self.prune(view.topic)
        return answer(TRACKED, not view.closed)

    def prune(self, topic: Topic) -> None:
        if topic.last_prune is not None and self.clock - topic.last_prune < self.prune_interval:
            return
        topic.last_prune = self.clock
        marked = [view.mark_delete for view in topic.views if view.mark_delete is not None]
        if not marked or len(marked) < len(topic.views):
            return
        least = min(marked)
        for key, messages in list(topic.buckets.items()):
            messages.difference_update({message for message in messages if message <= least})
            if not messages:
                del topic.buckets[key]

    # Life and time.

    def call_close(self, view: View) -> Answer:
        if view.closed:
            return answer(CLOSED)
        view.closed = True
        topic = view.topic
        topic.views.remove(view)
        if not topic.views:
            self.topics = {
                number: other for number, other in self.topics.items() if other is not topic
            }
            topic.buckets.clear()
            topic.target = None
        return answer(TRACKED)

    def call_set_tick(self, view: View, tick: int) -> Answer:
        view.topic.tick = tick
        return answer(TRACKED)

    def arm(self, topic: Topic, key: int) -> None:
        if topic.target is None or key < topic.target:
            topic.target = key
            topic.fire_at = self.rule.due(topic.tick, key)
            if topic.last_run is not None:
                topic.fire_at = max(topic.fire_at, min(topic.last_run + topic.tick, MOST_TIME))

    def call_fire(self, view: View) -> Answer:
        topic = view.topic
        if topic.target is None or topic.fire_at > self.clock:
            return answer(TRACKED, -1)
        topic.target, topic.last_run = None, self.clock
        triggered = sum(self.due(other) for other in topic.views)
        if topic.views:
            self.arm_next(topic)
        if triggered >= max(1, PRUNE_RATIO * len(topic.views)):
            self.prune(topic)
        return answer(TRACKED, triggered)

    def arm_next(self, topic: Topic) -> None:
        later = min((key for key in topic.buckets if key > self.limit(topic)), default=None)
        if later is not None:
            self.arm(topic, later)

    def call_timer(self, view: View) -> Answer:
        if view.topic.target is None:
            return answer(TRACKED, 0)
        return answer(TRACKED, 1, signed(view.topic.fire_at - self.start))

    def call_topic(self, view: View) -> Answer:
        return answer(TRACKED, view.topic.count, len(view.topic.buckets))
