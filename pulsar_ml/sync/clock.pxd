# The monotonic clock. Structures take time as an argument; only bindings and harness read it.

from libc.stdint cimport int64_t


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    int64_t monotonic_ns "pml_monotonic_ns"() noexcept
