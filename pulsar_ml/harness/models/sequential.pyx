"""Adapts sequential models with mutable state to the checker.

A specification is a class ``factory(settings, threads)``. Its method ``step(operation, arguments,
*, thread)`` changes the state and returns the result. Concurrent calls may be promised less than
that; the class declares it by these optional attributes and methods:

* ``weak``: a mapping from each operation that is not linearizable to the meaning of its result;
* ``spans``: weak operations whose result depends on everything that happens while they run. The
  checker takes such a call as two, its beginning and its end, with steps of other threads between;
* ``fresh_spans``: operations that span on an instance with ``fresh`` set;
* ``begins(operation, arguments, *, thread)``: the beginning of a call that spans;
* ``foresees``: True if ``begins`` takes the result, too, as ``result``, and returns False if the
  call cannot begin with that result. For calls whose result is decided at one moment and which then
  have effects that other threads see;
* ``hidden()`` and ``happens(thread)``: the threads whose call under way may take a step that no
  result shows, and the effect of that step. It happens before the next beginning or end of a call,
  or not; a call does not end while its thread is among them;
* ``idle(operation, result)``: True if the end of a call with that result is legal at any time and
  changes nothing; without this method no end is;
* ``fits(operation, *, thread, result)``: False only if ``concurrent`` would refuse that end of a
  call; it changes nothing, which makes it the quicker of the two;
* ``concurrent(operation, arguments, *, thread, result)``: returns True if a weak operation may
  return ``result`` now, and then applies its effect;
* ``fresh``: False; it is set to True on an instance whose threads read the latest writes of others,
  as under sequential consistency, where ``concurrent`` may be stricter;
* ``scarce``: False; it is set to True on an instance whose allocations may fail, where
  ``concurrent`` may be asked about a call that got no memory;
* ``allocates``: the operations that allocate; on an instance with ``scarce`` set they are weak;
* ``canonical()``: the state as a hashable value, if equal states may look different.

Every other call goes through ``step``, and must return exactly what ``step`` returns.
"""

from __future__ import annotations

import numpy as np

from pulsar_ml.harness.models.copies cimport changing, copied, copied_but, freeze, piece_weight
from pulsar_ml.harness.linearize.search._answers cimport Numbered
from pulsar_ml.harness.histories.history import UNKNOWN, Signature
from pulsar_ml.harness.models.model import ModelError

ENDS = " ends"  # suffix of an operation's name for the end of its calls


cdef class ModelState(Numbered):
    """An immutable state of a model. Equal states of a :class:`Sequential` are the same object."""

    cdef readonly tuple key          # hashable pieces; equal for equal states
    cdef tuple pieces                # the numbers of these pieces
    cdef readonly object whole       # the model in this state
    cdef readonly object busy        # threads with a hidden step to take
    cdef long bytes
    cdef ModelState before                # the state before, until model() is called
    cdef tuple changing              # attributes to copy; see copies.changing()
    cdef bint plain                  # true when `changing` was computed
    cdef dict moved                  # by thread: the state after its hidden step
    cdef tuple beyond                # of Reached: this state and those after hidden steps, or None
    # The first call with a single legal result: operation, arguments, thread, and then the result
    # with the next state. Further ones are in the dict, by the first three.
    cdef tuple answer
    cdef dict answers

    cpdef object model(self):
        """Return a copy of the model in this state, which the caller may change."""
        cdef ModelState before = self.before
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
        return 600 + self.bytes  # most parts of the model are in its key, or shared by other states

    def __repr__(self):
        return f"ModelState({self.key!r})"


cdef class Reached:
    """A state after hidden steps; each of ``ways`` is the index of a state before and a thread."""

    cdef readonly ModelState state
    cdef readonly tuple ways

    def __init__(self, state, ways):
        self.state = state
        self.ways = ways

    def __iter__(self):
        return iter((self.state, self.ways))


# The kind of a call, from its name.
cdef class CallKind:
    cdef str name                    # without the suffix of an end
    cdef bint ends, weak, begins

    def __init__(self, str name, weak, spans):
        self.ends = name.endswith(ENDS)
        self.name = name.removesuffix(ENDS)
        self.weak = self.name in weak
        self.begins = name in spans


