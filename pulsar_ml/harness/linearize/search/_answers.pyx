"""The cached answers of a model with numbered states, natively, because searches call it most."""

from __future__ import annotations

import sys

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.limits._memory cimport fits, is_full
from pulsar_ml.harness.linearize.limits.address cimport address_of
from pulsar_ml.harness.linearize.search.table cimport (
    AN_END, ANY_CALL, IDLE_END, UNLEARNED, WORDS, Table, mark_symbol, row_of, symbol_row, table_set,
)
from pulsar_ml.sync.clock cimport monotonic_ns

import numpy as np

from pulsar_ml.harness.models.model import ModelError

cdef extern from *:
    """
    #include <Python.h>

    /* Whether nobody else can have seen the tuple, nor keep its hash, as zip() and enumerate() find
       that they may fill a tuple again. */
    static inline int pml_is_own(PyObject *tuple)
    {
    #if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
        return Py_REFCNT(tuple) == 1;
    #else
        return 0;
    #endif
    }

    static inline void pml_fill(PyObject *tuple, Py_ssize_t at, PyObject *item)
    {
        PyObject *before = PyTuple_GET_ITEM(tuple, at);
        Py_INCREF(item);
        PyTuple_SET_ITEM(tuple, at, item);
        Py_XDECREF(before);
    }

    static inline void pml_track(PyObject *tuple)
    {
        if (!PyObject_GC_IsTracked(tuple))
            PyObject_GC_Track(tuple);
    }
    """
    bint pml_is_own(PyObject* tuple_)
    void pml_fill(PyObject* tuple_, Py_ssize_t at, object item)
    void pml_track(PyObject* tuple_)
    PyObject* PyTuple_GET_ITEM(PyObject* tuple_, Py_ssize_t at)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* tuple_)

cdef extern from "Python.h":
    ctypedef struct Kind "PyTypeObject":
        object (*tp_alloc)(Kind* kind, Py_ssize_t items)

cdef enum:
    STATES_UNSEEN = 63  # states between two looks at the memory, less one; all bits are set

cdef int64_t STATE_BYTES = 150  # of a state beyond its own size: its number and dictionary entry


class StatesFull(MemoryError):
    """The model's states need more memory than their limit."""


def first_words(records, int64_t operations):
    """The number of each operation of the records, and how many arguments its first call has."""
    cdef const Record* calls = <const Record*>address_of(records)
    cdef int64_t i, operation, word, count
    cdef list found = [-1] * operations
    for i in range(len(records)):
        operation = calls[i].operation
        if not 0 <= operation < operations:
            raise IndexError(f"operation {operation} has no signature")
        if <object>found[operation] == -1:
            count = 0
            for word in range(3):
                count += calls[i].arguments[word] >= 0
            found[operation] = count
    return [(operation, count) for operation, count in enumerate(found) if count >= 0]


def records_of_part(records, chosen, int64_t until):
    """A copy of the ``chosen`` records, in which calls that return after ``until`` are optional."""
    cdef const Record* calls = <const Record*>address_of(records)
    cdef const int32_t* places = <const int32_t*>address_of(chosen)
    cdef int64_t n = len(chosen)
    cdef int64_t i
    found = np.empty(n, records.dtype)
    cdef Record* own = <Record*>address_of(found)
    for i in range(n):
        own[i] = calls[places[i]]
        if own[i].returned > until:
            own[i].returned = INT64_MAX
    return found


def with_key_of(records, tuple values, int64_t call, int64_t until=INT64_MAX):
    """The key of a call, its first argument, and an array of the calls with an equal key.

    Only calls that are invoked by ``until`` count. None when one of them has no key, or when the
    key is not equal to itself.
    """
    cdef const Record* calls = <const Record*>address_of(records)
    cdef int64_t n = len(records)
    cdef int64_t count = 0
    cdef int64_t i, word
    cdef bytearray equal = bytearray(len(values))  # by value: 0 not compared yet, 1 equal, 2 not
    cdef char* known = equal
    key = values[calls[call].arguments[0]] if calls[call].arguments[0] >= 0 else None
    same = np.empty(n, np.int32)
    cdef int32_t* places = <int32_t*>address_of(same)
    for i in range(n):
        if calls[i].invoked > until:
            continue
        word = calls[i].arguments[0]
        if not 0 <= word < len(values):
            return None
        if known[word] == 0:
            known[word] = 1 if values[word] == key else 2
        if known[word] == 1:
            places[count] = <int32_t>i
            count += 1
    return (key, same[:count]) if count else None


cdef class Numbered:
    """A state that stores its number for the first checker; it is equal only to itself."""


