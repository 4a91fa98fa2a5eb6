# The in-flight read limiter and its permits as Python objects. Native calls run no Python code:
# they make callbacks due, which run afterwards (callbacks.pxi).
#
# Acquire and release are short calls, see gate.pxi.

from pulsar_ml.structures.entry cimport entry_on_deallocate
from pulsar_ml.structures.inflight_limiter cimport (
    PERMITS_GRANTED, Acquired, InflightLimiter, limiter_acquire, limiter_close,
    limiter_copy_released, limiter_destroy, limiter_expire, limiter_init, limiter_next_expiry,
    limiter_release, limiter_remaining, limiter_share, limiter_try_acquire,
)
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport i64_exchange_acquire, i64_store_relaxed, pml_i32, pml_i64

from pulsar_ml.errors import ReadLimitError


cdef enum:
    READS_CHUNK_BITS = 6
    MOST_READS = 1 << 20        # under way, or with copies out, at a time
    MOST_WAITING = 1 << 24      # requests in the queue of a limiter


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
                refused = take_permits(permits)
        if refused:
            with nogil:
                native_enter()
                limiter_release(&self.limiter.shared.limiter, refused)
                native_leave()
            run_callbacks()


cdef Permits wrap_permits(InflightReadsLimiter limiter, int64_t permits):
    cdef Permits granted_permits = Permits.__new__(Permits)
    granted_permits.limiter = limiter
    i64_store_relaxed(&granted_permits.held, permits)
    return granted_permits


# Takes from an object of permits all that it holds: one caller gets them, whoever calls meanwhile.
cdef inline int64_t take_permits(Permits permits) noexcept:
    return i64_exchange_acquire(&permits.held, 0)


# Gives permits back, 0 of which are none.
cdef inline void give_permits_back(SharedLimiter* shared, int64_t permits) noexcept:
    short_enter()
    limiter_release(&shared.limiter, permits)
    short_leave()
    run_callbacks()


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Permits:
    """Permits of one read. They go back by :meth:`release`, or with the last entry of
    :meth:`share`, or when this object is collected.

    All methods may be called from any number of threads; the first release or share has the
    permits, and later ones have no effect.
    """

    cdef InflightReadsLimiter limiter
    cdef pml_i64 held

    def __dealloc__(self):
        cdef int64_t permits = take_permits(self)
        if permits:
            give_permits_back(self.limiter.shared, permits)

    @property
    def amount(self) -> int:
        """Bytes; 0 without a limit, and after they were given back or shared."""
        return i64_load_relaxed(&self.held)

    def release(self) -> None:
        """Give them back, which may grant what waits. No effect when that was done before."""
        give_permits_back(self.limiter.shared, take_permits(self))

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
        cdef int64_t permits
        entries = claim_all(entries, None)
        permits = take_permits(self)
        share = limiter_share(&shared.limiter, permits, <int32_t>len(entries)) if permits and entries else 0
        if share:
            for entry in entries:
                refcount_retain(&shared.references)
                if entry_on_deallocate(&entry.share.memory.entries, entry.handle, permits_copy_released,
                                       shared, share) != PML_OK:
                    # Without memory this copy holds none.
                    short_enter()
                    permits_copy_released(shared, share)
                    short_leave()
        end_claims(entries)
        if share:
            run_callbacks()
            return
        give_permits_back(shared, permits)
        if permits and entries:
            raise AllocationError("no native memory to share permits among copies")


@cython.final
@cython.no_gc
cdef class InflightReadsLimiter:
    """A limit on the bytes of storage reads that are under way in a broker.

    ``max_bytes`` is managedLedgerMaxReadsInFlightSizeInMB in bytes, 0 or less is no limit;
    ``acquire_timeout_ms``, of which 0 or less is no timeout, and ``acquire_queue_size`` are the
    settings of the same names. All methods may be called from any number of threads. Somebody has
    to call :meth:`expire` for requests to time out. Raises InvalidSizeError, AllocationError.
    Origin: ``InflightReadsLimiter`` of Pulsar 4.0.7 and later.
    """

    cdef SharedLimiter* shared
    cdef readonly object max_bytes

    def __cinit__(self, *, max_bytes=0, acquire_timeout_ms=60000, acquire_queue_size=10000):
        cdef int64_t most = to_number(max_bytes, "max_bytes", INT64_MIN, INT64_MAX)
        cdef int64_t timeout = to_number(
            acquire_timeout_ms, "acquire_timeout_ms", INT64_MIN, INT64_MAX // MILLISECOND)
        cdef int64_t queue_size = to_number(acquire_queue_size, "acquire_queue_size", 0, MOST_WAITING)
        self.max_bytes = max_bytes
        self.shared = <SharedLimiter*>allocate_zeroed(1, sizeof(SharedLimiter))
        if self.shared is NULL:
            raise AllocationError("no native memory for an in-flight read limiter")
        if limiter_init(&self.shared.limiter, most, max(timeout, 0) * MILLISECOND, <uint32_t>queue_size,
                        READS_CHUNK_BITS, MOST_READS) != PML_OK:
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

        A request above ``max_bytes`` is one for ``max_bytes``: it gets that when nothing is in
        flight. A callback that raises refuses: the permits go back, and the exception goes to
        sys.unraisablehook. Raises ReadLimitError when the queue is full or the limiter closed,
        InvalidSizeError.
        """
        cdef int64_t wanted = to_size(permits, "permits")
        cdef int64_t taken = 0
        cdef bint fits = False
        cdef InflightLimiter* limiter = &self.shared.limiter
        check_callable(callback, "callback")
        # Most requests need not wait, nor a time and an object to wait with.
        if now_ns is None:
            short_enter()
            fits = limiter_try_acquire(limiter, wanted, &taken)
            short_leave()
            if fits:
                return wrap_permits(self, taken)
        cdef int64_t now = to_now(now_ns, "now_ns")
        cdef Acquired acquired
        cdef WaitingPermits waiting = WaitingPermits.__new__(WaitingPermits)
        cdef Permits granted = wrap_permits(self, 0)
        cdef DueCallback* due = waiting.start()
        waiting.limiter = self
        waiting.callback = callback
        short_enter()
        acquired = limiter_acquire(limiter, wanted, now, permits_due, self.shared, <int64_t>due, &taken)
        short_leave()
        if acquired != Acquired.PERMITS_WAITING:
            waiting.cancel()
        i64_store_relaxed(&granted.held, taken)
        run_callbacks()     # requests that timed out by this call's time
        if acquired == Acquired.PERMITS_WAITING:
            return None
        if acquired == PERMITS_GRANTED:
            return granted
        raise ReadLimitError(
            f"{permits} bytes of reads cannot wait: the queue is full, or the limiter closed")

    def expire(self, *, now_ns=None) -> None:
        """Fail what waited too long; see :meth:`next_expiry_ns`."""
        cdef int64_t now = to_now(now_ns, "now_ns")
        with nogil:
            native_enter()
            limiter_expire(&self.shared.limiter, now)
            native_leave()
        run_callbacks()

    def next_expiry_ns(self) -> int | None:
        """Return when to call :meth:`expire` next, None when nobody waits or nothing times out."""
        cdef int64_t at = 0
        cdef bint waits
        with nogil:
            native_enter()
            waits = limiter_next_expiry(&self.shared.limiter, &at)
            native_leave()
        return at if waits else None

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
