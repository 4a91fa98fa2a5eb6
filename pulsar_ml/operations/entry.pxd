# Entries that threads copy, hold and pass on, as operations for the harness.
#
# An entry's position is its serial number, used once; its bytes follow from the position, so that a
# thread that holds an entry knows what it must contain. Entries that count a read, and every second
# other one, carry a callback, which keeps the books of expected reads.

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.entry_world cimport (
    EN_MAILBOXES, EN_MOST_BYTES, EN_MOST_HANDLES, EN_MOST_THREADS, EntryHolder, EntryNote, EntryRun,
    entry_byte, entry_look, entry_look_whole, entry_made_late, entry_position, entry_wrong_byte,
)
from pulsar_ml.operations.hands cimport (
    Hands, hands_at, hands_full, hands_operation, hands_pass, hands_pick, hands_put,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, mix, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.entry cimport (
    Entry, EntryChain, EntryPool, Payload, entry_at, entry_attach_metadata, entry_chain, entry_copy,
    entry_copy_chained, entry_give_chain, entry_has_callback, entry_has_expected_reads, entry_matches,
    entry_metadata, entry_new, entry_on_deallocate, entry_payload, entry_pool_destroy, entry_pool_init,
    entry_pool_keep_payloads, entry_read_count, entry_references, entry_release, entry_release_chained,
    entry_retain, payload_bytes, payload_length, payload_new, payload_release, read_count_maybe_new,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.read_count cimport (
    read_count_at, read_count_mark_read, read_count_release, read_count_retain, read_count_value,
)
from pulsar_ml.structures.refcount cimport RELEASED_LAST, RELEASED_TOO_OFTEN, refcount_value
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u64, u64_cas_weak_relaxed,
    u64_load_relaxed, u64_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    EN_DONE = 0
    EN_NO_MEMORY = 1        # no handle or no memory left
    EN_NOT_HELD = 2         # the thread holds nothing, nothing was called
    EN_HANDS_FULL = 3
    EN_LAST = 4             # released, and it was the last reference


cdef enum:
    EN_SHARED_BYTES = 16


cdef enum:
    EN_NEW
    EN_COPY
    EN_RETAIN
    EN_RETAIN_STALE
    EN_PASS
    EN_READ
    EN_EXPECTED
    EN_RELEASE
    EN_RELEASE_ALL
    EN_RELEASE_TOO_OFTEN
    EN_PARSE
    EN_HAS_CALLBACK
    # Wrong on purpose.
    EN_RELEASE_AND_KEEP
    EN_WRITE
    EN_MARK_READ_UNSEEN
    EN_CALLBACK_TWICE
    EN_RETAIN_READ_COUNT
    EN_RELEASE_READ_COUNT
    EN_LOSE
    EN_RELEASE_VALUE


cdef inline void* entry_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef EntryRun* run = <EntryRun*>allocate_zeroed(1, sizeof(EntryRun))
    if run is NULL:
        return NULL
    run.threads = threads
    if entry_pool_init(&run.pool, <uint32_t>settings[0], <uint32_t>settings[1]) != PML_OK:
        entry_pool_destroy(&run.pool)
        release(run)
        return NULL
    run.pool.counts_of_4 = settings[2] != 0
    if entry_pool_keep_payloads(&run.pool, settings[4]) != PML_OK:
        entry_pool_destroy(&run.pool)
        release(run)
        return NULL
    if settings[3] and not entry_share(run):
        entry_destroy(run)
        return NULL
    return run


# Every thread begins with a reference to one entry, which counts a read. False without memory.
cdef inline bint entry_share(EntryRun* run) noexcept nogil:
    cdef PmlCall call
    cdef PmlResult result
    cdef uint64_t held
    cdef int32_t thread
    memset(&call, 0, sizeof(call))
    memset(&result, 0, sizeof(result))
    call.arguments[0], call.arguments[1], call.arguments[2] = EN_SHARED_BYTES, 1, 1
    entry_begin(run, 0, &call, &result)
    if result.status != EN_DONE:
        return False
    held = hands_at(&run.hands[0], 0)
    for thread in range(1, run.threads):
        if not entry_retain(&run.pool, held & 0xFF):
            return False
        hands_put(&run.hands[thread], held)
    return True


# Callbacks ---------------------------------------------------------------------------------------

# Runs in the thread that deallocates, while the entry is nobody else's: the read is marked already,
# the payload and the read count are still there.
cdef inline void entry_deallocated(void* context, int64_t argument) noexcept nogil:
    cdef EntryRun* run = <EntryRun*>context
    cdef uint32_t handle = argument & 0xFF
    cdef Entry* entry = entry_at(&run.pool, handle)
    cdef uint64_t seen = <uint64_t>argument
    i64_fetch_add_relaxed(&run.callbacks_run, 1)
    # Fails when the callback of this incarnation ran before.
    while not u64_cas_weak_relaxed(&run.armed[handle], &seen, 0):
        if seen != <uint64_t>argument:
            i64_fetch_add_relaxed(&run.callbacks_wrong, 1)
            return
    if (entry_wrong_byte(entry, <uint64_t>argument >> 8) >= 0
            or not entry_matches(&run.pool, handle, entry_position(<uint64_t>argument >> 8))):
        i64_fetch_add_relaxed(&run.callbacks_wrong, 1)
    elif run.notes[handle].counts:
        i64_fetch_add_relaxed(&run.expected[run.notes[handle].read_count], -1)


cdef inline void entry_callbacks_right(EntryRun* run, PmlViolation* violation) noexcept nogil:
    expect_equal(violation, b"I20", b"callbacks that ran twice, for another entry or without its bytes",
                 i64_load_relaxed(&run.callbacks_wrong), 0)


# Sets the callback of an entry just made and puts it in the hands. Without memory the entry goes;
# the second word says that it marked its read.
cdef inline void entry_keep(
    EntryRun* run, Hands* hands, uint32_t handle, uint64_t serial, bint counts, PmlResult* result
) noexcept nogil:
    cdef uint32_t read_count = entry_read_count(&run.pool, handle)
    cdef uint64_t held = serial << 8 | handle
    if counts or serial >> 15 & 1:
        run.notes[handle].read_count = read_count
        run.notes[handle].counts = counts
        u64_store_relaxed(&run.armed[handle], held)
        if entry_on_deallocate(&run.pool, handle, entry_deallocated, run, <int64_t>held) != PML_OK:
            u64_store_relaxed(&run.armed[handle], 0)
            if counts:
                i64_fetch_add_relaxed(&run.expected[read_count], -1)
            entry_release(&run.pool, handle, 1)
            result.status = EN_NO_MEMORY
            result.words[1] = counts
            return
        i64_fetch_add_relaxed(&run.callbacks_set, 1)
    hands_put(hands, held)


# Parsed values -----------------------------------------------------------------------------------

cdef inline void entry_value_released(void* context, int64_t value) noexcept nogil:
    i64_fetch_add_relaxed(&(<EntryRun*>context).values_released, 1)


# The second word says whether this call's value came to the entry.
cdef inline void entry_parse(
    EntryRun* run, uint32_t handle, uint64_t serial, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t value
    cdef Status status = entry_attach_metadata(
        &run.pool, handle, entry_value_released, run, <int64_t>serial)
    if status != PML_NO_MEMORY and not entry_metadata(&run.pool, handle, &value):
        violate(violation, b"EN-7", b"entry %lld was parsed and has no parsed value", <int64_t>serial, 0, 0)
    if status == PML_NO_MEMORY:
        result.status = EN_NO_MEMORY
    result.words[1] = status == PML_OK
    i64_fetch_add_relaxed(&run.values_set, status == PML_OK)


# Operations --------------------------------------------------------------------------------------

cdef inline void entry_begin(
    EntryRun* run, int32_t thread, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef EntryHolder* holder = &run.holders[thread]
    cdef uint32_t length = <uint32_t>call.arguments[0]
    cdef uint64_t late = call.arguments[1] == 0
    cdef uint64_t serial = (((holder.number + 1) << 1 | late) << 6 | <uint64_t>thread) << 8 | length
    cdef uint64_t pattern = mix(serial)
    cdef uint32_t handle, i
    cdef uint32_t read_count = ~<uint32_t>0     # until the call says which
    cdef Payload* payload = payload_new(&run.pool.payloads, length)
    result.status = EN_NO_MEMORY
    if payload is NULL:
        return
    for i in range(length):
        payload_bytes(payload)[i] = entry_byte(pattern, i)
    if not read_count_maybe_new(&run.pool, <int32_t>call.arguments[1], &read_count):
        payload_release(&run.pool.payloads, payload)
        return
    i64_store_relaxed(&run.expected[read_count], call.arguments[1])
    u64_store_relaxed(&run.family[read_count], serial)
    handle = entry_new(&run.pool, entry_position(serial), payload, read_count, call.arguments[2] != 0)
    if not handle:
        payload_release(&run.pool.payloads, payload)
        if read_count:
            read_count_release(&run.pool.read_counts, read_count)
        return
    holder.number += 1
    result.status = EN_DONE
    entry_keep(run, &run.hands[thread], handle, serial, call.arguments[2] != 0, result)


cdef inline void entry_give(
    EntryRun* run, int32_t thread, uint64_t held, int32_t references, PmlResult* result,
    PmlViolation* violation,
) noexcept nogil:
    cdef int released = entry_release(&run.pool, held & 0xFF, references)
    if released == RELEASED_TOO_OFTEN:
        violate(violation, b"I13", b"entry %lld could not be released by a holder of %lld references; "
                b"it has %lld", held & 0xFF, references, entry_references(&run.pool, held & 0xFF))
    result.status = EN_LAST if released == RELEASED_LAST else EN_DONE
    run.holders[thread].stale = held
    entry_callbacks_right(run, violation)


# A stale handle names an entry of any age. If it can be retained it is an entry in order, and the
# position tells which one; either way the reference goes back.
cdef inline void entry_try_stale(
    EntryRun* run, int32_t thread, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t handle = run.holders[thread].stale & 0xFF
    if not handle:
        result.status = EN_NOT_HELD
    elif entry_retain(&run.pool, handle):
        entry_look(run, handle, <uint64_t>entry_at(&run.pool, handle).entry_id, violation)
        entry_release(&run.pool, handle, 1)
        entry_callbacks_right(run, violation)


# A copy, every second time in the place of another one that was released meanwhile.
cdef inline uint32_t entry_copy_for(EntryRun* run, uint32_t handle, bint counts) noexcept nogil:
    cdef EntryChain chain = entry_chain()
    cdef uint32_t copy
    if handle & 1:
        return entry_copy(&run.pool, handle, counts)
    copy = entry_copy(&run.pool, handle, False)
    if copy:
        entry_release_chained(&run.pool, copy, 1, &chain)
        copy = entry_copy_chained(&run.pool, handle, counts, &chain)
        entry_give_chain(&run.pool, &chain)
    return copy


cdef inline void entry_with(
    EntryRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Hands* hands = &run.hands[thread]
    cdef uint64_t held = hands_at(hands, call.arguments[0])
    cdef uint32_t handle = held & 0xFF
    cdef int32_t references = 1
    cdef int i
    entry_look_whole(run, handle, held >> 8, violation)
    if violation.found:
        return
    if call.code == EN_COPY or call.code == EN_RETAIN:
        if hands_full(hands):
            result.status = EN_HANDS_FULL
        elif call.code == EN_COPY:
            handle = entry_copy_for(run, handle, call.arguments[1] != 0)
            if handle:
                entry_keep(run, hands, handle, held >> 8, call.arguments[1] != 0, result)
            else:
                result.status = EN_NO_MEMORY
        elif entry_retain(&run.pool, handle):
            hands_put(hands, held)
        else:
            violate(violation, b"I12", b"retain of entry %lld was refused to a holder", handle, 0, 0)
    elif call.code == EN_EXPECTED:
        result.words[1] = entry_has_expected_reads(&run.pool, handle)
    elif call.code == EN_RELEASE_TOO_OFTEN:
        if entry_release(&run.pool, handle, INT32_MAX) != RELEASED_TOO_OFTEN:
            violate(violation, b"I13", b"more references of entry %lld than there are were released",
                    handle, 0, 0)
    elif call.code == EN_RELEASE:
        entry_give(run, thread, hands_pick(hands, call.arguments[0]), 1, result, violation)
    elif call.code == EN_RELEASE_ALL:
        hands_pick(hands, call.arguments[0])
        for i in range(hands.held - 1, -1, -1):
            if hands.words[i] == held:
                hands_pick(hands, i)
                references += 1
        entry_give(run, thread, held, references, result, violation)
    elif call.code == EN_PARSE:
        entry_parse(run, handle, held >> 8, result, violation)
    elif call.code == EN_HAS_CALLBACK:
        # Its creator set the note before the callback, and passed the entry on afterwards.
        expect_equal(violation, b"I20", b"callback of an entry", entry_has_callback(&run.pool, handle),
                     u64_load_relaxed(&run.armed[handle]) == held)
    elif call.code == EN_RELEASE_AND_KEEP:
        entry_give(run, thread, held, 1, result, violation)
    elif call.code == EN_WRITE:
        payload_bytes(entry_payload(entry_at(&run.pool, handle)))[0] += 1
    elif call.code == EN_MARK_READ_UNSEEN:
        read_count_mark_read(&run.pool.read_counts, entry_read_count(&run.pool, handle), True)
    elif call.code == EN_CALLBACK_TWICE:
        entry_deallocated(run, <int64_t>held)
        entry_give(run, thread, hands_pick(hands, call.arguments[0]), 1, result, violation)
    elif call.code == EN_RETAIN_READ_COUNT:
        read_count_retain(&run.pool.read_counts, entry_read_count(&run.pool, handle))
    elif call.code == EN_RELEASE_READ_COUNT:
        read_count_release(&run.pool.read_counts, entry_read_count(&run.pool, handle))
    elif call.code == EN_LOSE:
        hands_pick(hands, call.arguments[0])
    elif call.code == EN_RELEASE_VALUE:
        entry_value_released(run, <int64_t>(held >> 8))


cdef inline void entry_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef EntryRun* run = <EntryRun*>instance
    cdef Hands* hands = &run.hands[thread]
    if call.code == EN_NEW:
        if hands_full(hands):
            result.status = EN_HANDS_FULL
        else:
            entry_begin(run, thread, call, result)
    elif call.code == EN_PASS:
        result.words[1] = hands_pass(hands, &run.mailboxes[call.arguments[0]]) != 0
    elif call.code == EN_RETAIN_STALE:
        entry_try_stale(run, thread, result, violation)
    elif hands.held == 0:
        result.status = EN_NOT_HELD
    else:
        entry_with(run, thread, call, result, violation)
    result.words[0] = hands.held


# Quiescence --------------------------------------------------------------------------------------

# The references of all threads and mailboxes, by entry.
cdef inline void entry_count_references(
    const EntryRun* run, uint64_t* held, int32_t* references
) noexcept nogil:
    cdef uint64_t seen
    cdef int i, thread
    for i in range(EN_MOST_HANDLES):
        references[i] = 0
        held[i] = 0
    for i in range(EN_MAILBOXES):
        seen = u64_load_relaxed(&run.mailboxes[i])
        if seen:
            held[seen & 0xFF] = seen
            references[seen & 0xFF] += 1
    for thread in range(run.threads):
        for i in range(run.hands[thread].held):
            seen = run.hands[thread].words[i]
            held[seen & 0xFF] = seen
            references[seen & 0xFF] += 1


cdef inline void entry_check_held(
    EntryRun* run, const uint64_t* held, const int32_t* references, PmlViolation* violation
) noexcept nogil:
    cdef int64_t live = 0
    cdef int64_t right
    cdef int32_t[64] sharing
    cdef uint32_t read_count
    cdef int i
    memset(sharing, 0, sizeof(sharing))
    for i in range(EN_MOST_HANDLES):
        if references[i]:
            live += 1
            sharing[entry_read_count(&run.pool, i)] += 1
            entry_look_whole(run, i, held[i] >> 8, violation)
            expect_equal(violation, b"I17", b"references of an entry", entry_references(&run.pool, i),
                         references[i])
            read_count = entry_read_count(&run.pool, i)
            if read_count and not entry_made_late(held[i] >> 8) and not violation.found:
                right = i64_load_relaxed(&run.expected[read_count])
                right = max(right, 0) if not run.pool.counts_of_4 else right
                expect_equal(violation, b"I69", b"expected reads of an entry",
                             read_count_value(&run.pool.read_counts, read_count), right)
    for i in range(1, EN_MOST_HANDLES):
        if sharing[i]:
            expect_equal(violation, b"I70", b"references of a read count",
                         refcount_value(&read_count_at(&run.pool.read_counts, i).references), sharing[i])
    expect_equal(violation, b"I17", b"entries in use", pool_in_use(&run.pool.entries), live)
    expect_equal(violation, b"I20", b"callbacks set and not run", pool_in_use(&run.pool.callbacks),
                 i64_load_relaxed(&run.callbacks_set) - i64_load_relaxed(&run.callbacks_run))
    entry_callbacks_right(run, violation)


cdef inline void entry_give_all(
    EntryRun* run, const uint64_t* held, const int32_t* references
) noexcept nogil:
    cdef int i
    for i in range(EN_MAILBOXES):
        u64_store_relaxed(&run.mailboxes[i], 0)
    for i in range(run.threads):
        run.hands[i].held = 0
    for i in range(EN_MOST_HANDLES):
        if references[i]:
            entry_release(&run.pool, i, references[i])


cdef inline void entry_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef EntryRun* run = <EntryRun*>instance
    cdef uint64_t[64] held
    cdef int32_t[64] references
    entry_count_references(run, held, references)
    entry_check_held(run, held, references, violation)
    if violation.found:
        return
    entry_give_all(run, held, references)
    expect_equal(violation, b"I17", b"entries in use after all were released",
                 pool_in_use(&run.pool.entries), 0)
    expect_equal(violation, b"I70", b"read counts in use after all entries were released",
                 pool_in_use(&run.pool.read_counts), 0)
    expect_equal(violation, b"I20", b"callbacks in use after all entries were released",
                 pool_in_use(&run.pool.callbacks), 0)
    expect_equal(violation, b"EN-7", b"parsed values released", i64_load_relaxed(&run.values_released),
                 i64_load_relaxed(&run.values_set))
    expect_equal(violation, b"I20", b"callbacks run", i64_load_relaxed(&run.callbacks_run),
                 i64_load_relaxed(&run.callbacks_set))
    entry_callbacks_right(run, violation)


# Also without a check before: gives back what is held, so that the payloads are freed.
cdef inline void entry_destroy(void* instance) noexcept nogil:
    cdef EntryRun* run = <EntryRun*>instance
    cdef uint64_t[64] held
    cdef int32_t[64] references
    entry_count_references(run, held, references)
    entry_give_all(run, held, references)
    entry_pool_destroy(&run.pool)
    release(run)


cdef inline void entry_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"entry", b"Entries with shared bytes, copies, callbacks and expected reads.",
                entry_create, entry_apply, entry_check, entry_destroy)
    table.subject.max_threads = EN_MOST_THREADS
    table_setting(table, b"chunk_bits", 0, 4)
    table_setting(table, b"limit", 2, EN_MOST_HANDLES)
    table_setting(table, b"counts_of_4", 0, 1)
    table_setting(table, b"shared", 0, 1)
    table_setting(table, b"kept", 0, 1 << 20)
    operation = table_operation(table, EN_NEW, b"new", 3, 0)
    operation_argument(operation, b"bytes", 0, EN_MOST_BYTES)
    operation_argument(operation, b"expected", 0, 3)
    operation_argument(operation, b"counts", 0, 1)
    operation = hands_operation(table, EN_COPY, b"copy", 4)
    operation_argument(operation, b"counts", 0, 1)
    hands_operation(table, EN_RETAIN, b"retain", 3)
    operation = table_operation(table, EN_RETAIN_STALE, b"retain_stale", 4, 0)
    operation = table_operation(table, EN_PASS, b"pass_on", 6, 0)
    operation_argument(operation, b"mailbox", 0, EN_MAILBOXES - 1)
    hands_operation(table, EN_READ, b"read", 2)
    hands_operation(table, EN_EXPECTED, b"expected", 1)
    hands_operation(table, EN_RELEASE, b"release", 8)
    hands_operation(table, EN_RELEASE_ALL, b"release_all", 1)
    hands_operation(table, EN_RELEASE_TOO_OFTEN, b"release_too_often", 1)
    hands_operation(table, EN_PARSE, b"parse", 2)
    hands_operation(table, EN_HAS_CALLBACK, b"has_callback", 1)
    hands_operation(table, EN_RELEASE_AND_KEEP, b"release_and_keep", 0)
    hands_operation(table, EN_WRITE, b"write", 0)
    hands_operation(table, EN_MARK_READ_UNSEEN, b"mark_read_unseen", 0)
    hands_operation(table, EN_CALLBACK_TWICE, b"callback_twice", 0)
    hands_operation(table, EN_RETAIN_READ_COUNT, b"retain_read_count", 0)
    hands_operation(table, EN_RELEASE_READ_COUNT, b"release_read_count", 0)
    hands_operation(table, EN_LOSE, b"lose", 0)
    hands_operation(table, EN_RELEASE_VALUE, b"release_value", 0)
