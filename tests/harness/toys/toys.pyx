"""Toy subjects: tiny structures, most of them wrong on purpose, that the harness must tell apart.

counter   correct: an atomic sum.
racy      load, wait, store: loses updates, seen at quiescence.
leaky     keeps memory that nobody frees.
tattler   reports a violation while running, at the call whose number is its setting ``start``.
owned     an exclusive role; whoever plays it beside its owner is reported while running.
lonely    takes two threads at most.
slow      each operation gives the processor away many times.
hang      operations that never end until let_go() is called.
meeting   hold waits for free, poke waits for hold: operations that overlap for certain.
"""

from __future__ import annotations

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdio cimport snprintf
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
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed,
    i64_load_relaxed,
    i64_store_relaxed,
    pml_i64,
)
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release
from pulsar_ml.sync.wait cimport yield_cpu

cdef extern from "pulsar_ml/sync/sync.h" nogil:
    void pml_fail_allocation_after(int64_t n) noexcept

cdef enum:
    SPACING = 16          # words between the totals of two threads
    LEAK = 1 << 18
    SLOW_YIELDS = 100
    PATIENCE = 1000000

cdef struct Toy:
    int32_t threads
    int64_t setting
    pml_i64 value
    pml_i64 calls
    pml_i64 owner         # thread + 1 of the role's owner, 0 before its first call
    int64_t[64 * SPACING] totals

cdef pml_i64 lost_update  # 1 while the mutant is selected
cdef pml_i64 released     # 1 when hanging operations may end
cdef pml_i64 inside       # operations of slow and hang that have begun


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef Toy* toy = <Toy*>allocate_zeroed(1, sizeof(Toy))
    if toy is not NULL:
        toy.threads = threads
        toy.setting = settings[0]
    return toy


cdef void destroy(void* instance) noexcept nogil:
    release(instance)


cdef void violate(PmlViolation* violation, const char* invariant, const char* what, int64_t seen,
                  int64_t expected) noexcept nogil:
    violation.found = 1
    snprintf(violation.invariant, sizeof(violation.invariant), "%s", invariant)
    snprintf(violation.message, sizeof(violation.message), "%s is %lld, expected %lld", what, <long long>seen,
             <long long>expected)


# At a thread's first call, waits until every thread has got here, so that operations overlap
# however busy the machine is. Gives up when a thread never comes.
cdef void meet(Toy* toy, int32_t thread) noexcept nogil:
    cdef int turn = 0
    if toy.totals[thread * SPACING + 1]:
        return
    toy.totals[thread * SPACING + 1] = 1
    i64_fetch_add_relaxed(&toy.calls, 1)
    while i64_load_relaxed(&toy.calls) < toy.threads and turn < PATIENCE:
        yield_cpu()
        turn += 1


# All threads load the first value before any stores, so all but one of the first additions are
# block.
cdef void add_racy(Toy* toy, int32_t thread, int64_t amount) noexcept nogil:
    cdef int64_t value = i64_load_relaxed(&toy.value)
    meet(toy, thread)
    i64_store_relaxed(&toy.value, value + amount)


cdef void apply_sum(Toy* toy, int32_t thread, const PmlCall* call, PmlResult* result,
                    bint racy) noexcept nogil:
    if call.code == 0:
        if racy:
            add_racy(toy, thread, call.arguments[0])
        else:
            i64_fetch_add_relaxed(&toy.value, call.arguments[0])
        toy.totals[thread * SPACING] += call.arguments[0]
    result.words[0] = i64_load_relaxed(&toy.value)


cdef void apply_counter(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                        PmlViolation* violation) noexcept nogil:
    apply_sum(<Toy*>instance, thread, call, result, i64_load_relaxed(&lost_update) != 0)


cdef void apply_racy(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                     PmlViolation* violation) noexcept nogil:
    apply_sum(<Toy*>instance, thread, call, result, True)


cdef void check_sum(void* instance, PmlViolation* violation) noexcept nogil:
    cdef Toy* toy = <Toy*>instance
    cdef int64_t expected = 0
    cdef int i
    for i in range(toy.threads):
        expected += toy.totals[i * SPACING]
    if i64_load_relaxed(&toy.value) != expected:
        violate(violation, "T1", "the sum", i64_load_relaxed(&toy.value), expected)


