# A stamped lock around two fields that every write section changes together, as operations for the
# harness.
#
# The fields obey b == mix(a) outside write sections. They are relaxed cells, because optimistic
# readers look at them; a plain copy, for shared readers, lets a thread sanitizer see the lock's
# order.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, mix, operation_argument, table_operation, table_start, violate,
)
from pulsar_ml.structures.stamped_lock cimport (
    STAMPED_MOST_READERS, STAMPED_READERS, STAMPED_WRITER, stamped_lock_read, stamped_lock_write,
    stamped_optimistic, stamped_unlock_read, stamped_unlock_write, stamped_validate,
)
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_relaxed, i32_load_relaxed, i64_fetch_add_relaxed, i64_load_relaxed,
    i64_store_relaxed, pml_i32, pml_i64, pml_u32, u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    SL_MOST_THREADS = 64
    # Write sections that the word of a new lock counts: the third one begins the count anew.
    SL_FIRST = (1 << 27) - 2


cdef enum:
    SL_DONE = 0
    SL_CHANGED = 1          # the stamp did not validate


cdef enum:
    SL_WRITE
    SL_READ_SHARED
    SL_READ_OPTIMISTIC
    SL_STAMP_KEEP
    SL_STAMP_CHECK
    SL_READ_CROWD
    # Wrong on purpose.
    SL_WRITE_TORN
    SL_WRITE_UNCOUNTED
    SL_ENTER_UNLOCKED


# The memory of a thread from one call to the next.
cdef struct StampHolder:
    uint32_t stamp
    int64_t a
    char[112] apart


cdef struct StampedRun:
    pml_u32 lock
    pml_i64 a
    pml_i64 b
    int64_t plain_a         # equal to a, for holders of the lock
    int64_t sections        # write sections so far, for the writer
    pml_i32 writers         # inside now
    pml_i32 readers
    pml_i64 added           # by all writers together
    char[64] apart
    StampHolder[64] holders


cdef inline void* stamped_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Holders stand last: those that will not come are left out.
    cdef StampedRun* run = <StampedRun*>allocate_zeroed(
        1, sizeof(StampedRun) - <size_t>(SL_MOST_THREADS - threads) * sizeof(StampHolder))
    cdef int i
    if run is not NULL:
        u32_store_relaxed(&run.lock, <uint32_t>SL_FIRST * (2 * STAMPED_WRITER))
        i64_store_relaxed(&run.b, <int64_t>mix(0))
        for i in range(threads):
            run.holders[i].stamp = STAMPED_WRITER
    return run


cdef inline void stamped_destroy(void* instance) noexcept nogil:
    release(instance)


