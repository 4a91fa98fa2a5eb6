"""Sequential models with a state that changes, as models for the checker.

What a model promises less of when threads run beside each other it declares itself. Its class may have

* ``weak``: operation -> what its answer means, for operations that are not linearizable;
* ``spans``: of those, the ones whose answer is about all that happens while they run. Such a call is two for
  the checker, its beginning and its end, with what the other threads do in between;
* ``begins(operation, arguments, *, thread)``: the beginning of such a call;
* ``concurrent(operation, arguments, *, thread, given)``: whether a weak operation may answer ``given`` now,
  and if so its effect with that answer;
* ``fresh``: False, and set to True on an instance whose threads see at once what others wrote, as under
  sequential consistency; then ``concurrent`` may be stricter;
* ``canonical()``: the state as a value that can be hashed, where equal states may look different.

Everything else goes through ``step``, and has to answer what that answers.
"""

from __future__ import annotations

import pickle
import types
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.history import Call, History, Signature

ENDS = " ends"  # behind the name of an operation, in histories for the checker

SIMPLE = (type(None), bool, int, float, str, bytes)


class State:
    """A model as it is after some calls; nobody changes it any more."""

    __slots__ = ("hashed", "key", "packed", "whole")

    def __init__(self, model: Any) -> None:
        self.key = model.canonical() if hasattr(model, "canonical") else freeze(model, {})
        self.hashed = hash(self.key)
        self.whole = model
        self.packed = b""  # most states turn out to be known already and are never asked for a model

    def model(self) -> Any:
        """A model of one's own in this state."""
        if not self.packed:
            self.packed = pickle.dumps(self.whole, protocol=5)
            self.whole = None
        return pickle.loads(self.packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.key == other.key

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        return f"State({self.key!r})"


class Sequential:
    """``factory(settings, threads)`` makes a sequential model; this is it as a model for the checker."""

    by_thread = True

    def __init__(
        self, factory: Any, settings: Mapping[str, int], threads: int, *, fresh: bool = False
    ) -> None:
        self.weak: Mapping[str, str] = getattr(factory, "weak", {})
        self.spans: frozenset[str] = frozenset(getattr(factory, "spans", ()))
        first = factory(dict(settings), threads)
        if fresh:
            first.fresh = True
        self.start = State(first)

    def init(self) -> State:
        return self.start

    def step(self, state: State, call: Call) -> Iterable[State]:
        model = state.model()
        if call.name in self.spans:
            model.begins(call.name, call.arguments, thread=call.thread)
            return [State(model)]
        name = call.name.removesuffix(ENDS)
        if call.pending:
            # Nobody waits for its answer any more: whichever it would get, if it happens at all.
            model.step(name, call.arguments, thread=call.thread)
        elif name in self.weak:
            if not model.concurrent(name, call.arguments, thread=call.thread, given=call.result):
                return []
        elif model.step(name, call.arguments, thread=call.thread) != call.result:
            return []
        return [State(model)]

    def describe(self, call: Call) -> str:
        if call.name in self.spans:
            return f"{call.name} begins"
        return str(Call(call.name.removesuffix(ENDS), call.arguments, call.result, call.thread))


def signatures_of(model: Sequential, signatures: tuple[Signature, ...]) -> tuple[Signature, ...]:
    """The signatures, and behind them one for the end of each operation; most are never used."""
    if not model.spans:
        return signatures
    return (*signatures, *(Signature(name + ENDS, count, kind) for name, count, kind in signatures))


def with_ends(model: Sequential, history: History) -> NDArray[np.void]:
    """The records, those of operations that span twice: as beginning, then as end, at the same time."""
    records = history.records
    if not model.spans:
        return records
    spanning = [number for number, one in enumerate(history.signatures) if one.name in model.spans]
    chosen = np.isin(records["operation"], spanning)
    if not chosen.any():
        return records
    ends = records[chosen].copy()
    ends["operation"] += len(history.signatures)
    begins = records.copy()
    begins["result"][chosen] = 0  # what it will answer is not for the beginning
    return np.concatenate([begins, ends])


def freeze(value: Any, seen: dict[int, int]) -> Hashable:
    """A value that is equal for equal states. Things that can change are told apart by which they are."""
    if isinstance(value, SIMPLE):
        return value
    if isinstance(value, tuple):
        return tuple(freeze(item, seen) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(freeze(item, seen) for item in value)
    if isinstance(value, type | types.FunctionType):
        return value.__qualname__
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, list | deque):
        return tuple(freeze(item, seen) for item in value)
    if isinstance(value, Mapping):
        return tuple((freeze(key, seen), freeze(item, seen)) for key, item in value.items())
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, freeze(value.__self__, seen)
    return tuple(freeze(field, seen) for field in fields(value))


def fields(value: Any) -> list[Any]:
    """All that an object holds, in an order that its class decides."""
    found = []
    for kind in reversed(type(value).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        found += [getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots)]
    state = getattr(value, "__dict__", {})
    return [*found, *(state[name] for name in sorted(state))]
