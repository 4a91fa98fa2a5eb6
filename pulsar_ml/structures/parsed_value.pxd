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

from pulsar_ml.structures.payload cimport Payload, payload_release_chained, payload_retain
from pulsar_ml.structures.payload_memory cimport BlockChain, PayloadMemory
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport pml_i32
from pulsar_ml.sync.memory cimport allocate, release


cdef enum:
    # The lowest bit of an entry's `payload`, which then is the address of a Metadata.
    PAYLOAD_IS_PARSED = 1


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


# Shares: what an entry's `payload` holds --------------------------------------------------------

cdef inline Metadata* share_metadata(int64_t share) noexcept nogil:
    return <Metadata*>(share & ~<int64_t>PAYLOAD_IS_PARSED)


cdef inline Payload* share_payload(int64_t share) noexcept nogil:
    if share & PAYLOAD_IS_PARSED:
        share = share_metadata(share).payload
    return <Payload*>share


cdef inline void share_retain(int64_t share) noexcept nogil:
    if share & PAYLOAD_IS_PARSED:
        metadata_retain(share_metadata(share))
    else:
        payload_retain(<Payload*>share)


# Memory of a payload that this released joins the chain.
cdef inline void share_release(PayloadMemory* memory, int64_t share, BlockChain* chain) noexcept nogil:
    if share & PAYLOAD_IS_PARSED:
        share = metadata_release(share_metadata(share))
    if share:
        payload_release_chained(memory, <Payload*>share, chain)