cdef void check_nothing(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void apply_leaky(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                      PmlViolation* violation) noexcept nogil:
    cdef void* block = allocate(LEAK)
    if block is not NULL:
        memset(block, 1, LEAK)
        result.words[0] = (<char*>block)[call.arguments[0]]


cdef void apply_tattler(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                        PmlViolation* violation) noexcept nogil:
    cdef Toy* toy = <Toy*>instance
    cdef int64_t number = i64_fetch_add_relaxed(&toy.calls, 1)
    if number == toy.setting:
        violate(violation, "T2", "the number of the call", number, -1)


cdef void apply_owned(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                      PmlViolation* violation) noexcept nogil:
    cdef Toy* toy = <Toy*>instance
    cdef int64_t owner
    if call.code == 1:
        owner = i64_load_relaxed(&toy.owner)
        if owner == 0:
            i64_store_relaxed(&toy.owner, thread + 1)
        elif owner != thread + 1:
            violate(violation, "T3", "the thread in the role", thread, owner - 1)
    result.status = 1


cdef void apply_slow(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                     PmlViolation* violation) noexcept nogil:
    cdef int i
    i64_fetch_add_relaxed(&inside, 1)
    meet(<Toy*>instance, thread)
    for i in range(SLOW_YIELDS):
        yield_cpu()


cdef void apply_hang(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                     PmlViolation* violation) noexcept nogil:
    i64_fetch_add_relaxed(&inside, 1)
    while not i64_load_relaxed(&released):
        yield_cpu()


cdef void apply_meeting(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                        PmlViolation* violation) noexcept nogil:
    cdef Toy* toy = <Toy*>instance
    if call.code == 0:
        i64_store_relaxed(&toy.owner, 1)
        while not i64_load_relaxed(&toy.value):
            yield_cpu()
    elif call.code == 1:
        while not i64_load_relaxed(&toy.owner):
            yield_cpu()
    else:
        i64_store_relaxed(&toy.value, 1)


# Tables. Unused arguments have no name.

cdef PmlArgument NONE = PmlArgument(NULL, 0, 0)
cdef PmlArgument[1] START = [PmlArgument(b"start", 0, 100)]
cdef PmlOperation[2] SUM = [
    PmlOperation(b"add", 3, 0, 1, 0, [PmlArgument(b"amount", 1, 10), NONE, NONE]),
    PmlOperation(b"read", 1, 0, 0, 0, [NONE, NONE, NONE]),
]
cdef PmlOperation[1] STEP = [
    PmlOperation(b"step", 1, 0, 1, 0,
                 [PmlArgument(b"offset", 0, LEAK - 1), NONE, NONE]),
]
cdef PmlOperation[3] ROLES = [
    PmlOperation(b"offer", 3, 0, 3, 0,
                 [PmlArgument(b"key", -5, 5), PmlArgument(b"wide", INT64_MIN, INT64_MAX),
                  PmlArgument(b"far", 0, 1 << 40)]),
    PmlOperation(b"poll", 3, 1, 0, 0, [NONE, NONE, NONE]),
    PmlOperation(b"rare", 0, 0, 0, 0, [NONE, NONE, NONE]),
]

cdef PmlOperation[3] MEET = [
    PmlOperation(b"hold", 1, 0, 0, 0, [NONE, NONE, NONE]),
    PmlOperation(b"poke", 1, 0, 0, 0, [NONE, NONE, NONE]),
    PmlOperation(b"free", 1, 0, 0, 0, [NONE, NONE, NONE]),
]

BUILD_ID = "toys-build-1"
MUTANTS = {"T01": "counter adds in two steps and loses updates"}


def select_mutant(mutant) -> None:
    i64_store_relaxed(&lost_update, 1 if mutant == "T01" else 0)


def fail_allocation_after(n) -> None:
    pml_fail_allocation_after(n)


def let_go() -> None:
    """Operations of ``hang`` end, those that begin later too."""
    i64_store_relaxed(&released, 1)


def hold() -> None:
    i64_store_relaxed(&released, 0)


def begun() -> int:
    """Operations of ``slow`` and ``hang`` begun since the module was loaded."""
    return i64_load_relaxed(&inside)


ctypedef void (*Apply)(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                       PmlViolation* violation) noexcept nogil
ctypedef void (*Check)(void* instance, PmlViolation* violation) noexcept nogil

cdef PmlSubject[9] TABLES
SUBJECTS = {}


cdef void define(int at, const char* name, const char* summary, int n, const PmlOperation* operations,
                 Apply apply, Check check) noexcept:
    memset(&TABLES[at], 0, sizeof(PmlSubject))
    TABLES[at].abi = PML_SUBJECT_ABI
    TABLES[at].name = name
    TABLES[at].summary = summary
    TABLES[at].n_operations = n
    TABLES[at].operations = operations
    TABLES[at].n_settings = 1
    TABLES[at].settings = &START[0]
    TABLES[at].create = create
    TABLES[at].apply = apply
    TABLES[at].check = check
    TABLES[at].destroy = destroy


define(0, b"counter", b"An atomic sum.", 2, &SUM[0], apply_counter, check_sum)
define(1, b"racy", b"A sum that loses updates.", 2, &SUM[0], apply_racy, check_sum)
define(2, b"leaky", b"Keeps memory.", 1, &STEP[0], apply_leaky, check_nothing)
define(3, b"tattler", b"Fails at a given call.", 1, &STEP[0], apply_tattler, check_nothing)
define(4, b"owned", b"Has an exclusive role.", 3, &ROLES[0], apply_owned, check_nothing)
define(5, b"lonely", b"Takes two threads.", 2, &SUM[0], apply_counter, check_sum)
define(6, b"slow", b"Takes its time.", 1, &STEP[0], apply_slow, check_nothing)
define(7, b"hang", b"Ends when told.", 1, &STEP[0], apply_hang, check_nothing)
define(8, b"meeting", b"Overlaps for certain.", 3, &MEET[0], apply_meeting, check_nothing)
TABLES[5].max_threads = 2

for at in range(9):
    wrapped = wrap_subject(&TABLES[<int>at], BUILD_ID, None)
    SUBJECTS[wrapped.name] = wrapped


def wrap_unknown_abi():
    """A table of another version of the contract."""
    cdef PmlSubject table = TABLES[0]
    table.abi = PML_SUBJECT_ABI + 1
    return wrap_subject(&table, BUILD_ID, None)
