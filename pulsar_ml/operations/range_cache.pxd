# The range cache as a subject: cache_operations.pxd over a cache world. Wrappers leave the removal queue
# by sweeps only, so entries go by removal and never by eviction.

from libc.stdint cimport int32_t

from pulsar_ml.harness.subject cimport PmlCall, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_operations cimport range_common_apply, world_table
from pulsar_ml.operations.cache_world cimport CacheWorld, world_create
from pulsar_ml.operations.support cimport SubjectTable, table_start


cdef inline void range_cache_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    range_common_apply(<CacheWorld*>instance, thread, call, result, violation)


cdef inline void range_cache_subject(SubjectTable* table) noexcept nogil:
    table_start(table, b"range_cache", b"One to three range caches over one memory and one removal queue.",
                world_create, range_cache_apply, world_check, world_destroy)
    world_table(table, 2)
