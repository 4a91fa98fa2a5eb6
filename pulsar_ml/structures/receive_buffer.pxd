# A buffer that a connection receives into, kept by every entry that is a slice of it, and the books
# of what such buffers cost.
#
# Origin       A Netty ByteBuf behind the slices that LengthFieldBasedFrameDecoder cuts; the gap
#              between a cache's size and its memory is described in PIP-430. There it is unknown;
#              here it is counted.
# Threads      new, release, pin, unpin: any thread; all but new by a holder of a reference. append:
#              one thread at a time, the receiver's.
# Invariants   RB-1 (I2, I19) bytes that were appended do not change and stay while anybody holds a
#              reference.
#              RB-2 (I45) the capacity of a buffer is in `pinned` while at least one cached entry is
#              a slice of it, once, and in `allocated` from its allocation to its release.
#              RB-3 (I41) `sliced` is the sum of the lengths counted for cached slices.
# Ordering     References as in refcount.pxd. The books order nothing. The first pin and the last
#              unpin are recognized by the read-modify-writes of `cached`, which never miss each
#              other, so the books are exact at quiescence; `pinned` and `sliced` may be off in
#              either direction before it.
# Reclamation  The release of the last reference frees the buffer. A slice holds one reference;
#              a thread that pins holds a slice.
# Not promised That pinned memory is what the cache alone keeps: a dispatch copy keeps its buffer as
#              well. An entry that was released too often leaves its buffer in the books.

from libc.stdint cimport int32_t, int64_t, uint32_t

from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, refcount_publish, refcount_release, refcount_retain,
)
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_relaxed, i32_fetch_sub_relaxed, i32_store_relaxed, i64_fetch_add_relaxed,
    i64_fetch_sub_relaxed, i64_load_relaxed, pml_i32, pml_i64,
)
from pulsar_ml.sync.memory cimport allocate, release


# The bytes that the receive buffers of one manager cost.
cdef struct BufferBooks:
    pml_i64 allocated       # capacity of all buffers that exist
    pml_i64 pinned          # capacity of those that cached entries are slices of
    pml_i64 sliced          # lengths counted for cached entries that are slices


# The bytes follow the header.
cdef struct ReceiveBuffer:  # 32 bytes
    BufferBooks* books
    pml_i32 references
    pml_i32 cached          # cached entries that are slices of it
    uint32_t capacity
    uint32_t filled         # bytes appended; the receiver's


# An empty buffer with one reference, or NULL.
cdef inline ReceiveBuffer* receive_buffer_new(BufferBooks* books, uint32_t capacity) noexcept nogil:
    cdef ReceiveBuffer* buffer = <ReceiveBuffer*>allocate(sizeof(ReceiveBuffer) + <size_t>capacity)
    if buffer is NULL:
        return NULL
    buffer.books = books
    buffer.capacity = capacity
    buffer.filled = 0
    i32_store_relaxed(&buffer.cached, 0)
    i64_fetch_add_relaxed(&books.allocated, capacity)
    refcount_publish(&buffer.references)
    return buffer


cdef inline char* receive_buffer_bytes(ReceiveBuffer* buffer) noexcept nogil:
    return <char*>buffer + sizeof(ReceiveBuffer)


# Where `length` bytes can be written behind those that are there, or NULL when they do not fit.
cdef inline char* receive_buffer_append(ReceiveBuffer* buffer, uint32_t length) noexcept nogil:
    cdef char* place = receive_buffer_bytes(buffer) + buffer.filled
    if length > buffer.capacity - buffer.filled:
        return NULL
    buffer.filled += length
    return place


cdef inline void receive_buffer_retain(ReceiveBuffer* buffer) noexcept nogil:
    refcount_retain(&buffer.references)


cdef inline void receive_buffer_release(ReceiveBuffer* buffer) noexcept nogil:
    cdef BufferBooks* books = buffer.books
    cdef int64_t capacity = buffer.capacity
    if refcount_release(&buffer.references, 1) == RELEASED_LAST:
        i64_fetch_sub_relaxed(&books.allocated, capacity)
        release(buffer)


# A cached entry of that counted length is a slice of the buffer from now on.
cdef inline void receive_buffer_pin(ReceiveBuffer* buffer, int64_t length) noexcept nogil:
    i64_fetch_add_relaxed(&buffer.books.sliced, length)
    if i32_fetch_add_relaxed(&buffer.cached, 1) == 0:
        i64_fetch_add_relaxed(&buffer.books.pinned, buffer.capacity)


# It is not any more. Before the entry's reference goes back.
cdef inline void receive_buffer_unpin(ReceiveBuffer* buffer, int64_t length) noexcept nogil:
    i64_fetch_sub_relaxed(&buffer.books.sliced, length)
    if i32_fetch_sub_relaxed(&buffer.cached, 1) == 1:
        i64_fetch_sub_relaxed(&buffer.books.pinned, buffer.capacity)


# The bytes that cached entries of `counted` bytes pin: their own bytes, and the whole of each
# buffer that some of them are slices of.
cdef inline int64_t buffer_books_pinned(const BufferBooks* books, int64_t counted) noexcept nogil:
    return counted - i64_load_relaxed(&books.sliced) + i64_load_relaxed(&books.pinned)