cdef class Answers:
    """The numbered states that ``step`` led to, and the numbered calls.

    ``key_of`` returns the identity of a state; None: the state itself. ``memory`` bounds, in bytes,
    the size of the states. ``answer_count`` counts the calls of the model. ``decode`` turns words
    into a call; ``is_pure``, ``part_of``, ``ends``, ``over`` and ``resets`` are methods of the
    model, or None. With ``keyed``, they and ``step`` belong to the model of one key, and the calls
    are without their first argument, the key; only ``part_of`` takes whole calls.
    """

    def __cinit__(self, *args, **kwargs):
        self.states, self.calls, self.pure, self.numbers = [], [], [], {}
        self.parts, self.part_numbers, self.kinds = [], {}, []
        self.most_states = sys.maxsize

    def __dealloc__(self):
        free(self.found)

    def decode_with(self, signatures, values, decode, call_class, unknown):
        """Set the meaning of words in records; ``decode`` is for words that are no values."""
        self.kinds = [one.name if one.result == "value" else None for one in signatures]
        self.values, self.decode = tuple(values), decode
        self.call_class, self.unknown = call_class, unknown

    def number(self, state) -> int:
        """The number of a state."""
        return self.number_of(state)

    cdef int64_t number_of(self, object state) except -1:
        cdef Numbered numbered = None
        cdef PyObject* known
        if self.key_of is None and isinstance(state, Numbered):
            numbered = <Numbered>state
            if numbered.owner is self:
                return numbered.place
        key = state if self.key_of is None else self.key_of(state)
        if numbered is None or numbered.owner is not None:
            try:
                known = PyDict_GetItemWithError(self.numbers, key)
            except TypeError as error:
                raise ModelError(
                    f"a state must be hashable, or the model have equal() and hash(): {error}"
                ) from None
            if known is not NULL:
                return <object>known
        self.state_bytes += <int64_t>state.__sizeof__() + STATE_BYTES
        if self.state_bytes > self.memory or len(self.states) >= self.most_states:
            raise StatesFull(f"the model's states take more than {self.memory} bytes")
        number = len(self.states)
        if number and not number & STATES_UNSEEN and (is_full() or not fits(growth_at(number))):
            raise StatesFull("out of memory: the limit is reached by the model's states")
        if numbered is not None and numbered.owner is None:
            numbered.owner, numbered.place = self, number
        else:
            self.numbers[key] = number
        self.states.append(state)
        return number

    # Writes the states to which the call may lead into ``found``; returns their number.
    cdef int64_t ask(self, int64_t state, int64_t symbol) except -1:
        cdef int64_t number, i
        cdef int64_t count = 0
        before, call = self.states[state], self.calls[symbol]
        self.answer_count += 1
        for after in self.step(before, call):
            number = self.number_of(after)
            if count == self.found_room:
                self.grow()
            self.found[count] = <int32_t>number
            count += 1
        if count > 1:
            for count, found in enumerate(dict.fromkeys([self.found[i] for i in range(count)])):
                self.found[count] = found
            count += 1
        if count and self.pure[symbol] and (count > 1 or self.found[0] != state):
            raise ModelError(
                f"the model calls {call} pure, yet it leads from {before!r} to "
                f"{self.states[self.found[0]]!r}"
            )
        return count

    cdef int grow(self) except -1:
        cdef int64_t room = 2 * self.found_room + 16
        cdef int32_t* found = <int32_t*>realloc(self.found, <size_t>room * sizeof(int32_t))
        if found is NULL:
            raise MemoryError("no memory for the answers of the model")
        self.found, self.found_room = found, room
        return 0

    cpdef list answer(self, int64_t state, int64_t symbol):
        """The numbers of the states to which the call may lead from the state."""
        cdef int64_t i
        cdef int64_t count = self.ask(state, symbol)
        return [self.found[i] for i in range(count)]

    def follow(self, records, list order, state, bint by_thread, int64_t deadline_ns):
        """Follow an order of calls, each part of the state from ``state`` on.

        Returns the number of calls to which the model led, one after the other, or -1 if a call led
        to several states or is about several parts. ``records`` is an array of history.RECORD, and
        ``order`` a list. Nothing is cached: most orders are followed once, to their end.
        """
        cdef const Record* calls = <const Record*>address_of(records)
        cdef int64_t n = len(order)
        cdef int64_t i, place
        cdef int64_t[WORDS] row
        cdef dict states = {}
        cdef PyObject* known
        cdef bint keyed
        part = call = None
        for i in range(n):
            place = order[i]
            row_of(&calls[place], by_thread, row)
            keyed = self.keyed and self.kinds[row[0] >> 1] is not None and row[2] >= 0
            call = self.next_call(call, row, self.keyed)
            if keyed:
                part = self.values[row[2]]
            elif self.part_of is not None:
                part = self.part_of(self.call_of(row, False) if self.keyed else call)
                if part is None:
                    return -1
            known = PyDict_GetItemWithError(states, part)
            self.answer_count += 1
            after = self.step(<object>known if known is not NULL else state, call)
            if type(after) is not list:
                after = list(after)
            if len(<list>after) != 1:
                return -1 if <list>after else i
            if deadline_ns != INT64_MAX and monotonic_ns() > deadline_ns:
                return i
            after = (<list>after)[0]
            if known is NULL or <object>known is not after:
                states[part] = after
        return n

    def parts_of(self, symbols):
        """The number of the part of each symbol, as an array of int32; -1: several parts."""
        cdef const int32_t* numbers = <const int32_t*>address_of(symbols)
        cdef int64_t i
        found = np.empty(len(symbols), np.int32)
        cdef int32_t* parts = <int32_t*>address_of(found)
        for i in range(len(symbols)):
            parts[i] = self.parts[numbers[i]]
        return found

    def part_among(self, records, symbols, int64_t call, int64_t until=INT64_MAX):
        """Like part_with(), of any records: those with the same number in ``symbols`` are equal.

        Only calls that are invoked by ``until`` count. Nothing is learned, so that the calls of
        other parts cost a question to the model each.
        """
        cdef const Record* calls = <const Record*>address_of(records)
        cdef const int32_t* numbers = <const int32_t*>address_of(symbols)
        cdef int64_t n = len(records)
        cdef int64_t count = 0
        cdef int64_t i
        cdef int64_t[WORDS] row
        cdef bytearray equal = bytearray(n)  # by symbol: 0 not asked yet, 1 of the part, 2 not
        cdef char* known = equal
        cdef int32_t number
        if self.part_of is None:
            return None
        other = None
        row_of(&calls[call], False, row)
        wanted = self.part_of(self.call_of(row, False))
        if wanted is None:
            return None
        cdef Py_hash_t hash_wanted = hash(wanted)
        found = np.empty(n, np.int32)
        cdef int32_t* places = <int32_t*>address_of(found)
        for i in range(n):
            if calls[i].invoked > until:
                continue
            number = numbers[i]
            if not 0 <= number < n:
                raise IndexError(f"symbol {number} is none of {n} records")
            if known[number] == 0:
                row_of(&calls[i], False, row)
                other = self.next_call(other, row, False)
                key = self.part_of(other)
                if key is None:
                    return None
                known[number] = 2
                if key is wanted or (hash(key) == hash_wanted and key == wanted):
                    known[number] = 1
            if known[number] == 1:
                places[count] = <int32_t>i
                count += 1
        return (wanted, found[:count]) if count < n else None

    def part_with(self, symbols, int64_t call):
        """The part of one call of a history, and its calls; None: the history is in one piece."""
        cdef const int32_t* numbers = <const int32_t*>address_of(symbols)
        cdef int64_t n = len(symbols)
        cdef int64_t count = 0
        cdef int64_t i, part, wanted
        if not self.parts:
            return None
        wanted = self.parts[numbers[call]]
        found = np.empty(n, np.int32)
        cdef int32_t* calls = <int32_t*>address_of(found)
        for i in range(n):
            part = self.parts[numbers[i]]
            if part < 0:
                return None
            if part == wanted:
                calls[count] = <int32_t>i
                count += 1
        return (list(self.part_numbers)[wanted], found[:count]) if count < n else None

    # The call of a row of words, without its first argument if ``inner``; see symbol_of() in
    # table.pxd.
    cdef object call_of(self, const int64_t* row, bint inner):
        cdef int64_t operation = row[0] >> 1
        cdef bint open_ = row[0] & 1
        cdef int first = 2 + inner
        cdef int i
        cdef Py_ssize_t count = 0
        cdef tuple values = self.values
        name = self.kinds[operation]
        if name is None:
            words = None if open_ else (row[5], row[6], row[7], row[8], row[9])
            name, arguments, result, thread = self.decode(
                operation, (row[2], row[3], row[4]), words, row[1]
            )
            arguments = arguments[1:] if inner else arguments
            return new_call(self.call_class, name, arguments, result, thread)
        result = self.unknown if open_ else values[row[5]]
        for i in range(first, 5):
            count += row[i] >= 0
        arguments = PyTuple_New(count)
        count = 0
        for i in range(first, 5):
            if row[i] >= 0:
                value = values[row[i]]
                Py_INCREF(value)
                PyTuple_SET_ITEM(arguments, count, value)
                count += 1
        return new_call(self.call_class, name, arguments, result, row[1])

    # Like call_of(); fills ``call`` again, the one before, if nothing else refers to it.
    cdef object next_call(self, object call, const int64_t* row, bint inner):
        cdef int first = 2 + inner
        cdef int i
        cdef Py_ssize_t count = 0
        cdef PyObject* before = <PyObject*>call
        cdef PyObject* arguments
        name = self.kinds[row[0] >> 1]
        if call is None or name is None or not pml_is_own(before):
            return self.call_of(row, inner)
        for i in range(first, 5):
            count += row[i] >= 0
        arguments = PyTuple_GET_ITEM(before, 1)
        if PyTuple_GET_SIZE(arguments) != count or count == 0 or not pml_is_own(arguments):
            return self.call_of(row, inner)
        count = 0
        for i in range(first, 5):
            if row[i] >= 0:
                pml_fill(arguments, count, self.values[row[i]])
                count += 1
        pml_track(arguments)
        pml_fill(before, 0, name)
        pml_fill(before, 2, self.unknown if row[0] & 1 else self.values[row[5]])
        pml_fill(before, 3, row[1])
        return call

    # Enters a new symbol with its part; its call is learned when a search needs it.
    cdef int sort(self, const int64_t* row, Learned* into) except -1:
        cdef bint keyed = self.keyed and self.kinds[row[0] >> 1] is not None and row[2] >= 0
        call = None
        into.part, into.pure, into.resets, into.role = 0, False, False, UNLEARNED
        if self.part_of is not None:
            if keyed:
                key = self.values[row[2]]
            else:
                call = self.call_of(row, False)
                key = self.part_of(call)
            into.part = -1
            if key is not None or keyed:
                into.part = self.part_numbers.setdefault(key, len(self.part_numbers))
            self.parts.append(into.part)
        self.calls.append(None)  # many are of parts that no search needs
        self.pure.append(False)
        self.unlearned += 1
        return 0

    # Learns the call of a symbol.
    cdef int learn(self, int64_t symbol, const int64_t* row, Learned* into) except -1:
        call = self.calls[symbol]
        if call is None:
            call = self.calls[symbol] = self.call_of(row, self.keyed)
        into.role = ANY_CALL
        into.pure = self.is_pure is not None and bool(self.is_pure(call))
        self.pure[symbol] = into.pure
        into.resets = self.resets is not None and bool(self.resets(call))
        if self.ends is not None and self.ends(call):
            into.role = IDLE_END if self.over(call) else AN_END
        return 0

    # Learns the symbols of n records, all or the ``chosen`` ones.
    cdef int learn_symbols(self, Table* table, const int32_t* symbols, const int32_t* chosen,
                           int64_t n) except -1:
        cdef int64_t i
        cdef int32_t symbol
        cdef Learned new
        if self.unlearned == 0:
            return 0
        for i in range(n):
            symbol = symbols[i if chosen is NULL else chosen[i]]
            if table.role[symbol] == UNLEARNED:
                new.part = table.part[symbol]
                self.learn(symbol, symbol_row(table, symbol), &new)
                mark_symbol(table, symbol, new.pure, new.part, new.resets, <uint8_t>new.role)
                self.unlearned -= 1
        return 0


