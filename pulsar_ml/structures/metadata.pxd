# A value that the caller parsed from an entry's bytes, shared by the entry and its later copies.
#
# Origin       EntryImpl.messageMetadata (Pulsar 4.1), which copies of an entry share. The original
#              leaves the value to the collector; here a function of the caller's releases it.
# Threads      Any thread that holds a reference, which entries do.
# Invariants   MV-1 the value is released once, when no entry has it any more, by the thread that
#              released the last of those entries.
# Ordering     Fields are plain and constant: written before an entry publishes the address. See
#              refcount.pxd.
# Reclamation  The memory goes with the last reference.
# Not promised When the value is released: an eviction may do that inside a write section, so the
#              function must neither wait nor call the cache.

from libc.stdint cimport int64_t

from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport pml_i32
from pulsar_ml.sync.memory cimport allocate, release


ctypedef void (*ReleaseValue)(void* context, int64_t value) noexcept nogil


cdef struct Metadata:
    pml_i32 references
    ReleaseValue function
    void* context
    int64_t value
    int64_t payload         # the address of the Payload, whose reference the entry gave to this


# One reference, or NULL without memory.
cdef inline Metadata* metadata_new(
    int64_t payload, ReleaseValue function, void* context, int64_t value
) noexcept nogil:
    cdef Metadata* metadata = <Metadata*>allocate(sizeof(Metadata))
    if metadata is not NULL:
        metadata.function = function
        metadata.context = context
        metadata.value = value
        metadata.payload = payload
        refcount_publish(&metadata.references)
    return metadata


cdef inline void metadata_retain(Metadata* metadata) noexcept nogil:
    refcount_retain(&metadata.references)


# Gives a reference back. The address of the payload if it was the last one: its reference is the
# caller's again; otherwise 0.
cdef inline int64_t metadata_release(Metadata* metadata) noexcept nogil:
    cdef int64_t payload
    if refcount_release(&metadata.references, 1) != RELEASED_LAST:
        return 0
    payload = metadata.payload
    metadata.function(metadata.context, metadata.value)
    release(metadata)
    return payload
