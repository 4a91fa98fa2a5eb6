# The storage reads of one managed ledger that are under way, joined and split so that no entry is
# read twice at a time.
#
# Origin       PendingReadsManager (Pulsar 4.1). The original has a monitor for its map and one for
#              each read, and a joiner that lost searches again; here one monitor covers both, so
#              what is found can be joined. Reads that can be joined never overlap, so a request
#              splits in one way. The read timeout of ManagedLedgerImpl is here too, with a token
#              for each read (#4437, #26081).
# Threads      Any thread, at any time between init and destroy, also from inside a listener or a
#              start.
# Invariants   PR-1 (I82) a request that was accepted is answered once.
#              PR-2 (I83) no request joins a read that was completed.
#              PR-3 (I84) storage is started, and requests are answered, outside the monitor.
#              PR-4 (I85) an answer is the whole range, ascending, each entry once, or a failure.
#              PR-5 (I86) every entry that storage answers is delivered or released.
#              PR-6 (I68) an entry that is not delivered marks no read.
#              PR-8 a read is completed once: a later completion is refused and its entries
#              released.
# Ordering     The monitor's. Filling a slot -> the last part of a request (see refcount.pxd).
# Reclamation  Reads and parts are pooled and looked at under the monitor, or by their only owner. A
#              request is freed by its last part. destroy: nobody inside and no read under way.
# Not promised An order among answers. That a request fails at once when one of its parts does: it
#              waits for all of them.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.entry cimport (
    EntryPool, entry_at, entry_copy, entry_not_delivered, entry_release,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport pool_destroy, pool_give, pool_init
from pulsar_ml.structures.pending_table cimport (
    PENDING_DELIVERED, PENDING_INCOMPLETE, PENDING_OUT_OF_MEMORY, PENDING_TIMED_OUT, PendingCounts,
    PendingPart, PendingRead, PendingReads, PendingRequest, PendingStatus, ReadListener, StorageStart,
    pending_add_counts, pending_close_read, pending_detach, pending_find, pending_part_at,
    pending_read_at, pending_slots, pending_split, pending_unlink,
)
from pulsar_ml.structures.refcount cimport RELEASED_LAST, refcount_release
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport i32_cas_weak_relaxed, i32_load_relaxed, i32_store_relaxed
from pulsar_ml.sync.memory cimport allocate_zeroed, release


# limit: most reads, and most parts, under way at a time.
cdef inline Status pending_reads_init(
    PendingReads* reads, EntryPool* entries, StorageStart start, void* context, int64_t timeout,
    uint32_t chunk_bits, uint32_t limit
) noexcept nogil:
    cdef Status status
    memset(reads, 0, sizeof(PendingReads))
    reads.entries = entries
    reads.storage.start = start
    reads.storage.context = context
    reads.timeout = timeout
    status = pool_init(&reads.reads, sizeof(PendingRead), <size_t>&(<PendingRead*>NULL).link, chunk_bits,
                       limit)
    if status == PML_OK:
        status = pool_init(&reads.parts, sizeof(PendingPart), <size_t>&(<PendingPart*>NULL).link, chunk_bits,
                           limit)
    if status != PML_OK:
        pending_reads_destroy(reads)
    return status


cdef inline void pending_reads_destroy(PendingReads* reads) noexcept nogil:
    pool_destroy(&reads.reads)
    pool_destroy(&reads.parts)


# Outside the monitor: answers --------------------------------------------------------------------

# Gives back entries that nobody gets.
cdef inline void pending_discard(EntryPool* pool, const uint32_t* entries, int64_t count) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if entries[i]:
            entry_not_delivered(pool, entries[i])
            entry_release(pool, entries[i], 1)


# The index before that of a part's first entry, in an answer that has the entries in order.
cdef inline int64_t pending_expected_at(
    PendingReads* reads, const PendingPart* part, const uint32_t* entries, int64_t count
) noexcept nogil:
    cdef int64_t at = -1
    if count and entries[0]:
        at += part.first - entry_at(reads.entries, entries[0]).entry_id
    return at if 0 <= at < count else -1