# The write sections that the word of the lock counts beyond those it began with.
cdef inline int64_t stamped_sections(uint32_t word) noexcept nogil:
    return (word // (2 * STAMPED_WRITER) - SL_FIRST) & ((1 << 27) - 1)


cdef inline void stamped_relation(int64_t a, int64_t b, PmlViolation* violation) noexcept nogil:
    if <uint64_t>b != mix(<uint64_t>a):
        violate(violation, b"I9", b"a=%lld and b=%lld come from two write sections", a, b, 0)


cdef inline void stamped_write(
    StampedRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t a
    cdef uint32_t word
    stamped_lock_write(&run.lock)
    word = u32_load_relaxed(&run.lock)
    if i32_fetch_add_relaxed(&run.writers, 1) != 0 or i32_load_relaxed(&run.readers) != 0:
        violate(violation, b"SL-2", b"a writer is not alone: %lld writers and %lld readers are inside",
                i32_load_relaxed(&run.writers), i32_load_relaxed(&run.readers), 0)
    if stamped_sections(word) != run.sections:
        violate(violation, b"I29", b"the version is %lld after %lld write sections",
                stamped_sections(word), run.sections, 0)
    a = i64_load_relaxed(&run.a)
    stamped_relation(a, i64_load_relaxed(&run.b), violation)
    if a != run.plain_a:
        violate(violation, b"SL-2", b"a writer sees a=%lld beside %lld, half of another section", a,
                run.plain_a, 0)
    a += call.arguments[0]
    i64_fetch_add_relaxed(&run.added, call.arguments[0])
    i64_store_relaxed(&run.a, a)
    run.plain_a = a
    if call.code != SL_WRITE_TORN:
        i64_store_relaxed(&run.b, <int64_t>mix(<uint64_t>a))
    run.sections += 1
    result.words[0] = a
    result.words[1] = run.sections
    i32_fetch_add_relaxed(&run.writers, -1)
    if call.code == SL_WRITE_UNCOUNTED:
        u32_store_relaxed(&run.lock, word - STAMPED_WRITER)
    else:
        stamped_unlock_write(&run.lock)


cdef inline void stamped_read_shared(
    StampedRun* run, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t a, again
    stamped_lock_read(&run.lock)
    i32_fetch_add_relaxed(&run.readers, 1)
    if i32_load_relaxed(&run.writers) != 0:
        violate(violation, b"SL-2", b"a shared reader is inside with %lld writers",
                i32_load_relaxed(&run.writers), 0, 0)
    a = i64_load_relaxed(&run.a)
    stamped_relation(a, i64_load_relaxed(&run.b), violation)
    again = run.plain_a
    if a != again:
        violate(violation, b"SL-2", b"a changed from %lld to %lld under a shared lock", a, again, 0)
    i32_fetch_add_relaxed(&run.readers, -1)
    stamped_unlock_read(&run.lock)
    result.words[0] = a


# All places for shared holders, taken and left by one thread: nobody else may be inside.
cdef inline void stamped_crowd(
    StampedRun* run, int64_t readers, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t before = u32_load_relaxed(&run.lock)
    cdef uint32_t stamp = stamped_optimistic(&run.lock)
    cdef int64_t i
    for i in range(readers):
        stamped_lock_read(&run.lock)
    expect_equal(violation, b"SL-2", b"shared holders", u32_load_relaxed(&run.lock) & STAMPED_READERS,
                 readers)
    result.words[0] = stamped_validate(&run.lock, stamp)
    for i in range(readers):
        stamped_unlock_read(&run.lock)
    expect_equal(violation, b"I29", b"the word after all readers left",
                 <int64_t>u32_load_relaxed(&run.lock), <int64_t>before)


cdef inline void stamped_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef StampedRun* run = <StampedRun*>instance
    cdef StampHolder* holder = &run.holders[thread]
    cdef uint32_t stamp
    cdef int64_t a, b
    if call.code == SL_READ_SHARED:
        stamped_read_shared(run, result, violation)
    elif call.code == SL_READ_OPTIMISTIC or call.code == SL_STAMP_KEEP:
        stamp = stamped_optimistic(&run.lock)
        a = i64_load_relaxed(&run.a)
        b = i64_load_relaxed(&run.b)
        if stamped_validate(&run.lock, stamp):
            stamped_relation(a, b, violation)
            result.words[0] = a
        else:
            result.status = SL_CHANGED
            stamp = STAMPED_WRITER
        if call.code == SL_STAMP_KEEP:
            holder.stamp = stamp
            holder.a = a
    elif call.code == SL_STAMP_CHECK:
        a = i64_load_relaxed(&run.a)
        if stamped_validate(&run.lock, holder.stamp):
            if a != holder.a:
                violate(violation, b"I9", b"an old stamp validates although a went from %lld to %lld",
                        holder.a, a, 0)
            result.words[0] = a
        else:
            result.status = SL_CHANGED
    elif call.code == SL_READ_CROWD:
        stamped_crowd(run, call.arguments[0], result, violation)
    elif call.code == SL_ENTER_UNLOCKED:
        i32_fetch_add_relaxed(&run.writers, 1)
    else:
        stamped_write(run, call, result, violation)


cdef inline void stamped_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef StampedRun* run = <StampedRun*>instance
    cdef uint32_t word = u32_load_relaxed(&run.lock)
    expect_equal(violation, b"SL-2", b"holders left in the word",
                 word & (STAMPED_WRITER | STAMPED_READERS), 0)
    expect_equal(violation, b"I29", b"write sections in the word",
                 stamped_sections(word), run.sections)
    expect_equal(violation, b"SL-2", b"sum of all writes", i64_load_relaxed(&run.a),
                 i64_load_relaxed(&run.added))
    stamped_relation(i64_load_relaxed(&run.a), i64_load_relaxed(&run.b), violation)


cdef inline void stamped_lock_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"stamped_lock", b"A stamped lock around fields that change together.",
                stamped_create, stamped_apply, stamped_check, stamped_destroy)
    table.subject.max_threads = SL_MOST_THREADS
    operation = table_operation(table, SL_WRITE, b"write", 4, 0)
    operation_argument(operation, b"amount", 1, 100)
    operation = table_operation(table, SL_READ_SHARED, b"read_shared", 3, 0)
    operation = table_operation(table, SL_READ_OPTIMISTIC, b"read_optimistic", 6, 0)
    operation = table_operation(table, SL_STAMP_KEEP, b"stamp_keep", 1, 0)
    operation = table_operation(table, SL_STAMP_CHECK, b"stamp_check", 2, 0)
    # Alone only: several crowds at once would wait for each other.
    operation = table_operation(table, SL_READ_CROWD, b"read_crowd", 0, 0)
    operation_argument(operation, b"readers", 1, STAMPED_MOST_READERS)
    operation = table_operation(table, SL_WRITE_TORN, b"write_torn", 0, 0)
    operation_argument(operation, b"amount", 1, 100)
    operation = table_operation(table, SL_WRITE_UNCOUNTED, b"write_uncounted", 0, 0)
    operation_argument(operation, b"amount", 1, 100)
    operation = table_operation(table, SL_ENTER_UNLOCKED, b"enter_unlocked", 0, 0)
