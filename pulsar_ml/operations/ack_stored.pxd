# Acknowledgement states as bytes: states that are stored within their limits and come back, states
# whose bytes are damaged, and states of their own with many ranges.

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlViolation
from pulsar_ml.operations.ack_world cimport (
    AK_BATCH, AK_COUNTS_RIGHT, AK_LARGEST, AK_LOG, AK_SMALLEST, AK_SPREAD, AckRun, ack_all_fits,
    ack_audit_locked, ack_contained, ack_mark_word, ack_remembered,
)
from pulsar_ml.operations.support cimport expect_equal, violate
from pulsar_ml.structures.ack_codec cimport (
    ACK_RESTORE_NO_MEMORY, ACK_RESTORED, AckPlan, AckRestored, get_word, put_word,
)
from pulsar_ml.structures.ack_ranges cimport ACK_INVALID, ACK_NO_MEMORY, AckChange
from pulsar_ml.structures.ack_state cimport (
    ACK_EVERYTHING, ACK_IN_LEDGER, ACK_IN_STORE, AckState, ack_state_add, ack_state_add_all,
    ack_state_add_index, ack_state_add_up_to, ack_state_contains, ack_state_destroy,
    ack_state_encode, ack_state_end_ledger, ack_state_init, ack_state_restore,
)
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i64_load_relaxed
from pulsar_ml.sync.memory cimport release


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


# One word of stored bytes becomes another: up to six less, the largest or the smallest number, or
# up to four more.
cdef inline void ack_damage(unsigned char* data, int64_t words, const PmlCall* call) noexcept nogil:
    cdef unsigned char* at
    cdef int64_t change = call.arguments[1]
    if not words:
        return
    at = data + 8 * (call.arguments[0] % words)
    if change == AK_LARGEST:
        put_word(at, INT64_MAX)
    elif change == AK_SMALLEST:
        put_word(at, INT64_MIN)
    else:
        put_word(at, get_word(at) + change)


# restore(word, change, counts): all of the state as bytes, one word of which is another, comes back
# into a new state, or is refused as damaged and leaves nothing there. Words are those of a look at
# that state, and its indexes. With `counts` above AK_COUNTS_RIGHT the counts beside the bytes, or
# their length, are wrong as well.
cdef inline void ack_restore(
    AckRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckState restored
    cdef AckPlan plan
    cdef unsigned char* data
    cdef int64_t wrong = call.arguments[2] - AK_COUNTS_RIGHT
    if ack_state_encode(&run.state, ACK_EVERYTHING, &plan, &data) != PML_OK:
        result.status = ACK_NO_MEMORY
        return
    ack_damage(data, plan.bytes // 8, call)
    if wrong == 1 or wrong == 5:
        plan.ranges += 1
    elif wrong == 2 or wrong == 6:
        plan.ranges -= 1
    if wrong == 3 or wrong == 6:
        plan.batches += 1
    elif wrong == 4 or wrong == 5:
        plan.batches -= 1
    elif wrong == 7 and plan.bytes:
        plan.bytes -= 8
    ack_state_init(&restored, plan.mark, run.limits, True)
    result.status = ack_state_restore(&restored, data, plan.bytes, plan.ranges, plan.batches)
    release(data)
    if result.status == ACK_RESTORE_NO_MEMORY:
        result.status = ACK_NO_MEMORY
    else:
        ack_audit_locked(run, &restored, result, violation)
        result.words[2] = i64_load_relaxed(&restored.size)
        result.words[3] = <int64_t>ack_contained(&restored)
    ack_state_destroy(&restored)


# Compares a state of one ledger with the entries that it was given: place p is entry 2p + 1.
cdef inline void ack_check_places(
    AckState* state, const bint* added, int64_t up_to, PmlViolation* violation
) noexcept nogil:
    cdef int64_t place
    for place in range(AK_SPREAD):
        if ack_state_contains(state, position(1, 2 * place + 1)) != (added[place] or place < up_to):
            violate(
                violation, b"AR-3", b"entry %lld is acknowledged or not, unlike it was", 2 * place + 1, 0, 0)


# What is refused: beyond the end of a ledger, against what is acknowledged, and impossible numbers.
# Nothing of it is a change. False without memory.
cdef inline bint ack_check_refused(AckState* state, PmlViolation* violation) noexcept nogil:
    cdef uint32_t resumed = 0
    cdef int64_t beyond = 2 * AK_SPREAD
    cdef int64_t ranges = state.acks.ranges.count
    cdef int64_t size = i64_load_relaxed(&state.size)
    cdef Position[2] several
    cdef int64_t done, added
    cdef AckChange change = ack_state_end_ledger(state, position(1, 0), 2, &resumed)
    # Ranges are left, so something behind the first entry is acknowledged.
    if ranges:
        expect_equal(violation, b"AR-1", b"the end of a ledger before its acknowledged entries", change,
                     ACK_INVALID)
    ack_expect_refused(ack_state_end_ledger(state, position(1, beyond), 1, &resumed), violation)
    ack_expect_refused(ack_state_end_ledger(state, position(1, -2), 2, &resumed), violation)
    change = ack_state_end_ledger(state, position(1, beyond), 2, &resumed)
    if change == ACK_NO_MEMORY:
        return False
    if not ranges:
        return True
    ack_expect_refused(ack_state_end_ledger(state, position(1, beyond + 1), 2, &resumed), violation)
    ack_expect_refused(ack_state_end_ledger(state, position(1, beyond), 3, &resumed), violation)
    ack_expect_refused(ack_state_add(state, position(1, beyond + 1), &resumed), violation)
    ack_expect_refused(ack_state_add_up_to(state, position(1, beyond + 1), &resumed), violation)
    ack_expect_refused(ack_state_add_index(state, position(1, beyond + 1), AK_BATCH, 0, &resumed), violation)
    ack_expect_refused(
        ack_state_add_index(state, position(1, beyond), AK_BATCH, AK_BATCH, &resumed), violation)
    ack_expect_refused(ack_state_add_index(state, position(1, beyond), AK_BATCH, -1, &resumed), violation)
    # All entries of a call are refused for one of them.
    several[0] = position(1, beyond)
    several[1] = position(1, beyond + 1)
    ack_expect_refused(ack_state_add_all(state, several, 2, &done, &added, &resumed), violation)
    expect_equal(violation, b"AR-1", b"entries added by a refused call", added, 0)
    expect_equal(violation, b"AR-1", b"ranges after refused calls", state.acks.ranges.count, ranges)
    expect_equal(violation, b"AS-1", b"bytes after refused calls", i64_load_relaxed(&state.size), size)
    if ack_state_add_index(state, position(1, beyond), AK_BATCH, 0, &resumed) == ACK_NO_MEMORY:
        return False
    ack_expect_refused(
        ack_state_add_index(state, position(1, beyond), AK_BATCH + 1, 1, &resumed), violation)
    return True


cdef inline void ack_expect_refused(AckChange change, PmlViolation* violation) noexcept nogil:
    expect_equal(violation, b"AR-1", b"the answer to a call that is refused", change, ACK_INVALID)


# apart(entries, step, up_to): a state of its own, of which so many entries that do not touch each
# other are acknowledged, in an order that the step decides, and then all up to one of them. Words
# are the ranges before that and after it.
cdef inline void ack_apart(
    const AckRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef AckState state
    cdef bint[701] added
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
        if not ack_check_refused(&state, violation):
            result.status = ACK_NO_MEMORY
            result.words[0] = result.words[1] = 0
    ack_state_destroy(&state)
