# A strict reference count: zero is final until the owner publishes the object again. A mark in the
# same word, as that of an access, costs the reader that sets it no exchange of its own.
#
# Origin       AbstractCASReferenceCounted (Pulsar 4.1, after #2995). The original throws; here a
#              status says that the object is gone.
# Threads      retain, retain_marked, release, alone, value, was_marked, forget_mark: any thread.
#              publish: the only holder of an unpublished object.
# Invariants   RF-1 (I12) the count leaves zero by publish only.
#              RF-2 (I13) the count is never negative; a release below zero changes nothing.
#              RF-3 (I14) exactly one release of an incarnation answers RELEASED_LAST.
#              RF-4 (I30) the mark is cleared by refcount_forget_mark and publish only.
# Ordering     publish (release) and every retain or release (read-modify-writes that continue its
#              release sequence) -> the acquire of retain: a holder sees the fields written before
#              publish. Each release -> the acquire load of the last one: all uses by all holders
#              happen before the object is torn down; so does the acquire of `alone`.
#              The mark orders nothing; every change of it continues the release sequence.
# Reclamation  None here. The count may be read on an object that is in its pool: the memory must be
#              type-stable.
# Not promised What refcount_value or refcount_was_marked read may be stale when it is returned.

from libc.stdint cimport int32_t

from pulsar_ml.sync.atomics cimport (
    i32_cas_weak_acquire, i32_cas_weak_relaxed, i32_cas_weak_release, i32_load_acquire,
    i32_load_relaxed, i32_store_release, pml_i32,
)


cdef enum:
    REFERENCES = 0x3FFFFFFF # of a count's word
    REFERENCE_MARK = 0x40000000


cdef enum ReleaseResult:
    RELEASED = 0            # other references remain
    RELEASED_LAST = 1       # the caller tears the object down
    RELEASED_TOO_OFTEN = 2  # there were fewer references than that; nothing changed


cdef inline void refcount_publish(pml_i32* count) noexcept nogil:
    # Pairs with the acquire in refcount_retain. The last write of a new incarnation.
    i32_store_release(count, 1)


cdef inline bint refcount_retain(pml_i32* count) noexcept nogil:
    cdef int32_t seen = i32_load_relaxed(count)
    # Another thread changed the count when the exchange fails; it ends when one exchange wins or
    # the count is seen at zero.
    while 0 < (seen & REFERENCES) < REFERENCES:
        if i32_cas_weak_acquire(count, &seen, seen + 1):
            return True
    return False


# refcount_retain, which sets the mark as well.
cdef inline bint refcount_retain_marked(pml_i32* count) noexcept nogil:
    cdef int32_t seen = i32_load_relaxed(count)
    while 0 < (seen & REFERENCES) < REFERENCES:
        if i32_cas_weak_acquire(count, &seen, (seen + 1) | REFERENCE_MARK):
            return True
    return False


cdef inline ReleaseResult refcount_release(pml_i32* count, int32_t references) noexcept nogil:
    cdef int32_t seen = i32_load_relaxed(count)
    while (seen & REFERENCES) >= references:
        # Pairs with the acquire below, in the thread that releases last.
        if i32_cas_weak_release(count, &seen, seen - references):
            if (seen & REFERENCES) > references:
                return RELEASED
            # Reads the zero just written, the end of every release's sequence. A load and not a
            # fence, because thread sanitizers understand it.
            i32_load_acquire(count)
            return RELEASED_LAST
    return RELEASED_TOO_OFTEN


# True if the caller's reference is the only one and stays so: of an object that nobody can find
# without a reference. The caller may tear it down without a release.
cdef inline bint refcount_alone(const pml_i32* count) noexcept nogil:
    # Pairs with the release of each earlier holder, as the load of the last release does.
    return (i32_load_acquire(count) & REFERENCES) == 1


cdef inline int32_t refcount_value(const pml_i32* count) noexcept nogil:
    return i32_load_relaxed(count) & REFERENCES


cdef inline bint refcount_was_marked(const pml_i32* count) noexcept nogil:
    return (i32_load_relaxed(count) & REFERENCE_MARK) != 0


cdef inline void refcount_forget_mark(pml_i32* count) noexcept nogil:
    cdef int32_t seen = i32_load_relaxed(count)
    # The exchange fails when another thread took or gave back a reference.
    while seen & REFERENCE_MARK:
        if i32_cas_weak_relaxed(count, &seen, seen & ~REFERENCE_MARK):
            return
