# The world of the operations on the acknowledgement state: a state of a small log, and what was
# requested of it and what was made, entry by entry.

from libc.stdint cimport int32_t, int64_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport dirty, expect_equal, violate
from pulsar_ml.structures.ack_codec cimport AckLimits
from pulsar_ml.structures.ack_ranges cimport AckBatch, AckRange, acks_after, acks_mark
from pulsar_ml.structures.ack_state cimport (
    AckState, ack_state_contains_index, ack_state_destroy, ack_state_init,
)
from pulsar_ml.structures.position cimport Position, position, position_equal, position_less
from pulsar_ml.structures.position_blocks cimport BlockSpot, blocks_at, blocks_first, blocks_next
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport pml_i64, pml_u8, u32_load_relaxed, u8_load_acquire, u8_store_release
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
    AK_SPREAD = 701         # a prime: its multiples visit all places
    AK_LARGEST = 5          # changes of a stored word that name a number
    AK_SMALLEST = 6
    AK_COUNTS_RIGHT = 4


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
    AK_RESTORE
    # Mistakes.
    AK_UNASKED
    AK_PRETEND
    AK_OPEN_SILENTLY
    AK_MISJUDGE
    AK_FORGET


cdef struct AckRun:
    AckState state
    AckLimits limits
    Position** lists        # of each thread, for the entries of one call
    int32_t threads
    pml_u8[54] requested
    pml_u8[54] done
    # By kind: how often its dispatcher was let go on, and how often it has to be by the end.
    pml_i64[3] resumptions
    pml_i64[3] owed


cdef inline void ack_run_free(AckRun* run) noexcept nogil:
    cdef int32_t i
    for i in range(run.threads):
        release(run.lists[i])
    release(run.lists)
    release(run)


cdef inline void* ack_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef int32_t i
    cdef AckRun* run = <AckRun*>allocate_zeroed(1, sizeof(AckRun))
    if run is NULL:
        return NULL
    run.lists = <Position**>allocate_zeroed(<size_t>threads, sizeof(Position*))
    run.threads = threads if run.lists is not NULL else 0
    for i in range(run.threads):
        run.lists[i] = <Position*>allocate_zeroed(AK_AT_ONCE, sizeof(Position))
        if run.lists[i] is NULL:
            run.threads = i
            break
    if not run.threads or run.threads < threads:
        ack_run_free(run)
        return NULL
    run.limits.max_bytes = settings[1] if settings[0] else 0
    run.limits.max_ranges = settings[2]
    run.limits.max_batches = settings[3]
    run.limits.max_store_ranges = settings[4]
    dirty(&run.state, sizeof(AckState))
    ack_state_init(&run.state, position(1, -1), run.limits, True)
    return run


cdef inline void ack_run_destroy(void* instance) noexcept nogil:
    ack_state_destroy(&(<AckRun*>instance).state)
    ack_run_free(<AckRun*>instance)


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
    const AckRun* run, AckState* state, PmlResult* result, PmlViolation* violation
) noexcept nogil:
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
    ack_audit_locked(run, &run.state, result, violation)
    stamped_unlock_read(&run.state.lock)
