# Storage reads as Python objects: the in-flight read limiter and the pending reads manager. What
# runs Python code takes the GIL here, outside every monitor.

from collections import OrderedDict

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

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


# An exception of a callback, which has nobody to go to: sys.unraisablehook gets it.
cdef void report_unraisable(object error, object callback) noexcept:
    PyErr_SetObject(type(error), error)
    PyErr_WriteUnraisable(callback)


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


# A request that waited: the argument is its WaitingPermits, which was kept alive for this.
cdef bint permits_told(void* context, int64_t argument, int64_t permits, bint granted) noexcept nogil:
    with gil:
        return (<WaitingPermits><object><void*>argument).on_answer(permits, granted)


@cython.final
@cython.internal
cdef class WaitingPermits:
    cdef InflightReadsLimiter limiter
    cdef object callback

    cdef bint on_answer(self, int64_t permits, bint granted) noexcept:
        cdef Permits granted_permits = None
        try:
            if granted:
                granted_permits = wrap_permits(self.limiter, permits)
            self.callback(granted_permits)
            return True
        except BaseException as error:
            report_unraisable(error, self.callback)
            if granted_permits is None or not granted_permits.held:
                return True
            # The limiter takes back what the callback still had.
            granted_permits.held = 0
            return False
        finally:
            Py_DECREF(self)


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

    def __init__(self):
        raise TypeError("permits come from InflightReadsLimiter.acquire")

    def __dealloc__(self):
        if self.held and self.limiter is not None:
            with nogil:
                limiter_release(&self.limiter.shared.limiter, self.held)

    @property
    def amount(self) -> int:
        """Bytes; 0 without a limit, and after they were given back or shared."""
        return self.held

    def release(self) -> None:
        """Give them back, which may grant what waits. No effect when that was done before."""
        cdef int64_t permits = self.held
        self.held = 0
        with nogil:
            limiter_release(&self.limiter.shared.limiter, permits)

    def share(self, list entries) -> None:
        """Let them last until the last of these entries is released. With no entries they go back
        at once.

        The entries are copies that nobody else holds, as a read delivers them. Raises
        AllocationError, and then the permits went back.
        """
        cdef SharedLimiter* shared = self.limiter.shared
        cdef uint32_t share
        cdef Entry entry
        for entry in entries:
            check_usable(entry)
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
                shared_limiter_release(self.shared)

    def acquire(self, permits, callback, *, now_ns=None) -> Permits | None:
        """Ask for permits. Granted: they are returned. Otherwise None, and ``callback(permits)`` is
        called once, in any thread and perhaps before this returns, with None when the request
        failed.

        A callback that raises refuses: the permits go back, and the exception is reported as
        unraisable. Raises ReadLimitError when the queue is full or the limiter closed,
        InvalidSizeError.
        """
        cdef int64_t wanted = to_reads_size(permits, "permits", INT64_MAX)
        cdef int64_t now = to_now(now_ns, "now_ns")
        cdef int64_t taken = 0
        cdef Acquired acquired
        cdef WaitingPermits waiting = WaitingPermits.__new__(WaitingPermits)
        cdef InflightLimiter* limiter = &self.shared.limiter
        waiting.limiter = self
        waiting.callback = callback
        Py_INCREF(waiting)
        with nogil:
            acquired = limiter_acquire(limiter, wanted, now, permits_told, self.shared,
                                       <int64_t><void*>waiting, &taken)
        if acquired == Acquired.PERMITS_WAITING:
            return None
        Py_DECREF(waiting)
        if acquired == PERMITS_GRANTED:
            return wrap_permits(self, taken)
        raise ReadLimitError(
            f"{permits} bytes of reads cannot wait: the queue is full, or the limiter closed")

    def expire(self, *, now_ns=None) -> int | None:
        """Fail what waited too long. Nanoseconds until the next request is due, None when none
        waits.
        """
        cdef int64_t now = to_now(now_ns, "now_ns")
        cdef int64_t due
        with nogil:
            due = limiter_expire(&self.shared.limiter, now)
        return None if due < 0 else due

    @property
    def remaining(self) -> int:
        """Bytes that nobody has at some moment of the call, -1 without a limit."""
        cdef int64_t remaining
        with nogil:
            remaining = limiter_remaining(&self.shared.limiter)
        return remaining

    def close(self) -> None:
        """Fail what waits and refuse what comes. Permits that are out come back as ever."""
        with nogil:
            limiter_close(&self.shared.limiter)


cdef int64_t to_reads_size(object value, str role, int64_t most) except -1:
    value = PyNumber_Index(value)
    if not 0 <= value <= most:
        raise InvalidSizeError(f"{role}={value!r} is outside 0..{most}")
    return value


# Pending reads -----------------------------------------------------------------------------------

# The argument of a request: what it needs, kept alive until it is answered.
@cython.final
@cython.internal
cdef class PendingRequester:
    cdef PendingReadsManager reads
    cdef object listener
    cdef object expected_reads


