"""Sequential models: what an operation may answer when nothing runs beside it.

A model is a plain Python object; :class:`Model` names what it must have, :class:`Extras` what it may have.
States are values: a step returns new ones and never changes the one it was given.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from pulsar_ml.errors import PulsarMlError
from pulsar_ml.harness.histories.history import Call


class ModelError(ValueError):
    """A model that breaks its own contract, found before or during a search."""


class Model(Protocol):
    """What every model has."""

    def init(self) -> Any:
        """The state before the first operation."""
        ...

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        """Every state to which ``call``, with the result it has, may lead from ``state``.

        Empty: that result is impossible here. One state: the usual case. Several: the specification leaves
        it open, as when a cache may drop what it likes. For a call that did not return (``call.pending``)
        all states to which any answer might lead.
        """
        ...


class Extras(Protocol):
    """What a model may have besides.

    Attributes:
        operations: name -> number of arguments; a history in which a call of that name has more or fewer is
            refused before the search.
        by_thread: whether a call's ``thread`` matters to the model; without it all threads are alike.
        monitor: "register", "queue", "stack" or "set", when the model is exactly one of those and
            histories with distinct values may go to the monitor of that name.
    """

    operations: Mapping[str, int]
    by_thread: bool
    monitor: str

    def partition(self, call: Call) -> Hashable:
        """The part of the object that the call is about, when parts are independent of each other; None
        when it concerns more than one. Each part is then checked alone, from ``init()``."""
        ...

    def pure(self, call: Call) -> bool:
        """Whether the call, wherever it is legal, leaves the state as it was. A pure call is tried first and
        only once, which is what makes most searches short."""
        ...

    def ends(self, call: Call) -> bool:
        """Whether it is the end of a call whose beginning is a call of its own, of the same thread and
        interval. It comes behind that, and is legal nowhere else. With it ``over(call)``: whether the end is
        legal after any call, and leaves the state as it was."""
        ...

    def over(self, call: Call) -> bool: ...

    def unit(self, call: Call) -> Hashable:
        """What must be left out together: a legal history stays legal when all calls of one unit are taken
        away. None: this call cannot be left out by that rule."""
        ...

    def resets(self, call: Call) -> bool:
        """Whether the call leads to one state, whatever its part of the state was before."""
        ...

    def leads(self, state: Any, call: Call) -> bool:
        """Whether ``call``, a pure one, may become legal after ``state`` and any calls of its part that do
        not reset it. True if in doubt. With this and :meth:`resets` a search gives up early."""
        ...

    def equal(self, first: Any, second: Any) -> bool:
        """When states are the same; without it, ``==``."""
        ...

    def hash(self, state: Any) -> int:
        """Equal for equal states; without it, ``hash(state)``."""
        ...

    def key(self, state: Any) -> Hashable:
        """A value that is equal for equal states, where the states themselves cannot be compared."""
        ...

    def describe(self, call: Call) -> str:
        """A call as reports show it."""
        ...


class Keyed:
    """An independent copy of ``model`` for each value of the first argument, which it does not see."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.by_thread: bool = getattr(model, "by_thread", False)
        self.description = f"{describe_model(model)}, one for each key"
        if hasattr(model, "operations"):
            self.operations = {name: count + 1 for name, count in model.operations.items()}

    def init(self) -> Any:
        return frozenset()

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        states = dict(state)
        key = self.partition(call)
        inner = Call(call.name, call.arguments[1:], call.result, call.thread)
        initial = self.model.init()
        for after in self.model.step(states.pop(key, initial), inner):
            # A key that is as it was at first is not in the state.
            yield frozenset((states if after == initial else {**states, key: after}).items())

    def partition(self, call: Call) -> Hashable:
        if not call.arguments:
            raise ModelError(f"{call} has no key; the first argument of every call should be one")
        return call.arguments[0]

    def pure(self, call: Call) -> bool:
        inner = Call(call.name, call.arguments[1:], call.result, call.thread)
        return hasattr(self.model, "pure") and self.model.pure(inner)


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """What a model raises becomes a ModelError that says where; errors on purpose are passed on."""
    try:
        yield
    except (PulsarMlError, ModelError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"{what} raised {raised(error)}") from error


def raised(error: Exception) -> str:
    """An exception in a line, with the place in the source that raised it."""
    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and not isinstance(error, SyntaxError):  # which says itself where it is
        place = f" ({frames[-1].filename}:{frames[-1].lineno})"
    return f"{type(error).__name__}: {error}{place}"


def at_fault(model: Any, error: Exception) -> bool:
    """Whether ``error`` came out of the module that ``model`` is from."""
    inner = model.model if isinstance(model, Keyed) else model
    file = getattr(sys.modules.get(type(inner).__module__), "__file__", None)
    return any(frame.filename == file for frame in traceback.extract_tb(error.__traceback__))


def describe_model(model: Any) -> str:
    """One line about the model: its ``description``, or its class's name."""
    return str(getattr(model, "description", "") or type(model).__name__)


def describe_call(model: Any, call: Call) -> str:
    """A call as reports show it. None is no answer, except of a call that does nothing but answer."""
    if hasattr(model, "describe"):
        return str(model.describe(call))
    answers = call.result is None and hasattr(model, "pure") and model.pure(call)
    return f"{call} -> None" if answers else str(call)
