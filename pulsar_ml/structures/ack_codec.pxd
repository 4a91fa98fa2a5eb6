# Ranges and batches as bytes: which of them are stored within the limits, and how they come back.
#
# Origin       ManagedCursorImpl's persistPositionToLedger (Pulsar 4.1) and PIP-299. There varints;
#              here the four 8-byte fields of the proposal, little-endian: 32 bytes a range.
# Threads      Under the owner's lock, shared for writing bytes.
# Invariants   AC-1 (I99) every range and batch is stored exactly when all are within every limit.
#              AC-2 the stored part is the lowest part of the state, and the rest is counted; so the
#              state that is read back is an earlier one in the sense of AR-3: no position is
#              acknowledged in it that was not before.
# Ordering     The owner's lock.
# Reclamation  The bytes are the caller's, who releases them.
# Not promised That bytes of a damaged medium are noticed where they form a legal state: the frame
#              around them has a checksum for that.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from pulsar_ml.structures.ack_ranges cimport (
    BATCH_BYTES, RANGE_BYTES, AckBatch, AckRange, AckRanges, acks_contain, acks_forget_batches, acks_mark,
    batch_stored, batch_words,
)
from pulsar_ml.structures.position cimport Position, position, position_less
from pulsar_ml.structures.position_blocks cimport (
    BlockSpot, blocks_above, blocks_at, blocks_destroy, blocks_first, blocks_insert, blocks_next,
)
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release


# The limits of what is stored. A state that reaches a limit exactly is within it.
cdef struct AckLimits:
    int64_t max_bytes               # of everything; 0: no limit, and the number of ranges decides
    int64_t max_ranges              # without a limit of bytes
    int64_t max_batches
    int64_t max_store_ranges        # in the metadata store, with or without a limit of bytes


# The part of a state that is stored, and the counts of the rest.
cdef struct AckPlan:
    Position mark
    int64_t ranges
    int64_t batches
    int64_t ranges_left
    int64_t batches_left
    int64_t metadata_left           # bytes that properties and sequence ids have too many
    int64_t bytes                   # of the ranges and batches that are stored
    int64_t size                    # of everything, had it all been stored


cdef enum AckRestored:
    ACK_RESTORED = 0
    ACK_DAMAGED = 1
    ACK_RESTORE_NO_MEMORY = 2


cdef inline int64_t acks_size(const AckRanges* acks, int64_t metadata_bytes) noexcept nogil:
    return metadata_bytes + acks.ranges.count * RANGE_BYTES + acks.batch_bytes


# True if the whole state is within the limits.
cdef inline bint acks_fit(
    const AckRanges* acks, const AckLimits* limits, int64_t metadata_bytes
) noexcept nogil:
    if acks.batches.count > limits.max_batches:
        return False
    if limits.max_bytes > 0:
        return acks_size(acks, metadata_bytes) <= limits.max_bytes
    return acks.ranges.count <= limits.max_ranges


# The lowest ranges first, then the lowest batches in what is left. `metadata_bytes` come before
# them.
cdef inline AckPlan acks_plan(
    const AckRanges* acks, const AckLimits* limits, int64_t metadata_bytes, bint in_store
) noexcept nogil:
    cdef AckPlan plan
    cdef BlockSpot spot = blocks_first()
    cdef AckBatch* batch
    cdef int64_t room = INT64_MAX
    cdef int64_t most = limits.max_ranges
    plan.metadata_left = 0
    if limits.max_bytes > 0:
        room = max(limits.max_bytes - metadata_bytes, 0)
        plan.metadata_left = max(metadata_bytes - limits.max_bytes, 0)
        most = room // RANGE_BYTES
    if in_store:
        most = min(most, limits.max_store_ranges)
    plan.mark = acks_mark(acks)
    plan.size = acks_size(acks, metadata_bytes)
    plan.ranges = min(acks.ranges.count, most)
    plan.bytes = plan.ranges * RANGE_BYTES
    plan.batches = 0
    batch = <AckBatch*>blocks_at(&acks.batches, spot)
    while batch is not NULL and plan.batches < limits.max_batches:
        if batch_stored(batch.size) > room - plan.bytes:
            break
        plan.bytes += batch_stored(batch.size)
        plan.batches += 1
        spot = blocks_next(&acks.batches, spot)
        batch = <AckBatch*>blocks_at(&acks.batches, spot)
    plan.ranges_left = acks.ranges.count - plan.ranges
    plan.batches_left = acks.batches.count - plan.batches
    return plan


# Bytes -------------------------------------------------------------------------------------------

cdef inline unsigned char* put_word(unsigned char* to, int64_t value) noexcept nogil:
    cdef int i
    for i in range(8):
        to[i] = <unsigned char>(<uint64_t>value >> (8 * i))
    return to + 8


cdef inline int64_t get_word(const unsigned char* at) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(8):
        value |= <uint64_t>at[i] << (8 * i)
    return <int64_t>value


