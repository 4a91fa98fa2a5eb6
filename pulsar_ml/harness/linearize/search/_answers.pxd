from libc.stdint cimport int64_t


cdef class Numbered:
    cdef object owner     # the Answers that it has a number of
    cdef int64_t place


cdef class Answers:
    cdef public object step, key_of
    cdef public list states, calls, pure
    cdef public dict numbers
    cdef public int64_t memory, state_bytes, most_states, answer_count

    cpdef int64_t number(self, object state) except -1
    cpdef list answer(self, int64_t state, int64_t symbol)
