"""Delayed messages of one subscription, one call after the other: sets of positions by bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.delay import (
    APART,
    BATCH,
    CHUNK,
    DELIVER_NOW,
    ENTRIES,
    MOST_TIME,
    NO_MEMORY,
    TRACKED,
    Rule,
    clock_start,
    digest,
    later,
    message_time,
    positions,
    signed,
)


class Model:
    """The operations of the subject ``delayed_tracker``; each is linearizable."""

    weak: ClassVar[Mapping[str, str]] = {}
    scarce = False
    allocates = frozenset({"add"})

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.tick = settings["tick"]
        self.rule = Rule(self.tick, bool(settings["strict"]))
        self.lookahead = settings["lookahead"]
        self.start = clock_start(settings)
        self.clocks = [self.start] * threads
        self.messages = 2 << settings["spread"]
        self.buckets: dict[int, set[int]] = {}
        self.highest = 0
        self.all_fixed = True
        self.target: int | None = None
        self.fire_at = 0
        self.last_run: int | None = None

    def canonical(self) -> object:
        buckets = frozenset((key, frozenset(messages)) for key, messages in self.buckets.items())
        timer = self.target, self.fire_at if self.target is not None else 0, self.last_run
        return tuple(self.clocks), self.tick, buckets, self.highest, self.all_fixed, timer

    @property
    def count(self) -> int:
        return sum(map(len, self.buckets.values()))

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        now = self.clocks[thread]
        if operation == "add":
            return answer(
                self.add([arguments[0] % self.messages], message_time(arguments[1], now), now)
            )
        if operation == "add_apart":
            moments = [now + ENTRIES + i * arguments[1] % APART for i in range(arguments[0])]
            for number, moment in enumerate(moments):
                if (status := self.add([number], moment, now)) != TRACKED:
                    return answer(status)
            return answer(TRACKED)
        if operation in ("add_many", "add_span"):
            first, entries, delay = arguments
            return answer(self.add(positions(first, entries), message_time(delay, now), now))
        if operation == "pass_time":
            self.clocks[thread] = later(now, arguments[0])
            return answer(TRACKED)
        if operation == "scheduled":
            taken = self.scheduled(arguments[0], now) if arguments[0] < BATCH else []
            while arguments[0] >= BATCH:
                more = self.scheduled(CHUNK, now)
                taken += more
                if len(more) < CHUNK:
                    break
            return answer(TRACKED, len(taken), digest(taken))
        if operation == "has_message":
            due = self.due(now)
            if not due:
                self.update_timer(now)
            return answer(TRACKED, due)
        if operation == "count":
            return answer(TRACKED, self.count)
        if operation == "bytes":
            return answer(TRACKED, bool(self.buckets))  # their number is the structure's own
        if operation == "should_pause":
            paused = 0 < self.lookahead <= self.count and self.all_fixed and not self.due(now)
            return answer(TRACKED, paused)
        if operation == "clear":
            self.buckets.clear()
            self.highest = 0
            self.all_fixed = True
            return answer(TRACKED)
        if operation == "set_tick":
            self.tick = arguments[0]
            return answer(TRACKED)
        if operation == "fire":
            return self.fire(now)
        if operation == "timer":
            if self.target is None:
                return answer(TRACKED, 0)
            return answer(TRACKED, 1, signed(self.fire_at - self.start))
        raise unknown("delayed_tracker", operation)

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        if self.scarce and operation == "add" and result == answer(NO_MEMORY):
            now = self.clocks[thread]
            deliver_at = message_time(arguments[1], now)
            return deliver_at >= 0 and deliver_at > self.rule.cutoff(self.tick, now)
        return self.step(operation, arguments, thread=thread) == result

    def add(self, entries: Sequence[int], deliver_at: int, now: int) -> int:
        if deliver_at < 0 or deliver_at <= self.rule.cutoff(self.tick, now):
            self.all_fixed = False
            return DELIVER_NOW
        self.buckets.setdefault(self.rule.key(deliver_at), set()).update(entries)
        if deliver_at < self.highest - self.tick:
            self.all_fixed = False
        self.highest = max(self.highest, deliver_at)
        self.update_timer(now)
        return TRACKED

    def due(self, now: int) -> bool:
        return bool(self.buckets) and min(self.buckets) <= self.rule.limit(self.tick, now)

    def scheduled(self, most: int, now: int) -> list[int]:
        taken: list[int] = []
        for key in sorted(self.buckets):
            if key > self.rule.limit(self.tick, now) or len(taken) == most:
                break
            found = sorted(self.buckets[key])[: most - len(taken)]
            taken += found
            self.buckets[key].difference_update(found)
            if not self.buckets[key]:
                del self.buckets[key]
        if not self.buckets:
            self.highest = 0
            self.all_fixed = True
        self.update_timer(now)
        return taken

    def update_timer(self, now: int) -> None:
        first = min(self.buckets, default=None)
        if first == self.target:
            return
        self.target = None
        if first is not None and self.rule.due(self.tick, first) > now:
            self.target = first
            self.fire_at = self.rule.due(self.tick, first)
            if self.last_run is not None:
                self.fire_at = max(self.fire_at, min(self.last_run + self.tick, MOST_TIME))

    def fire(self, now: int) -> Answer:
        if self.target is None or self.fire_at > now:
            return answer(TRACKED, 0)
        self.last_run = now
        self.target = None
        return answer(TRACKED, 1)
