# A limit on the bytes of storage reads under way: permits, a bounded queue of requests that wait
# for them, and permits that go back with the last copy of an entry read.
#
# Origin       InflightReadsLimiter (Pulsar 4.0.7 and later). The original answers a waiting request
#              under its monitor and loses the permits when that throws (#26296); here the request
#              gets its answer outside, and what it refuses goes back. Time is an argument; what a
#              release is judged by is the latest time that a call named.
# Threads      Any thread, at any time between init and destroy, also from inside a callback.
# Invariants   IL-1 (I87) the remaining permits lie between 0 and the maximum.
#              IL-2 (I88, I89) granted permits come back once; with no permit out the maximum
#              remains.
#              IL-3 (I90) when the monitor is free, the first request of the queue neither fits nor
#              is, at the latest time that any call named, past its timeout, and the queue is no
#              longer than allowed.
#              IL-4 (I82) a waiting request gets one answer, granted or failed.
#              IL-5 (I84) a waiting request gets its answer outside the monitor.
#              IL-6 (I90) a request above the maximum is one for the maximum, which it gets when
#              nothing is in flight, so while a request waits, something is.
#              IL-7 (I82) without a timeout a waiting request fails at the close only.
# Ordering     The monitor's. A copy's release (release) -> the last one (acquire), which gives
#              back.
# Reclamation  Waiters and shares are pooled objects. destroy: nobody inside, nothing waiting, no
#              copy left.
# Not promised Fairness towards requests that do not have to wait: one that fits is granted though
#              others wait, as in the original. A request above the maximum waits until nothing is
#              in flight, which a steady load of small requests can prevent until it times out.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport Pool, pool_at, pool_destroy, pool_give, pool_init, pool_take
from pulsar_ml.structures.refcount cimport RELEASED_LAST, refcount_release
from pulsar_ml.structures.status cimport PML_OK, Status
from pulsar_ml.sync.atomics cimport i32_store_relaxed, pml_i32, pml_i64, pml_u32


cdef enum Acquired:
    PERMITS_GRANTED = 0
    PERMITS_WAITING = 1     # the callback will be run, perhaps before the caller knows this
    PERMITS_REFUSED = 2     # the queue is full, the limiter closed, or memory ran out


# Tells a request that waited: granted, then the permits are its own; or failed. Answers whether it
# takes them: permits that it cannot use (its executor rejects it) go back to the limiter.
ctypedef bint (*PermitsCallback)(
    void* context, int64_t argument, int64_t permits, bint granted
) noexcept nogil


cdef struct PermitsWaiter:
    int64_t permits
    int64_t since
    PermitsCallback callback
    void* context
    int64_t argument
    uint32_t next
    bint granted
    pml_i64 link            # next free waiter while pooled


# The permits of one read, held by the copies that it delivered.
cdef struct PermitsShare:
    int64_t permits
    pml_i32 copies
    pml_i64 link            # next free share while pooled


cdef struct InflightLimiter:
    Pool waiters
    Pool shares
    int64_t maximum         # bytes; 0 or less: no limit
    int64_t timeout         # nanoseconds; 0 or less: requests wait without end
    uint32_t queue_size     # most requests that wait
    pml_u32 monitor
    # Under the monitor.
    int64_t remaining
    int64_t now             # the latest time that a call named
    uint32_t waiting
    uint32_t first, last    # of the queue
    bint closed


# most_shares: most reads whose copies are out at a time.
cdef inline Status limiter_init(
    InflightLimiter* limiter, int64_t maximum, int64_t timeout, uint32_t queue_size, uint32_t chunk_bits,
    uint32_t most_shares
) noexcept nogil:
    cdef Status status
    memset(limiter, 0, sizeof(InflightLimiter))
    limiter.maximum = maximum
    limiter.timeout = timeout
    limiter.queue_size = queue_size
    limiter.remaining = maximum if maximum > 0 else 0
    # Waiters that were taken off the queue and have no answer yet exist beside a full queue.
    status = pool_init(&limiter.waiters, sizeof(PermitsWaiter), <size_t>&(<PermitsWaiter*>NULL).link,
                       chunk_bits, 4 * queue_size + 64)
    if status == PML_OK:
        status = pool_init(&limiter.shares, sizeof(PermitsShare), <size_t>&(<PermitsShare*>NULL).link,
                           chunk_bits, most_shares + 1)
    if status != PML_OK:
        limiter_destroy(limiter)
    return status


cdef inline void limiter_destroy(InflightLimiter* limiter) noexcept nogil:
    pool_destroy(&limiter.waiters)
    pool_destroy(&limiter.shares)


