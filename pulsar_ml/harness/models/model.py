"""Sequential models: the legal results of operations that run one after the other.

A model is a plain Python object. :class:`Model` lists its required methods, :class:`Extras` the
optional ones. States are immutable values: a step returns new states and changes none.
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
    """A model breaks its contract."""


class Model(Protocol):
    """The methods that every model has."""

    def init(self) -> Any:
        """Return the state before the first operation."""
        ...

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        """Return every state to which ``call``, with its result, may lead from ``state``.

        No state means that the result is illegal here. Several states mean that the specification
        leaves the effect open, as for a cache that may drop any key. A call that did not return
        (``call.pending``) may lead to the states of all its possible results.
        """
        ...


class Extras(Protocol):
    """The optional attributes and methods of a model.

    Attributes:
        operations: the number of arguments by name; a history with another number is refused.
        by_thread: True if the calling thread matters to the model.
        monitor: "register" (with or without compare-and-set), "queue", "stack", "priority-queue",
            "set" or "multiset", if the model is exactly one of those; the monitor of that name then
            checks histories with distinct values. A subclass with other steps has none.
    """

    operations: Mapping[str, int]
    by_thread: bool
    monitor: str

    def partition(self, call: Call) -> Hashable:
        """Return the key of the independent component that the call accesses, such as a map's key.

        None for a call that accesses several. Each component is checked alone, from ``init()``.
        """
        ...

    def pure(self, call: Call) -> bool:
        """Return True if the call never changes the state where it is legal.

        A pure call is tried first and only once, which keeps most searches short.
        """
        ...

    def ends(self, call: Call) -> bool:
        """Return True for the end of an operation that is modelled as two calls.

        Beginning and end have the same thread and interval, and the end is legal after its
        beginning only. A model with this method has :meth:`over`, too.
        """
        ...

    def over(self, call: Call) -> bool:
        """Return True for an end that is legal after any call and changes no state."""
        ...

    def unit(self, call: Call) -> Hashable:
        """Return a key of calls that can only be removed together.

        A legal history stays legal when all calls of one unit are removed. None: the call belongs
        to no unit.
        """
        ...

    def resets(self, call: Call) -> bool:
        """Return True if the call leads to the same state of its component from every state."""
        ...

    def leads(self, state: Any, call: Call) -> bool:
        """Return False only if the pure ``call`` stays illegal until a call that :meth:`resets`.

        The search then gives up early.
        """
        ...

    def equal(self, first: Any, second: Any) -> bool:
        """Compare states; without this method they are compared by ``==``."""
        ...

    def hash(self, state: Any) -> int:
        """Return a number that is equal for equal states; without this method, ``hash(state)``."""
        ...

    def key(self, state: Any) -> Hashable:
        """Return a value that is equal for equal states, if states cannot be compared."""
        ...

    def describe(self, call: Call) -> str:
        """Return a call as reports show it."""
        ...

    def describe_state(self, state: Any) -> str:
        """Return a state as reports show it; without this method, ``repr(state)``."""
        ...


class Keyed:
    """A model with an independent copy of ``model`` for each value of the first argument.

    The copies see the calls without that argument.
    """

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
            # Keys in their initial state are left out, so that equal states are equal values.
            yield frozenset((states if after == initial else {**states, key: after}).items())

    def partition(self, call: Call) -> Hashable:
        if not call.arguments:
            raise ModelError(f"{call} has no key; the first argument of every call should be one")
        return call.arguments[0]

    def describe_state(self, state: Any) -> str:
        items = sorted((repr(key), describe_state(self.model, inner)) for key, inner in state)
        return "{" + ", ".join(f"{key}: {inner}" for key, inner in items) + "}"

    def pure(self, call: Call) -> bool:
        inner = Call(call.name, call.arguments[1:], call.result, call.thread)
        return hasattr(self.model, "pure") and self.model.pure(inner)


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Turn exceptions of a model's code into a ModelError with their place in its source."""
    try:
        yield
    except (PulsarMlError, ModelError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"{what} raised {raised(error)}") from error


def raised(error: Exception) -> str:
    """Describe an exception in one line, with the place in the source that raised it."""
    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames and not isinstance(error, SyntaxError):  # its message has a place
        place = f" ({frames[-1].filename}:{frames[-1].lineno})"
    return f"{type(error).__name__}: {error}{place}"


def at_fault(model: Any, error: Exception) -> bool:
    """Return True if the module that defines ``model`` is in the traceback of ``error``."""
    inner = model.model if isinstance(model, Keyed) else model
    file = getattr(sys.modules.get(type(inner).__module__), "__file__", None)
    return any(frame.filename == file for frame in traceback.extract_tb(error.__traceback__))


def describe_model(model: Any) -> str:
    """Return the model's ``description``, or the name of its class."""
    return str(getattr(model, "description", "") or type(model).__name__)


def describe_state(model: Any, state: Any) -> str:
    """Return a state as reports show it."""
    if hasattr(model, "describe_state"):
        return str(model.describe_state(state))
    return repr(state)


def describe_call(model: Any, call: Call) -> str:
    """Return a call as reports show it. A result None is shown for pure calls only."""
    if hasattr(model, "describe"):
        return str(model.describe(call))
    answers = call.result is None and hasattr(model, "pure") and model.pure(call)
    return f"{call} -> None" if answers else str(call)


def monitor_of(model: Any) -> str:
    """Return the name of a model's monitor, or "" if it is that of a base with other steps."""
    kind = type(model)
    owner = next((one for one in kind.__mro__ if "monitor" in vars(one)), kind)
    same = getattr(kind, "step", None) is getattr(owner, "step", None)
    return str(getattr(model, "monitor", "")) if same else ""