cdef void reads_start(
    void* context, uint64_t token, int64_t argument, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    with gil:
        (<PendingReadsManager><object>context).begin(token, <PendingRequester><object><void*>argument,
                                                     ledger_id, first, last)


cdef void reads_answer(
    void* context, int64_t argument, PendingStatus status, uint64_t failed, const uint32_t* entries,
    int64_t count
) noexcept nogil:
    with gil:
        (<PendingReadsManager><object>context).tell(<PendingRequester><object><void*>argument, status,
                                                    failed, entries, count)


@cython.final
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
    cdef PendingReads native
    cdef object start
    cdef object failures        # token -> exception, the latest of them
    cdef bint is_closed

    def __cinit__(self, EntryCacheManager manager not None, start, *, read_timeout_millis=0):
        cdef int64_t timeout = to_reads_size(read_timeout_millis, "read_timeout_millis",
                                             INT64_MAX // 1000000)
        self.owner = manager.owner
        self.start = start
        self.failures = OrderedDict()
        check_status(pending_reads_init(&self.native, &self.owner.memory.entries, reads_start, <void*>self,
                                        timeout * 1000000, READS_CHUNK_BITS, MOST_READS), position(0, 0))

    def __dealloc__(self):
        # A request keeps this object alive: none is under way.
        pending_reads_destroy(&self.native)

    def read(self, ledger_id, first, last, listener, *, expected_reads=None, now_ns=None) -> None:
        """Read the entries ``first`` .. ``last`` of a ledger, joined to what is under way.

        ``listener(entries, error)`` is called once, in the thread that completes the last part,
        perhaps before this returns: with the whole range in order, each entry the listener's own
        and counting a read, or with None and StorageError, ReadTimeoutError, ClosedError,
        AllocationError or what :meth:`fail` was given. What a listener raises is reported as
        unraisable.

        Raises InvalidPositionError, ClosedError, AllocationError.
        """
        cdef NativePosition low = to_stored((ledger_id, first))
        cdef NativePosition high = to_stored((ledger_id, last))
        cdef int64_t now = self.owner.now(now_ns, "now_ns")
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
        requester.listener = listener
        requester.expected_reads = expected_reads
        Py_INCREF(requester)
        with nogil:
            status = pending_reads_read(&self.native, low.ledger_id, low.entry_id, high.entry_id, now,
                                        reads_answer, <void*>self, <int64_t><void*>requester)
        if status != PML_OK:
            Py_DECREF(requester)
            check_status(status, low)

    cdef void begin(
        self, uint64_t token, PendingRequester requester, int64_t ledger_id, int64_t first, int64_t last
    ) noexcept:
        try:
            self.start(token, ledger_id, first, last, requester.expected_reads)
        except BaseException as error:
            self.fail(token, error)

    cdef void tell(
        self, PendingRequester requester, PendingStatus status, uint64_t failed, const uint32_t* entries,
        int64_t count
    ) noexcept:
        cdef list delivered = [] if status == PENDING_DELIVERED else None
        cdef int64_t i
        try:
            for i in range(count):
                delivered.append(wrap_entry(self.owner, entries[i]))
            requester.listener(delivered, self.error_of(status, failed))
        except BaseException as error:
            report_unraisable(error, requester.listener)
        finally:
            Py_DECREF(requester)

    cdef uint64_t to_token(self, object value) except? 0:
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
        for entry in entries:
            check_usable(entry)
            if entry.owner is not self.owner or entry.exports:
                raise UsageError(f"{entry!r} belongs to another manager, or a view of it is open")
            if entry_references(&self.owner.memory.entries, entry.handle) != 1:
                raise UsageError(f"{entry!r} is held elsewhere; an answer is made of new entries")
        handles = <uint32_t*>allocate_zeroed(count + 1, sizeof(uint32_t))
        if handles is NULL:
            raise AllocationError(f"no native memory for an answer of {count} entries")
        for i in range(count):
            entry = entries[i]
            handles[i] = entry.handle
            entry.handle = 0
            entry.released = True
        with nogil:
            taken = pending_reads_complete(&self.native, native_token, PENDING_DELIVERED, handles, count)
            release(handles)
        return taken

    def fail(self, token, error) -> bool:
        """The storage's failure; False when the read was completed or timed out before."""
        cdef uint64_t native_token = self.to_token(token)
        cdef bint taken
        self.failures[native_token] = error
        while len(self.failures) > FAILURES:
            self.failures.popitem(last=False)
        with nogil:
            taken = pending_reads_complete(&self.native, native_token, PENDING_FAILED, NULL, 0)
        if not taken:
            self.failures.pop(native_token, None)
        return taken

    def invalidate(self, ledger_id) -> None:
        """Keep new requests from joining the reads of a ledger.

        Waiting requests get their answers.
        """
        cdef int64_t native_id = PyNumber_Index(ledger_id)
        with nogil:
            pending_reads_invalidate(&self.native, native_id)

    def expire(self, *, now_ns=None) -> int:
        """Fail every read that is older than its timeout; how many."""
        cdef int64_t now = self.owner.now(now_ns, "now_ns")
        cdef int64_t expired
        with nogil:
            expired = pending_reads_expire(&self.native, now)
        return expired

    @property
    def running(self) -> int:
        """Reads of the storage that are under way."""
        cdef int64_t running
        with nogil:
            running = pending_reads_running(&self.native)
        return running

    def counts(self) -> dict[str, int]:
        """Entries by how requests met reads, named as in Pulsar's
        ``pulsar_ml_cache_pendingreads_*``.
        """
        cdef PendingCounts counts
        with nogil:
            monitor_enter(&self.native.monitor)
            counts = self.native.counts
            monitor_leave(&self.native.monitor)
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
            pending_reads_fail(&self.native, PENDING_CLOSED)
