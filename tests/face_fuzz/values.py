"""Arguments for the fuzzer: sensible ones by the name of the parameter, and hostile ones."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, Protocol

from pulsar_ml import Position
from pulsar_ml._core import EVICTION_POLICIES

EDGES = [0, 1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**40]
EDGES += [-number for number in EDGES[1:]]
MOST_SIZE = 1 << 12


class Hostile(Exception):
    """An exception of a hostile value or callback, which the face may pass on."""


class World(Protocol):
    """The fuzzer as arguments see it."""

    random: Random

    def some(self, *kinds: str) -> Any:
        """An object of one of these classes; any object without names; None when there is none."""
        ...

    def disturb(self) -> None:
        """Makes calls on other objects, or raises Hostile."""
        ...

    def callback(self) -> Callable[..., object]:
        """A function that records numbers, keeps objects, raises, or makes calls."""
        ...

    def number(self) -> int:
        """A number that a callback got, such as a token, or a small one."""
        ...

    def largest(self) -> int:
        """The largest number that a callback got: most likely a token."""
        ...


class Evil:
    """A value whose every special method disturbs other objects before it answers."""

    def __init__(self, world: World, answer: Any) -> None:
        self.world = world
        self.answer = answer

    def __index__(self) -> int:
        self.world.disturb()
        answer: int = self.answer
        return answer

    def __bool__(self) -> bool:
        self.world.disturb()
        return bool(self.answer)

    def __iter__(self) -> Any:
        self.world.disturb()
        return iter((self.answer, self))

    def __len__(self) -> int:
        self.world.disturb()
        return 2

    def __buffer__(self, flags: int) -> memoryview:
        self.world.disturb()
        return memoryview(b"evil")

    def __lt__(self, other: object) -> bool:
        self.world.disturb()
        return True

    __gt__ = __le__ = __ge__ = __lt__

    def __eq__(self, other: object) -> bool:
        self.world.disturb()
        return False

    def __hash__(self) -> int:
        self.world.disturb()
        return 1

    def __repr__(self) -> str:
        self.world.disturb()
        return "<Evil>"


class Text(str):
    """A string that is no exact ``str``."""


def hostile(world: World) -> Any:
    """A value of a wrong type, at the edge of its range, or that does something when it is used."""
    random = world.random
    return random.choice(
        [
            lambda: random.choice(EDGES),
            lambda: random.choice(EDGES) + random.randint(-1, 1),
            lambda: random.choice([None, True, False, ..., NotImplemented, object(), type]),
            lambda: random.choice([0.0, 0.5, 1e300, math.nan, math.inf, -math.inf, 2.0**63]),
            lambda: random.choice(
                [1j, Fraction(1, 3), "", "a", "\ud800", "\0", Text("a"), "x" * 999]
            ),
            lambda: random.choice([b"", b"bytes", bytearray(b"x"), memoryview(b"abcdef")[::2]]),
            lambda: random.choice([(), (1,), (1, 2, 3), [1, 2], (None, None), {}, {1: 2}, set()]),
            lambda: (random.choice(EDGES), random.choice(EDGES)),
            lambda: Evil(world, random.choice([0, 1, 5, 2**63, -1, "text"])),
            lambda: (Evil(world, 1), Evil(world, 2)),
            lambda: [world.some() for _ in range(3)],
            lambda: [world.some("Entry")] * 2,
            lambda: world.some(),
            lambda: Hostile("value"),
            world.callback,
        ]
    )()


def position(world: World) -> Any:
    return Position(world.random.randint(1, 2), world.random.randrange(80))


def positions(world: World) -> Any:
    """Positions as tuples or as an array of 64-bit integers, in one case of eight a wrong one."""
    ids = [(world.random.randint(1, 2), world.random.randrange(80)) for _ in range(3)]
    if world.random.random() < 0.4:
        return ids
    columns = world.random.choice([2, 2, 2, 3])
    flat = array("q", [number for row in ids for number in row])
    rows = memoryview(flat.tobytes()).cast("q", (len(flat) // columns, columns))
    return rows if world.random.random() < 0.9 else rows.cast("B").cast("d", (3, 2))


def values(world: World) -> Any:
    return [payload(world) for _ in range(3)]


def deliver_at(world: World) -> Any:
    """A time, or the times of as many messages as there are positions."""
    times = [world.random.randrange(-5, 500) for _ in range(3)]
    return world.random.choice([times[0], times, array("q", times)])


def entries(world: World) -> list[Any]:
    return [entry for _ in range(world.random.randrange(3)) if (entry := world.some("Entry"))]


def payload(world: World) -> Any:
    value = world.some("Entry", "BufferSlice") if world.random.random() < 0.5 else None
    return value or b"x" * world.random.choice([0, world.random.randrange(50)])


def ledger_range(world: World) -> int:
    return world.random.randrange(40)


# By the name of the parameter.
SENSIBLE: dict[str, Callable[[World], Any]] = {
    **dict.fromkeys(("position", "mark_delete_position"), position),
    **dict.fromkeys(("name", "topic", "subscription"), lambda world: world.random.choice("abc")),
    **dict.fromkeys(("data", "value"), payload),
    "entries": lambda world: world.random.choice([entries(world), 3]),
    **dict.fromkeys(("ranges", "batches"), lambda world: world.random.choice([0, 0, 1])),
    "positions": positions,
    "values": values,
    "deliver_at_ms": deliver_at,
    "names": lambda world: [world.random.choice("abc") for _ in range(3)],
    "manager": lambda world: world.some("EntryCacheManager"),
    **dict.fromkeys(
        ("callback", "trigger", "start_read", "visitor", "on_resume", "parse"),
        lambda world: world.callback(),
    ),
    **dict.fromkeys(("clock", "may_dispatch"), lambda world: None),
    "policy": lambda world: world.random.choice(list(EVICTION_POLICIES)),
    "error": lambda world: Hostile("error"),
    "token": lambda world: world.random.choice([world.number(), world.largest()]),
    **dict.fromkeys(("offset", "length"), lambda world: world.random.randrange(3)),
    "watermark": lambda world: world.random.random(),
    "ledger_id": lambda world: world.random.randint(1, 2),
    "capacity": lambda world: world.random.randint(1, MOST_SIZE),
    "max_bytes": lambda world: world.random.choice([None, 1024, 5000]),
    "max_size": lambda world: world.random.choice([None, 0, 100, 10_000]),
}


def argument(world: World, name: str, *, first_is_position: bool) -> Any:
    """An argument for a parameter."""
    if world.random.random() < 0.2:
        return hostile(world)
    if name in {"first", "last"}:
        return position(world) if first_is_position else world.random.randrange(60)
    value = SENSIBLE.get(name)
    return world.random.randrange(60) if value is None else value(world)
