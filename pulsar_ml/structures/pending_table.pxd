# The reads of one managed ledger that are under way and the requests that wait for them: types,
# lists, the index of reads, and how a request is split. A part of pending_reads.
#
# Origin       The map of PendingReadsManager (Pulsar 4.1). The original tries an exact match, one
#              that includes the request, and partial ones in an order of preference, looks at every
#              read of the ledger for each, and searches again. Reads that can be joined never
#              overlap here, so a request splits in one way. Their index is a treap (Seidel and
#              Aragon, 1996) by ledger and first entry, with a hash of the handle as the priority:
#              the steps of a search grow with the logarithm of the reads under way.
# Threads      Under the monitor of PendingReads, but for what says otherwise.
# Invariants   PR-7 the reads of a ledger that can be joined do not overlap.
#              PR-9 a search finds the first of the reads that can be joined, and no other read.
#              PR-10 a number that a read was started with counts as a token for ever, and 0 never
#              does.
# Ordering     The monitor's.
# Reclamation  See pending_reads.pxd.
# Not promised A bound of the steps of one search: the logarithm is of the average.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.structures.entry cimport EntryPool
from pulsar_ml.structures.object_pool cimport Pool, pool_at, pool_give, pool_take
from pulsar_ml.sync.atomics cimport (
    i32_load_relaxed, i32_store_relaxed, pml_i32, pml_i64, pml_u32, u32_load_relaxed,
)


# How a request was answered.
cdef enum PendingStatus:
    PENDING_DELIVERED = 0
    PENDING_FAILED = 1      # the storage said so
    PENDING_INCOMPLETE = 2  # the storage left out an entry
    PENDING_TIMED_OUT = 3
    PENDING_OUT_OF_MEMORY = 4
    PENDING_CLOSED = 5


