# The acknowledgements of one cursor: a mark-delete position, ranges of entries behind it, bits of
# batches.
#
# Origin       ManagedCursorImpl's individualDeletedMessages and batchDeletedIndexes (Pulsar 4.1).
#              There a range ends with its ledger, or spans ledgers after a comparison with the log;
#              here a caller says where a ledger ends, and only then ranges of two ledgers become
#              one.
# Threads      One at a time changes it; the mark may be read beside that under the owner's stamped
#              lock.
# Invariants   AR-1 ranges are disjoint, ascend, lie behind the mark, and none begins where the one
#              before, or the mark, goes on.
#              AR-2 a batch has an acknowledged index and an open one, and lies in no range.
#              AR-3 an acknowledged position stays acknowledged, and no other position becomes it.
# Ordering     The owner's lock. The mark's two cells are relaxed: readers validate their stamp.
# Reclamation  Bits go with their batch, records with their block.
# Not promised That an entry exists: what a range spans between two ledgers nobody ever added.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.position cimport Position, position, position_equal, position_less
from pulsar_ml.structures.position_blocks cimport (
    BlockSpot, PositionBlocks, blocks_above, blocks_at, blocks_before, blocks_destroy, blocks_first,
    blocks_init, blocks_insert, blocks_next, blocks_remove, blocks_remove_before,
)
from pulsar_ml.sync.atomics cimport i64_load_relaxed, i64_store_relaxed, pml_i64
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    RANGE_BYTES = 32        # of a stored range: two positions
    BATCH_BYTES = 24        # of a stored batch, and 8 for each 64 indexes


# The outcome of an acknowledgement.
cdef enum AckChange:
    ACK_NEW = 0
    ACK_KNOWN = 1           # it was acknowledged before; nothing changed
    ACK_INVALID = 2         # no such entry, index or ledger, by what is known; nothing changed
    ACK_NO_MEMORY = 3       # nothing changed


cdef struct AckRange:
    Position first
    Position last           # inclusive


cdef struct AckBatch:
    Position at
    uint64_t* bits          # 1: acknowledged
    int32_t size
    int32_t left            # indexes that are not acknowledged


cdef struct LedgerEnd:
    Position last           # (ledger, its last entry or -1)
    int64_t following       # the next ledger that has entries


cdef struct AckRanges:
    pml_i64 mark_ledger
    pml_i64 mark_entry
    PositionBlocks ranges
    PositionBlocks batches
    PositionBlocks ends
    int64_t batch_bytes     # that the batches would take stored


cdef inline void acks_init(AckRanges* acks, Position mark) noexcept nogil:
    memset(acks, 0, sizeof(AckRanges))
    acks_set_mark(acks, mark)
    blocks_init(&acks.ranges, sizeof(AckRange))
    blocks_init(&acks.batches, sizeof(AckBatch))
    blocks_init(&acks.ends, sizeof(LedgerEnd))


cdef inline void acks_destroy(AckRanges* acks) noexcept nogil:
    acks_forget_batches(acks, position(INT64_MAX, INT64_MAX))
    blocks_destroy(&acks.ranges)
    blocks_destroy(&acks.batches)
    blocks_destroy(&acks.ends)


cdef inline Position acks_mark(const AckRanges* acks) noexcept nogil:
    return position(i64_load_relaxed(&acks.mark_ledger), i64_load_relaxed(&acks.mark_entry))


cdef inline void acks_set_mark(AckRanges* acks, Position mark) noexcept nogil:
    i64_store_relaxed(&acks.mark_ledger, mark.ledger_id)
    i64_store_relaxed(&acks.mark_entry, mark.entry_id)


cdef inline int64_t batch_words(int32_t size) noexcept nogil:
    return (<int64_t>size + 63) // 64


cdef inline int64_t batch_stored(int32_t size) noexcept nogil:
    return BATCH_BYTES + 8 * batch_words(size)


# Ends of ledgers ---------------------------------------------------------------------------------

cdef inline LedgerEnd* acks_end_of(const AckRanges* acks, int64_t ledger) noexcept nogil:
    cdef LedgerEnd* end = <LedgerEnd*>blocks_before(
        &acks.ends, blocks_above(&acks.ends, position(ledger, INT64_MAX)))
    if end is NULL or end.last.ledger_id != ledger:
        return NULL
    return end


# True if a ledger is known to end before a position.
cdef inline bint acks_is_beyond(const AckRanges* acks, Position at) noexcept nogil:
    cdef LedgerEnd* end = acks_end_of(acks, at.ledger_id)
    return end is not NULL and end.last.entry_id < at.entry_id


