from libc.stdint cimport int32_t, int64_t
from pulsar_ml.harness.linearize.search.table cimport Table


cdef class Numbered:
    cdef object owner     # the Answers that it has a number of
    cdef int64_t place


# The properties of the calls of one symbol.
cdef struct Learned:
    bint pure
    int32_t part          # the number of the part that the calls are about; -1: several parts
    bint resets           # they lead to one state from every state
    int role              # see Role in table.pxd


cdef class Answers:
    cdef public object step, key_of
    cdef public list states, calls, pure, parts
    cdef public dict numbers, part_numbers
    cdef public int64_t memory, state_bytes, most_states, answer_count
    cdef public object decode, is_pure, part_of, ends, over, resets
    cdef public bint keyed  # the model is that of one key: its calls have no first argument
    cdef list kinds       # by operation: its name when its words stand for values, or None
    cdef tuple values
    cdef object call_class, unknown
    cdef int32_t* found   # the states of the last answer
    cdef int64_t found_room
    cdef int64_t unlearned  # symbols of which only the part is known

    cdef int64_t number_of(self, object state) except -1
    cpdef list answer(self, int64_t state, int64_t symbol)
    cdef int64_t ask(self, int64_t state, int64_t symbol) except -1
    cdef int grow(self) except -1
    cdef object call_of(self, const int64_t* row, bint inner)
    cdef object next_call(self, object call, const int64_t* row, bint inner)
    cdef int sort(self, const int64_t* row, Learned* into) except -1
    cdef int learn(self, int64_t symbol, const int64_t* row, Learned* into) except -1
    cdef int learn_symbols(self, Table* table, const int32_t* symbols, const int32_t* chosen,
                           int64_t n) except -1


cdef bint enter(Table* table, int32_t state, int32_t symbol, list states) except -1
