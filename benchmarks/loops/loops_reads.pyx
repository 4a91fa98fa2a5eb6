"""The measured loops of storage reads: native, without the GIL, each returning nanoseconds."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.structures.entry cimport (
    EntryPool, Payload, entry_new, entry_pool_destroy, entry_pool_init, entry_release, payload_new,
)
from pulsar_ml.structures.inflight_limiter cimport (
    InflightLimiter, limiter_acquire, limiter_destroy, limiter_init, limiter_release,
)
from pulsar_ml.structures.pending_reads cimport (
    pending_reads_complete, pending_reads_destroy, pending_reads_fail, pending_reads_init,
    pending_reads_read,
)
from pulsar_ml.structures.pending_table cimport (
    PENDING_CLOSED, PENDING_DELIVERED, PENDING_FAILED, PendingRead, PendingReads, PendingStatus,
    pending_read_at,
)
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.clock cimport monotonic_ns

cdef enum:
    PERMITS = 1000
    RANGE = 100             # entries of a request


cdef bint take(void* context, int64_t argument, int64_t permits, bint granted) noexcept nogil:
    (<int64_t*>context)[0] = permits
    return True


def limiter_uncontended(int64_t count) -> int:
    """Acquire and release, nobody waiting."""
    cdef InflightLimiter limiter
    cdef int64_t start, i, taken, granted = 0
    if limiter_init(&limiter, PERMITS, 1, 16, 4, 16) != PML_OK:
        raise MemoryError
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            limiter_acquire(&limiter, PERMITS, 0, take, &granted, 0, &taken)
            limiter_release(&limiter, taken)
        start = monotonic_ns() - start
    limiter_destroy(&limiter)
    return start


def limiter_waiting(int64_t count) -> int:
    """A request that waits for the one before it, and is told when that gives back."""
    cdef InflightLimiter limiter
    cdef int64_t start, i, taken, granted = 0
    if limiter_init(&limiter, PERMITS, 1, 16, 4, 16) != PML_OK:
        raise MemoryError
    with nogil:
        limiter_acquire(&limiter, PERMITS, 0, take, &granted, 0, &taken)
        start = monotonic_ns()
        for i in range(count):
            limiter_acquire(&limiter, PERMITS, 0, take, &granted, 0, &taken)
            limiter_release(&limiter, PERMITS)
        start = monotonic_ns() - start
        limiter_release(&limiter, PERMITS)
    limiter_destroy(&limiter)
    if granted != PERMITS:
        raise AssertionError(f"told {granted} permits, not {PERMITS}")
    return start


cdef struct Bench:
    EntryPool entries
    PendingReads reads
    uint64_t token
    int64_t first, last
    int64_t delivered


cdef void remember(
    void* context, uint64_t token, int64_t argument, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    cdef Bench* bench = <Bench*>context
    bench.token = token
    bench.first = first
    bench.last = last


cdef void receive(
    void* context, int64_t argument, PendingStatus status, uint64_t failed, const uint32_t* entries,
    int64_t count
) noexcept nogil:
    cdef Bench* bench = <Bench*>context
    cdef int64_t i
    for i in range(count):
        entry_release(&bench.entries, entries[i], 1)
    bench.delivered += count


cdef int64_t run(int64_t count, int requests) except -1:
    cdef Bench bench
    cdef uint32_t[RANGE] entries
    cdef int64_t start, i, n, began, prepared = 0
    bench.delivered = 0
    if (entry_pool_init(&bench.entries, 12, 1 << 20) != PML_OK
            or pending_reads_init(&bench.reads, &bench.entries, remember, &bench, 0, 4, 64) != PML_OK):
        raise MemoryError
    with nogil:
        start = monotonic_ns()
        for i in range(count // RANGE):
            for n in range(requests):
                pending_reads_read(&bench.reads, 1, 0, RANGE - 1, 0, receive, &bench, 0)
            # The storage's work is not the structure's.
            began = monotonic_ns()
            for n in range(RANGE):
                entries[n] = entry_new(
                    &bench.entries, position(1, n), payload_new(&bench.entries.payloads, 1), 0, True)
            prepared += monotonic_ns() - began
            pending_reads_complete(&bench.reads, bench.token, PENDING_DELIVERED, entries, RANGE)
        start = monotonic_ns() - start - prepared
    pending_reads_destroy(&bench.reads)
    entry_pool_destroy(&bench.entries)
    if bench.delivered != count // RANGE * RANGE * requests:
        raise AssertionError(f"{bench.delivered} entries were delivered")
    return start


def pending_alone(int64_t count) -> int:
    """One request for each read, which gets the entries of the storage."""
    return run(count, 1)


def pending_joined(int64_t count) -> int:
    """Two requests for each read, which get copies."""
    return run(count, 2)


def pending_beside(int64_t count, int64_t others) -> int:
    """A read of one entry begins and fails, while so many others are under way."""
    cdef Bench bench
    cdef int64_t start, i
    bench.delivered = 0
    begin_apart(&bench, others, 1)
    with nogil:
        start = monotonic_ns()
        for i in range(count):
            # Between two others, in no order.
            pending_reads_read(&bench.reads, 1, i * 7919 % others * 2 + 1, i * 7919 % others * 2 + 1, 0,
                               receive, &bench, 0)
            pending_reads_complete(&bench.reads, bench.token, PENDING_FAILED, NULL, 0)
        start = monotonic_ns() - start
    end_apart(&bench)
    return start


def pending_steps(int64_t count, int64_t stride) -> tuple[int, int]:
    """The steps of the longest search and of all, for each of so many reads that are under way.

    They begin in the order of 0, stride, 2 * stride, ... modulo ``count``.
    """
    cdef Bench bench
    cdef PendingRead* read
    cdef uint32_t handle
    cdef int64_t i, steps, longest = 0, together = 0
    bench.delivered = 0
    begin_apart(&bench, count, stride)
    for i in range(count):
        handle = bench.reads.index
        steps = 1
        while pending_read_at(&bench.reads, handle).first != 2 * i:
            read = pending_read_at(&bench.reads, handle)
            handle = read.left if read.first > 2 * i else read.right
            steps += 1
        longest = max(longest, steps)
        together += steps
    end_apart(&bench)
    return longest, together


# Begins reads of every other entry.
cdef int begin_apart(Bench* bench, int64_t count, int64_t stride) except -1:
    cdef int64_t i, first
    if (entry_pool_init(&bench.entries, 12, 1 << 20) != PML_OK
            or pending_reads_init(&bench.reads, &bench.entries, remember, bench, 0, 10, 1 << 20) != PML_OK):
        raise MemoryError
    for i in range(count):
        first = i * stride % count * 2
        pending_reads_read(&bench.reads, 1, first, first, 0, receive, bench, 0)
    return 0


cdef void end_apart(Bench* bench) noexcept:
    pending_reads_fail(&bench.reads, PENDING_CLOSED)
    pending_reads_destroy(&bench.reads)
    entry_pool_destroy(&bench.entries)
