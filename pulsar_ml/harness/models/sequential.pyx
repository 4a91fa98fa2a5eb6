"""Sequential models with a state that changes, as models for the checker.

What a model promises less of when threads run beside each other it declares itself. Its class may have

* ``weak``: operation -> what its answer means, for operations that are not linearizable;
* ``spans``: of those, the ones whose answer is about all that happens while they run. Such a call is two for
  the checker, its beginning and its end, with what the other threads do in between;
* ``fresh_spans``: more of those, of an instance that is ``fresh``;
* ``begins(operation, arguments, *, thread)``: the beginning of such a call;
* ``foresees``: True when ``begins`` is told the answer too, as ``result``, and says whether it may begin so.
  For calls whose answer is decided at one moment and which then go on doing things that others see;
* ``hidden()`` and ``happens(thread)``: the threads whose call under way may do a step next that no answer
  tells of, and what that step does. Each may happen before the next beginning or end of a call, or not;
  a call does not end while its thread is among them;
* ``idle(operation, result)``: whether the end of such a call, with that answer, may come at any time and
  changes nothing; without it, no end is such a one;
* ``fits(operation, *, thread, result)``: False only if ``concurrent`` would refuse that end of a call; it
  changes nothing, which makes it quicker to ask;
* ``concurrent(operation, arguments, *, thread, result)``: whether a weak operation may answer ``result`` now,
  and if so its effect with that answer;
* ``fresh``: False, and set to True on an instance whose threads see at once what others wrote, as under
  sequential consistency; then ``concurrent`` may be stricter;
* ``canonical()``: the state as a value that can be hashed, where equal states may look different.

Everything else goes through ``step``, and has to answer what that answers.
"""

from __future__ import annotations

import numpy as np

from pulsar_ml.harness.models.copies cimport changing, copied, copied_but, freeze, piece_weight
from pulsar_ml.harness.linearize.search._answers cimport Numbered
from pulsar_ml.harness.histories.history import UNKNOWN, Signature
from pulsar_ml.harness.models.model import ModelError

ENDS = " ends"  # behind the name of an operation, in histories for the checker


cdef class State(Numbered):
    """A model as it is after some calls; nobody changes it any more. One for each state of a
    :class:`Sequential`, so that states are equal when they are the same object."""

    cdef readonly tuple key          # what tells the state from others, piece by piece
    cdef tuple pieces                # the numbers of these pieces
    cdef readonly object whole       # the model
    cdef readonly object busy        # threads with a hidden step to do
    cdef long bytes
    cdef State before                # which led to it, until somebody needs a model of his own
    cdef tuple changing              # see copies
    cdef bint plain
    cdef dict moved                  # by thread: after its hidden step
    cdef tuple beyond                # of Reached: itself and where hidden steps lead, once somebody asked
    # A call that can answer only one thing: operation, arguments, thread; that answer and where it leads. All
    # others of these by the first three.
    cdef tuple answer
    cdef dict answers

    cpdef object model(self):
        """A model of one's own in this state."""
        cdef State before = self.before
        if not self.plain:
            self.plain = True
            self.before = None
            if before is None or before.changing is None:
                self.changing = changing(self.whole, None, None)
            else:
                self.changing = changing(self.whole, before.whole, before.changing)
        if self.changing is None:
            return copied(self.whole)
        return copied_but(self.whole, self.changing)

    def __sizeof__(self):
        return 600 + self.bytes  # most of what the model holds is in its key, or in other states

    def __repr__(self):
        return f"State({self.key!r})"


cdef class Reached:
    """A state after some hidden steps, and from where the last one of them leads to it: an index, and a
    thread."""

    cdef readonly State state
    cdef readonly tuple ways

    def __init__(self, state, ways):
        self.state = state
        self.ways = ways

    def __iter__(self):
        return iter((self.state, self.ways))


# What a call's name says about it.
cdef class Operation:
    cdef str name                    # without what tells an end
    cdef bint ends, weak, begins

    def __init__(self, str name, weak, spans):
        self.ends = name.endswith(ENDS)
        self.name = name.removesuffix(ENDS)
        self.weak = self.name in weak
        self.begins = name in spans


