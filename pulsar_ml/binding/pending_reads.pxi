# The pending reads manager as a Python object. Native calls run no Python code: they make starts
# and callbacks due, which run afterwards (callbacks.pxi).

from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.pending_reads cimport (
    pending_reads_complete, pending_reads_destroy, pending_reads_expire, pending_reads_fail,
    pending_reads_init, pending_reads_invalidate, pending_reads_read, pending_reads_running,
)
from pulsar_ml.structures.pending_table cimport (
    PENDING_CLOSED, PENDING_DELIVERED, PENDING_FAILED, PENDING_INCOMPLETE, PENDING_OUT_OF_MEMORY,
    PENDING_TIMED_OUT, PendingCounts, PendingReads, PendingStatus, pending_was_token,
)

from pulsar_ml.errors import ReadTimeoutError, StorageError


cdef enum:
    # exceptions of failed reads that are kept for requests that still wait
    FAILURES = 1024


# A read of the storage to start.
cdef struct PendingStart:
    PendingStart* following
    uint64_t token
    int64_t first, last


# A request: what it needs, kept alive until it has its answer.
@cython.final
@cython.internal
cdef class PendingRequester(Callback):
    cdef PendingReadsManager reads
    cdef object callback
    cdef object expected_reads
    cdef object error

    def __dealloc__(self):
        release(self.due.entries)

    cdef void prepare(self) noexcept:
        if self.due.status != PENDING_DELIVERED:
            self.error = self.reads.error_of(<PendingStatus>self.due.status, self.due.failed)

    # The entries delivered. Without memory the rest of them is released.
    cdef list entries(self):
        cdef list delivered = []
        cdef int64_t i = 0
        try:
            for i in range(self.due.amount):
                delivered.append(None)
            for i in range(self.due.amount):
                delivered[i] = wrap_entry(&self.reads.shares.native, self.due.entries[i])
                self.due.entries[i] = 0
        finally:
            for i in range(self.due.amount):
                if self.due.entries[i]:
                    give_reference_back(self.reads.owner.memory, self.due.entries[i])
        return delivered

    cdef void run(self) noexcept:
        cdef list delivered = None
        try:
            if self.due.status == PENDING_DELIVERED:
                try:
                    delivered = self.entries()
                except MemoryError as error:
                    self.error = AllocationError("no memory for the entries of a read")
            self.callback(delivered, self.error)
        except BaseException as error:
            report_unraisable(error, self.callback)


