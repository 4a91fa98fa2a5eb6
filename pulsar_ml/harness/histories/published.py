"""Histories shaped like those that other checkers were published with; all follows from the seed.

Two kinds, in the proportions that their files show (github.com/anishathalye/porcupine, ``test_data``):

* ``etcd_register``: Jepsen on a register of etcd. Five clients read, write and compare-and-set five values, a
  third each, about once a second; while a partition lasts two of them are cut off, and while leaders change
  all are: what they change times out and may have happened, then, later or never. About a sixth of the
  operations never return. A broken system answers the reads of those cut off with what they saw last. (A file
  has about 170 lines, an invocation or a completion each, so some 85 operations.)
* ``key_value``: clients of a replicated map, each always inside an operation: half of them append, a
  twentieth put, the others get, on ten keys, and each written value names its client and number, so a value
  tells all that was appended to it. Some clients go on while others wait for long, and what was done is told
  late; from time to time all end and begin again, with their numbers.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from pulsar_ml.harness.histories.history import History, Operation, history_of

VALUES = 5
SECOND = 1_000_000  # stamps are microseconds
TIMEOUT = SECOND * 3 // 2
CUT = 0.7  # of its time the system is partitioned
ELECTION = 0.3  # of its time no leader answers
ROUND = 13  # operations of each client, until all clients have ended and begin again
LEFT_OPEN = 0.5  # of the operations that time out that never happen

Call = tuple[str, tuple[Any, ...]]


def etcd_register(seed: int, *, operations: int, clients: int = 5, broken: bool = False) -> History:
    """A history of a compare-and-set register that holds None at first."""
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
    done: list[tuple[float, int]] = []  # when it takes effect, and which
    calls: list[list[Any]] = []  # thread, call, invoked, returned or None
    late = dict.fromkeys(range(clients), 0.0)  # a client waits for its timeouts
    lives = dict.fromkeys(range(clients), 0)
    for start, client in sorted(planned):
        invoked = start + late[client]
        name, given = draw_register_call(draw)
        away = any(low <= invoked < high and client in cut_off[low, high] for low, high in cuts)
        away = away or any(low <= invoked < high for low, high in elections)
        number = len(calls)
        calls.append([client + clients * lives[client], (name, given), invoked, None])
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
            Operation(thread, *call, results[at], *stamps(at, invoked, returned))
            for at, (thread, call, invoked, returned) in enumerate(calls)
        ],
        source="simulated",
    )


def stamps(number: int, invoked: float, returned: float | None) -> tuple[int, int | None]:
    """In microseconds, and no two the same."""
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
    """What each call is answered when they take effect in this order."""
    results: list[Any] = [None] * len(calls)
    held: int | None = None
    kept: dict[tuple[float, float], int | None] = {}  # what those cut off saw last
    for moment, number in done:
        thread, (name, given), *_ = calls[number]
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
            held = given[0]
        else:
            results[number] = held == given[0]
            held = given[1] if held == given[0] else held
    return results


def key_value(
    seed: int, *, clients: int, operations: int, keys: int = 10, broken: bool = False
) -> History:
    """A history of a map of strings in which ``get`` of a key that is not there answers None.

    ``broken``: once, from the middle on, a get answers without the last append.
    """
    draw = random.Random(seed)
    system = Strings(draw, keys, operations // 2 if broken else operations)
    rounds = max(1, round(operations / (ROUND * clients)))
    made: list[Operation] = []
    for number in range(rounds):
        system.round(made, clients, operations * (number + 1) // rounds)
    made.sort(key=lambda operation: operation.invoked)
    return history_of(made, source="simulated")


class Strings:
    """The map, its clock, and clients that wait: for their call to be done, then to be told of it."""

    def __init__(self, draw: random.Random, keys: int, honest: int) -> None:
        self.draw = draw
        self.keys = keys
        self.honest = honest  # so many calls are made before one is answered wrongly
        self.held: dict[str, str] = {}
        self.clock = self.begun = 0

    def round(self, made: list[Operation], clients: int, until: int) -> None:
        """All clients begin, and go on until ``until`` calls were made in all rounds; then all end."""
        numbers = [0] * clients
        calls: dict[int, tuple[Call, int]] = {}  # by client, with the time of its invocation
        answers: dict[int, Any] = {}
        waiting: list[int] = []  # who asked last at the end
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
            made.append(Operation(client, *call, answers.pop(client), invoked, self.tick()))
            if self.begun < until:
                begin(client)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def picked(self, count: int) -> int:
        """Mostly who came last, else anybody."""
        return count - 1 if self.draw.random() < 0.6 else self.draw.randrange(count)

    def call(self, client: int, numbers: list[int]) -> Call:
        key = str(self.draw.randrange(self.keys))
        name = self.draw.choices(("append", "put", "get"), (50, 5, 45))[0]
        if name == "get":
            return name, (key,)
        numbers[client] += 1
        return name, (key, f"x {client} {numbers[client] - 1} y")

    def apply(self, name: str, given: tuple[Any, ...]) -> str | None:
        key = given[0]
        held = self.held.get(key)
        if name != "get":
            self.held[key] = given[1] if name == "put" or held is None else held + given[1]
            return None
        if held and held.count("x") > 1 and self.begun > self.honest:
            self.honest = sys.maxsize
            return held[: held.rindex("x")]
        return held
