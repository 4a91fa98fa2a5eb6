# Shares of native memory: what entries keep their memory alive by.
#
# An Entry holds a reference for as long as it lives. Without a GIL, threads count the references of
# another thread's object by atomic operations on it, so one object for all entries would be a cache
# line that all readers write. The entries of a thread hold a share that this thread made, whose
# references it counts without them (PEP 703, biased reference counting). With a GIL one share does
# for all.
#
# For the same reason a call passes C pointers to its helpers, and not the objects that have them.


@cython.final
@cython.no_gc
cdef class MemoryShare:
    """A reference to a manager's native memory that the entries of a thread have in common.

    Of use to extensions only. Any number of threads may hold it.
    """


@cython.final
@cython.no_gc
cdef class MemoryShares:
    """The shares of a manager's native memory, one for each stripe of threads.

    Of use to extensions only. Any number of threads may hold it.
    """

    def __dealloc__(self):
        cdef int i
        for i in range(STRIPES):
            Py_XDECREF(<PyObject*>ptr_load_relaxed(&self.native.shares[i]))


cdef MemoryShares new_shares(NativeMemory owner):
    cdef MemoryShares shares = MemoryShares.__new__(MemoryShares)
    shares.owner = owner
    shares.native.owner = <PyObject*>owner
    return shares


# The share of the calling thread, or of one with the same stripe.
cdef inline PyObject* own_share(NativeShares* shares) except NULL:
    cdef uint32_t i = own_stripe() if FREE_THREADED else 0
    # Pairs with the release in new_share.
    cdef void* share = ptr_load_acquire(&shares.shares[i])
    return <PyObject*>share if share is not NULL else new_share(shares, i)


cdef PyObject* new_share(NativeShares* shares, uint32_t i) except NULL:
    cdef MemoryShare share = MemoryShare.__new__(MemoryShare)
    cdef void* seen = NULL
    share.owner = <NativeMemory>shares.owner
    share.memory = share.owner.memory
    # Others read the share's fields. Fails when a thread with the same stripe made one.
    if not ptr_cas_strong_acq_rel(&shares.shares[i], &seen, <void*>share):
        return <PyObject*>seen
    Py_INCREF(share)
    return <PyObject*>share
