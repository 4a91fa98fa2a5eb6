"""Generates histories shaped like published ones, from a seed.

Two kinds, in the proportions of the files of Porcupine (github.com/anishathalye/porcupine,
``test_data``):

* ``etcd_register``: Jepsen's test of a register of etcd. Five clients read, write and
  compare-and-set five values, a third each, about once a second. A partition cuts two clients off,
  and an election all of them: their writes time out and may take effect then, later or never. About
  a sixth of the operations never return. A broken system answers reads of a client that is cut off
  with the value that it saw last. A published file has about 85 operations.
* ``key_value``: clients of a replicated map, each always inside an operation: half append, a
  twentieth put, the others get, on ten keys. Each value names its client and number, so that a
  value shows all its appends. Some clients proceed while others wait for long; from time to time
  all clients end and begin again.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from pulsar_ml.harness.histories.history import History, Operation, history_of

VALUES = 5
SECOND = 1_000_000  # stamps are microseconds
TIMEOUT = SECOND * 3 // 2
CUT = 0.7  # share of the time in which the system is partitioned
ELECTION = 0.3  # share of the time in which no leader answers
ROUND = 13  # operations of each client before all clients end and begin again
LEFT_OPEN = 0.5  # share of the timed-out operations that never take effect

Call = tuple[str, tuple[Any, ...]]


def etcd_register(seed: int, *, operations: int, clients: int = 5, broken: bool = False) -> History:
    """Generate a history of a compare-and-set register whose initial value is None."""
    draw = random.Random(seed)
    length = operations / clients
    cuts = [(at, at + CUT / 2 * length) for at in (0.25 * length, 0.65 * length)]
    elections = [(at, at + ELECTION / 2 * length) for at in (0.25 * length, 0.9 * length)]
    cut_off = {cut: draw.sample(range(clients), clients * 2 // 5) for cut in cuts}
    planned = []
    for client in range(clients):
        now = draw.random() / 10
        for _ in range(operations // clients + (client < operations % clients)):
            planned.append((now, client))
            now += 0.9 + draw.random() / 5
    done: list[tuple[float, int]] = []  # moment of effect and number of each call that has one
    calls: list[list[Any]] = []  # thread, call, invoked, returned or None
    late = dict.fromkeys(range(clients), 0.0)  # a client waits for its timeouts
    lives = dict.fromkeys(range(clients), 0)
    for start, client in sorted(planned):
        invoked = start + late[client]
        name, arguments = draw_register_call(draw)
        away = any(low <= invoked < high and client in cut_off[low, high] for low, high in cuts)
        away = away or any(low <= invoked < high for low, high in elections)
        number = len(calls)
        calls.append([client + clients * lives[client], (name, arguments), invoked, None])
        if away and name != "read":
            if draw.random() >= LEFT_OPEN:
                done.append((invoked + draw.random() * 2 * TIMEOUT / SECOND, number))
            late[client] += TIMEOUT / SECOND
            lives[client] += 1
            continue
        took = draw.random() ** 2 / 5
        calls[number][3] = invoked + took
        done.append((invoked + took * draw.random(), number))
    results = register_answers(sorted(done), calls, cuts, cut_off, clients, broken)
    return history_of(
        [
            Operation(thread, name, arguments, results[at], *stamps(at, invoked, returned))
            for at, (thread, (name, arguments), invoked, returned) in enumerate(calls)
        ],
        source="simulated",
    )


def stamps(number: int, invoked: float, returned: float | None) -> tuple[int, int | None]:
    """Return distinct stamps: microseconds, times 1,000, plus the number of the call."""
    return int(invoked * SECOND) * 1000 + number, None if returned is None else (
        int(returned * SECOND) * 1000 + number
    )


def draw_register_call(draw: random.Random) -> Call:
    name = draw.choice(("read", "write", "cas"))
    count = {"read": 0, "write": 1, "cas": 2}[name]
    return name, tuple(draw.randrange(VALUES) for _ in range(count))


def register_answers(
    done: list[tuple[float, int]],
    calls: list[list[Any]],
    cuts: list[tuple[float, float]],
    cut_off: dict[tuple[float, float], list[int]],
    clients: int,
    broken: bool,
) -> list[Any]:
    """Return the answer of each call when they take effect in this order."""
    results: list[Any] = [None] * len(calls)
    held: int | None = None
    kept: dict[tuple[float, float], int | None] = {}  # by partition: the last value seen before
    for moment, number in done:
        thread, (name, arguments), *_ = calls[number]
        for cut in cuts:
            if moment >= cut[0]:
                kept.setdefault(cut, held)
        stale = next(
            (
                c
                for c in cuts
                if broken and c[0] <= moment < c[1] and thread % clients in cut_off[c]
            ),
            None,
        )
        if name == "read":
            results[number] = kept[stale] if stale else held
        elif name == "write":
            held = arguments[0]
        else:
            results[number] = held == arguments[0]
            held = arguments[1] if held == arguments[0] else held
    return results


def key_value(
    seed: int, *, clients: int, operations: int, keys: int = 10, broken: bool = False
) -> History:
    """Generate a history of a map of strings; ``get`` of a missing key answers None.

    ``broken``: after the middle, one get answers without the last append.
    """
    draw = random.Random(seed)
    system = Strings(draw, keys, operations // 2 if broken else operations)
    rounds = max(1, round(operations / (ROUND * clients)))
    finished: list[Operation] = []
    for number in range(rounds):
        system.round(finished, clients, operations * (number + 1) // rounds)
    finished.sort(key=lambda operation: operation.invoked)
    return history_of(finished, source="simulated")


class Strings:
    """A map, its clock, and clients that wait for their call's effect, then for its answer."""

    def __init__(self, draw: random.Random, keys: int, honest: int) -> None:
        self.draw = draw
        self.keys = keys
        self.honest = honest  # calls before the wrong answer
        self.held: dict[str, str] = {}
        self.clock = self.begun = 0

    def round(self, finished: list[Operation], clients: int, until: int) -> None:
        """Run all clients until ``until`` calls have begun in all rounds; then all end."""
        numbers = [0] * clients
        calls: dict[int, tuple[Call, int]] = {}  # by client, with the time of its invocation
        answers: dict[int, Any] = {}
        waiting: list[int] = []  # clients, the latest call last
        answered: list[int] = []

        def begin(client: int) -> None:
            self.begun += 1
            calls[client] = self.call(client, numbers), self.tick()
            waiting.append(client)

        for client in self.draw.sample(range(clients), clients):
            begin(client)
        while waiting or answered:
            if waiting and (not answered or self.draw.random() < 0.5):
                client = waiting.pop(self.picked(len(waiting)))
                answers[client] = self.apply(*calls[client][0])
                answered.append(client)
                continue
            client = answered.pop(self.picked(len(answered)))
            call, invoked = calls.pop(client)
            finished.append(Operation(client, *call, answers.pop(client), invoked, self.tick()))
            if self.begun < until:
                begin(client)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def picked(self, count: int) -> int:
        """Pick the last one with probability 0.6, else anyone."""
        return count - 1 if self.draw.random() < 0.6 else self.draw.randrange(count)

    def call(self, client: int, numbers: list[int]) -> Call:
        key = str(self.draw.randrange(self.keys))
        name = self.draw.choices(("append", "put", "get"), (50, 5, 45))[0]
        if name == "get":
            return name, (key,)
        numbers[client] += 1
        return name, (key, f"x {client} {numbers[client] - 1} y")

    def apply(self, name: str, arguments: tuple[Any, ...]) -> str | None:
        key = arguments[0]
        held = self.held.get(key)
        if name != "get":
            self.held[key] = arguments[1] if name == "put" or held is None else held + arguments[1]
            return None
        if held and held.count("x") > 1 and self.begun > self.honest:
            self.honest = sys.maxsize
            return held[: held.rindex("x")]
        return held
