# Expected-read counts that threads share, as operations for the harness.
#
# A thread holds references in its hands and passes them on through mailboxes, as a cache passes
# entries on. Beside each count stands what it should be, and the number of its incarnation: a
# holder that finds another incarnation lost the object under its hands.

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.hands cimport (
    Hands, hands_at, hands_full, hands_operation, hands_pass, hands_pick, hands_put,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_in_use
from pulsar_ml.structures.read_count cimport (
    read_count_at, read_count_increment, read_count_mark_read, read_count_new, read_count_pool_init,
    read_count_release, read_count_retain, read_count_value,
)
from pulsar_ml.structures.refcount cimport refcount_value
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32, pml_u64,
    u32_fetch_add_relaxed, u32_load_relaxed, u32_store_relaxed, u64_load_relaxed, u64_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    EX_MOST_THREADS = 64
    EX_MOST_HANDLES = 64
    EX_MAILBOXES = 4


cdef enum:
    EX_DONE = 0
    EX_EXHAUSTED = 1        # no handle or no memory left
    EX_NOT_HELD = 2         # the thread holds nothing, nothing was called
    EX_HANDS_FULL = 3


cdef enum:
    EX_NEW
    EX_RETAIN
    EX_PASS
    EX_INCREMENT
    EX_MARK_READ
    EX_VALUE
    EX_RELEASE
    # Wrong on purpose.
    EX_RELEASE_AND_KEEP
    EX_MARK_READ_UNSEEN
    EX_LOSE


# The value that a count should have. Relaxed cells: they order nothing.
cdef struct ExpectedReads:
    pml_i64 expected
    pml_u32 incarnation


cdef struct ReadCountRun:
    Pool pool
    int32_t threads
    bint below_zero
    bint near_limit         # counts begin near the largest number, beyond which they do not rise
    pml_u32 incarnations
    ExpectedReads[64] expected
    pml_u64[4] mailboxes
    Hands[64] holders       # of references: incarnation << 32 | handle


cdef inline void* read_count_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef ReadCountRun* run = <ReadCountRun*>allocate_zeroed(1, sizeof(ReadCountRun))
    if run is NULL:
        return NULL
    run.threads = threads
    run.below_zero = settings[2] != 0
    run.near_limit = settings[3] != 0
    if read_count_pool_init(&run.pool, <uint32_t>settings[0], <uint32_t>settings[1]) != PML_OK:
        release(run)
        return NULL
    return run


cdef inline void read_count_destroy(void* instance) noexcept nogil:
    pool_destroy(&(<ReadCountRun*>instance).pool)
    release(instance)


cdef inline void read_count_look(ReadCountRun* run, uint64_t held, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = <uint32_t>held
    if u32_load_relaxed(&run.expected[handle].incarnation) != held >> 32:
        violate(violation, b"I70", b"count %lld is incarnation %lld, but its holder retained %lld",
                handle, u32_load_relaxed(&run.expected[handle].incarnation), held >> 32)
    elif refcount_value(&read_count_at(&run.pool, handle).references) < 1:
        violate(violation, b"I70", b"count %lld has %lld references although it is held", handle,
                refcount_value(&read_count_at(&run.pool, handle).references), 0)


cdef inline void read_count_begin(
    ReadCountRun* run, Hands* hands, int64_t expected, PmlResult* result
) noexcept nogil:
    cdef uint32_t handle
    cdef uint64_t incarnation
    if run.near_limit:
        expected = INT32_MAX - expected
    handle = read_count_new(&run.pool, <int32_t>expected)
    if not handle:
        result.status = EX_EXHAUSTED
        return
    incarnation = u32_fetch_add_relaxed(&run.incarnations, 1) + <uint64_t>1
    u32_store_relaxed(&run.expected[handle].incarnation, <uint32_t>incarnation)
    i64_store_relaxed(&run.expected[handle].expected, expected)
    hands_put(hands, incarnation << 32 | handle)


cdef inline void read_count_with(
    ReadCountRun* run, Hands* hands, const PmlCall* call, PmlResult* result,
    PmlViolation* violation,
) noexcept nogil:
    cdef uint64_t held = hands_at(hands, call.arguments[0])
    cdef uint32_t handle = <uint32_t>held
    read_count_look(run, held, violation)
    if call.code == EX_RETAIN:
        if hands_full(hands):
            result.status = EX_HANDS_FULL
        elif not read_count_retain(&run.pool, handle):
            violate(violation, b"I12", b"retain of count %lld was refused to a holder", handle, 0, 0)
        else:
            hands_put(hands, held)
    elif call.code == EX_INCREMENT:
        if i64_load_relaxed(&run.expected[handle].expected) < INT32_MAX:
            i64_fetch_add_relaxed(&run.expected[handle].expected, 1)
        read_count_increment(&run.pool, handle)
    elif call.code == EX_MARK_READ:
        result.words[1] = read_count_mark_read(&run.pool, handle, run.below_zero)
        i64_fetch_add_relaxed(&run.expected[handle].expected, -result.words[1])
    elif call.code == EX_MARK_READ_UNSEEN:
        read_count_mark_read(&run.pool, handle, True)
    elif call.code == EX_VALUE:
        result.words[1] = read_count_value(&run.pool, handle)
    elif call.code == EX_RELEASE:
        hands_pick(hands, call.arguments[0])
        read_count_release(&run.pool, handle)
    elif call.code == EX_RELEASE_AND_KEEP:
        read_count_release(&run.pool, handle)
    elif call.code == EX_LOSE:
        hands_pick(hands, call.arguments[0])


cdef inline void read_count_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef ReadCountRun* run = <ReadCountRun*>instance
    cdef Hands* hands = &run.holders[thread]
    if call.code == EX_NEW:
        if hands_full(hands):
            result.status = EX_HANDS_FULL
        else:
            read_count_begin(run, hands, call.arguments[0], result)
    elif call.code == EX_PASS:
        result.words[1] = hands_pass(hands, &run.mailboxes[call.arguments[0]]) != 0
    elif hands.held == 0:
        result.status = EX_NOT_HELD
    else:
        read_count_with(run, hands, call, result, violation)
    result.words[0] = hands.held


cdef inline void read_count_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef ReadCountRun* run = <ReadCountRun*>instance
    cdef Hands* hands
    cdef int32_t[64] references
    cdef uint64_t[64] held
    cdef uint64_t seen
    cdef int64_t live = 0
    cdef int i, thread
    for i in range(EX_MOST_HANDLES):
        references[i] = 0
        held[i] = 0
    for thread in range(run.threads + 1):
        hands = &run.holders[thread % run.threads]
        for i in range(EX_MAILBOXES if thread == run.threads else hands.held):
            seen = u64_load_relaxed(&run.mailboxes[i]) if thread == run.threads else hands.words[i]
            if seen:
                references[<uint32_t>seen] += 1
                held[<uint32_t>seen] = seen
    for i in range(EX_MOST_HANDLES):
        if references[i]:
            live += 1
            read_count_look(run, held[i], violation)
            expect_equal(violation, b"I17", b"references of a count",
                         refcount_value(&read_count_at(&run.pool, i).references), references[i])
            expect_equal(violation, b"I67", b"expected reads of a count", read_count_value(&run.pool, i),
                         i64_load_relaxed(&run.expected[i].expected))
            if not run.below_zero and read_count_value(&run.pool, i) < 0:
                violate(violation, b"EX-3", b"count %lld is %lld", i, read_count_value(&run.pool, i), 0)
    expect_equal(violation, b"OP-1", b"counts in use", pool_in_use(&run.pool), live)
    if violation.found:
        return
    for thread in range(run.threads):
        run.holders[thread].held = 0
    for i in range(EX_MAILBOXES):
        u64_store_relaxed(&run.mailboxes[i], 0)
    for i in range(EX_MOST_HANDLES):
        while references[i]:
            references[i] -= 1
            read_count_release(&run.pool, i)
    expect_equal(violation, b"OP-1", b"counts in use after all were released", pool_in_use(&run.pool), 0)


cdef inline void read_count_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"read_count", b"Shared counts of expected reads.", read_count_create,
                read_count_apply, read_count_check, read_count_destroy)
    table.subject.max_threads = EX_MOST_THREADS
    table_setting(table, b"chunk_bits", 0, 4)
    table_setting(table, b"limit", 2, EX_MOST_HANDLES)
    table_setting(table, b"below_zero", 0, 1)
    table_setting(table, b"near_limit", 0, 1)
    operation = table_operation(table, EX_NEW, b"new", 3, 0)
    operation_argument(operation, b"expected", 0, 3)
    hands_operation(table, EX_RETAIN, b"retain", 4)
    operation = table_operation(table, EX_PASS, b"pass_on", 6, 0)
    operation_argument(operation, b"mailbox", 0, EX_MAILBOXES - 1)
    hands_operation(table, EX_INCREMENT, b"increment", 3)
    hands_operation(table, EX_MARK_READ, b"mark_read", 3)
    hands_operation(table, EX_VALUE, b"value", 1)
    hands_operation(table, EX_RELEASE, b"release", 6)
    hands_operation(table, EX_RELEASE_AND_KEEP, b"release_and_keep", 0)
    hands_operation(table, EX_MARK_READ_UNSEEN, b"mark_read_unseen", 0)
    hands_operation(table, EX_LOSE, b"lose", 0)