cdef inline PermitsWaiter* limiter_waiter(InflightLimiter* limiter, uint32_t handle) noexcept nogil:
    return <PermitsWaiter*>pool_at(&limiter.waiters, handle)


# Under the monitor -------------------------------------------------------------------------------

# Time does not go back, whatever order callers arrive in: the queue is sorted by its waiters'
# times.
cdef inline void limiter_advance(InflightLimiter* limiter, int64_t now) noexcept nogil:
    if <int64_t>(<uint64_t>now - <uint64_t>limiter.now) > 0:
        limiter.now = now


cdef inline bint limiter_is_expired(
    const InflightLimiter* limiter, const PermitsWaiter* waiter
) noexcept nogil:
    if limiter.timeout <= 0:
        return False
    return <int64_t>(<uint64_t>limiter.now - <uint64_t>waiter.since) >= limiter.timeout


# Takes the requests that get their answer now off the queue: a first request that fits, or is past
# its timeout, and so on. The first of a chain for limiter_tell, 0 when there is none.
cdef inline uint32_t limiter_settle(InflightLimiter* limiter) noexcept nogil:
    cdef uint32_t ready = limiter.first
    cdef uint32_t last = 0
    cdef PermitsWaiter* waiter
    while limiter.first:
        waiter = limiter_waiter(limiter, limiter.first)
        waiter.granted = not (limiter.closed or limiter_is_expired(limiter, waiter))
        if waiter.granted and waiter.permits > limiter.remaining:
            break
        if waiter.granted:
            limiter.remaining -= waiter.permits
        last = limiter.first
        limiter.first = waiter.next
        limiter.waiting -= 1
    if not last:
        return 0
    limiter_waiter(limiter, last).next = 0
    if not limiter.first:
        limiter.last = 0
    return ready


cdef inline bint limiter_enqueue(
    InflightLimiter* limiter, int64_t permits, PermitsCallback callback, void* context, int64_t argument
) noexcept nogil:
    cdef uint32_t handle = pool_take(&limiter.waiters)
    cdef PermitsWaiter* waiter
    if not handle:
        return False
    waiter = limiter_waiter(limiter, handle)
    waiter.permits = permits
    waiter.since = limiter.now
    waiter.callback = callback
    waiter.context = context
    waiter.argument = argument
    waiter.next = 0
    if limiter.last:
        limiter_waiter(limiter, limiter.last).next = handle
    else:
        limiter.first = handle
    limiter.last = handle
    limiter.waiting += 1
    return True


# Outside the monitor -----------------------------------------------------------------------------

# Runs the callbacks of a chain. What they refuse goes back, which may grant further requests; it
# ends when none is left that fits.
cdef inline void limiter_tell(InflightLimiter* limiter, uint32_t ready) noexcept nogil:
    cdef PermitsWaiter* waiter
    cdef PermitsCallback callback
    cdef void* context
    cdef int64_t argument, permits, refused
    cdef bint granted
    cdef uint32_t handle
    while ready:
        refused = 0
        while ready:
            handle = ready
            waiter = limiter_waiter(limiter, handle)
            callback = waiter.callback
            context = waiter.context
            argument = waiter.argument
            granted = waiter.granted
            permits = waiter.permits if granted else 0
            ready = waiter.next
            # Before the callback, which may ask for permits itself.
            pool_give(&limiter.waiters, handle)
            if not callback(context, argument, permits, granted):
                refused += permits
        if refused:
            ready = limiter_give_back(limiter, refused)


cdef inline uint32_t limiter_give_back(InflightLimiter* limiter, int64_t permits) noexcept nogil:
    cdef uint32_t ready
    monitor_enter(&limiter.monitor)
    limiter.remaining += permits
    ready = limiter_settle(limiter)
    monitor_leave(&limiter.monitor)
    return ready


# Operations --------------------------------------------------------------------------------------

# Asks for permits, 0 or more. Granted: `taken` is what limiter_release gives back later, 0 without
# a limit. Otherwise `taken` is 0; a waiting request gets its answer by its callback. A request
# above the maximum is one for the maximum: it gets that when nothing is in flight.
cdef inline Acquired limiter_acquire(
    InflightLimiter* limiter, int64_t permits, int64_t now, PermitsCallback callback, void* context,
    int64_t argument, int64_t* taken
) noexcept nogil:
    cdef Acquired acquired = PERMITS_REFUSED
    cdef uint32_t ready
    taken[0] = 0
    if limiter.maximum <= 0:
        return PERMITS_GRANTED
    if permits > limiter.maximum:
        permits = limiter.maximum
    monitor_enter(&limiter.monitor)
    limiter_advance(limiter, now)
    ready = limiter_settle(limiter)
    if not limiter.closed:
        if permits <= limiter.remaining:
            limiter.remaining -= permits
            taken[0] = permits
            acquired = PERMITS_GRANTED
        elif limiter.waiting < limiter.queue_size:
            if limiter_enqueue(limiter, permits, callback, context, argument):
                acquired = PERMITS_WAITING
    monitor_leave(&limiter.monitor)
    limiter_tell(limiter, ready)
    return acquired


