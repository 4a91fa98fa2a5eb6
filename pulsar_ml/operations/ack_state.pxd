# The acknowledgement state's operations for the harness: acknowledgements of entries, of indexes
# and up to an entry, ledgers that end, a dispatcher that is paused, and states that are stored and
# come back.
#
# Beside the state stands the requested acknowledgements (set before the call) and those that were
# made (set after it): the state lies between the two, and so does what is read back.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.ack_stored cimport ack_apart, ack_restore, ack_store
from pulsar_ml.operations.ack_world cimport (
    AK_APART, AK_AT_ONCE, AK_BATCH, AK_CONFIGURE, AK_COUNTS_RIGHT, AK_DISPATCH, AK_END, AK_ENTRIES,
    AK_ENTRIES_AT_ONCE, AK_ENTRY, AK_FORGET, AK_INDEX, AK_INDEXES, AK_IS_ACKED, AK_KINDS,
    AK_LEDGERS, AK_LOOK, AK_MARK, AK_METADATA, AK_MISJUDGE, AK_OPEN_SILENTLY, AK_PRETEND,
    AK_RESTORE, AK_SIZE, AK_SMALLEST, AK_SPREAD, AK_STORE, AK_UNASKED, AK_UP_TO, AckRun, ack_at,
    ack_audit, ack_contained, ack_mark_word, ack_number, ack_remember, ack_remembered,
    ack_run_create, ack_run_destroy,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.ack_ranges cimport AckChange
from pulsar_ml.structures.ack_state cimport (
    DispatchKind, ack_state_add, ack_state_add_all, ack_state_add_index, ack_state_add_up_to,
    ack_state_configure, ack_state_contains, ack_state_contains_index, ack_state_end_ledger,
    ack_state_mark, ack_state_may_dispatch, ack_state_set_metadata,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, u32_load_relaxed, u32_store_relaxed,
    u8_load_acquire,
)


cdef inline AckChange ack_entry(AckRun* run, int64_t number, uint32_t* resumed) noexcept nogil:
    cdef AckChange change
    ack_remember(run.requested, number, number + AK_BATCH)
    change = ack_state_add(&run.state, ack_at(number), resumed)
    if change <= 1:
        ack_remember(run.done, number, number + AK_BATCH)
    return change


# ack_entries(ledger, entry, pattern): up to four entries at a distance, up to the end of the log.
# words: kinds resumed, entries of the call that were acknowledged, new ones among them.
cdef inline void ack_entries_at_once(
    AckRun* run, int32_t thread, const PmlCall* call, int64_t number, uint32_t* resumed, PmlResult* result
) noexcept nogil:
    cdef int64_t apart = (1 + call.arguments[2] // AK_AT_ONCE) * AK_BATCH
    cdef int64_t count = min(1 + call.arguments[2] % AK_AT_ONCE, (AK_INDEXES - 1 - number) // apart + 1)
    # At the end of the list's memory: the state is to look at nothing behind them.
    cdef Position* at = run.lists[thread] + (AK_AT_ONCE - count)
    cdef int64_t i
    for i in range(count):
        at[i] = ack_at(number + i * apart)
        ack_remember(run.requested, number + i * apart, number + i * apart + AK_BATCH)
    result.status = ack_state_add_all(
        &run.state, at, count, &result.words[1], &result.words[2], resumed)
    for i in range(result.words[1]):
        ack_remember(run.done, number + i * apart, number + i * apart + AK_BATCH)


cdef inline void ack_count_resumptions(AckRun* run, uint32_t kinds) noexcept nogil:
    cdef int kind
    for kind in range(AK_KINDS):
        if kinds >> kind & 1:
            i64_fetch_add_relaxed(&run.resumptions[kind], 1)


# A dispatcher that was paused is resumed later: by an acknowledgement, or by its own next call.
cdef inline bint ack_dispatch(AckRun* run, int64_t kind) noexcept nogil:
    cdef int64_t resumptions = i64_load_relaxed(&run.resumptions[kind])
    if ack_state_may_dispatch(&run.state, <DispatchKind>kind):
        ack_count_resumptions(run, <uint32_t>1 << kind)
        return True
    if i64_load_relaxed(&run.owed[kind]) <= resumptions:
        i64_store_relaxed(&run.owed[kind], resumptions + 1)
    return False


cdef inline void ack_write(
    AckRun* run, int32_t thread, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef int64_t number = ack_number(call)
    cdef uint32_t resumed = 0
    if call.code == AK_ENTRY:
        result.status = ack_entry(run, number, &resumed)
    elif call.code == AK_ENTRIES_AT_ONCE:
        ack_entries_at_once(run, thread, call, number, &resumed, result)
    elif call.code == AK_INDEX:
        number += call.arguments[2]
        ack_remember(run.requested, number, number + 1)
        result.status = ack_state_add_index(&run.state, ack_at(number), AK_BATCH,
                                            <int32_t>call.arguments[2], &resumed)
        if result.status <= 1:
            ack_remember(run.done, number, number + 1)
    elif call.code == AK_UP_TO:
        ack_remember(run.requested, 0, number + AK_BATCH)
        result.status = ack_state_add_up_to(&run.state, ack_at(number), &resumed)
        ack_remember(run.done, 0, number + AK_BATCH)
    elif call.code == AK_END:
        result.status = ack_state_end_ledger(
            &run.state, position(1 + call.arguments[0], AK_ENTRIES - 1), 2 + call.arguments[0], &resumed)
    elif call.code == AK_METADATA:
        ack_state_set_metadata(&run.state, call.arguments[0], &resumed)
    elif call.code == AK_CONFIGURE:
        ack_state_configure(&run.state, run.limits, call.arguments[0] != 0, &resumed)
    elif call.code == AK_UNASKED:
        ack_state_add(&run.state, ack_at(number), &resumed)
    elif call.code == AK_PRETEND:
        ack_remember(run.done, number, number + 1)
    elif call.code == AK_OPEN_SILENTLY:
        stamped_lock_write(&run.state.lock)
        run.state.pauses = False
        u32_store_relaxed(&run.state.open, 1)
        stamped_unlock_write(&run.state.lock)
    elif call.code == AK_MISJUDGE:
        stamped_lock_write(&run.state.lock)
        u32_store_relaxed(&run.state.open, not u32_load_relaxed(&run.state.open))
        stamped_unlock_write(&run.state.lock)
    elif call.code == AK_FORGET:
        u32_store_relaxed(&run.state.paused, 0)
    ack_count_resumptions(run, resumed)
    result.words[0] = resumed


cdef inline void ack_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckRun* run = <AckRun*>instance
    cdef int64_t number = ack_number(call)
    cdef bint before, seen
    if call.code == AK_STORE:
        ack_store(run, call.arguments[0] != 0, result, violation)
    elif call.code == AK_LOOK:
        ack_audit(run, result, violation)
    elif call.code == AK_MARK:
        result.words[0] = ack_mark_word(ack_state_mark(&run.state))
    elif call.code == AK_SIZE:
        result.words[0] = i64_load_relaxed(&run.state.size)
    elif call.code == AK_DISPATCH:
        result.words[0] = ack_dispatch(run, call.arguments[0])
    elif call.code == AK_APART:
        ack_apart(run, call, result, violation)
    elif call.code == AK_RESTORE:
        ack_restore(run, call, result, violation)
    elif call.code == AK_IS_ACKED:
        number += call.arguments[2]
        before = u8_load_acquire(&run.done[number])
        seen = ack_state_contains_index(&run.state, ack_at(number), <int32_t>call.arguments[2])
        if before and not seen:
            violate(violation, b"AR-3", b"index %lld of entry %lld is not acknowledged any more",
                    number % AK_BATCH, number // AK_BATCH, 0)
        if not before and ack_state_contains(&run.state, ack_at(number)):
            seen = True
        if seen and not u8_load_acquire(&run.requested[number]):
            violate(violation, b"AR-3", b"index %lld of entry %lld was never acknowledged", number % AK_BATCH,
                    number // AK_BATCH, 0)
        result.words[0] = seen
    else:
        ack_write(run, thread, call, result)


cdef inline void ack_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef AckRun* run = <AckRun*>instance
    cdef PmlResult ignored
    cdef int kind
    ack_audit(run, &ignored, violation)
    expect_equal(violation, b"AR-3", b"acknowledged indexes", <int64_t>ack_contained(&run.state),
                 <int64_t>ack_remembered(run.done))
    # No acknowledgement will come.
    if u32_load_relaxed(&run.state.paused) and u32_load_relaxed(&run.state.open):
        violate(violation, b"I99", b"kinds %llx stay paused though all of the state fits",
                u32_load_relaxed(&run.state.paused), 0, 0)
    for kind in range(AK_KINDS):
        if u32_load_relaxed(&run.state.open) and i64_load_relaxed(&run.resumptions[kind]) < i64_load_relaxed(
                &run.owed[kind]):
            violate(violation, b"I99", b"the dispatcher of kind %lld was resumed %lld times, not %lld",
                    kind, i64_load_relaxed(&run.resumptions[kind]), i64_load_relaxed(&run.owed[kind]))
    ack_store(run, False, &ignored, violation)


cdef inline void ack_place(PmlOperation* operation) noexcept nogil:
    operation_argument(operation, b"ledger", 0, AK_LEDGERS - 1)
    operation_argument(operation, b"entry", 0, AK_ENTRIES - 1)


cdef inline void ack_state_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"ack_state", b"Acknowledgements of a cursor, what of them is stored, and pauses.",
                ack_run_create, ack_apply, ack_check, ack_run_destroy)
    table.subject.max_threads = 64
    table_setting(table, b"by_bytes", 0, 1)
    table_setting(table, b"max_bytes", 1, 200)
    table_setting(table, b"max_ranges", 0, 4)
    table_setting(table, b"max_batches", 0, 3)
    table_setting(table, b"max_store_ranges", 0, 3)
    ack_place(table_operation(table, AK_ENTRY, b"ack_entry", 12, 0))
    operation = table_operation(table, AK_INDEX, b"ack_index", 10, 0)
    ack_place(operation)
    operation_argument(operation, b"index", 0, AK_BATCH - 1)
    ack_place(table_operation(table, AK_UP_TO, b"ack_up_to", 1, 0))
    operation = table_operation(table, AK_IS_ACKED, b"is_acked", 8, 0)
    ack_place(operation)
    operation_argument(operation, b"index", 0, AK_BATCH - 1)
    operation = table_operation(table, AK_END, b"end_ledger", 2, 0)
    operation_argument(operation, b"ledger", 0, AK_LEDGERS - 1)
    operation = table_operation(table, AK_DISPATCH, b"dispatch", 8, 0)
    operation_argument(operation, b"kind", 0, 2)
    operation = table_operation(table, AK_STORE, b"store", 4, 0)
    operation_argument(operation, b"in_store", 0, 1)
    operation = table_operation(table, AK_METADATA, b"set_metadata", 2, 0)
    operation_argument(operation, b"bytes", 0, 64)
    operation = table_operation(table, AK_CONFIGURE, b"set_pauses", 2, 0)
    operation_argument(operation, b"pauses", 0, 1)
    table_operation(table, AK_LOOK, b"look", 4, 0)
    table_operation(table, AK_MARK, b"mark", 2, 0)
    table_operation(table, AK_SIZE, b"size", 2, 0)
    operation = table_operation(table, AK_ENTRIES_AT_ONCE, b"ack_entries", 4, 0)
    ack_place(operation)
    operation_argument(operation, b"pattern", 0, 3 * AK_AT_ONCE - 1)
    operation = table_operation(table, AK_APART, b"apart", 1, 0)
    operation_argument(operation, b"entries", 1, AK_SPREAD)
    operation_argument(operation, b"step", 1, AK_SPREAD - 1)
    operation_argument(operation, b"up_to", 0, AK_SPREAD - 1)
    operation = table_operation(table, AK_RESTORE, b"restore", 4, 0)
    operation_argument(operation, b"word", 0, 63)
    operation_argument(operation, b"change", -6, AK_SMALLEST)
    operation_argument(operation, b"counts", 0, AK_COUNTS_RIGHT + 7)
    ack_place(table_operation(table, AK_UNASKED, b"ack_unasked", 0, 0))
    ack_place(table_operation(table, AK_PRETEND, b"pretend", 0, 0))
    table_operation(table, AK_OPEN_SILENTLY, b"open_silently", 0, 0)
    table_operation(table, AK_MISJUDGE, b"misjudge", 0, 0)
    table_operation(table, AK_FORGET, b"forget_dispatchers", 0, 0)
