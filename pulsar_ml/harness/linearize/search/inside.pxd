# The part of a checker that native code may use without the GIL.

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.depth cimport ANSWER_LEGAL, Depth, depth_run, depth_start
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, lanes_build
from pulsar_ml.harness.linearize.search.table cimport Table, symbol_of


cdef enum:
    KNOWN_STEPS = 2       # the most steps for each call of a search among known transitions


cdef struct Inside:
    void* checker         # the Checker, which outlives the use of this struct
    Table* table
    Depth* depth
    const int64_t* known  # the symbols that the model has learned
    int32_t** symbols
    int32_t** everything
    const int64_t* room   # the capacity of the two arrays above
    int64_t memory
    bint by_thread
    bint built            # the lanes belong to the records of the last query


# True when known answers make n records legal from the first state on.
cdef inline bint legal_as_known(Inside* inside, const Record* records, int32_t n) noexcept nogil:
    cdef int32_t* symbols = inside.symbols[0]
    cdef int32_t i
    inside.built = False
    if n > inside.room[0]:
        return 0
    for i in range(n):
        symbols[i] = symbol_of(inside.table, &records[i], inside.by_thread)
        # A new symbol stays in the table; the model learns it at the next search.
        if symbols[i] < 0 or symbols[i] >= inside.known[0]:
            return 0
    if not lanes_build(&inside.depth.lanes, inside.table, records, inside.everything[0], symbols, n,
                       REAL_TIME, True):
        return 0
    inside.built = True
    inside.depth.real_time = True
    if not depth_start(inside.depth, inside.table, 0, 1, KNOWN_STEPS * n, inside.memory, INT64_MAX):
        return 0
    return depth_run(inside.depth, inside.table) == ANSWER_LEGAL
