# Arrays of the searches that grow: they ask for memory before they take it.

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from pulsar_ml.harness.linearize.limits._memory cimport fits


cdef enum:
    PIECE = 1 << 20       # bytes that are worth a look at the memory of the process
    MAPPED = 33 << 20     # bytes that realloc() does not copy: pages count once they are used


# The array with room for ``least`` items of ``size`` bytes and as many more; NULL without memory,
# when the old one stays. For a moment there are both, unless the array is mapped.
cdef inline void* array_grown(void* array, int64_t* room, int64_t least, size_t size) noexcept nogil:
    cdef int64_t more = 2 * least + 64
    cdef int64_t bytes = more * <int64_t>size
    cdef void* grown
    if bytes >= PIECE and not fits(PIECE if room[0] * <int64_t>size >= MAPPED else bytes):
        return NULL
    grown = realloc(array, <size_t>bytes)
    if grown is not NULL:
        room[0] = more
    return grown
