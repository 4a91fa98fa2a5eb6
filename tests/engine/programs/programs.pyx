"""The small programs of this folder as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlViolation
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.sync.atomics cimport pml_u32, u32_exchange_release

cdef extern from *:
    """
    #include "tests/engine/programs/kit.h"
    #include "tests/engine/programs/litmus.h"
    #include "tests/engine/programs/bugs.h"
    #include "tests/engine/programs/structures.h"
    #include "tests/engine/programs/counts.h"
    #include "tests/engine/programs/races.h"
    #include "tests/engine/programs/bounds.h"
    #include "tests/engine/programs/waiting.h"
    #include "tests/engine/programs/timing.h"
    #include "tests/engine/programs/progress.h"
    """
    ctypedef void* (*Create)(const int64_t*, int32_t) noexcept nogil
    ctypedef void (*Apply)(void*, int32_t, const PmlCall*, PmlResult*, PmlViolation*) noexcept nogil
    ctypedef void (*Check)(void*, PmlViolation*) noexcept nogil
    ctypedef void (*Destroy)(void*) noexcept nogil
    void define(const char* name, int threads, Create create, Apply apply, Check check, Destroy destroy) nogil


# The product's monitor around a plain counter, and the same without its wake-up.
cdef struct Guarded:
    pml_u32 monitor
    int64_t x


cdef void* guarded_new(const int64_t* settings, int32_t threads) noexcept nogil:
    return calloc(1, sizeof(Guarded))


cdef void guarded_free(void* guarded) noexcept nogil:
    free(guarded)


cdef void guarded_check(void* guarded, PmlViolation* v) noexcept nogil:
    if (<Guarded*>guarded).x != 2:
        v.found = 1


cdef void with_wake(void* guarded, int32_t t, const PmlCall* call, PmlResult* result,
                    PmlViolation* v) noexcept nogil:
    monitor_enter(&(<Guarded*>guarded).monitor)
    (<Guarded*>guarded).x += 1
    monitor_leave(&(<Guarded*>guarded).monitor)


cdef void without_wake(void* guarded, int32_t t, const PmlCall* call, PmlResult* result,
                       PmlViolation* v) noexcept nogil:
    monitor_enter(&(<Guarded*>guarded).monitor)
    (<Guarded*>guarded).x += 1
    u32_exchange_release(&(<Guarded*>guarded).monitor, 0)


define("monitor_fixed", 2, guarded_new, with_wake, guarded_check, guarded_free)
define("monitor", 2, guarded_new, without_wake, guarded_check, guarded_free)

include "subjects.pxi"