cdef class Sequential:
    """``factory(settings, threads)`` makes a sequential model; this is it as a model for the checker."""

    cdef readonly bint by_thread
    cdef readonly object anew        # makes one like it, without what it was asked
    cdef readonly object weak, spans
    cdef readonly bint foresees, hides
    cdef readonly object idle, fits
    cdef readonly dict states
    cdef readonly State start
    cdef dict operations             # by name
    cdef object latest_name          # of the operation that was looked up last
    cdef Operation latest
    cdef list pieces                 # by place in a key: piece -> its number
    cdef list weights                # by place in a key and number
    cdef bint has_key

    def __init__(self, factory, settings, threads, *, fresh=False):
        self.by_thread = True
        self.anew = lambda: Sequential(factory, settings, threads, fresh=fresh)
        self.weak = getattr(factory, "weak", {})
        self.spans = frozenset(getattr(factory, "spans", ()))
        if fresh:
            self.spans |= frozenset(getattr(factory, "fresh_spans", ()))
        self.foresees = bool(getattr(factory, "foresees", False))
        self.hides = hasattr(factory, "hidden")
        self.idle = getattr(factory, "idle", None)
        self.fits = getattr(factory, "fits", None)
        self.states = {}
        self.operations = {}
        self.pieces, self.weights = [], []
        first = factory(dict(settings), threads)
        self.has_key = hasattr(first, "canonical")
        if fresh:
            first.fresh = True
        self.start = self.state(first)

    def init(self):
        return self.start

    cpdef State state(self, model, State before=None):
        """The state that the model is in, which nobody may change from now on. ``before`` led to it: what it
        has in common with that need not be looked up."""
        cdef State made
        whole = model.canonical() if self.has_key else freeze(model)
        cdef tuple key = <tuple>whole if type(whole) is tuple else (whole,)
        cdef tuple pieces = self.numbers_of(key, before)
        found = self.states.get(pieces)
        if found is not None:
            return <State>found
        made = State.__new__(State)
        made.key, made.pieces, made.whole, made.before = key, pieces, model, before
        made.busy = model.hidden() if self.hides else ()
        made.bytes = 56
        for place, number in enumerate(pieces):
            made.bytes += <long>(<list>self.weights[place])[number]
        self.states[pieces] = made
        return made

    cdef tuple numbers_of(self, tuple key, State before):
        cdef Py_ssize_t place, count = len(key)
        cdef list numbers = [None] * count
        cdef dict known
        cdef bint like = before is not None and len(before.key) == count
        while len(self.pieces) < count:
            self.pieces.append({})
            self.weights.append([])
        for place in range(count):
            piece = key[place]
            if like and piece is before.key[place]:
                numbers[place] = before.pieces[place]
                continue
            known = <dict>self.pieces[place]
            number = known.get(piece)
            if number is None:
                number = known[piece] = len(known)
                (<list>self.weights[place]).append(piece_weight(piece))
            numbers[place] = number
        return tuple(numbers)

    cdef Operation operation(self, call):
        name = (<tuple>call)[0]
        if name is self.latest_name:
            return self.latest
        found = self.operations.get(name)
        if found is None:
            found = self.operations[name] = Operation(name, self.weak, self.spans)
        self.latest_name, self.latest = name, <Operation>found
        return <Operation>found

    cpdef bint pure(self, call) except -1:
        cdef Operation operation
        if self.idle is None:
            return False
        operation = self.operation(call)
        if not operation.ends or (<tuple>call)[2] is UNKNOWN:
            return False
        return self.idle(operation.name, (<tuple>call)[2])

    def ends(self, call):
        return self.operation(call).ends

    def over(self, call):
        return self.pure(call)

    def step(self, State state, call):
        if self.idle is not None and self.pure(call):
            return (state,)
        return self.after_hidden(state, call) if self.hides else self.after(state, call)

    cpdef object after_hidden(self, State state, call):
        """Where the call leads from the state and all to which hidden steps lead.

        Without those to which hidden steps after the call lead as well: what may follow them may follow
        those that are told.
        """
        cdef Reached one
        cdef bint ends = (<tuple>call)[2] is not UNKNOWN and self.operation(call).ends
        cdef tuple reached
        thread = (<tuple>call)[3]
        if not state.busy:
            return self.after(state, call)
        reached = self.reached(state)
        if len(reached) == 1:
            return () if ends and thread in state.busy else self.after(state, call)
        cdef list found = []
        cdef dict told = {}
        for one in reached:
            after = () if ends and thread in one.state.busy else self.after(one.state, call)
            found.append(after)
            for each in <tuple>after:
                for place, mover in one.ways:
                    if self.leads(<tuple>found[place], mover, <State>each):
                        break
                else:
                    told[each] = None
        return told

    cdef bint leads(self, tuple states, thread, State wanted) except -1:
        """Whether the thread's hidden step leads from one of the states to the wanted one."""
        cdef State state
        for state in states:
            if thread in state.busy and self.move(state, thread) is wanted:
                return True
        return False

    cdef State move(self, State state, thread):
        """After the hidden step of the thread."""
        if state.moved is None:
            state.moved = {}
        found = state.moved.get(thread)
        if found is None:
            model = state.model()
            model.happens(thread)
            found = state.moved[thread] = self.state(model, state)
        return <State>found

    cpdef tuple reached(self, State state):
        """The state, and all to which hidden steps lead from it."""
        cdef State one
        if state.beyond is None:
            places = {state: 0}
            ways = [[]]
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
            state.beyond = tuple([Reached(one, tuple(leading)) for one, leading in zip(waiting, ways)])
        return state.beyond

    cpdef tuple after(self, State state, call):
        """Where the call leads from the state alone, if it may answer what it answered."""
        cdef Operation operation = self.operation(call)
        cdef bint pending = (<tuple>call)[2] is UNKNOWN
        thread, given = (<tuple>call)[3], (<tuple>call)[2]
        if pending or operation.weak:
            if operation.ends and not pending and self.fits is not None:
                if not self.fits(state.whole, operation.name, thread=thread, result=given):
                    return ()
            model = state.model()
            return (self.state(model, state),) if self.apply(model, operation, call) else ()
        told = self.told(state, operation.name, call)
        return (told[1],) if told[0] == given else ()

    cdef tuple told(self, State state, str name, call):
        """What a call that can answer only one thing answers, whatever it did, and where it leads."""
        cdef tuple first = state.answer
        arguments, thread = (<tuple>call)[1], (<tuple>call)[3]
        if first is not None:
            if first[0] is name and first[2] == thread and first[1] == arguments:
                return <tuple>first[3]
            if state.answers is None:
                state.answers = {}
            found = state.answers.get((name, arguments, thread))
            if found is not None:
                return <tuple>found
        model = state.model()
        if not hasattr(model, "step"):
            raise ModelError(
                f"{type(model).__module__}.{type(model).__name__} has no step() and says nothing of {name}; "
                "it has to name that in `weak` and answer it in concurrent(), or have step()"
            )
        given = model.step(name, arguments, thread=thread)
        found = given, self.state(model, state)
        if first is None:
            state.answer = name, arguments, thread, found
        else:
            state.answers[name, arguments, thread] = found
        return <tuple>found

    cdef bint apply(self, model, Operation operation, call) except -1:
        """Changes the model by the call; whether the call may answer what it answered."""
        arguments, thread = (<tuple>call)[1], (<tuple>call)[3]
        given = None if (<tuple>call)[2] is UNKNOWN else (<tuple>call)[2]
        if operation.begins:
            if self.foresees:
                return bool(model.begins(operation.name, arguments, thread=thread, result=given))
            model.begins(operation.name, arguments, thread=thread)
            return True
        if given is None:
            # Nobody waits for its answer any more: whichever it would get, if it happens at all.
            model.step(operation.name, arguments, thread=thread)
            return True
        return bool(model.concurrent(operation.name, arguments, thread=thread, result=given))

    def describe(self, call):
        if call.name in self.spans:
            return f"{call.name} begins"
        return str(call._replace(name=call.name.removesuffix(ENDS)))


def signatures_of(model, signatures):
    """The signatures, and behind them one for the end of each operation; most are never used."""
    if not model.spans:
        return signatures
    return (*signatures, *(Signature(name + ENDS, count, kind) for name, count, kind in signatures))


def with_ends(model, history):
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