# The position that follows, by what is known.
cdef inline Position acks_after(const AckRanges* acks, Position at) noexcept nogil:
    cdef LedgerEnd* end = acks_end_of(acks, at.ledger_id)
    if end is not NULL and end.last.entry_id == at.entry_id:
        return position(end.following, 0)
    return position(at.ledger_id, at.entry_id + 1)


# Reading -----------------------------------------------------------------------------------------

cdef inline AckRange* acks_range_before(const AckRanges* acks, BlockSpot spot) noexcept nogil:
    return <AckRange*>blocks_before(&acks.ranges, spot)


cdef inline bint acks_contain(const AckRanges* acks, Position at) noexcept nogil:
    cdef AckRange* before
    if not position_less(acks_mark(acks), at):
        return True
    before = acks_range_before(acks, blocks_above(&acks.ranges, at))
    return before is not NULL and not position_less(before.last, at)


cdef inline AckBatch* acks_batch_at(const AckRanges* acks, Position at) noexcept nogil:
    cdef AckBatch* batch = <AckBatch*>blocks_before(&acks.batches, blocks_above(&acks.batches, at))
    if batch is NULL or not position_equal(batch.at, at):
        return NULL
    return batch


cdef inline bint acks_contain_index(const AckRanges* acks, Position at, int32_t index) noexcept nogil:
    cdef AckBatch* batch
    if acks_contain(acks, at):
        return True
    batch = acks_batch_at(acks, at)
    return (batch is not NULL and 0 <= index < batch.size
            and (batch.bits[index >> 6] >> (index & 63)) & 1 != 0)


# Changing ----------------------------------------------------------------------------------------

cdef inline void acks_free_bits(AckRanges* acks, AckBatch* batch) noexcept nogil:
    acks.batch_bytes -= batch_stored(batch.size)
    release(batch.bits)


# Removes the batches up to a position, inclusive.
cdef inline void acks_forget_batches(AckRanges* acks, Position up_to) noexcept nogil:
    cdef BlockSpot spot = blocks_first()
    cdef AckBatch* batch = <AckBatch*>blocks_at(&acks.batches, spot)
    while batch is not NULL and not position_less(up_to, batch.at):
        acks_free_bits(acks, batch)
        spot = blocks_next(&acks.batches, spot)
        batch = <AckBatch*>blocks_at(&acks.batches, spot)
    blocks_remove_before(&acks.batches, spot)


cdef inline void acks_forget_batch(AckRanges* acks, Position at) noexcept nogil:
    cdef BlockSpot spot
    cdef AckBatch* batch = acks_batch_at(acks, at)
    if batch is NULL:
        return
    acks_free_bits(acks, batch)
    # The only record between the position before and this one.
    spot = blocks_above(&acks.batches, position(at.ledger_id, at.entry_id - 1))
    blocks_remove(&acks.batches, spot)


# Moves the mark up to a position behind it, over the ranges that it touches there.
cdef inline void acks_advance(AckRanges* acks, Position up_to) noexcept nogil:
    cdef BlockSpot spot = blocks_above(&acks.ranges, up_to)
    cdef AckRange* touched = acks_range_before(acks, spot)
    if touched is not NULL and position_less(up_to, touched.last):
        up_to = touched.last
    blocks_remove_before(&acks.ranges, spot)
    touched = <AckRange*>blocks_at(&acks.ranges, blocks_first())
    if touched is not NULL and position_equal(touched.first, acks_after(acks, up_to)):
        up_to = touched.last
        blocks_remove(&acks.ranges, blocks_first())
    acks_set_mark(acks, up_to)
    acks_forget_batches(acks, up_to)
    # Ends of ledgers that are passed; that of the mark's own ledger is still needed.
    blocks_remove_before(&acks.ends, blocks_above(&acks.ends, position(up_to.ledger_id, -2)))


# True for an entry that acks_add refuses.
cdef inline bint acks_is_refused(const AckRanges* acks, Position at) noexcept nogil:
    return acks_is_beyond(acks, at) and not acks_contain(acks, at)


