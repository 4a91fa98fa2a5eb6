"""Copies of models: independent, equal, and with what is shared still shared."""

from __future__ import annotations

import importlib
import random
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from pulsar_ml.harness.models.copies import changing, copied, copied_but, freeze, weight
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations._native import SUBJECTS
from pulsar_ml.suites.registry import SUITES

MODELS = sorted({suite.model for suite in SUITES.values() if suite.model})


@dataclass(eq=False, slots=True)
class Count:
    expected: int


@dataclass(frozen=True, slots=True)
class Mark:
    at: int


class Slotted:
    __slots__ = ("__private", "never", "shown")

    def __init__(self) -> None:
        self.__private = [1]
        self.shown = {"a": (1, [2])}

    def private(self) -> list[int]:
        return self.__private


class Everything:
    def __init__(self) -> None:
        self.shared = Count(1)
        self.again = [self.shared, self.shared]
        self.queue = deque([(1, 2), (3, self.shared)], maxlen=5)
        self.sets = {1, (2, 3)}, frozenset({"x"})
        self.mark = Mark(4)
        self.slotted = Slotted()
        self.kind = Count
        self.myself = self


def test_a_copy_is_equal_and_shares_nothing_that_can_change() -> None:
    first = Everything()
    second = copied(first)
    assert freeze(second) == freeze(first)
    second.slotted.private().append(9)
    second.slotted.shown["a"][1].append(9)
    second.queue.append((5, 6))
    second.shared.expected = 7
    assert first.slotted.private() == [1]
    assert first.slotted.shown == {"a": (1, [2])}
    assert len(first.queue) == 2
    assert first.shared.expected == 1


def test_what_is_held_twice_stays_one() -> None:
    copy = copied(Everything())
    assert copy.again[0] is copy.again[1] is copy.shared is copy.queue[1][1]
    assert copy.myself is copy
    assert copy.kind is Count
    assert copy.queue.maxlen == 5
    assert not hasattr(copy.slotted, "never")


class Place(NamedTuple):
    number: int
    held: object = ()


def test_named_tuples_are_shared_unless_something_in_them_can_change() -> None:
    fixed = (Place(1, frozenset({(2, 3)})), Place(2, Place(3)))
    assert copied(fixed) is fixed
    first = [Place(1, [Place(2)])]
    second = copied(first)
    assert freeze(second) == freeze(first)
    assert type(second[0]) is Place
    assert second[0].held is not first[0].held


class Odd:
    """Only pickle knows how to make it again."""

    def __init__(self) -> None:
        self.drawn = random.Random(3)
        self.shared = [1]
        self.again = self.shared


def test_what_cannot_be_copied_field_by_field_is_pickled_as_a_whole() -> None:
    first = Odd()
    second = copied(first)
    assert second.again is second.shared is not first.shared
    assert second.drawn.random() == first.drawn.random()


@pytest.mark.parametrize("name", MODELS)
def test_models_are_copied(name: str) -> None:
    suite = next(suite for suite in SUITES.values() if suite.model == name)
    settings = Program.generate(
        SUBJECTS[suite.subject], 0, threads=1, operations=1, settings=suite.settings
    ).settings
    model = importlib.import_module(name).Model(settings, 3)
    copy = copied(model)
    assert copy is not model
    assert freeze(copy) == freeze(model)


def test_a_larger_key_weighs_more() -> None:
    assert weight((1, 2)) < weight((1, 2, (3, "x"))) < weight(tuple(range(1000)))


class Held:
    def __init__(self) -> None:
        self.plain = (1, ("a", None))
        self.inside: tuple[object, ...] = (1, [2])
        self.again = self.inside[1]
        self.mark = frozenset({3})


def test_only_what_can_change_is_copied_again() -> None:
    held = Held()
    names = changing(held, None, None)
    assert names is not None and sorted(names) == ["again", "inside"]
    copy: Any = copied_but(held, names)
    assert copy.plain is held.plain and copy.mark is held.mark
    assert copy.inside == held.inside and copy.inside[1] is not held.inside[1]
    assert copy.again is copy.inside[1]
    copy.more = 1
    assert not hasattr(held, "more")
    # Of another one only what it does not have in common is looked at, and what could change
    # before.
    copy.plain = (copy.inside,)
    again = changing(copy, held, names)
    assert again is not None and sorted(again) == ["again", "inside", "plain"]
    assert changing(copied_but(held, names), held, names) == names


def test_objects_with_slots_or_ways_of_their_own_are_copied_as_a_whole() -> None:
    assert changing(Slotted(), None, None) is None
    assert changing(Count(1), None, None) is None
    held: Any = Held()
    held.again = Opaque()
    names = changing(held, None, None)
    assert names is not None
    copy = copied_but(held, names)
    assert isinstance(copy.again, Opaque) and copy.again is not held.again
    assert copy.plain == held.plain


class Opaque:
    """Only pickle knows how to make one."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Opaque, ()
