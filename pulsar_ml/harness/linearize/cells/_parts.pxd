from libc.stdint cimport int32_t, int64_t
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.depth cimport Depth
from pulsar_ml.harness.linearize.search.table cimport Table


cdef struct Placed:
    int64_t time
    int32_t sequence
    int32_t index


cdef class Parts:
    cdef Table table
    cdef Depth depth
    cdef readonly int32_t parts
    cdef int32_t known          # the symbols that were learned
    cdef int refused            # the answer for a symbol that could not be learned; 0: none
    cdef int32_t first_state
    cdef int32_t illegal_part   # the illegal part of the last search; -1: none
    cdef int32_t open_part      # the first part without an answer in the last search; -1: none
    cdef readonly int32_t unanswered  # the number of such parts
    cdef readonly int32_t likely  # the part that was searched first, as probably illegal; -1: none
    cdef public int64_t limit   # bytes of a search
    cdef bint by_thread
    cdef bint has_leads         # answer_step answers symbols with LEADS, too
    cdef bint ahead             # the present search looks ahead
    cdef public int64_t deadline_ns
    cdef object known_records   # records that cannot change, whose symbols are known; None: none
    cdef int32_t* known_symbols

    cdef int learn(self, int32_t symbol, const int64_t* row) noexcept nogil
    cdef int answer_step(self, int32_t state, int32_t symbol) noexcept nogil
    cdef void begin(self, const Record* records) noexcept nogil
    cdef int32_t likely_part(
        self, const Record* records, int32_t n, const int32_t* symbols,
    ) noexcept nogil
    cdef int intern(self, const Record* records, int32_t n, int32_t* symbols) noexcept nogil
    cdef int one_part(self, const Record* records, const int32_t* chosen, const int32_t* symbols, int32_t n,
                      int32_t parts, int criterion, int64_t most_steps) noexcept nogil
    cdef int32_t place(self, const Record* records, Placed* places, int32_t placed) noexcept nogil
    cdef int all_parts(self, const Record* records, int32_t n, int32_t* memory, bint together, int criterion,
                       int64_t most_steps, Placed* places, int32_t* placed, int64_t* steps,
                       int64_t* configurations) noexcept nogil