# One entry. Its batch, if there is one, is done with.
cdef inline AckChange acks_add(AckRanges* acks, Position at) noexcept nogil:
    cdef BlockSpot spot
    cdef AckRange* before
    cdef AckRange* behind
    cdef AckRange fresh
    if acks_contain(acks, at):
        return ACK_KNOWN
    if acks_is_beyond(acks, at):
        return ACK_INVALID
    if position_equal(acks_after(acks, acks_mark(acks)), at):
        acks_advance(acks, at)
        return ACK_NEW
    spot = blocks_above(&acks.ranges, at)
    before = acks_range_before(acks, spot)
    behind = <AckRange*>blocks_at(&acks.ranges, spot)
    if before is not NULL and not position_equal(acks_after(acks, before.last), at):
        before = NULL
    if behind is not NULL and not position_equal(acks_after(acks, at), behind.first):
        behind = NULL
    if before is not NULL and behind is not NULL:
        before.last = behind.last
        blocks_remove(&acks.ranges, spot)
    elif before is not NULL:
        before.last = at
    elif behind is not NULL:
        behind.first = at
    else:
        fresh.first = at
        fresh.last = at
        if not blocks_insert(&acks.ranges, spot, &fresh):
            return ACK_NO_MEMORY
    acks_forget_batch(acks, at)
    return ACK_NEW


# One message of a batch of `size`; the last one acknowledges the entry.
cdef inline AckChange acks_add_index(
    AckRanges* acks, Position at, int32_t size, int32_t index
) noexcept nogil:
    cdef AckBatch* batch
    cdef AckBatch fresh
    if not 0 <= index < size:
        return ACK_INVALID
    if size == 1 or acks_contain(acks, at):
        return acks_add(acks, at)
    if acks_is_beyond(acks, at):
        return ACK_INVALID
    batch = acks_batch_at(acks, at)
    if batch is NULL:
        fresh.at = at
        fresh.size = size
        fresh.left = size - 1
        fresh.bits = <uint64_t*>allocate_zeroed(<size_t>batch_words(size), sizeof(uint64_t))
        if fresh.bits is NULL:
            return ACK_NO_MEMORY
        fresh.bits[index >> 6] = <uint64_t>1 << (index & 63)
        if not blocks_insert(&acks.batches, blocks_above(&acks.batches, at), &fresh):
            release(fresh.bits)
            return ACK_NO_MEMORY
        acks.batch_bytes += batch_stored(size)
        return ACK_NEW
    if batch.size != size:
        return ACK_INVALID
    if (batch.bits[index >> 6] >> (index & 63)) & 1:
        return ACK_KNOWN
    if batch.left == 1:
        return acks_add(acks, at)
    batch.bits[index >> 6] |= <uint64_t>1 << (index & 63)
    batch.left -= 1
    return ACK_NEW


# Everything up to an entry.
cdef inline AckChange acks_add_up_to(AckRanges* acks, Position at) noexcept nogil:
    if not position_less(acks_mark(acks), at):
        return ACK_KNOWN
    if acks_is_beyond(acks, at):
        return ACK_INVALID
    acks_advance(acks, at)
    return ACK_NEW


# A ledger has no entry behind `last`, and the log goes on with entry 0 of the ledger `following`.
cdef inline AckChange acks_end_ledger(AckRanges* acks, Position last, int64_t following) noexcept nogil:
    cdef LedgerEnd* known = acks_end_of(acks, last.ledger_id)
    cdef LedgerEnd fresh
    cdef BlockSpot spot
    cdef AckRange* before
    cdef AckRange* behind
    cdef AckBatch* batch
    if following <= last.ledger_id or last.entry_id < -1:
        return ACK_INVALID
    if known is not NULL:
        if known.last.entry_id == last.entry_id and known.following == following:
            return ACK_KNOWN
        return ACK_INVALID
    if last.ledger_id < acks_mark(acks).ledger_id:
        return ACK_KNOWN
    # The acknowledged ranges behind the ledger's end.
    spot = blocks_above(&acks.ranges, last)
    before = acks_range_before(acks, spot)
    behind = <AckRange*>blocks_at(&acks.ranges, spot)
    batch = <AckBatch*>blocks_at(&acks.batches, blocks_above(&acks.batches, last))
    if ((acks_mark(acks).ledger_id == last.ledger_id and acks_mark(acks).entry_id > last.entry_id)
            or (before is not NULL and before.last.ledger_id == last.ledger_id
                and before.last.entry_id > last.entry_id)
            or (behind is not NULL and behind.first.ledger_id < following)
            or (batch is not NULL and batch.at.ledger_id < following)):
        return ACK_INVALID
    fresh.last = last
    fresh.following = following
    if not blocks_insert(&acks.ends, blocks_above(&acks.ends, last), &fresh):
        return ACK_NO_MEMORY
    if behind is not NULL and position_equal(behind.first, position(following, 0)):
        if position_equal(acks_mark(acks), last):
            acks_advance(acks, last)
        elif before is not NULL and position_equal(before.last, last):
            before.last = behind.last
            blocks_remove(&acks.ranges, spot)
    return ACK_NEW
