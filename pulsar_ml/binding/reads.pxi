# Storage reads as Python objects: the in-flight read limiter and the pending reads manager. Native
# calls run no Python code: they make callbacks due, which run afterwards (callbacks.pxi).

from collections import OrderedDict

from pulsar_ml.structures.entry cimport entry_on_deallocate
from pulsar_ml.structures.inflight_limiter cimport (
    PERMITS_GRANTED, Acquired, InflightLimiter, limiter_acquire, limiter_close,
    limiter_copy_released, limiter_destroy, limiter_expire, limiter_init, limiter_release,
    limiter_remaining, limiter_share,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.pending_reads cimport (
    pending_reads_complete, pending_reads_destroy, pending_reads_expire, pending_reads_fail,
    pending_reads_init, pending_reads_invalidate, pending_reads_read, pending_reads_running,
)
from pulsar_ml.structures.pending_table cimport (
    PENDING_CLOSED, PENDING_DELIVERED, PENDING_FAILED, PENDING_INCOMPLETE, PENDING_OUT_OF_MEMORY,
    PENDING_TIMED_OUT, PendingCounts, PendingReads, PendingStatus, pending_was_token,
)
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport pml_i32

from pulsar_ml.errors import ReadLimitError, ReadTimeoutError, StorageError


cdef enum:
    READS_CHUNK_BITS = 6
    MOST_READS = 1 << 20        # under way, or with copies out, at a time
    MOST_WAITING = 1 << 24      # requests in the queue of a limiter
    # exceptions of failed reads that are kept for requests that still wait
    FAILURES = 1024


# A limiter that copies of entries may outlive: each possible caller holds a reference.
cdef struct SharedLimiter:
    InflightLimiter limiter
    pml_i32 references


cdef void shared_limiter_release(SharedLimiter* shared) noexcept nogil:
    # Without the GIL: a copy may be deallocated anywhere.
    if refcount_release(&shared.references, 1) == RELEASED_LAST:
        limiter_destroy(&shared.limiter)
        release(shared)


# A dispatch copy was deallocated, in whichever thread.
cdef void permits_copy_released(void* context, int64_t share) noexcept nogil:
    limiter_copy_released(&(<SharedLimiter*>context).limiter, share)
    shared_limiter_release(<SharedLimiter*>context)


# A request that waited has its answer. It takes what it is granted; what its callback refuses goes
# back like any permits.
cdef bint permits_due(void* context, int64_t argument, int64_t permits, bint granted) noexcept nogil:
    cdef DueCallback* due = <DueCallback*>argument
    due.amount = permits
    due.status = granted
    callback_due(due)
    return True


@cython.final
@cython.internal
cdef class WaitingPermits(Callback):
    cdef InflightReadsLimiter limiter
    cdef object callback

    cdef void run(self) noexcept:
        cdef Permits permits = None
        cdef int64_t refused = self.due.amount
        try:
            if self.due.status:
                permits = wrap_permits(self.limiter, refused)
            self.callback(permits)
            refused = 0
        except BaseException as error:
            report_unraisable(error, self.callback)
            if permits is not None:
                # The limiter takes back what the callback still had.
                refused = permits.held
                permits.held = 0
        if refused:
            with nogil:
                native_enter()
                limiter_release(&self.limiter.shared.limiter, refused)
                native_leave()
            run_callbacks()


cdef Permits wrap_permits(InflightReadsLimiter limiter, int64_t permits):
    cdef Permits granted_permits = Permits.__new__(Permits)
    granted_permits.limiter = limiter
    granted_permits.held = permits
    return granted_permits


@cython.final
@cython.no_gc
cdef class Permits:
    """Permits of one read. They go back by :meth:`release`, or with the last entry of
    :meth:`share`, or when this object is collected. One thread at a time may use it.
    """

    cdef InflightReadsLimiter limiter
    cdef int64_t held

    def __dealloc__(self):
        if self.held:
            with nogil:
                native_enter()
                limiter_release(&self.limiter.shared.limiter, self.held)
                native_leave()
            run_callbacks()

    @property
    def amount(self) -> int:
        """Bytes; 0 without a limit, and after they were given back or shared."""
        return self.held

    def release(self) -> None:
        """Give them back, which may grant what waits. No effect when that was done before."""
        cdef int64_t permits = self.held
        self.held = 0
        with nogil:
            native_enter()
            limiter_release(&self.limiter.shared.limiter, permits)
            native_leave()
        run_callbacks()

    def share(self, list entries not None) -> None:
        """Let them last until the last of these entries is released. With no entries they go back
        at once.

        The entries are copies that nobody else holds, as a read delivers them, each once, and none
        has permits yet. Raises UsageError, ReleasedError, and then nothing changed;
        AllocationError, and then the permits went back.
        """
        cdef SharedLimiter* shared = self.limiter.shared
        cdef uint32_t share
        cdef Entry entry
        entries = own_entries(entries)
        for entry in entries:
            if entry_has_callback(&entry.owner.memory.entries, entry.handle):
                raise UsageError(f"{entry!r} has permits already; share each read's permits among its own entries")
        if not self.held or not entries:
            self.release()
            return
        share = limiter_share(&shared.limiter, self.held, <int32_t>len(entries))
        if not share:
            self.release()
            raise AllocationError("no native memory to share permits among copies")
        self.held = 0
        for entry in entries:
            refcount_retain(&shared.references)
            if entry_on_deallocate(&entry.owner.memory.entries, entry.handle, permits_copy_released, shared,
                                   share) != PML_OK:
                # Without memory this copy holds none.
                permits_copy_released(shared, share)


# The entries of a list, each an Entry that nobody else holds and that is there once.
cdef list own_entries(list entries):
    cdef Entry entry
    cdef set seen = set()
    entries = list(entries)
    for value in entries:
        if not isinstance(value, Entry):
            raise TypeError(f"{value!r} is not an Entry")
        entry = <Entry>value
        check_usable(entry)
        if id(entry) in seen:
            raise UsageError(f"{entry!r} is in the list twice")
        seen.add(id(entry))
        if entry_references(&entry.owner.memory.entries, entry.handle) != 1:
            raise UsageError(f"{entry!r} is held elsewhere; use a copy()")
    return entries


@cython.final
@cython.no_gc
cdef class InflightReadsLimiter:
    """A limit on the bytes of storage reads that are under way in a broker.

    ``max_bytes`` is managedLedgerMaxReadsInFlightSizeInMB in bytes, 0 is no limit;
    ``acquire_timeout_millis`` and ``acquire_queue_size`` are the settings of the same names. All
    methods may be called from any number of threads. Somebody has to call :meth:`expire` for
    requests to time out. Raises InvalidSizeError, AllocationError. Origin: ``InflightReadsLimiter``
    of Pulsar 4.1.
    """

    cdef SharedLimiter* shared
    cdef readonly object max_bytes

    def __cinit__(self, *, max_bytes=0, acquire_timeout_millis=60000, acquire_queue_size=10000):
        cdef int64_t most = to_reads_size(max_bytes, "max_bytes", INT64_MAX)
        cdef int64_t timeout = to_reads_size(acquire_timeout_millis, "acquire_timeout_millis",
                                             INT64_MAX // 1000000)
        cdef int64_t queue_size = to_reads_size(acquire_queue_size, "acquire_queue_size", MOST_WAITING)
        self.max_bytes = max_bytes
        self.shared = <SharedLimiter*>allocate_zeroed(1, sizeof(SharedLimiter))
        if self.shared is NULL:
            raise AllocationError("no native memory for an in-flight read limiter")
        if limiter_init(&self.shared.limiter, most, timeout * 1000000, <uint32_t>queue_size, READS_CHUNK_BITS,
                        MOST_READS) != PML_OK:
            release(self.shared)
            self.shared = NULL
            raise AllocationError("no native memory for an in-flight read limiter")
        refcount_publish(&self.shared.references)

    def __dealloc__(self):
        if self.shared is not NULL:
            with nogil:
                native_enter()
                shared_limiter_release(self.shared)
                native_leave()

    def acquire(self, permits, callback, *, now_ns=None) -> Permits | None:
        """Ask for permits. Granted: they are returned. Otherwise None, and ``callback(permits)`` is
        called once, in any thread and perhaps before this returns, with None when the request
        failed.

        A callback that raises refuses: the permits go back, and the exception goes to
        sys.unraisablehook. Raises ReadLimitError when the queue is full or the limiter closed,
        InvalidSizeError.
        """
        cdef int64_t wanted = to_reads_size(permits, "permits", INT64_MAX)
        cdef int64_t now = to_now(now_ns, "now_ns")
        cdef int64_t taken = 0
        cdef Acquired acquired
        cdef WaitingPermits waiting = WaitingPermits.__new__(WaitingPermits)
        cdef InflightLimiter* limiter = &self.shared.limiter
        cdef Permits granted = Permits.__new__(Permits)
        waiting.limiter = granted.limiter = self
        waiting.callback = check_callable(callback, "callback")
        cdef DueCallback* due = waiting.start()
        with nogil:
            native_enter()
            acquired = limiter_acquire(limiter, wanted, now, permits_due, self.shared, <int64_t>due, &taken)
            native_leave()
        if acquired != Acquired.PERMITS_WAITING:
            waiting.cancel()
        granted.held = taken
        run_callbacks()     # requests that timed out by this call's time
        if acquired == Acquired.PERMITS_WAITING:
            return None
        if acquired == PERMITS_GRANTED:
            return granted
        raise ReadLimitError(
            f"{permits} bytes of reads cannot wait: the queue is full, or the limiter closed")

    def expire(self, *, now_ns=None) -> int | None:
        """Fail what waited too long. Nanoseconds until the next request is due, None when none
        waits.
        """
        cdef int64_t now = to_now(now_ns, "now_ns")
        cdef int64_t due
        with nogil:
            native_enter()
            due = limiter_expire(&self.shared.limiter, now)
            native_leave()
        if pml_calls.fresh_first is not NULL:
            # Afterwards others may wait, or none.
            run_callbacks()
            with nogil:
                native_enter()
                due = limiter_expire(&self.shared.limiter, now)
                native_leave()
            run_callbacks()
        return None if due < 0 else due

    @property
    def remaining(self) -> int:
        """Bytes that nobody has at some moment of the call, -1 without a limit."""
        cdef int64_t remaining
        with nogil:
            native_enter()
            remaining = limiter_remaining(&self.shared.limiter)
            native_leave()
        return remaining

    def close(self) -> None:
        """Fail what waits and refuse what comes. Permits that are out come back as ever."""
        with nogil:
            native_enter()
            limiter_close(&self.shared.limiter)
            native_leave()
        run_callbacks()


cdef int64_t to_reads_size(object value, str role, int64_t most) except -1:
    value = PyNumber_Index(value)
    if not 0 <= value <= most:
        raise InvalidSizeError(f"{role}={value!r} is outside 0..{most}")
    return value


# Pending reads -----------------------------------------------------------------------------------

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
    cdef object listener
    cdef object expected_reads
    cdef object error

    def __dealloc__(self):
        release(self.due.entries)

    cdef void prepare(self) noexcept:
        if self.due.status != PENDING_DELIVERED:
            self.error = self.reads.error_of(<PendingStatus>self.due.status, self.due.failed)

    # The entries delivered. Without memory the rest of them is released.
    cdef list entries(self):
        cdef NativeMemory owner = self.reads.owner
        cdef list delivered = []
        cdef int64_t i = 0
        try:
            for i in range(self.due.amount):
                delivered.append(None)
            for i in range(self.due.amount):
                delivered[i] = wrap_entry(owner, self.due.entries[i])
                self.due.entries[i] = 0
        finally:
            for i in range(self.due.amount):
                if self.due.entries[i]:
                    entry_release(&owner.memory.entries, self.due.entries[i], 1)
        return delivered

    cdef void run(self) noexcept:
        cdef list delivered = None
        try:
            if self.due.status == PENDING_DELIVERED:
                try:
                    delivered = self.entries()
                except MemoryError as error:
                    self.error = AllocationError("no memory for the entries of a read")
            self.listener(delivered, self.error)
        except BaseException as error:
            report_unraisable(error, self.listener)


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

    ``start(token, ledger_id, first, last, expected_reads)`` is called for each read of the storage,
    with the ``expected_reads`` of the request that makes it; it answers by :meth:`complete` or
    :meth:`fail`, once, from any thread, perhaps before it returns. What it raises fails the read.
    ``read_timeout_millis`` (0: none) applies when :meth:`expire` is called.

    All methods may be called from any number of threads, also from inside ``start`` and listeners.
    Origin: ``PendingReadsManager`` of Pulsar 4.1.
    """

    cdef NativeMemory owner
    cdef object clock           # the manager's
    cdef PendingReads native
    cdef object start
    cdef object failures        # token -> exception, the latest of them
    cdef bint is_closed

    def __cinit__(self, EntryCacheManager manager not None, start, *, read_timeout_millis=0):
        cdef int64_t timeout = to_reads_size(read_timeout_millis, "read_timeout_millis",
                                             INT64_MAX // 1000000)
        self.owner = manager.owner
        self.clock = manager.clock
        self.start = check_callable(start, "start")
        self.failures = OrderedDict()
        check_status(pending_reads_init(&self.native, &self.owner.memory.entries, reads_start, &self.native,
                                        timeout * 1000000, READS_CHUNK_BITS, MOST_READS), position(0, 0))

    def __dealloc__(self):
        # A request keeps this object alive: none is under way.
        pending_reads_destroy(&self.native)

    def read(self, ledger_id, first, last, listener, *, expected_reads=None, now_ns=None) -> None:
        """Read the entries ``first`` .. ``last`` of a ledger, joined to what is under way.

        ``listener(entries, error)`` is called once, in the thread that completes the last part,
        perhaps before this returns: with the whole range in order, each entry the listener's own
        and counting a read, or with None and StorageError, ReadTimeoutError, ClosedError,
        AllocationError or what :meth:`fail` was given. What a listener raises goes to
        sys.unraisablehook.

        Raises InvalidPositionError, ClosedError, AllocationError.
        """
        cdef NativePosition low = to_stored((ledger_id, first))
        cdef NativePosition high = to_stored((ledger_id, last))
        cdef int64_t now = time_of(self.clock, now_ns, "now_ns")
        cdef Status status
        cdef PendingRequester requester
        check_range(low, high)
        if high.entry_id - low.entry_id >= INT32_MAX:
            raise InvalidPositionError(
                f"{first}..{last} of ledger {ledger_id} is more than {INT32_MAX} entries")
        if self.is_closed:
            raise ClosedError("the pending reads are closed")
        requester = PendingRequester.__new__(PendingRequester)
        requester.reads = self
        requester.listener = check_callable(listener, "listener")
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
            starts.append((start.token, start.first, start.last))
            requester.due.starts = start.following
            release(start)
            start = <PendingStart*>requester.due.starts
        for token, first, last in reversed(starts):
            try:
                self.start(token, ledger_id, first, last, requester.expected_reads)
            except BaseException as error:
                self.fail(token, error)
        return 0

    cdef uint64_t to_token(self, object value) except? 0:
        value = PyNumber_Index(value)
        if not 0 <= value < 1 << 64 or not pending_was_token(&self.native, value):
            raise UsageError(f"token={value!r} is none that start was called with")
        return value

    cdef object error_of(self, PendingStatus status, uint64_t failed):
        if status == PENDING_DELIVERED:
            return None
        if status == PENDING_FAILED:
            return self.failures.get(failed) or StorageError("the storage failed to read")
        if status == PENDING_INCOMPLETE:
            return StorageError("the answer of the storage lacks an entry of the read")
        if status == PENDING_TIMED_OUT:
            return ReadTimeoutError("the storage did not answer within read_timeout_millis")
        if status == PENDING_OUT_OF_MEMORY:
            return AllocationError("no native memory for a copy of an entry")
        return ClosedError("the pending reads were closed")

    def complete(self, token, list entries not None) -> bool:
        """The storage's answer to ``start``; False when the read was completed or timed out before.

        Takes over the entries, which are new ones that nobody else holds: they are released
        afterwards, whatever the answer. Foreign entries are released, and missing ones fail the
        requests that need them. UsageError, and then nothing happened, for an entry of another
        manager, with a view that is open, or held elsewhere, or for a token that ``start`` was
        never called with.
        """
        cdef uint64_t native_token = self.to_token(token)
        cdef int64_t count = len(entries)
        cdef int64_t i
        cdef Entry entry
        cdef bint taken
        cdef uint32_t* handles
        entries = own_entries(entries)
        for entry in entries:
            if entry.owner is not self.owner or entry.exports:
                raise UsageError(f"{entry!r} belongs to another manager, or a view of it is open")
            if entry_has_callback(&self.owner.memory.entries, entry.handle):
                raise UsageError(f"{entry!r} holds permits; an answer is made of new entries")
        handles = <uint32_t*>allocate_zeroed(count + 1, sizeof(uint32_t))
        if handles is NULL:
            raise AllocationError(f"no native memory for an answer of {count} entries")
        for i in range(count):
            entry = entries[i]
            handles[i] = entry.handle
            entry.handle = 0
            entry.released = True
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
        self.failures[native_token] = error
        while len(self.failures) > FAILURES:
            self.failures.popitem(last=False)
        with nogil:
            native_enter()
            taken = pending_reads_complete(&self.native, native_token, PENDING_FAILED, NULL, 0)
            native_leave()
        run_callbacks()
        if not taken:
            self.failures.pop(native_token, None)
        return taken

    def invalidate(self, ledger_id) -> None:
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
        self.is_closed = True
        with nogil:
            native_enter()
            pending_reads_fail(&self.native, PENDING_CLOSED)
            native_leave()
        run_callbacks()
