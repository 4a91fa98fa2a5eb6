"""Sequential models with a state that changes, as models for the checker.

What a model promises less of when threads run beside each other it declares itself. Its class may have

* ``weak``: operation -> what its answer means, for operations that are not linearizable;
* ``spans``: of those, the ones whose answer is about all that happens while they run. Such a call is two for
  the checker, its beginning and its end, with what the other threads do in between;
* ``begins(operation, arguments, *, thread)``: the beginning of such a call;
* ``foresees``: True when ``begins`` is told the answer too, as ``given``, and says whether it may begin so.
  For calls whose answer is decided at one moment and which then go on doing things that others see;
* ``hidden()`` and ``happens(step)``: the steps that some call under way may do next and no answer tells of,
  as values, and what one of them does. Each may happen before the next beginning or end of a call, or not;
* ``concurrent(operation, arguments, *, thread, given)``: whether a weak operation may answer ``given`` now,
  and if so its effect with that answer;
* ``fresh``: False, and set to True on an instance whose threads see at once what others wrote, as under
  sequential consistency; then ``concurrent`` may be stricter;
* ``canonical()``: the state as a value that can be hashed, where equal states may look different.

Everything else goes through ``step``, and has to answer what that answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.copies import copied, freeze, weight
from pulsar_ml.harness.history import Call, History, Signature

ENDS = " ends"  # behind the name of an operation, in histories for the checker


class State:
    """A model as it is after some calls; nobody changes it any more."""

    __slots__ = ("beyond", "key", "whole")

    def __init__(self, model: Any) -> None:
        self.key: Hashable = model.canonical() if hasattr(model, "canonical") else freeze(model)
        self.whole = model
        self.beyond: list[State] = []  # itself and where hidden steps lead, once somebody asked

    def model(self) -> Any:
        """A model of one's own in this state."""
        return copied(self.whole)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __sizeof__(self) -> int:
        return 300 + 2 * weight(self.key)  # the model holds about as much as its key

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
        self.foresees = bool(getattr(factory, "foresees", False))
        self.hides = hasattr(factory, "hidden")
        first = factory(dict(settings), threads)
        if fresh:
            first.fresh = True
        self.start = State(first)

    def init(self) -> State:
        return self.start

    def step(self, state: State, call: Call) -> Iterable[State]:
        models = (reached.model() for reached in self.reached(state))
        return list(dict.fromkeys(State(model) for model in models if self.apply(model, call)))

    def reached(self, state: State) -> list[State]:
        """The state, and all to which hidden steps lead from it."""
        if not state.beyond:
            found = {state: state}
            waiting = [state] if self.hides else []
            for one in waiting:
                for step in one.model().hidden():
                    model = one.model()
                    model.happens(step)
                    after = State(model)
                    if after not in found:
                        found[after] = after
                        waiting.append(after)
            state.beyond = list(found)
        return state.beyond

    def apply(self, model: Any, call: Call) -> bool:
        """Changes the model by the call; whether the call may answer what it answered."""
        given = None if call.pending else call.result
        if call.name in self.spans:
            if self.foresees:
                return bool(model.begins(call.name, call.arguments, thread=call.thread, given=given))
            model.begins(call.name, call.arguments, thread=call.thread)
            return True
        name = call.name.removesuffix(ENDS)
        if given is None:
            # Nobody waits for its answer any more: whichever it would get, if it happens at all.
            model.step(name, call.arguments, thread=call.thread)
            return True
        if name in self.weak:
            return bool(model.concurrent(name, call.arguments, thread=call.thread, given=given))
        return bool(model.step(name, call.arguments, thread=call.thread) == given)

    def key(self, state: State) -> Hashable:
        return state.key

    def describe(self, call: Call) -> str:
        if call.name in self.spans:
            return f"{call.name} begins"
        return str(Call(call.name.removesuffix(ENDS), call.arguments, call.result, call.thread))


def signatures_of(model: Sequential, signatures: tuple[Signature, ...]) -> tuple[Signature, ...]:
    """The signatures, and behind them one for the end of each operation; most are never used."""
    if not model.spans:
        return signatures
    return (*signatures, *(Signature(name + ENDS, count, kind) for name, count, kind in signatures))


def with_ends(model: Sequential, history: History) -> tuple[NDArray[np.void], NDArray[np.intp]]:
    """The records, and those of operations that span again at the end: first as beginnings, then as ends, at
    the same time. With them the index of the history's record that each of them is of."""
    records = history.records
    count = len(records)
    every = np.arange(count)
    if not model.spans:
        return records, every
    # Once for each history: without numpy's general set operations and promotions, which cost more than most
    # verdicts.
    spans = np.array([one.name in model.spans for one in history.signatures])
    again = np.flatnonzero(spans[records["operation"]])
    if not len(again):
        return records, every
    whole = np.empty(count + len(again), records.dtype)
    whole[:count] = records
    if not model.foresees:
        whole["result"][again] = 0  # what it will answer is not for the beginning
    whole[count:] = records[again]
    whole["operation"][count:] += len(history.signatures)
    return whole, np.concatenate([every, again])
