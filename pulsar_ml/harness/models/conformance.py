"""Checks that a model keeps its contract, on calls of the history to be judged."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import MOST_ARGUMENTS, UNKNOWN, VALUE, Call, History
from pulsar_ml.harness.models.model import Keyed, ModelError, blamed, describe_model

MOST_STATES = 50
MOST_CALLS = 50


def check_model(model: Any, history: History, *, seconds: float | None = None) -> None:
    """Check a model on up to 50 calls of ``history``, from up to 50 states that they lead to.

    After ``seconds``, no further step is checked.

    Raises UsageError for a call with another number of arguments than the model's ``operations``
    say. Raises ModelError when ``init()`` or ``step()`` is missing or raises; when a step returns
    no iterable of states, changes its state, or returns other states the second time; when states
    cannot be hashed, or equal states have different hashes; when a pure call changes the state; and
    when a pending call cannot lead to a state that the same call with a result leads to.
    """
    refuse_others(history, model)
    if hasattr(model, "equal") != hasattr(model, "hash"):
        raise ModelError("a model with equal() also has hash(), and the other way round")
    check_arguments(model, history)
    end = None if seconds is None else time.monotonic() + seconds
    calls = some_calls(model, history)
    with blamed("init()"):
        initial = model.init()
    check_hash(model, initial)
    if not same(model, initial, model.init()):
        raise ModelError("init() gives different states")
    seen = [initial]
    waiting = deque(seen)
    while waiting and len(seen) < MOST_STATES:
        state = waiting.popleft()
        for call in calls:
            if end is not None and time.monotonic() > end:
                return
            for after in check_step(model, state, call):
                if len(seen) < MOST_STATES and not any(same(model, after, other) for other in seen):
                    seen.append(after)
                    waiting.append(after)


def refuse_others(history: object, model: object) -> None:
    """Raise UsageError for what is no history or no model, such as the class of one."""
    if not isinstance(history, History):
        raise UsageError(
            f"a check takes a History, which history_of() and load_history() return, not a "
            f"{type(history).__name__}"
        )
    if isinstance(model, type):
        raise UsageError(f"a model is an object; {model.__name__} is a class: {model.__name__}()")
    for name in ("init", "step"):
        if not callable(getattr(model, name, None)):
            raise ModelError(f"a model has a method {name}(); {type(model).__name__} has none")


def check_arguments(model: Any, history: History) -> None:
    """Raise UsageError for the first call with another number of arguments than its operation."""
    takes = getattr(model, "operations", None)
    if takes is None or len(history) == 0:
        return
    counts = [min(signature.arguments, MOST_ARGUMENTS) for signature in history.signatures]
    numbers = np.array(counts)[history.records["operation"]]
    values = np.array([signature.result == VALUE for signature in history.signatures])
    # For signatures of values, a word below zero stands for a missing argument.
    present = (history.records["arguments"] >= 0).sum(axis=1)
    numbers = np.where(values[history.records["operation"]], present, numbers)
    wanted = np.array([takes.get(signature.name, -1) for signature in history.signatures])
    wanted = wanted[history.records["operation"]]
    if len(wrong := np.flatnonzero((wanted >= 0) & (numbers != wanted))):
        at = int(wrong[0])
        count, right = int(numbers[at]), int(wanted[at])
        more, where = "", f" ({history.place(at)})" if history.numbers else ""
        if count == right + 1 and not isinstance(model, Keyed):
            more = "; if the first one is the key of an independent object, use --keyed or Keyed(model)"
        raise UsageError(
            f"operation {at}{where}, {history.call(at)}, has {count} argument{'s' * (count != 1)}; that of "
            f"{describe_model(model)} takes {right}{more}"
        )


def some_calls(model: Any, history: History) -> list[Call]:
    """Return calls from all over the history, one of those that are equal for the model."""
    by_thread = bool(getattr(model, "by_thread", False))
    found: dict[object, Call] = {}
    places = np.linspace(0, max(0, len(history) - 1), 4 * MOST_CALLS).astype(int).tolist()
    for index in sorted(set(places)) if len(history) else ():
        call = history.call(index)
        if not by_thread:
            call = Call(call.name, call.arguments, call.result)
        found.setdefault((call.name, call.arguments, repr(call.result), call.thread), call)
    return list(found.values())[:MOST_CALLS]


def check_step(model: Any, state: Any, call: Call) -> list[Any]:
    """Check one step, and return the states to which it leads."""
    before = copy.deepcopy(state)
    found = steps(model, state, call)
    if not same(model, before, state):
        raise ModelError(
            f"step() changed its argument, the state {before!r}, to {state!r}, for {call}; it should "
            "return new states"
        )
    for after in found:
        check_hash(model, after)
    if not covers(model, found, steps(model, before, call)) or len(found) != len(
        steps(model, before, call)
    ):
        raise ModelError(f"step() returns other states for {call} from {state!r} the second time")
    if hasattr(model, "pure") and model.pure(call) and not covers(model, [state], found):
        raise ModelError(
            f"pure() is true for {call}, and yet step() leads from {state!r} to {found!r}"
        )
    if found and not call.pending:
        open_call = Call(call.name, call.arguments, UNKNOWN, call.thread)
        if not covers(model, steps(model, state, open_call), found):
            raise ModelError(
                f"{call} leads from {state!r} to {found!r}, but without a result it does not: for a "
                "call that did not return, step() should return the states of all possible results"
            )
    return found


def steps(model: Any, state: Any, call: Call) -> list[Any]:
    with blamed(f"step(), for {call} from {state!r},"):
        found = model.step(state, call)
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise ModelError(
                f"step() should return an iterable of the next states, empty if there is none; for "
                f"{call} it returned {found!r}"
            )
        return list(found)


def same(model: Any, first: Any, second: Any) -> bool:
    return bool(model.equal(first, second) if hasattr(model, "equal") else first == second)


def covers(model: Any, all_of: list[Any], some: list[Any]) -> bool:
    return all(any(same(model, one, other) for other in all_of) for one in some)


def check_hash(model: Any, state: Any) -> None:
    def hashed(one: Any) -> int:
        return int(model.hash(one) if hasattr(model, "hash") else hash(one))

    try:
        first = hashed(state)
    except TypeError as error:
        raise ModelError(
            f"the state {state!r} cannot be hashed ({error}); use tuples and frozensets, or add "
            "equal() and hash()"
        ) from None
    twin = copy.deepcopy(state)
    if not same(model, state, twin):
        raise ModelError(f"the state {state!r} is not equal to a copy of itself")
    if first != hashed(twin):
        raise ModelError(f"the state {state!r} and an equal copy of it have different hashes")