# The start of a storage read is due: the call that made it starts it when the native call is over.
cdef void reads_start(
    void* context, uint64_t token, int64_t argument, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    cdef DueCallback* due = <DueCallback*>argument
    cdef PendingStart* start = <PendingStart*>allocate_zeroed(1, sizeof(PendingStart))
    if start is NULL:
        pending_reads_complete(<PendingReads*>context, token, PENDING_OUT_OF_MEMORY, NULL, 0)
        return
    start.token = token
    start.first = first
    start.last = last
    start.following = <PendingStart*>due.starts
    due.starts = start


cdef void reads_answer(
    void* context, int64_t argument, PendingStatus status, uint64_t failed, const uint32_t* entries,
    int64_t count
) noexcept nogil:
    cdef DueCallback* due = <DueCallback*>argument
    due.status = status
    due.failed = failed
    due.amount = count
    if count:
        memcpy(due.entries, entries, <size_t>count * sizeof(uint32_t))
    callback_due(due)


@cython.final
@cython.no_gc_clear
cdef class PendingReadsManager:
    """The storage reads of one managed ledger that are under way: no entry is read twice at a time.

    ``start_read(token, ledger_id, first, last, expected_reads)`` is called for each read of the
    storage, with the ``expected_reads`` of the request that makes it; it answers by
    :meth:`complete` or :meth:`fail`, once, from any thread, perhaps before it returns. What it
    raises fails the read. ``read_timeout_ms`` (0: none) applies when :meth:`expire` is called.

    All methods may be called from any number of threads, also from inside ``start_read`` and
    callbacks. Origin: ``PendingReadsManager`` of Pulsar 4.1.
    """

    cdef NativeMemory owner
    cdef MemoryShares shares
    cdef object clock           # the manager's
    cdef PendingReads native
    cdef object start_read
    cdef dict failures          # token -> exception, the latest of them
    cdef pml_u32 closed_mark    # 1 once close() was called

    def __cinit__(self, EntryCacheManager manager not None, start_read, *, read_timeout_ms=0):
        cdef int64_t timeout = to_span(read_timeout_ms, "read_timeout_ms", 0)
        self.owner = manager.owner
        self.shares = manager.shares
        self.clock = manager.clock
        self.start_read = check_callable(start_read, "start_read")
        self.failures = {}
        check_status(pending_reads_init(&self.native, &self.owner.memory.entries, reads_start, &self.native,
                                        timeout, READS_CHUNK_BITS, MOST_READS), position(0, 0))

    def __dealloc__(self):
        # A request keeps this object alive: none is under way.
        pending_reads_destroy(&self.native)

    def read(self, ledger_id, first, last, callback, *, expected_reads=None, now_ns=None) -> None:
        """Read the entries ``first`` .. ``last`` of a ledger, joined to what is under way.

        ``callback(entries, error)`` is called once, in the thread that completes the last part,
        perhaps before this returns: with the whole range in order, each entry the callback's own
        and counting a read, or with None and StorageError, ReadTimeoutError, ClosedError,
        AllocationError or what :meth:`fail` was given. What a callback raises goes to
        sys.unraisablehook.

        Raises InvalidPositionError, ClosedError, AllocationError.
        """
        cdef NativePosition low = to_stored((ledger_id, first), "position")
        cdef NativePosition high = to_stored((ledger_id, last), "position")
        cdef int64_t now = time_of(self.clock, now_ns, "now_ns")
        cdef Status status
        cdef PendingRequester requester
        check_range(low, high)
        if high.entry_id - low.entry_id >= INT32_MAX:
            raise InvalidPositionError(
                f"{first}..{last} of ledger {ledger_id} is more than {INT32_MAX} entries")
        if u32_load_relaxed(&self.closed_mark):
            raise ClosedError("the pending reads are closed")
        requester = PendingRequester.__new__(PendingRequester)
        requester.reads = self
        requester.callback = check_callable(callback, "callback")
        requester.expected_reads = expected_reads
        requester.due.entries = <uint32_t*>allocate_zeroed(
            <size_t>(high.entry_id - low.entry_id + 1), sizeof(uint32_t))
        if requester.due.entries is NULL:
            check_status(Status.PML_NO_MEMORY, low)
        cdef DueCallback* due = requester.start()
        with nogil:
            native_enter()
            status = pending_reads_read(&self.native, low.ledger_id, low.entry_id, high.entry_id, now,
                                        reads_answer, NULL, <int64_t>due)
            native_leave()
        if status != PML_OK:
            requester.cancel()
        self.begin(requester, low.ledger_id)
        run_callbacks()
        check_status(status, low)

    # Starts the storage reads that a request made due, in the order of their entries. The request
    # may have its answer meanwhile.
    cdef int begin(self, PendingRequester requester, int64_t ledger_id) except -1:
        cdef PendingStart* start = <PendingStart*>requester.due.starts
        cdef list starts = []
        requester.due.starts = NULL
        while start is not NULL:
            starts.append((start.first, start.last, start.token))
            requester.due.starts = start.following
            release(start)
            start = <PendingStart*>requester.due.starts
        for first, last, token in sorted(starts):
            try:
                self.start_read(token, ledger_id, first, last, requester.expected_reads)
            except BaseException as error:
                self.fail(token, error)
        return 0

    cdef uint64_t to_token(self, object value) except? 0:
        value = PyNumber_Index(value)
        if not 0 <= value < 1 << 64 or not pending_was_token(&self.native, value):
            raise UsageError(f"token={value!r} is none that start_read was called with")
        return value

    cdef object error_of(self, PendingStatus status, uint64_t failed):
        if status == PENDING_DELIVERED:
            return None
        if status == PENDING_FAILED:
            return self.failures.get(failed) or StorageError("the storage failed to read")
        if status == PENDING_INCOMPLETE:
            return StorageError("the answer of the storage lacks an entry of the read")
        if status == PENDING_TIMED_OUT:
            return ReadTimeoutError("the storage did not answer within read_timeout_ms")
        if status == PENDING_OUT_OF_MEMORY:
            return AllocationError("no native memory for a copy of an entry")
        return ClosedError("the pending reads were closed")

    def complete(self, token, list entries not None) -> bool:
        """The storage's answer to ``start_read``; False when the read was completed or timed out
        before.

        Takes over the entries, which are new ones that nobody else holds: they are released
        afterwards, whatever the answer. Foreign entries are released, and missing ones fail the
        requests that need them. UsageError, and then nothing happened, for an entry of another
        manager, with a view that is open, or held elsewhere, or for a token that ``start_read`` was
        never called with.
        """
        cdef uint64_t native_token = self.to_token(token)
        cdef int64_t count, i
        cdef Entry entry
        cdef bint taken
        cdef uint32_t* handles
        entries = claim_all(entries, self.owner)
        count = len(entries)
        handles = <uint32_t*>allocate_zeroed(count + 1, sizeof(uint32_t))
        if handles is NULL:
            end_claims(entries)
            raise AllocationError(f"no native memory for an answer of {count} entries")
        for i in range(count):
            entry = entries[i]
            handles[i] = entry.handle
            entry.handle = 0
            # A claimed entry without a view has no use that could end meanwhile.
            u32_store_release(&entry.uses, ENTRY_RELEASED)
        with nogil:
            native_enter()
            taken = pending_reads_complete(&self.native, native_token, PENDING_DELIVERED, handles, count)
            release(handles)
            native_leave()
        run_callbacks()
        return taken

    def fail(self, token, error) -> bool:
        """The storage's failure; False when the read was completed or timed out before."""
        cdef uint64_t native_token = self.to_token(token)
        cdef bint taken
        if not isinstance(error, BaseException):
            raise TypeError(f"error={error!r} must be an exception")
        with cython.critical_section(self):
            self.failures[native_token] = error
            while len(self.failures) > FAILURES:
                self.failures.pop(next(iter(self.failures)), None)
        with nogil:
            native_enter()
            taken = pending_reads_complete(&self.native, native_token, PENDING_FAILED, NULL, 0)
            native_leave()
        run_callbacks()
        if not taken:
            self.failures.pop(native_token, None)
        return taken

    def invalidate_ledger(self, ledger_id) -> None:
        """Keep new requests from joining the reads of a ledger.

        Waiting requests get their answers.
        """
        cdef int64_t native_id = to_id(ledger_id, "ledger_id")
        with nogil:
            native_enter()
            pending_reads_invalidate(&self.native, native_id)
            native_leave()

    def expire(self, *, now_ns=None) -> int:
        """Fail every read that is older than its timeout; how many."""
        cdef int64_t now = time_of(self.clock, now_ns, "now_ns")
        cdef int64_t expired
        with nogil:
            native_enter()
            expired = pending_reads_expire(&self.native, now)
            native_leave()
        run_callbacks()
        return expired

    @property
    def running(self) -> int:
        """Reads of the storage that are under way."""
        cdef int64_t running
        with nogil:
            native_enter()
            running = pending_reads_running(&self.native)
            native_leave()
        return running

    def counts(self) -> dict[str, int]:
        """Entries by how requests met reads, named as in Pulsar's
        ``pulsar_ml_cache_pendingreads_*``.
        """
        cdef PendingCounts counts
        with nogil:
            native_enter()
            monitor_enter(&self.native.monitor)
            counts = self.native.counts
            monitor_leave(&self.native.monitor)
            native_leave()
        return {
            "entries_read": counts.read,
            "entries_notread": counts.not_read,
            "matched": counts.matched,
            "matched_included": counts.matched_included,
            "missed": counts.missed,
            "matched_overlapping_miss_left": counts.matched_overlapping_miss_left,
            "matched_overlapping_miss_right": counts.matched_overlapping_miss_right,
            "matched_overlapping_miss_both": counts.matched_overlapping_miss_both,
        }

    def close(self) -> None:
        """Fail every read that is under way with ClosedError, and refuse what comes."""
        u32_store_relaxed(&self.closed_mark, 1)
        with nogil:
            native_enter()
            pending_reads_fail(&self.native, PENDING_CLOSED)
            native_leave()
        run_callbacks()