# Moves what belongs to a part into the slots of its request, or copies it there when others want it
# too. An entry outside the read, or of another ledger, or a second one of a position stays
# where it is. Storage usually answers in order, so the look begins where that would have the part.
cdef inline PendingStatus pending_fill(
    PendingReads* reads, PendingPart* part, uint32_t* entries, int64_t count, bint shared
) noexcept nogil:
    cdef uint32_t* slots = pending_slots(part.request)
    cdef int64_t missing = part.last - part.first + 1
    cdef int64_t i = pending_expected_at(reads, part, entries, count)
    cdef int64_t looked, entry_id
    cdef uint32_t entry
    for looked in range(count):
        if not missing:
            break
        i = i + 1 if i + 1 < count else 0
        if not entries[i] or entry_at(reads.entries, entries[i]).ledger_id != part.request.ledger_id:
            continue
        entry_id = entry_at(reads.entries, entries[i]).entry_id
        # In 64 bits, before it becomes an index.
        if entry_id < part.first or entry_id > part.last or slots[entry_id - part.request.first]:
            continue
        entry = entries[i]
        if shared:
            entry = entry_copy(reads.entries, entry, True)
            if not entry:
                return PENDING_OUT_OF_MEMORY
        else:
            entries[i] = 0
        slots[entry_id - part.request.first] = entry
        missing -= 1
    return PENDING_INCOMPLETE if missing else PENDING_DELIVERED


cdef inline void pending_fail(PendingRequest* request, PendingStatus status, uint64_t token) noexcept nogil:
    cdef int32_t seen = 0
    # Fails spuriously, or when another part failed first.
    while seen == 0:
        if i32_cas_weak_relaxed(&request.status, &seen, status):
            # Its only writer; the last part reads it.
            request.failed = token
            return


cdef inline void pending_part_done(PendingReads* reads, PendingRequest* request) noexcept nogil:
    # Orders the slots and the status of all parts before the answer.
    if refcount_release(&request.left, 1) == RELEASED_LAST:
        pending_answer(reads, request)


cdef inline void pending_answer(PendingReads* reads, PendingRequest* request) noexcept nogil:
    cdef PendingStatus status = <PendingStatus>i32_load_relaxed(&request.status)
    cdef uint32_t handle = request.parts
    cdef uint32_t next_part
    while handle:
        next_part = pending_part_at(reads, handle).next_part
        pool_give(&reads.parts, handle)
        handle = next_part
    if status == PENDING_DELIVERED:
        request.listener(request.context, request.argument, status, 0, pending_slots(request), request.count)
    else:
        pending_discard(reads.entries, pending_slots(request), request.count)
        request.listener(request.context, request.argument, status, request.failed, NULL, 0)
    release(request)


# Answers the parts that waited for a read, and takes over its entries.
cdef inline void pending_deliver(
    PendingReads* reads, uint32_t listeners, uint64_t token, PendingStatus status, uint32_t* entries,
    int64_t count
) noexcept nogil:
    cdef PendingPart* part
    cdef PendingRequest* request
    cdef PendingStatus outcome
    cdef bint shared = listeners != 0 and pending_part_at(reads, listeners).next_listener != 0
    while listeners:
        part = pending_part_at(reads, listeners)
        request = part.request
        # The part goes with its request.
        listeners = part.next_listener
        outcome = status
        if status == PENDING_DELIVERED:
            outcome = pending_fill(reads, part, entries, count, shared)
        if outcome != PENDING_DELIVERED:
            pending_fail(request, outcome, token)
        pending_part_done(reads, request)
    pending_discard(reads.entries, entries, count)


# Operations --------------------------------------------------------------------------------------

# Reads [first, last] of a ledger, 0 <= first <= last, at most 2^31 entries. PML_OK: the listener is
# called once, perhaps before this returns. PML_NO_MEMORY: it is not, and nothing changed.
cdef inline Status pending_reads_read(
    PendingReads* reads, int64_t ledger_id, int64_t first, int64_t last, int64_t now, ReadListener listener,
    void* context, int64_t argument
) noexcept nogil:
    cdef int64_t count = last - first + 1
    cdef PendingRequest* request = <PendingRequest*>allocate_zeroed(
        1, sizeof(PendingRequest) + <size_t>count * sizeof(uint32_t))
    cdef PendingCounts counts
    cdef bint split
    if request is NULL:
        return PML_NO_MEMORY
    i32_store_relaxed(&request.left, 1)
    request.ledger_id = ledger_id
    request.first = first
    request.count = count
    request.listener = listener
    request.context = context
    request.argument = argument
    memset(&counts, 0, sizeof(PendingCounts))
    monitor_enter(&reads.monitor)
    if <int64_t>(<uint64_t>now - <uint64_t>reads.now) > 0:
        reads.now = now
    split = pending_split(reads, request, &counts)
    if split:
        pending_add_counts(&reads.counts, &counts)
    else:
        pending_detach(reads, request)
    monitor_leave(&reads.monitor)
    if not split:
        release(request)
        return PML_NO_MEMORY
    pending_start(reads, request)
    pending_part_done(reads, request)
    return PML_OK


