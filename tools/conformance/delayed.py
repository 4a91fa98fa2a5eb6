"""The delayed messages' side of their traces: one subscription's tracker."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pulsar_ml.harness.subjects.subject import Instance
from pulsar_ml.operations import _native
from pulsar_ml.specs.delay import Rule, digest
from pulsar_ml.specs.delayed_tracker import Model

NAMES = ("tick", "strict", "lookahead", "start")


def trace(random: Random, length: int) -> list[str]:
    """Messages that come, become due and are taken; time goes on between the operations."""
    tick = random.choice((0, 1, 3, 8, 10, 20))
    strict, lookahead = random.randrange(2), random.choice((0, 0, 1, 3))
    lines = [f"new delayed {tick} {strict} {lookahead} {random.randrange(32)}"]
    messages, most = random.choice((4, 16, 64)), random.choice((12, 40))
    fixed = random.choice((0, 0, most // 2))  # the one delay of all messages; 0: any delay
    for _ in range(length):
        operation = random.choices(
            ["add", "pass_time", "scheduled", "has_message", "should_pause", "clear", "set_tick",
             "fire", "timer"],
            [30, 14, 10, 6, 6, 1, 1, 8, 5],
        )[0]  # fmt: skip
        delay = fixed or random.randrange(-3, most)
        lines.append(
            {
                "add": f"add {random.randrange(messages)} {delay}",
                "pass_time": f"pass_time {random.randrange(12)}",
                "scheduled": f"scheduled {random.choice((0, 1, 2, 5, 30))}",
                "set_tick": f"set_tick {random.choice((0, 1, 5, 10, 25))}",
            }.get(operation, operation)
        )
    return lines


def shown(operation: str, status: int, words: Sequence[int]) -> str:
    """An answer as both sides print it."""
    if operation == "add":
        return "false" if status else "true"
    if operation in ("has_message", "should_pause", "fire"):
        return "true" if words[0] else "false"
    if operation == "timer":
        return f"at {words[1]}" if words[0] else "off"
    return "done"


def settings_of(words: Sequence[str]) -> dict[str, int]:
    """The settings that a trace begins with."""
    return {**dict(zip(NAMES, map(int, words[2:]), strict=True)), "spread": 5, "era": 0}


class Delayed:
    """The native tracker. Its answers are numbers; the positions of a number come from the
    sequential model, whose digest must be the tracker's.
    """

    def __init__(self, words: Sequence[str]) -> None:
        settings = settings_of(words)
        self.tracker: Instance = _native.SUBJECTS["delayed_tracker"].create(
            threads=1, settings=settings
        )
        self.model = Model(settings, 1)

    def scheduled(self, most: int) -> str:
        count, seen = self.tracker.call("scheduled", most).words[:2]
        taken = self.model.scheduled(most, self.model.clocks[0])
        if (count, seen) != (len(taken), digest(taken)):
            return f"{count} messages with the digest {seen}, but the model has {taken}"
        return " ".join(["found", *map(str, sorted(set(taken)))])

    def apply(self, operation: str, arguments: list[int]) -> str:
        if operation == "scheduled":
            return self.scheduled(arguments[0])
        result = self.tracker.call(operation, *arguments)
        self.model.step(operation, arguments)
        return shown(operation, result.status, result.words)

    def __call__(self, words: Sequence[str]) -> str:
        answer = self.apply(words[0], [int(word) for word in words[1:]])
        return f"{answer} {self.tracker.call('count').words[0]}"


class Released(Model):
    """The sequential model with what the releases do otherwise."""

    def __init__(self, trace: Sequence[str], *, early: bool, keeps: bool) -> None:
        words = trace[0].split(" ")
        super().__init__(settings_of(words), 1)
        self.keeps = keeps
        if early:
            self.rule = Early(self.rule.first_tick, self.rule.strict)
        self.answer = ""
        for line in trace[1:]:
            operation, *arguments = line.split(" ")
            self.answer = f"{self.apply(operation, [int(word) for word in arguments])} {self.count}"

    def apply(self, operation: str, arguments: list[int]) -> str:
        if operation == "scheduled":
            taken = self.scheduled(arguments[0], self.clocks[0])
            return " ".join(["found", *map(str, sorted(set(taken)))])
        before = self.highest, self.all_fixed
        result = self.step(operation, arguments)
        if operation == "clear" and self.keeps:
            self.highest, self.all_fixed = before
        return shown(operation, *result)


class Early(Rule):
    """A rule whose timer fires for a bucket at the bucket's time, though a tick may end later."""

    def due(self, tick: int, key: int) -> int:
        return key


def listed(version: str, trace: Sequence[str], ours: str, theirs: str) -> str | None:
    """The name of the listed difference of delayed messages, if any."""
    if ours != Released(trace, early=False, keeps=False).answer:
        return None
    if Released(trace, early=True, keeps=False).answer == theirs:
        return "delayed-smaller-tick"
    if version != "4.2.4":
        return None
    if Released(trace, early=False, keeps=True).answer == theirs:
        return "delayed-clear"
    both = Released(trace, early=True, keeps=True).answer == theirs
    return "delayed-clear" if both else None
