# The common part of the operation tables: the table itself (pulsar_ml/harness/subjects/table.pxd),
# patterns, random choices.
#
# A table is filled by `<structure>_subject(SubjectTable*)`, once, when the module is imported. An
# operation's code is its index in the table: each file has an enum of its codes.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.table cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)


# Patterns ---------------------------------------------------------------------------------------

# A well-mixed function of a number (the output function of SplitMix64).
cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    x += <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


# Memory as an earlier owner left it: an init is to write all that the structure reads.
cdef inline void dirty(void* place, size_t size) noexcept nogil:
    memset(place, 0xA5, size)
