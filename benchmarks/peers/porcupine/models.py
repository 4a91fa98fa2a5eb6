"""Rows with models in Python, as a user would write them: each row is named for its model.

Porcupine's models in ``main.go`` are their peers. Each history is checked several times by both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks.peers.porcupine.histories import CasCell
from benchmarks.peers.porcupine.shapes import Shape, maps, simulated
from pulsar_ml.harness.histories.generated import Cell
from pulsar_ml.harness.histories.history import Call, History
from pulsar_ml.harness.models.model import Keyed

REPEATS = 10  # of a history, where both need some milliseconds at most


class Exchanged:
    """A register with read, write and cas(old, new) -> whether it exchanged."""

    def init(self) -> Any:
        return None

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        if call.name == "read":
            return [state] if call.pending or call.result == state else []
        if call.name == "write":
            return [call.arguments[0]]
        old, new = call.arguments
        after = new if state == old else state
        return [after] if call.pending or call.result == (state == old) else []

    def pure(self, call: Call) -> bool:
        return call.name == "read"


class Text:
    """The text of one key: get, put, append."""

    def init(self) -> str:
        return ""

    def step(self, state: str, call: Call) -> Iterable[str]:
        if call.name == "get":
            return [state] if call.pending or call.result in (state, state or None) else []
        added: Any = call.arguments[0]
        return [added] if call.name == "put" else [state + added]

    def pure(self, call: Call) -> bool:
        return call.name == "get"


class ForeseenText(Text):
    """The text of one key, with the optional methods for looking ahead."""

    def resets(self, call: Call) -> bool:
        return call.name == "put"

    def leads(self, state: str, call: Call) -> bool:
        seen: Any = call.result
        return seen.startswith(state) if seen else not state


class Texts:
    """The texts of all keys, of which each can be checked alone."""

    def init(self) -> frozenset[Any]:
        return frozenset()

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        held = dict(state)
        key: Any = call.arguments[0]
        if call.name == "get":
            return [state] if call.pending or call.result == held.get(key) else []
        added: Any = call.arguments[1]
        held[key] = added if call.name == "put" else held.get(key, "") + added
        return [frozenset(held.items())]

    def pure(self, call: Call) -> bool:
        return call.name == "get"

    def partition(self, call: Call) -> Hashable:
        return call.arguments[0]


def repeated(generate: Callable[[int], History], count: int) -> Callable[[int], History]:
    return lambda seed: generate(seed % count)


def with_model(shape: Shape, name: str, model: Callable[[], Any], repeats: int = REPEATS) -> Shape:
    """Return a shape with the model of a user, which checks each history several times."""
    return dataclasses.replace(
        shape,
        name=f"{name}, {shape.name}",
        model=model,
        generate=repeated(shape.generate, shape.count),
        count=repeats * shape.count,
        kept={},
    )


def python_shapes() -> Iterator[Shape]:
    """All shapes with models in Python."""
    for clients, operations, repeats in ((10, 300, REPEATS), (50, 1_300, 1)):
        for shape in maps(clients, operations, 10):
            name = "Python model of one key"
            yield with_model(shape, name, lambda: Keyed(Text()), repeats)
            yield with_model(
                shape, f"{name}, looking ahead", lambda: Keyed(ForeseenText()), repeats
            )
            yield with_model(shape, "Python model of all keys", Texts, repeats)
    for clients in (5, 10):
        for operations in (100, 1_000):
            kinds: tuple[tuple[str, Callable[[int], Any]], ...] = (
                ("register", Cell),
                ("compare-and-set register", CasCell),
            )
            for name, system in kinds:
                for shape in simulated(
                    name, Exchanged, "register", partial(system, 5), clients, operations
                ):
                    yield with_model(shape, "Python model", Exchanged)