# A range is the position before its first entry and its last entry, as in the proposal; a batch is
# its position, its size, and bits of the acknowledged indexes.
cdef inline void acks_write(const AckRanges* acks, const AckPlan* plan, unsigned char* to) noexcept nogil:
    cdef BlockSpot spot = blocks_first()
    cdef AckRange* stored
    cdef AckBatch* batch
    cdef int64_t i, word
    for i in range(plan.ranges):
        stored = <AckRange*>blocks_at(&acks.ranges, spot)
        to = put_word(to, stored.first.ledger_id)
        to = put_word(to, stored.first.entry_id - 1)
        to = put_word(to, stored.last.ledger_id)
        to = put_word(to, stored.last.entry_id)
        spot = blocks_next(&acks.ranges, spot)
    spot = blocks_first()
    for i in range(plan.batches):
        batch = <AckBatch*>blocks_at(&acks.batches, spot)
        to = put_word(to, batch.at.ledger_id)
        to = put_word(to, batch.at.entry_id)
        to = put_word(to, batch.size)
        for word in range(batch_words(batch.size)):
            to = put_word(to, <int64_t>batch.bits[word])
        spot = blocks_next(&acks.batches, spot)


# The ranges of a plan come back into acks that have none. DAMAGED when they are not what acks_write
# makes.
cdef inline AckRestored acks_read_ranges(
    AckRanges* acks, const unsigned char* data, int64_t count
) noexcept nogil:
    cdef Position passed = acks_mark(acks)
    cdef AckRange read
    cdef int64_t i, lower
    for i in range(count):
        lower = get_word(data + 8)
        read.first = position(get_word(data), lower + 1 if lower < INT64_MAX else 0)
        read.last = position(get_word(data + 16), get_word(data + 24))
        data += RANGE_BYTES
        # Behind what came before, and not where that goes on.
        if (lower < -1 or lower == INT64_MAX or read.first.ledger_id < 0
                or not position_less(passed, read.first) or position_less(read.last, read.first)
                or read.last.entry_id < 0
                or (read.first.ledger_id == passed.ledger_id and lower == passed.entry_id)):
            return ACK_DAMAGED
        if not blocks_insert(&acks.ranges, blocks_above(&acks.ranges, read.first), &read):
            return ACK_RESTORE_NO_MEMORY
        passed = read.last
    return ACK_RESTORED


cdef inline int32_t bits_set(const uint64_t* bits, int64_t words) noexcept nogil:
    cdef int32_t count = 0
    cdef uint64_t word
    cdef int64_t i
    for i in range(words):
        word = bits[i]
        while word:
            word &= word - 1
            count += 1
    return count


cdef inline AckRestored acks_read_batches(
    AckRanges* acks, const unsigned char* data, int64_t length, int64_t count
) noexcept nogil:
    cdef Position passed = acks_mark(acks)
    cdef AckBatch read
    cdef int64_t i, j, size, words
    for i in range(count):
        if length < BATCH_BYTES:
            return ACK_DAMAGED
        read.at = position(get_word(data), get_word(data + 8))
        size = get_word(data + 16)
        if not (2 <= size <= 0x7FFFFFFF) or length < batch_stored(<int32_t>size):
            return ACK_DAMAGED
        if read.at.entry_id < 0 or not position_less(passed, read.at) or acks_contain(acks, read.at):
            return ACK_DAMAGED
        passed = read.at
        read.size = <int32_t>size
        words = batch_words(read.size)
        read.bits = <uint64_t*>allocate_zeroed(<size_t>words, sizeof(uint64_t))
        if read.bits is NULL:
            return ACK_RESTORE_NO_MEMORY
        for j in range(words):
            read.bits[j] = <uint64_t>get_word(data + BATCH_BYTES + 8 * j)
        read.left = read.size - bits_set(read.bits, words)
        if (not 0 < read.left < read.size
                or (size & 63 and read.bits[words - 1] >> (size & 63))):
            release(read.bits)
            return ACK_DAMAGED
        if not blocks_insert(&acks.batches, blocks_above(&acks.batches, read.at), &read):
            release(read.bits)
            return ACK_RESTORE_NO_MEMORY
        acks.batch_bytes += batch_stored(read.size)
        data += batch_stored(read.size)
        length -= batch_stored(read.size)
    return ACK_RESTORED if length == 0 else ACK_DAMAGED


# Into acks that have their mark and nothing else; unless RESTORED they have nothing else
# afterwards.
cdef inline AckRestored acks_read(
    AckRanges* acks, const unsigned char* data, int64_t length, int64_t ranges, int64_t batches
) noexcept nogil:
    cdef AckRestored restored = ACK_DAMAGED
    if 0 <= ranges <= length // RANGE_BYTES and batches >= 0:
        restored = acks_read_ranges(acks, data, ranges)
        if restored == ACK_RESTORED:
            restored = acks_read_batches(
                acks, data + ranges * RANGE_BYTES, length - ranges * RANGE_BYTES, batches)
    if restored != ACK_RESTORED:
        acks_forget_batches(acks, position(INT64_MAX, INT64_MAX))
        blocks_destroy(&acks.ranges)
    return restored
