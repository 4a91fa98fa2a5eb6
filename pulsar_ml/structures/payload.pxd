# The bytes of an entry, shared by its copies: memory of their own, or a slice of a receive buffer.
#
# Origin       The ByteBuf of EntryImpl (Pulsar 4.1).
# Threads      Any thread that holds a reference.
# Invariants   PA-1 (I2, I19) the bytes do not change once their creator shared them, and stay while
#              any reference is held.
# Ordering     Fields and bytes are plain: written before the payload is shared. See refcount.pxd.
# Reclamation  The memory goes back with the last reference, and with a slice its reference to the
#              receive buffer.
# Not promised A position for the bytes: that is the entry's.

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from pulsar_ml.structures.payload_memory cimport (
    BlockChain, PayloadMemory, payload_memory_chain, payload_memory_give_all, payload_memory_take,
)
from pulsar_ml.structures.receive_buffer cimport (
    ReceiveBuffer, receive_buffer_bytes, receive_buffer_release, receive_buffer_retain,
)
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_alone, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport pml_i32
from pulsar_ml.sync.memory cimport allocate, release


# The bytes of an entry, shared by its copies. The bytes follow the header, unless it is a slice.
cdef struct Payload:
    pml_i32 references
    uint32_t length_and_mark    # payload_length() without the mark


# A payload whose bytes lie in a receive buffer, of which it holds one reference.
cdef struct PayloadSlice:
    Payload payload
    ReceiveBuffer* source
    char* bytes


cdef enum:
    PAYLOAD_IS_SLICE = 0x80000000   # of length_and_mark
    # bytes after the header of the smallest payload: what a slice has there
    PAYLOAD_LEAST = 16


# Bytes of memory of one that is no slice. Never less than a slice takes: as much as the smallest
# block of an allocator has.
cdef inline size_t payload_block(uint32_t length) noexcept nogil:
    return sizeof(Payload) + max(<size_t>length, <size_t>PAYLOAD_LEAST)


# Uninitialised bytes with one reference, or NULL. The creator fills them before it shares them. At
# most INT32_MAX bytes.
cdef inline Payload* payload_new(PayloadMemory* memory, uint32_t length) noexcept nogil:
    cdef Payload* payload = <Payload*>payload_memory_take(memory, payload_block(length))
    if payload is not NULL:
        payload.length_and_mark = length
        refcount_publish(&payload.references)
    return payload


# Bytes that were appended to a buffer, with one reference, or NULL. The caller holds the buffer.
cdef inline Payload* payload_slice(ReceiveBuffer* source, uint32_t start, uint32_t length) noexcept nogil:
    cdef PayloadSlice* slice = <PayloadSlice*>allocate(sizeof(PayloadSlice))
    if slice is NULL:
        return NULL
    receive_buffer_retain(source)
    slice.source = source
    slice.bytes = receive_buffer_bytes(source) + start
    slice.payload.length_and_mark = length | PAYLOAD_IS_SLICE
    refcount_publish(&slice.payload.references)
    return &slice.payload


# A copy of a payload's bytes in memory of its own, with one reference, or NULL
# (managedLedgerCacheCopyEntries).
cdef inline Payload* payload_copy(PayloadMemory* memory, Payload* payload) noexcept nogil:
    cdef Payload* copy = payload_new(memory, payload_length(payload))
    if copy is not NULL:
        memcpy(payload_bytes(copy), payload_bytes(payload), payload_length(payload))
    return copy


cdef inline uint32_t payload_length(const Payload* payload) noexcept nogil:
    return payload.length_and_mark & ~<uint32_t>PAYLOAD_IS_SLICE


cdef inline char* payload_bytes(Payload* payload) noexcept nogil:
    if payload.length_and_mark & PAYLOAD_IS_SLICE:
        return (<PayloadSlice*>payload).bytes
    return <char*>payload + sizeof(Payload)


# The receive buffer that the bytes lie in, NULL when they have memory of their own.
cdef inline ReceiveBuffer* payload_source(Payload* payload) noexcept nogil:
    if payload.length_and_mark & PAYLOAD_IS_SLICE:
        return (<PayloadSlice*>payload).source
    return NULL


cdef inline void payload_retain(Payload* payload) noexcept nogil:
    refcount_retain(&payload.references)


cdef inline void payload_release(PayloadMemory* memory, Payload* payload) noexcept nogil:
    cdef BlockChain chain = BlockChain(NULL, NULL, 0, 0)
    payload_release_chained(memory, payload, &chain)
    payload_memory_give_all(memory, &chain)


# payload_release, but memory that this released joins a chain: see payload_memory_chain.
cdef inline void payload_release_chained(
    PayloadMemory* memory, Payload* payload, BlockChain* chain
) noexcept nogil:
    cdef ReceiveBuffer* source
    # Alone, the caller needs no exchange: a reference can only come from one that is held.
    if refcount_alone(&payload.references) or refcount_release(&payload.references, 1) == RELEASED_LAST:
        source = payload_source(payload)
        if source is NULL:
            payload_memory_chain(memory, payload, payload_block(payload_length(payload)), chain)
            return
        receive_buffer_release(source)
        release(payload)
