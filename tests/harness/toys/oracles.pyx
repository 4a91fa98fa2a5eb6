"""Subjects whose mistakes show in nothing but their answers: for what compares answers with a
specification.

tickets        correct: each caller gets the next number.
tickets_twice  load and store instead of one addition: two callers may get the same number.
tickets_seen   tickets_twice, which says so when it sees that somebody came in between.
pair           correct: a value in two halves, written and read under a lock.
pair_torn      the same without the lock: a reader may meet half of a write.
counter_race   a plain number that two threads change: a data race.
made           correct: a world of two blocks, of which the first is freed without the second.
made_leaking   made, which keeps the first one.
made_careless  made, which does not look whether the second one is there.
"""

from __future__ import annotations

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI,
    PmlArgument,
    PmlCall,
    PmlOperation,
    PmlResult,
    PmlSubject,
    PmlViolation,
    wrap_subject,
)
from pulsar_ml.harness.subjects.table cimport violate
from pulsar_ml.sync.atomics cimport (
    i64_cas_weak_acquire,
    i64_fetch_add_relaxed,
    i64_load_relaxed,
    i64_store_relaxed,
    i64_store_release,
    pml_i64,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release
from pulsar_ml.sync.wait cimport yield_cpu

cdef struct State:
    pml_i64 next
    pml_i64 lock
    pml_i64 low
    pml_i64 high
    int64_t plain
    int64_t* block


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    return allocate_zeroed(1, sizeof(State))


cdef void destroy(void* instance) noexcept nogil:
    release((<State*>instance).block)
    release(instance)


cdef void* create_pair(bint frees, bint looks) noexcept nogil:
    cdef State* state = <State*>allocate_zeroed(1, sizeof(State))
    if state is NULL:
        return NULL
    state.block = <int64_t*>allocate_zeroed(1, sizeof(int64_t))
    if state.block is NULL and looks:
        if frees:
            release(state)
        return NULL
    state.block[0] = 1
    return state


cdef void* create_made(const int64_t* settings, int32_t threads) noexcept nogil:
    return create_pair(True, True)


cdef void* create_leaking(const int64_t* settings, int32_t threads) noexcept nogil:
    return create_pair(False, True)


cdef void* create_careless(const int64_t* settings, int32_t threads) noexcept nogil:
    return create_pair(True, False)


cdef void check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void apply_tickets(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                        PmlViolation* violation) noexcept nogil:
    result.words[0] = i64_fetch_add_relaxed(&(<State*>instance).next, 1)


cdef void apply_tickets_twice(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                              PmlViolation* violation) noexcept nogil:
    cdef State* state = <State*>instance
    cdef int64_t mine = i64_load_relaxed(&state.next)
    i64_store_relaxed(&state.next, mine + 1)
    result.words[0] = mine


cdef void apply_tickets_seen(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                             PmlViolation* violation) noexcept nogil:
    apply_tickets_twice(instance, thread, call, result, violation)
    if i64_load_relaxed(&(<State*>instance).next) != result.words[0] + 1:
        violate(violation, b"SEEN", b"somebody came in between", 0, 0, 0)


cdef void lock(State* state) noexcept nogil:
    cdef int64_t free = 0
    while not i64_cas_weak_acquire(&state.lock, &free, 1):
        free = 0
        yield_cpu()


cdef void use_pair(State* state, const PmlCall* call, PmlResult* result) noexcept nogil:
    if call.code == 0:
        i64_store_relaxed(&state.low, call.arguments[0])
        i64_store_relaxed(&state.high, call.arguments[0])
    else:
        result.words[0] = i64_load_relaxed(&state.low)
        result.words[1] = i64_load_relaxed(&state.high)


cdef void apply_pair(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                     PmlViolation* violation) noexcept nogil:
    lock(<State*>instance)
    use_pair(<State*>instance, call, result)
    i64_store_release(&(<State*>instance).lock, 0)


cdef void apply_pair_torn(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                          PmlViolation* violation) noexcept nogil:
    use_pair(<State*>instance, call, result)


cdef void apply_counter_race(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                             PmlViolation* violation) noexcept nogil:
    cdef State* state = <State*>instance
    state.plain += 1
    result.words[0] = state.plain


cdef PmlArgument NONE = PmlArgument(NULL, 0, 0)
cdef PmlOperation[1] NEXT = [PmlOperation(b"next", 1, 0, 0, 0, [NONE, NONE, NONE])]
cdef PmlOperation[2] PAIR = [
    PmlOperation(b"write", 1, 0, 1, 0, [PmlArgument(b"value", 1, 9), NONE, NONE]),
    PmlOperation(b"read", 1, 0, 0, 0, [NONE, NONE, NONE]),
]

ctypedef void (*Apply)(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                       PmlViolation* violation) noexcept nogil

cdef PmlSubject[9] TABLES
BUILD_ID = "oracles-build-1"


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    void pml_fail_allocation_after(int64_t n) noexcept


def fail_allocation_after(n):
    pml_fail_allocation_after(n)


SUBJECTS = {}


cdef void define(int at, const char* name, int n, const PmlOperation* operations, Apply apply) noexcept:
    memset(&TABLES[at], 0, sizeof(PmlSubject))
    TABLES[at].abi = PML_SUBJECT_ABI
    TABLES[at].name = name
    TABLES[at].summary = name
    TABLES[at].n_operations = n
    TABLES[at].operations = operations
    TABLES[at].create = create
    TABLES[at].apply = apply
    TABLES[at].check = check
    TABLES[at].destroy = destroy


define(0, b"tickets", 1, &NEXT[0], apply_tickets)
define(1, b"tickets_twice", 1, &NEXT[0], apply_tickets_twice)
define(2, b"pair", 2, &PAIR[0], apply_pair)
define(3, b"pair_torn", 2, &PAIR[0], apply_pair_torn)
define(4, b"counter_race", 1, &NEXT[0], apply_counter_race)
define(5, b"tickets_seen", 1, &NEXT[0], apply_tickets_seen)
define(6, b"made", 1, &NEXT[0], apply_tickets)
define(7, b"made_leaking", 1, &NEXT[0], apply_tickets)
define(8, b"made_careless", 1, &NEXT[0], apply_tickets)
TABLES[6].create = create_made
TABLES[7].create = create_leaking
TABLES[8].create = create_careless

for at in range(9):
    wrapped = wrap_subject(&TABLES[<int>at], BUILD_ID, None)
    SUBJECTS[wrapped.name] = wrapped
