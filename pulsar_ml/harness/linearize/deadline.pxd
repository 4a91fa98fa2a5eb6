# Deadline: the moment at which a search gives up, also for lack of memory, which _memory.pyx tells
# apart. The clock and the memory are read once in many turns of its loop.

from libc.stdint cimport int64_t
from pulsar_ml.harness.linearize.limits._memory cimport is_full
from pulsar_ml.sync.clock cimport monotonic_ns


cdef enum:
    TURNS_UNSEEN = 4095   # turns between two looks at the clock, less one; all bits are set


cdef struct Deadline:
    int64_t at_ns         # of the monotonic clock; INT64_MAX: never
    int64_t turns


cdef inline bint is_over(Deadline* d) noexcept nogil:
    d.turns += 1
    return not d.turns & TURNS_UNSEEN and (monotonic_ns() > d.at_ns or is_full())
