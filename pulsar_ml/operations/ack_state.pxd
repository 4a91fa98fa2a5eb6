# The acknowledgement state's operations for the harness: acknowledgements of entries, of indexes
# and up to an entry, ledgers that end, a dispatcher that is paused, and states that are stored and
# come back.
#
# Beside the state stands the requested acknowledgements (set before the call) and those that were
# made (set after it): the state lies between the two, and so does what is read back.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.structures.ack_codec cimport (
    ACK_RESTORE_NO_MEMORY, ACK_RESTORED, AckLimits, AckPlan, AckRestored,
)
from pulsar_ml.structures.ack_ranges cimport (
    ACK_NEW, ACK_NO_MEMORY, AckBatch, AckChange, AckRange, acks_after, acks_mark,
)
from pulsar_ml.structures.ack_state cimport (
    ACK_IN_LEDGER, ACK_IN_STORE, AckState, DispatchKind, ack_state_add, ack_state_add_all,
    ack_state_add_index, ack_state_add_up_to, ack_state_configure, ack_state_contains,
    ack_state_contains_index, ack_state_destroy, ack_state_encode, ack_state_end_ledger,
    ack_state_init, ack_state_mark, ack_state_may_dispatch, ack_state_restore,
    ack_state_set_metadata,
)
from pulsar_ml.structures.position cimport Position, position, position_equal, position_less
from pulsar_ml.structures.position_blocks cimport BlockSpot, blocks_at, blocks_first, blocks_next
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_unlock_read, stamped_unlock_write,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u8, u32_load_relaxed,
    u32_store_relaxed, u8_load_acquire, u8_store_release,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


# A small log, so that everything touches soon.
cdef enum:
    AK_LEDGERS = 3          # ids 1 .. 3
    AK_ENTRIES = 6          # of a ledger
    AK_BATCH = 3            # messages of an entry
    AK_LOG = 18             # entries of all ledgers
    AK_INDEXES = 54         # all messages: the bits of a word
    AK_KINDS = 3            # of dispatch
    AK_AT_ONCE = 4          # entries of one call
    AK_SPREAD = 311         # a prime: its multiples visit all places


cdef enum:
    AK_ENTRY
    AK_INDEX
    AK_UP_TO
    AK_IS_ACKED
    AK_END
    AK_DISPATCH
    AK_STORE
    AK_METADATA
    AK_CONFIGURE
    AK_LOOK
    AK_MARK
    AK_SIZE
    AK_ENTRIES_AT_ONCE
    AK_APART
    # Mistakes.
    AK_UNASKED
    AK_PRETEND
    AK_OPEN_SILENTLY
    AK_MISJUDGE
    AK_FORGET


cdef struct AckRun:
    AckState state
    AckLimits limits
    pml_u8[54] requested
    pml_u8[54] done
    # By kind: how often its dispatcher was let go on, and how often it has to be by the end.
    pml_i64[3] resumptions
    pml_i64[3] owed


cdef inline void* ack_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef AckRun* run = <AckRun*>allocate_zeroed(1, sizeof(AckRun))
    if run is NULL:
        return NULL
    run.limits.max_bytes = settings[1] if settings[0] else 0
    run.limits.max_ranges = settings[2]
    run.limits.max_batches = settings[3]
    run.limits.max_store_ranges = settings[4]
    ack_state_init(&run.state, position(1, -1), run.limits, True)
    return run


cdef inline void ack_run_destroy(void* instance) noexcept nogil:
    ack_state_destroy(&(<AckRun*>instance).state)
    release(instance)