# Takes permits as limiter_acquire does if no time matters: they fit, and no request waits. `taken`
# is 0 before; it stays 0 without a limit. False: nothing changed.
cdef inline bint limiter_try_acquire(
    InflightLimiter* limiter, int64_t permits, int64_t* taken
) noexcept nogil:
    cdef bint fits
    if limiter.maximum <= 0:
        return True
    permits = min(permits, limiter.maximum)
    monitor_enter(&limiter.monitor)
    fits = not limiter.closed and not limiter.first and permits <= limiter.remaining
    if fits:
        limiter.remaining = limiter.remaining - permits
        taken[0] = permits
    monitor_leave(&limiter.monitor)
    return fits


# Gives permits back, 0 for a request that failed, and grants what fits now.
cdef inline void limiter_release(InflightLimiter* limiter, int64_t permits) noexcept nogil:
    if permits > 0:
        limiter_tell(limiter, limiter_give_back(limiter, permits))


# Fails what waited too long.
cdef inline void limiter_expire(InflightLimiter* limiter, int64_t now) noexcept nogil:
    cdef uint32_t ready
    monitor_enter(&limiter.monitor)
    limiter_advance(limiter, now)
    ready = limiter_settle(limiter)
    monitor_leave(&limiter.monitor)
    limiter_tell(limiter, ready)


# When the next request fails; False when none waits or there is no timeout.
cdef inline bint limiter_next_expiry(InflightLimiter* limiter, int64_t* at) noexcept nogil:
    cdef bint waits
    monitor_enter(&limiter.monitor)
    waits = limiter.first and limiter.timeout > 0
    if waits:
        # Unsigned: clocks may be negative or wrap.
        at[0] = <int64_t>(<uint64_t>limiter_waiter(limiter, limiter.first).since
                          + <uint64_t>limiter.timeout)
    monitor_leave(&limiter.monitor)
    return waits


# Fails all waiting requests, and refuses new ones from now on. Permits that are out come back as
# ever.
cdef inline void limiter_close(InflightLimiter* limiter) noexcept nogil:
    cdef uint32_t ready
    monitor_enter(&limiter.monitor)
    limiter.closed = True
    ready = limiter_settle(limiter)
    monitor_leave(&limiter.monitor)
    limiter_tell(limiter, ready)


# Permits that nobody has, -1 without a limit.
cdef inline int64_t limiter_remaining(InflightLimiter* limiter) noexcept nogil:
    cdef int64_t remaining
    if limiter.maximum <= 0:
        return -1
    monitor_enter(&limiter.monitor)
    remaining = limiter.remaining
    monitor_leave(&limiter.monitor)
    return remaining


# Permits that last as long as copies -------------------------------------------------------------

# Hands the permits of a read to its copies, one or more: limiter_copy_released once for each of
# them. A handle for that, 0 when memory ran out; then the caller keeps the permits.
cdef inline uint32_t limiter_share(
    InflightLimiter* limiter, int64_t permits, int32_t copies
) noexcept nogil:
    cdef uint32_t handle = pool_take(&limiter.shares)
    cdef PermitsShare* share
    if handle:
        share = <PermitsShare*>pool_at(&limiter.shares, handle)
        share.permits = permits
        # Relaxed: the thread that hands a copy on orders this before its release.
        i32_store_relaxed(&share.copies, copies)
    return handle


# One copy is gone. Fits entry_on_deallocate: the context is the limiter.
cdef inline void limiter_copy_released(void* context, int64_t share) noexcept nogil:
    cdef InflightLimiter* limiter = <InflightLimiter*>context
    cdef PermitsShare* shared = <PermitsShare*>pool_at(&limiter.shares, <uint32_t>share)
    cdef int64_t permits
    if refcount_release(&shared.copies, 1) == RELEASED_LAST:
        permits = shared.permits
        pool_give(&limiter.shares, <uint32_t>share)
        limiter_release(limiter, permits)
