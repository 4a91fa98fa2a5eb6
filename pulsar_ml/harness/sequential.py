"""Sequential models with a state that changes, as models for the checker.

What a model promises less of when threads run beside each other it declares itself. Its class may have

* ``weak``: operation -> what its answer means, for operations that are not linearizable;
* ``spans``: of those, the ones whose answer is about all that happens while they run. Such a call is two for
  the checker, its beginning and its end, with what the other threads do in between;
* ``begins(operation, arguments, *, thread)``: the beginning of such a call;
* ``foresees``: True when ``begins`` is told the answer too, as ``given``, and says whether it may begin so.
  For calls whose answer is decided at one moment and which then go on doing things that others see;
* ``hidden()`` and ``happens(thread)``: the threads whose call under way may do a step next that no answer
  tells of, and what that step does. Each may happen before the next beginning or end of a call, or not;
  a call does not end while its thread is among them;
* ``idle(operation, given)``: whether the end of such a call, with that answer, may come at any time and
  changes nothing; without it, no end is such a one;
* ``fits(operation, *, thread, given)``: False only if ``concurrent`` would refuse that end of a call; it
  changes nothing, which makes it quicker to ask;
* ``concurrent(operation, arguments, *, thread, given)``: whether a weak operation may answer ``given`` now,
  and if so its effect with that answer;
* ``fresh``: False, and set to True on an instance whose threads see at once what others wrote, as under
  sequential consistency; then ``concurrent`` may be stricter;
* ``canonical()``: the state as a value that can be hashed, where equal states may look different.

Everything else goes through ``step``, and has to answer what that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.copies import copied, freeze, weight
from pulsar_ml.harness.history import Call, History, Signature

ENDS = " ends"  # behind the name of an operation, in histories for the checker


class State:
    """A model as it is after some calls; nobody changes it any more. One for each state of a
    :class:`Sequential`, so that states are equal when they are the same object."""

    __slots__ = ("answers", "beyond", "busy", "key", "moved", "whole")

    def __init__(self, key: Hashable, model: Any, busy: Sequence[int]) -> None:
        self.key = key
        self.whole = model
        self.busy = busy  # threads with a hidden step to do
        self.moved: dict[int, State] | None = None  # after that step of a thread
        # Itself and where hidden steps lead, once somebody asked.
        self.beyond: tuple[Reached, ...] | None = None if busy else ((self, ()),)
        # By operation, arguments and thread: the only answer, and where it leads.
        self.answers: dict[Hashable, tuple[Any, State]] | None = None

    def model(self) -> Any:
        """A model of one's own in this state."""
        return copied(self.whole)

    def __sizeof__(self) -> int:
        return 600 + weight(self.key)  # most of what the model holds is in its key, or in other states

    def __repr__(self) -> str:
        return f"State({self.key!r})"


# A state after some hidden steps, and from where the last one of them leads to it: an index, and a thread.
Reached = tuple[State, tuple[tuple[int, int], ...]]


class Sequential:
    """``factory(settings, threads)`` makes a sequential model; this is it as a model for the checker."""

    by_thread = True

    def __init__(
        self, factory: Any, settings: Mapping[str, int], threads: int, *, fresh: bool = False
    ) -> None:
        self.anew = lambda: Sequential(factory, settings, threads, fresh=fresh)  # without what it was asked
        self.weak: Mapping[str, str] = getattr(factory, "weak", {})
        self.spans: frozenset[str] = frozenset(getattr(factory, "spans", ()))
        self.foresees = bool(getattr(factory, "foresees", False))
        self.hides = hasattr(factory, "hidden")
        self.idle: Callable[[str, Any], bool] | None = getattr(factory, "idle", None)
        self.fits: Callable[..., bool] | None = getattr(factory, "fits", None)
        self.states: dict[Hashable, State] = {}
        first = factory(dict(settings), threads)
        if fresh:
            first.fresh = True
        self.start = self.state(first)

    def init(self) -> State:
        return self.start

    def state(self, model: Any) -> State:
        """The state that the model is in, which nobody may change from now on."""
        key = model.canonical() if hasattr(model, "canonical") else freeze(model)
        found = self.states.get(key)
        if found is None:
            found = self.states[key] = State(key, model, model.hidden() if self.hides else ())
        return found

    def pure(self, call: Call) -> bool:
        if self.idle is None or call.pending or not call.name.endswith(ENDS):
            return False
        return self.idle(call.name.removesuffix(ENDS), call.result)

    def step(self, state: State, call: Call) -> Iterable[State]:
        if self.pure(call):
            return (state,)
        return self.after_hidden(state, call) if self.hides else self.after(state, call)

    def after_hidden(self, state: State, call: Call) -> Iterable[State]:
        """Where the call leads from the state and all to which hidden steps lead.

        Without those to which hidden steps after the call lead as well: what may follow them may follow
        those that are told.
        """
        reached = self.reached(state)
        ends = not call.pending and call.name.endswith(ENDS)
        if len(reached) == 1:
            return () if ends and call.thread in state.busy else self.after(state, call)
        found: list[tuple[State, ...]] = []
        told: dict[State, None] = {}
        for before, ways in reached:
            after = () if ends and call.thread in before.busy else self.after(before, call)
            found.append(after)
            for one in after:
                if not any(self.leads(found[place], thread, one) for place, thread in ways):
                    told[one] = None
        return told

    def leads(self, states: Iterable[State], thread: int, wanted: State) -> bool:
        """Whether the thread's hidden step leads from one of the states to the wanted one."""
        return any(thread in state.busy and self.move(state, thread) is wanted for state in states)

    def move(self, state: State, thread: int) -> State:
        """After the hidden step of the thread."""
        if state.moved is None:
            state.moved = {}
        found = state.moved.get(thread)
        if found is None:
            model = state.model()
            model.happens(thread)
            found = state.moved[thread] = self.state(model)
        return found

    def reached(self, state: State) -> tuple[Reached, ...]:
        """The state, and all to which hidden steps lead from it."""
        if state.beyond is None:
            places = {state: 0}
            ways: list[list[tuple[int, int]]] = [[]]
            waiting = [state]
            for place, one in enumerate(waiting):
                for thread in one.busy:
                    after = self.move(one, thread)
                    at = places.setdefault(after, len(waiting))
                    if at == len(waiting):
                        waiting.append(after)
                        ways.append([])
                    if at > place:
                        ways[at].append((place, thread))
            state.beyond = tuple([(one, tuple(leading)) for one, leading in zip(waiting, ways, strict=True)])
        return state.beyond

    def after(self, state: State, call: Call) -> tuple[State, ...]:
        """Where the call leads from the state alone, if it may answer what it answered."""
        name = call.name.removesuffix(ENDS)
        if call.pending or name in self.weak:
            asks = call.name.endswith(ENDS) and not call.pending and self.fits
            if asks and not asks(state.whole, name, thread=call.thread, given=call.result):
                return ()
            model = state.model()
            return (self.state(model),) if self.apply(model, call) else ()
        given, after = self.told(state, name, call)
        return (after,) if given == call.result else ()

    def told(self, state: State, name: str, call: Call) -> tuple[Any, State]:
        """What a call that can answer only one thing answers, whatever it did, and where it leads."""
        if state.answers is None:
            state.answers = {}
        key = (name, call.arguments, call.thread)
        found = state.answers.get(key)
        if found is None:
            model = state.model()
            given = model.step(name, call.arguments, thread=call.thread)
            found = state.answers[key] = given, self.state(model)
        return found

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
        return bool(model.concurrent(name, call.arguments, thread=call.thread, given=given))

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