cdef class Sequential:
    """The model for the checker of a specification ``factory(settings, threads)``."""

    cdef readonly bint by_thread
    cdef readonly object anew        # returns a new Sequential of the same specification
    cdef readonly object weak, spans
    cdef readonly bint foresees, hides
    cdef readonly object idle, fits
    cdef readonly dict states
    cdef readonly ModelState start
    cdef dict operations             # by name
    cdef object latest_name          # name of the operation that was looked up last
    cdef CallKind latest
    cdef list pieces                 # by place in a key: piece -> its number
    cdef list weights                # by place in a key and number
    cdef bint has_key

    def __init__(self, factory, settings, threads, *, fresh=False, scarce=False):
        self.by_thread = True
        self.anew = lambda: Sequential(factory, settings, threads, fresh=fresh, scarce=scarce)
        self.weak = frozenset(getattr(factory, "weak", ()))
        if scarce:
            self.weak |= frozenset(getattr(factory, "allocates", ()))
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
        if scarce and hasattr(first, "scarce"):
            first.scarce = True
        self.start = self.state(first)

    def init(self):
        return self.start

    def forget(self):
        """Free the states, which refer to each other; this object must not be used afterwards."""
        cdef ModelState state
        for state in self.states.values():
            state.answer = state.answers = state.moved = state.beyond = state.before = state.owner = None
        self.states.clear()

    cpdef ModelState state(self, model, ModelState before=None):
        """Return the state of ``model``, which must not be changed afterwards.

        ``before`` is the state before; pieces that both share need not be looked up.
        """
        cdef ModelState state
        whole = model.canonical() if self.has_key else freeze(model)
        cdef tuple key = <tuple>whole if type(whole) is tuple else (whole,)
        cdef tuple pieces = self.numbers_of(key, before)
        found = self.states.get(pieces)
        if found is not None:
            return <ModelState>found
        state = ModelState.__new__(ModelState)
        state.key, state.pieces, state.whole, state.before = key, pieces, model, before
        state.busy = model.hidden() if self.hides else ()
        state.bytes = 56
        for place, number in enumerate(pieces):
            state.bytes += <long>(<list>self.weights[place])[number]
        self.states[pieces] = state
        return state

    cdef tuple numbers_of(self, tuple key, ModelState before):
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

    cdef CallKind operation(self, call):
        name = (<tuple>call)[0]
        if name is self.latest_name:
            return self.latest
        found = self.operations.get(name)
        if found is None:
            found = self.operations[name] = CallKind(name, self.weak, self.spans)
        self.latest_name, self.latest = name, <CallKind>found
        return <CallKind>found

    cpdef bint pure(self, call) except -1:
        cdef CallKind operation
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

    def step(self, ModelState state, call):
        if self.idle is not None and self.pure(call):
            return (state,)
        return self.after_hidden(state, call) if self.hides else self.after(state, call)

    cpdef object after_hidden(self, ModelState state, call):
        """Return the next states, from this state and from those after hidden steps.

        A state that a hidden step after the call reaches as well is left out: its successors are
        successors of the states that are returned.
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
        cdef dict next_states = {}
        for one in reached:
            after = () if ends and thread in one.state.busy else self.after(one.state, call)
            found.append(after)
            for each in <tuple>after:
                for place, mover in one.ways:
                    if self.leads(<tuple>found[place], mover, <ModelState>each):
                        break
                else:
                    next_states[each] = None
        return next_states

    cdef bint leads(self, tuple states, thread, ModelState wanted) except -1:
        """Return true if the thread's hidden step leads from one of the states to ``wanted``."""
        cdef ModelState state
        for state in states:
            if thread in state.busy and self.move(state, thread) is wanted:
                return True
        return False

    cdef ModelState move(self, ModelState state, thread):
        """Return the state after the thread's hidden step."""
        if state.moved is None:
            state.moved = {}
        found = state.moved.get(thread)
        if found is None:
            model = state.model()
            model.happens(thread)
            found = state.moved[thread] = self.state(model, state)
        return <ModelState>found

    cpdef tuple reached(self, ModelState state):
        """Return the state itself and all states after hidden steps."""
        cdef ModelState one
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

    cpdef tuple after(self, ModelState state, call):
        """Return the next state without hidden steps; none if the result is illegal."""
        cdef CallKind operation = self.operation(call)
        cdef bint pending = (<tuple>call)[2] is UNKNOWN
        thread, result = (<tuple>call)[3], (<tuple>call)[2]
        if pending or operation.weak:
            if operation.ends and not pending and self.fits is not None:
                if not self.fits(state.whole, operation.name, thread=thread, result=result):
                    return ()
            model = state.model()
            return (self.state(model, state),) if self.apply(model, operation, call) else ()
        only, after = self.only_answer(state, operation.name, call)
        return (after,) if only == result else ()

    cdef tuple only_answer(self, ModelState state, str name, call):
        """Return the single legal result of a call in this state, and the next state."""
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
                f"{type(model).__module__}.{type(model).__name__} has no step() and does not declare "
                f"{name}; name it in `weak` and handle it in concurrent(), or add step()"
            )
        result = model.step(name, arguments, thread=thread)
        found = result, self.state(model, state)
        if first is None:
            state.answer = name, arguments, thread, found
        else:
            state.answers[name, arguments, thread] = found
        return <tuple>found

    cdef bint apply(self, model, CallKind operation, call) except -1:
        """Apply the call to the model; false if its result is illegal."""
        arguments, thread = (<tuple>call)[1], (<tuple>call)[3]
        result = None if (<tuple>call)[2] is UNKNOWN else (<tuple>call)[2]
        if operation.begins:
            if self.foresees:
                return bool(model.begins(operation.name, arguments, thread=thread, result=result))
            model.begins(operation.name, arguments, thread=thread)
            return True
        if result is None:
            # A pending call may have any result.
            model.step(operation.name, arguments, thread=thread)
            return True
        return bool(model.concurrent(operation.name, arguments, thread=thread, result=result))

    def describe(self, call):
        if call.name in self.spans:
            return f"{call.name} begins"
        return str(call._replace(name=call.name.removesuffix(ENDS)))


def signatures_of(model, signatures):
    """Return the signatures, followed by one for the end of each operation."""
    if not model.spans:
        return signatures
    return (*signatures, *(Signature(name + ENDS, count, kind) for name, count, kind in signatures))


def with_ends(model, history):
    """Return the records with one more, the end, for each call that spans; and their origins.

    The first record of such a call is its beginning. The origin of a record is its index in the
    history.
    """
    records = history.records
    count = len(records)
    every = np.arange(count)
    if not model.spans:
        return records, every
    # Runs once for each history, so numpy's set operations and promotions are avoided: they would
    # take longer than most verdicts.
    spans = np.array([one.name in model.spans for one in history.signatures])
    again = np.flatnonzero(spans[records["operation"]])
    if not len(again):
        return records, every
    whole = np.empty(count + len(again), records.dtype)
    whole[:count] = records
    if not model.foresees:
        whole["result"][again] = 0  # the beginning does not know the result
    whole[count:] = records[again]
    whole["operation"][count:] += len(history.signatures)
    return whole, np.concatenate([every, again])