# Starts to read [first, last] of a ledger. pending_reads_complete(token) once, from any thread,
# perhaps before this returns. The argument is that of the request that makes the read.
ctypedef void (*StorageStart)(
    void* context, uint64_t token, int64_t argument, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil

# Answers a request: the entries of its range, each with a reference that is the listener's now, or
# none and the token of the read that failed first. The array is gone when this returns.
ctypedef void (*ReadListener)(
    void* context, int64_t argument, PendingStatus status, uint64_t failed, const uint32_t* entries,
    int64_t count
) noexcept nogil


cdef struct StorageTable:
    StorageStart start
    void* context


# A read of the storage.
cdef struct PendingRead:
    int64_t ledger_id
    int64_t first, last
    int64_t since
    uint32_t generation     # of its token; another one after it was completed
    uint32_t listeners      # parts that wait for it
    uint32_t before, after  # in the order in which they began
    uint32_t left, right    # of the index: reads before this one and behind it
    bint joinable           # in the index; not once its ledger was invalidated
    pml_i64 link            # next free read while pooled


# The part of one request that one read serves.
cdef struct PendingPart:
    PendingRequest* request
    int64_t first, last
    uint64_t token
    uint32_t next_part      # of the request
    uint32_t next_listener  # of the read
    bint creates            # the request starts that read
    pml_i64 link            # next free part while pooled


# A request under way; its slots follow.
cdef struct PendingRequest:
    pml_i32 left            # parts that are not done, and one for the thread that makes it
    pml_i32 status          # the first failure
    uint64_t failed         # the token of that read
    int64_t ledger_id
    int64_t first
    int64_t count
    uint32_t parts
    ReadListener listener
    void* context
    int64_t argument


# Entries, not requests: read from storage or not, and by how requests met reads.
cdef struct PendingCounts:
    int64_t read
    int64_t not_read
    int64_t matched
    int64_t matched_included
    int64_t missed
    int64_t matched_overlapping_miss_left
    int64_t matched_overlapping_miss_right
    int64_t matched_overlapping_miss_both


cdef struct PendingReads:
    Pool reads
    Pool parts
    EntryPool* entries
    StorageTable storage
    int64_t timeout         # nanoseconds; 0 or less: none
    pml_u32 monitor
    # Under the monitor.
    int64_t now             # the latest time that a call named
    uint32_t oldest, newest
    uint32_t index          # the read at the root, or 0
    int64_t running
    PendingCounts counts


cdef inline PendingRead* pending_read_at(const PendingReads* reads, uint32_t handle) noexcept nogil:
    return <PendingRead*>pool_at(&reads.reads, handle)


# True if the number can be a token: of a read under way or of an earlier one.
cdef inline bint pending_was_token(const PendingReads* reads, uint64_t token) noexcept nogil:
    return <uint32_t>token != 0 and <uint32_t>token < u32_load_relaxed(&reads.reads.used)


cdef inline PendingPart* pending_part_at(const PendingReads* reads, uint32_t handle) noexcept nogil:
    return <PendingPart*>pool_at(&reads.parts, handle)


cdef inline uint32_t* pending_slots(PendingRequest* request) noexcept nogil:
    return <uint32_t*>(<char*>request + sizeof(PendingRequest))


# Under the monitor: the index --------------------------------------------------------------------

# The priority of a read, different for each handle: the finalizer of MurmurHash3 (Appleby, 2010).
cdef inline uint32_t pending_priority(uint32_t handle) noexcept nogil:
    handle = (handle ^ handle >> 16) * <uint32_t>0x85EBCA6B
    handle = (handle ^ handle >> 13) * <uint32_t>0xC2B2AE35
    return handle ^ handle >> 16


# Two reads of one first entry exist only where PR-7 is broken; their handles order them.
cdef inline bint pending_precedes(const PendingReads* reads, uint32_t one, uint32_t other) noexcept nogil:
    cdef PendingRead* a = pending_read_at(reads, one)
    cdef PendingRead* b = pending_read_at(reads, other)
    if a.ledger_id != b.ledger_id:
        return a.ledger_id < b.ledger_id
    if a.first != b.first:
        return a.first < b.first
    return one < other


cdef inline void pending_index_add(PendingReads* reads, uint32_t handle) noexcept nogil:
    cdef PendingRead* read = pending_read_at(reads, handle)
    cdef PendingRead* other
    cdef uint32_t* place = &reads.index
    cdef uint32_t* left = &read.left
    cdef uint32_t* right = &read.right
    cdef uint32_t rest
    while place[0] and pending_priority(place[0]) > pending_priority(handle):
        other = pending_read_at(reads, place[0])
        place = &other.left if pending_precedes(reads, handle, place[0]) else &other.right
    rest = place[0]
    place[0] = handle
    # What was here is split into the reads before the new one and those behind it.
    while rest:
        other = pending_read_at(reads, rest)
        if pending_precedes(reads, rest, handle):
            left[0] = rest
            left = &other.right
            rest = other.right
        else:
            right[0] = rest
            right = &other.left
            rest = other.left
    left[0] = 0
    right[0] = 0


cdef inline void pending_index_remove(PendingReads* reads, uint32_t handle) noexcept nogil:
    cdef PendingRead* read = pending_read_at(reads, handle)
    cdef PendingRead* other
    cdef uint32_t* place = &reads.index
    cdef uint32_t left = read.left
    cdef uint32_t right = read.right
    while place[0] != handle:
        other = pending_read_at(reads, place[0])
        place = &other.left if pending_precedes(reads, handle, place[0]) else &other.right
    # The reads below it are merged into its place.
    while left and right:
        if pending_priority(left) > pending_priority(right):
            place[0] = left
            place = &pending_read_at(reads, left).right
            left = place[0]
        else:
            place[0] = right
            place = &pending_read_at(reads, right).left
            right = place[0]
    place[0] = left or right


# The first of the reads that overlap [first, last] and can be joined, or 0.
cdef inline uint32_t pending_find(
    const PendingReads* reads, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    cdef uint32_t handle = reads.index
    cdef uint32_t found = 0
    cdef PendingRead* read
    # The first read of the index that does not end before: the last entries are in order, too.
    while handle:
        read = pending_read_at(reads, handle)
        if read.ledger_id < ledger_id or (read.ledger_id == ledger_id and read.last < first):
            handle = read.right
        else:
            found = handle
            handle = read.left
    if found:
        read = pending_read_at(reads, found)
        if read.ledger_id != ledger_id or read.first > last:
            return 0
    return found


# Keeps requests from joining a read.
cdef inline void pending_close_read(PendingReads* reads, uint32_t handle) noexcept nogil:
    cdef PendingRead* read = pending_read_at(reads, handle)
    if read.joinable:
        pending_index_remove(reads, handle)
        read.joinable = False


# Under the monitor: reads ------------------------------------------------------------------------

cdef inline uint32_t pending_begin(
    PendingReads* reads, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    cdef uint32_t handle = pool_take(&reads.reads)
    cdef PendingRead* read
    if not handle:
        return 0
    read = pending_read_at(reads, handle)
    read.ledger_id = ledger_id
    read.first = first
    read.last = last
    read.since = reads.now
    read.listeners = 0
    read.joinable = True
    read.before = reads.newest
    read.after = 0
    if reads.newest:
        pending_read_at(reads, reads.newest).after = handle
    else:
        reads.oldest = handle
    reads.newest = handle
    reads.running += 1
    pending_index_add(reads, handle)
    return handle


# Takes a read out of the list and the index: no request finds it any more.
cdef inline void pending_unlink(PendingReads* reads, uint32_t handle) noexcept nogil:
    cdef PendingRead* read = pending_read_at(reads, handle)
    pending_close_read(reads, handle)
    if read.before:
        pending_read_at(reads, read.before).after = read.after
    else:
        reads.oldest = read.after
    if read.after:
        pending_read_at(reads, read.after).before = read.before
    else:
        reads.newest = read.before
    reads.running -= 1
    read.generation += 1


# Under the monitor: requests ---------------------------------------------------------------------

# Lets the request wait for [first, last] of a read, of a new one when `handle` is 0. False when
# memory ran out.
cdef inline bint pending_attach(
    PendingReads* reads, PendingRequest* request, uint32_t handle, int64_t first, int64_t last
) noexcept nogil:
    cdef uint32_t fresh = pool_take(&reads.parts)
    cdef PendingPart* part
    cdef PendingRead* read
    if not fresh:
        return False
    part = pending_part_at(reads, fresh)
    part.creates = handle == 0
    if part.creates:
        handle = pending_begin(reads, request.ledger_id, first, last)
        if not handle:
            pool_give(&reads.parts, fresh)
            return False
    read = pending_read_at(reads, handle)
    part.request = request
    part.first = first
    part.last = last
    part.token = <uint64_t>read.generation << 32 | handle
    part.next_listener = read.listeners
    read.listeners = fresh
    part.next_part = request.parts
    request.parts = fresh
    i32_store_relaxed(&request.left, i32_load_relaxed(&request.left) + 1)
    return True


# Counts how [first, last] met the read that overlaps it first, as the original does when it
# searches for the rest again.
cdef inline void pending_count_match(
    PendingCounts* counts, const PendingRead* read, int64_t first, int64_t last
) noexcept nogil:
    cdef int64_t matched = min(read.last, last) - max(read.first, first) + 1
    counts.not_read += matched
    if read.first == first and read.last == last:
        counts.matched += matched
    elif read.first <= first and read.last >= last:
        counts.matched_included += matched
    elif read.first <= first:
        counts.matched_overlapping_miss_right += matched
    elif read.last >= last:
        counts.matched_overlapping_miss_left += matched
    else:
        counts.matched_overlapping_miss_both += matched


# Splits a request among the reads that are under way, and new ones for what is between them. False
# when memory ran out.
cdef inline bint pending_split(
    PendingReads* reads, PendingRequest* request, PendingCounts* counts
) noexcept nogil:
    cdef int64_t first = request.first
    cdef int64_t last = request.first + request.count - 1
    cdef int64_t end
    cdef uint32_t handle
    cdef PendingRead* read
    while True:
        handle = pending_find(reads, request.ledger_id, first, last)
        end = last
        if handle:
            read = pending_read_at(reads, handle)
            pending_count_match(counts, read, first, last)
            if read.first > first:
                counts.read += read.first - first
                if not pending_attach(reads, request, 0, first, read.first - 1):
                    return False
                first = read.first
            end = min(read.last, last)
        else:
            counts.read += last - first + 1
            counts.missed += last - first + 1
        if not pending_attach(reads, request, handle, first, end):
            return False
        if end == last:
            return True
        first = end + 1


# Takes a request out again that got only some of its parts; nobody was inside meanwhile, so each is
# the first listener of its read.
cdef inline void pending_detach(PendingReads* reads, PendingRequest* request) noexcept nogil:
    cdef uint32_t handle = request.parts
    cdef uint32_t next_part
    cdef PendingPart* part
    cdef PendingRead* read
    while handle:
        part = pending_part_at(reads, handle)
        read = pending_read_at(reads, <uint32_t>part.token)
        read.listeners = part.next_listener
        if part.creates:
            pending_unlink(reads, <uint32_t>part.token)
            pool_give(&reads.reads, <uint32_t>part.token)
        next_part = part.next_part
        pool_give(&reads.parts, handle)
        handle = next_part


cdef inline void pending_add_counts(PendingCounts* to, const PendingCounts* counts) noexcept nogil:
    to.read += counts.read
    to.not_read += counts.not_read
    to.matched += counts.matched
    to.matched_included += counts.matched_included
    to.missed += counts.missed
    to.matched_overlapping_miss_left += counts.matched_overlapping_miss_left
    to.matched_overlapping_miss_right += counts.matched_overlapping_miss_right
    to.matched_overlapping_miss_both += counts.matched_overlapping_miss_both
