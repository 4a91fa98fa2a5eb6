# The range cache as a subject: cache_operations.pxd over a cache world. Wrappers leave the removal
# queue by sweeps only, so entries go by removal and never by eviction.

from libc.stdint cimport int32_t, int64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlViolation
from pulsar_ml.operations.cache_check cimport world_check, world_destroy
from pulsar_ml.operations.cache_operations cimport (
    range_common_apply, range_remove, range_sweep, world_table,
)
from pulsar_ml.operations.cache_world cimport CacheWorld, world_create, world_equal
from pulsar_ml.operations.cache_puts cimport range_put
from pulsar_ml.operations.support cimport SubjectTable, table_start
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i64_load_relaxed, i64_store_relaxed


cdef inline void range_cache_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    range_common_apply(<CacheWorld*>instance, thread, call, result, violation)


# Alone in the empty world: a removal takes out all of its range, both ends too, and nothing beside
# it.
cdef inline void range_cache_check_bounds(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    cdef PmlResult ignored, removed
    cdef int64_t clock = i64_load_relaxed(&world.clock)
    cdef int64_t key
    for key in range(4):
        ignored.status = PML_OK
        range_put(world, 0, 0, key, -1, 0, &ignored, violation)
        if ignored.status != PML_OK:
            return
    removed = PmlResult(0, [0, 0, 0, 0])
    range_remove(world, 0, 0, 1, 2, &removed, violation)
    world_equal(world, violation, b"I8", b"entries that the removal of keys 1 to 2 took out",
                removed.words[2], 2)
    # The instance may be used on: nobody shall see that this was here.
    range_remove(world, 0, 0, 0, 3, &removed, violation)
    range_sweep(world, 0, 64, &ignored, violation)
    world.threads[0].incarnations -= 4
    i64_store_relaxed(&world.clock, clock)


cdef inline void range_cache_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>instance
    cdef int64_t entries = 0
    cdef int32_t thread
    for thread in range(world.n_threads):
        entries += world.threads[thread].n_entries
    world_check(instance, violation)
    # Not after a program that made no entry: a failure is to need a call of the program.
    if violation.found or not entries:
        return
    range_cache_check_bounds(world, violation)
    # What that broke is a violation, not memory that destruction loses.
    if not violation.found:
        world_check(instance, violation)


cdef inline void range_cache_subject(SubjectTable* table) noexcept nogil:
    table_start(table, b"range_cache", b"One to three range caches over one memory and one removal queue.",
                world_create, range_cache_apply, range_cache_check, world_destroy)
    world_table(table, 2)
