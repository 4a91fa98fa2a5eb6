# Outcome tables: the verdicts of short histories by their canonical form.
#
# The canonical form is the symbol of each call, and which calls returned before its invocation. No
# model and no search can tell histories of equal form apart. The form itself is the key, not its
# hash.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add
from pulsar_ml.harness.linearize.search.table cimport RETURNED


cdef enum:
    MOST_CALLS = 64       # the most calls of a history in an outcome table


# Writes the canonical form, two words for each call, and returns its hash.
cdef inline uint64_t canonical(const Record* records, const int32_t* symbols, int32_t n,
                               uint64_t* form) noexcept nogil:
    cdef int32_t a, b
    cdef uint64_t before, word
    cdef uint64_t hash = <uint64_t>n
    cdef int64_t[64] returned
    for a in range(n):
        returned[a] = records[a].returned if records[a].ending == RETURNED else INT64_MAX
    for b in range(n):
        before = 0
        for a in range(n):
            before |= <uint64_t>(returned[a] < records[b].invoked) << a
        form[2 * b] = before
        word = <uint64_t>symbols[b]
        form[2 * b + 1] = word
        hash = (hash ^ (before * 0x9E3779B97F4A7C15ULL + word)) * 0xD6E8FEB86659FD93ULL
        hash ^= hash >> 32
    return mixed(hash)