# A Call, without the tuple that its constructor takes apart.
cdef object new_call(type kind, object name, object arguments, object result, object thread):
    cdef Kind* native = <Kind*>kind
    call = native.tp_alloc(native, 4)
    Py_INCREF(name)
    Py_INCREF(arguments)
    Py_INCREF(result)
    Py_INCREF(thread)
    PyTuple_SET_ITEM(call, 0, name)
    PyTuple_SET_ITEM(call, 1, arguments)
    PyTuple_SET_ITEM(call, 2, result)
    PyTuple_SET_ITEM(call, 3, thread)
    return call


# The bytes of the table to which a dictionary of so many keys moves before the next look at the
# memory; 0: it has room. A table doubles when two thirds of its slots are taken; a slot is an index
# of 4 bytes, and an entry of 24 bytes for two of three.
cdef int64_t growth_at(int64_t keys) noexcept nogil:
    cdef int64_t slots = 8
    while slots * 2 // 3 <= keys:
        slots *= 2
    return 2 * slots * (4 + 16) if slots * 2 // 3 <= keys + STATES_UNSEEN + 1 else 0


# Enters states as the answer to a question; False without memory.
cdef bint enter(Table* table, int32_t state, int32_t symbol, list states) except -1:
    cdef int32_t* found = <int32_t*>malloc((len(states) + 1) * sizeof(int32_t))
    cdef int i, entered
    if found is NULL:
        raise MemoryError("no memory for the answers of the model")
    for i, other in enumerate(states):
        found[i] = other
    entered = table_set(table, state, symbol, found, <int32_t>len(states))
    free(found)
    return entered
