"""The cached answers of a model with numbered states, natively, because searches call it most."""

from __future__ import annotations

import sys

from libc.stdint cimport int64_t

from pulsar_ml.harness.models.model import ModelError

cdef int64_t STATE_BYTES = 150  # of a state beyond its own size: its number and dictionary entry


class StatesFull(MemoryError):
    """The model's states need more memory than their limit."""


cdef class Numbered:
    """A state that stores its number for the first checker; it is equal only to itself."""


cdef class Answers:
    """The numbered states that ``step`` led to, and the numbered calls.

    ``key_of`` returns the identity of a state; None: the state itself. ``memory`` bounds, in bytes,
    the size of the states. ``answer_count`` counts the calls of the model.
    """

    def __cinit__(self, *args, **kwargs):
        self.states, self.calls, self.pure, self.numbers = [], [], [], {}
        self.most_states = sys.maxsize

    cpdef int64_t number(self, object state) except -1:
        cdef Numbered numbered = None
        if self.key_of is None and isinstance(state, Numbered):
            numbered = <Numbered>state
            if numbered.owner is self:
                return numbered.place
        key = state if self.key_of is None else self.key_of(state)
        if numbered is None or numbered.owner is not None:
            try:
                number = self.numbers.get(key)
            except TypeError as error:
                raise ModelError(
                    f"a state must be hashable, or the model have equal() and hash(): {error}"
                ) from None
            if number is not None:
                return number
        self.state_bytes += <int64_t>state.__sizeof__() + STATE_BYTES
        if self.state_bytes > self.memory or len(self.states) >= self.most_states:
            raise StatesFull(f"the model's states take more than {self.memory} bytes")
        number = len(self.states)
        if numbered is not None and numbered.owner is None:
            numbered.owner, numbered.place = self, number
        else:
            self.numbers[key] = number
        self.states.append(state)
        return number

    cpdef list answer(self, int64_t state, int64_t symbol):
        """The numbers of the states to which the call may lead from the state."""
        before, call = self.states[state], self.calls[symbol]
        self.answer_count += 1
        found = [self.number(after) for after in self.step(before, call)]
        if len(found) > 1:
            found = list(dict.fromkeys(found))
        if found and self.pure[symbol] and found != [state]:
            raise ModelError(
                f"the model calls {call} pure, yet it leads from {before!r} to {self.states[found[0]]!r}"
            )
        return found
