# Bits of a word.

from libc.stdint cimport uint64_t


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    int count_ones "pml_count_ones"(uint64_t word) noexcept
    int lowest_one "pml_lowest_one"(uint64_t word) noexcept