cdef inline Position ack_at(int64_t number) noexcept nogil:
    return position(1 + number // (AK_ENTRIES * AK_BATCH), number // AK_BATCH % AK_ENTRIES)


cdef inline int64_t ack_number(const PmlCall* call) noexcept nogil:
    return (call.arguments[0] * AK_ENTRIES + call.arguments[1]) * AK_BATCH


cdef inline void ack_remember(pml_u8* cells, int64_t first, int64_t after) noexcept nogil:
    cdef int64_t number
    for number in range(first, after):
        u8_store_release(&cells[number], 1)


cdef inline uint64_t ack_remembered(const pml_u8* cells) noexcept nogil:
    cdef uint64_t mask = 0
    cdef int64_t number
    for number in range(AK_INDEXES):
        mask |= <uint64_t>(u8_load_acquire(&cells[number]) != 0) << number
    return mask


cdef inline uint64_t ack_contained(AckState* state) noexcept nogil:
    cdef uint64_t mask = 0
    cdef int64_t number
    for number in range(AK_INDEXES):
        if ack_state_contains_index(state, ack_at(number), <int32_t>(number % AK_BATCH)):
            mask |= <uint64_t>1 << number
    return mask


# The limits once more, for comparison.
cdef inline bint ack_all_fits(
    const AckRun* run, int64_t size, int64_t ranges, int64_t batches
) noexcept nogil:
    cdef bint bounded = run.limits.max_bytes > 0
    return (batches <= run.limits.max_batches and (not bounded or size <= run.limits.max_bytes)
            and (bounded or ranges <= run.limits.max_ranges))


cdef inline int64_t ack_mark_word(Position mark) noexcept nogil:
    return mark.ledger_id * 16 + mark.entry_id + 1


# Checks the invariants that hold while nobody writes. The lock is held shared.
cdef inline void ack_audit_locked(
    AckRun* run, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckState* state = &run.state
    cdef Position mark = acks_mark(&state.acks)
    cdef Position passed = mark
    cdef BlockSpot spot = blocks_first()
    cdef AckRange* seen = <AckRange*>blocks_at(&state.acks.ranges, spot)
    cdef AckBatch* batch
    cdef int64_t ranges = 0
    cdef int64_t batches = 0
    cdef int64_t size
    while seen is not NULL and ranges <= AK_INDEXES:
        if (not position_less(passed, seen.first) or position_less(seen.last, seen.first)
                or position_equal(acks_after(&state.acks, passed), seen.first)):
            violate(violation, b"AR-1", b"range %lld begins at %lld:%lld", ranges, seen.first.ledger_id,
                    seen.first.entry_id)
        passed = seen.last
        ranges += 1
        spot = blocks_next(&state.acks.ranges, spot)
        seen = <AckRange*>blocks_at(&state.acks.ranges, spot)
    expect_equal(violation, b"AR-1", b"ranges", state.acks.ranges.count, ranges)
    spot = blocks_first()
    batch = <AckBatch*>blocks_at(&state.acks.batches, spot)
    passed = mark
    while batch is not NULL and batches <= AK_INDEXES:
        if not position_less(passed, batch.at) or not 0 < batch.left < batch.size:
            violate(violation, b"AR-2", b"the batch at %lld:%lld has %lld indexes left", batch.at.ledger_id,
                    batch.at.entry_id, batch.left)
        passed = batch.at
        batches += 1
        spot = blocks_next(&state.acks.batches, spot)
        batch = <AckBatch*>blocks_at(&state.acks.batches, spot)
    expect_equal(violation, b"AR-2", b"batches", state.acks.batches.count, batches)
    size = state.metadata_bytes + 32 * (ranges + batches)
    if u32_load_relaxed(&state.open) != (ack_all_fits(run, size, ranges, batches) or not state.pauses):
        violate(violation, b"AS-1", b"open=%lld with %lld ranges and %lld batches",
                u32_load_relaxed(&state.open), ranges, batches)
    result.words[0] = ack_mark_word(mark)
    result.words[1] = ranges * 64 + batches
    result.words[2] = size


cdef inline void ack_audit(AckRun* run, PmlResult* result, PmlViolation* violation) noexcept nogil:
    stamped_lock_read(&run.state.lock)
    ack_audit_locked(run, result, violation)
    stamped_unlock_read(&run.state.lock)


cdef inline bint ack_is_whole(uint64_t mask, int64_t entry) noexcept nogil:
    cdef uint64_t whole = (1 << AK_BATCH) - 1
    return (mask >> (entry * AK_BATCH)) & whole == whole


# Stores what may be stored, reads it back and compares it.
cdef inline void ack_store(
    AckRun* run, bint in_store, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckState restored
    cdef AckPlan plan
    cdef AckRestored outcome
    cdef unsigned char* data
    cdef uint64_t before = ack_remembered(run.done)
    cdef uint64_t requested, seen, missing
    cdef int64_t entry, highest
    if ack_state_encode(&run.state, ACK_IN_STORE if in_store else ACK_IN_LEDGER, &plan, &data) != PML_OK:
        result.status = ACK_NO_MEMORY
        return
    requested = ack_remembered(run.requested)
    ack_state_init(&restored, plan.mark, run.limits, True)
    outcome = ack_state_restore(&restored, data, plan.bytes, plan.ranges, plan.batches)
    release(data)
    if outcome == ACK_RESTORE_NO_MEMORY:
        result.status = ACK_NO_MEMORY
    elif outcome != ACK_RESTORED:
        violate(violation, b"AC-2", b"%lld ranges and %lld batches in %lld bytes do not come back",
                plan.ranges, plan.batches, plan.bytes)
    if outcome != ACK_RESTORED:
        ack_state_destroy(&restored)
        return
    seen = ack_contained(&restored)
    ack_state_destroy(&restored)
    if seen & ~requested:
        violate(violation, b"AC-2", b"of %llx only %llx was acknowledged", <int64_t>seen,
                <int64_t>requested, 0)
    missing = before & ~seen
    if missing and not plan.ranges_left and not plan.batches_left:
        violate(violation, b"AC-2", b"%llx is gone, and nothing was left out", <int64_t>missing, 0, 0)
    # Whole entries: the highest are left out.
    highest = -1
    for entry in range(AK_LOG):
        if ack_is_whole(seen, entry):
            highest = entry
    for entry in range(highest):
        if ack_is_whole(before, entry) and not ack_is_whole(seen, entry):
            violate(violation, b"AC-2", b"entry %lld was left out, entry %lld was not", entry, highest, 0)
    if not in_store and (plan.ranges_left + plan.batches_left + plan.metadata_left == 0) != ack_all_fits(
            run, plan.size, plan.ranges + plan.ranges_left, plan.batches + plan.batches_left):
        violate(violation, b"AC-1", b"%lld ranges and %lld batches were left out of %lld bytes",
                plan.ranges_left, plan.batches_left, plan.size)
    result.words[0] = ack_mark_word(plan.mark)
    result.words[1] = plan.ranges + 64 * plan.ranges_left + 4096 * plan.batches + 262144 * plan.batches_left
    result.words[2] = <int64_t>seen


# Compares a state of one ledger with the entries that it was given: place p is entry 2p + 1.
cdef inline void ack_check_places(
    AckState* state, const bint* added, int64_t up_to, PmlViolation* violation
) noexcept nogil:
    cdef int64_t place
    for place in range(AK_SPREAD):
        if ack_state_contains(state, position(1, 2 * place + 1)) != (added[place] or place < up_to):
            violate(
                violation, b"AR-3", b"entry %lld is acknowledged or not, unlike it was", 2 * place + 1, 0, 0)


# apart(entries, step, up_to): a state of its own, of which so many entries that do not touch each
# other are acknowledged, in an order that the step decides, and then all up to one of them. Words
# are the ranges before that and after it.
cdef inline void ack_apart(
    const AckRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckState state
    cdef bint[311] added
    cdef uint32_t resumed = 0
    cdef int64_t i, place
    for place in range(AK_SPREAD):
        added[place] = False
    ack_state_init(&state, position(1, -1), run.limits, True)
    for i in range(call.arguments[0]):
        place = i * call.arguments[1] % AK_SPREAD
        if ack_state_add(&state, position(1, 2 * place + 1), &resumed) == ACK_NO_MEMORY:
            result.status = ACK_NO_MEMORY
            break
        added[place] = True
    if result.status != ACK_NO_MEMORY:
        result.words[0] = state.acks.ranges.count
        ack_check_places(&state, added, 0, violation)
        ack_state_add_up_to(&state, position(1, 2 * call.arguments[2]), &resumed)
        result.words[1] = state.acks.ranges.count
        ack_check_places(&state, added, call.arguments[2], violation)
    ack_state_destroy(&state)


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
    AckRun* run, const PmlCall* call, int64_t number, uint32_t* resumed, PmlResult* result
) noexcept nogil:
    cdef Position[AK_AT_ONCE] at
    cdef int64_t apart = (1 + call.arguments[2] // AK_AT_ONCE) * AK_BATCH
    cdef int64_t count = min(1 + call.arguments[2] % AK_AT_ONCE, (AK_INDEXES - 1 - number) // apart + 1)
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


cdef inline void ack_write(AckRun* run, const PmlCall* call, PmlResult* result) noexcept nogil:
    cdef int64_t number = ack_number(call)
    cdef uint32_t resumed = 0
    if call.code == AK_ENTRY:
        result.status = ack_entry(run, number, &resumed)
    elif call.code == AK_ENTRIES_AT_ONCE:
        ack_entries_at_once(run, call, number, &resumed, result)
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
        ack_write(run, call, result)


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
    ack_place(table_operation(table, AK_UNASKED, b"ack_unasked", 0, 0))
    ack_place(table_operation(table, AK_PRETEND, b"pretend", 0, 0))
    table_operation(table, AK_OPEN_SILENTLY, b"open_silently", 0, 0)
    table_operation(table, AK_MISJUDGE, b"misjudge", 0, 0)
    table_operation(table, AK_FORGET, b"forget_dispatchers", 0, 0)