# Starts all reads that a request made, none after the other. The request's own count keeps its
# parts.
cdef inline void pending_start(PendingReads* reads, PendingRequest* request) noexcept nogil:
    cdef uint32_t handle = request.parts
    cdef PendingPart* part
    while handle:
        part = pending_part_at(reads, handle)
        if part.creates:
            reads.storage.start(reads.storage.context, part.token, request.argument, request.ledger_id,
                                part.first, part.last)
        handle = part.next_part


# The answer to a start: entries with one reference each, which nobody else holds and which count a
# read; or a failure, then usually none. Takes over the entries and overwrites the array. False when
# the read was completed before.
cdef inline bint pending_reads_complete(
    PendingReads* reads, uint64_t token, PendingStatus status, uint32_t* entries, int64_t count
) noexcept nogil:
    cdef uint32_t handle = <uint32_t>token
    cdef PendingRead* read = pending_read_at(reads, handle)
    cdef uint32_t listeners
    monitor_enter(&reads.monitor)
    if read.generation != token >> 32:
        monitor_leave(&reads.monitor)
        pending_discard(reads.entries, entries, count)
        return False
    pending_unlink(reads, handle)
    listeners = read.listeners
    monitor_leave(&reads.monitor)
    pool_give(&reads.reads, handle)
    pending_deliver(reads, listeners, token, status, entries, count)
    return True


# Keeps new requests from joining the reads of that ledger; waiting requests get their answers.
cdef inline void pending_reads_invalidate(PendingReads* reads, int64_t ledger_id) noexcept nogil:
    cdef uint32_t handle
    monitor_enter(&reads.monitor)
    while True:
        handle = pending_find(reads, ledger_id, INT64_MIN, INT64_MAX)
        if not handle:
            break
        pending_close_read(reads, handle)
    monitor_leave(&reads.monitor)


# The token of a read that took too long, 0 when there is none.
cdef inline uint64_t pending_overdue(PendingReads* reads, int64_t now) noexcept nogil:
    cdef uint64_t token = 0
    cdef PendingRead* read
    monitor_enter(&reads.monitor)
    if <int64_t>(<uint64_t>now - <uint64_t>reads.now) > 0:
        reads.now = now
    if reads.oldest:
        read = pending_read_at(reads, reads.oldest)
        if <int64_t>(<uint64_t>reads.now - <uint64_t>read.since) >= reads.timeout:
            token = <uint64_t>read.generation << 32 | reads.oldest
    monitor_leave(&reads.monitor)
    return token


# Fails the reads that took too long; how many. A late answer of the storage is refused.
cdef inline int64_t pending_reads_expire(PendingReads* reads, int64_t now) noexcept nogil:
    cdef int64_t expired = 0
    cdef uint64_t token
    while reads.timeout > 0:
        token = pending_overdue(reads, now)
        if not token:
            break
        expired += pending_reads_complete(reads, token, PENDING_TIMED_OUT, NULL, 0)
    return expired


# Fails every read that is under way.
cdef inline void pending_reads_fail(PendingReads* reads, PendingStatus status) noexcept nogil:
    cdef uint64_t token
    while True:
        monitor_enter(&reads.monitor)
        token = 0
        if reads.oldest:
            token = <uint64_t>pending_read_at(reads, reads.oldest).generation << 32 | reads.oldest
        monitor_leave(&reads.monitor)
        if not token:
            return
        pending_reads_complete(reads, token, status, NULL, 0)


cdef inline int64_t pending_reads_running(PendingReads* reads) noexcept nogil:
    cdef int64_t running
    monitor_enter(&reads.monitor)
    running = reads.running
    monitor_leave(&reads.monitor)
    return running
