# The size of a connection's next receive buffer, guessed from how full the last ones were.
#
# Origin       AdaptiveRecvByteBufAllocator of Netty 4.1, as the broker configures it: sizes from a
#              table, four steps up when a read filled the buffer, one down after two that would
#              have fitted the next smaller size. As there, a read between the two neither shrinks
#              nor forgets the first small one. Pulsar has the bounds in code; PIP-430 proposes to
#              configure them.
# Threads      One connection's, one thread at a time.
# Invariants   RS-1 the size lies between the minimum and the maximum.
#              RS-2 a size is one of the table (16 to 496 by 16, then doubling), unless the bounds
#              cut it.
# Ordering     None; plain fields.
# Reclamation  None.
# Not promised That the guess fits: a message may need several buffers, or a small part of one.

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef enum:
    SMALL_SIZES = 31        # 16, 32, ... 496
    ALL_SIZES = 53          # and 512, 1024, ... 2^30
    STEPS_UP = 4
    STEPS_DOWN = 1


cdef struct ReceiveSize:
    uint32_t minimum
    uint32_t maximum
    int32_t lowest          # indices into the table
    int32_t highest
    int32_t index
    bint small_before       # a small read came since the size last changed


cdef inline int64_t receive_size_at(int32_t index) noexcept nogil:
    if index < SMALL_SIZES:
        return 16 * (index + 1)
    return <int64_t>512 << (index - SMALL_SIZES)


# The index of the smallest size that holds so many bytes.
cdef inline int32_t receive_size_index(uint32_t size) noexcept nogil:
    cdef int32_t index = 0
    while index < ALL_SIZES - 1 and receive_size_at(index) < size:
        index += 1
    return index


# 1 <= minimum <= initial <= maximum <= 2^30.
cdef inline void receive_size_init(
    ReceiveSize* size, uint32_t minimum, uint32_t initial, uint32_t maximum
) noexcept nogil:
    size.minimum = minimum
    size.maximum = maximum
    size.lowest = receive_size_index(minimum)
    size.highest = receive_size_index(maximum)
    if size.highest > 0 and receive_size_at(size.highest) > maximum:
        size.highest -= 1
    size.index = receive_size_index(initial)
    size.small_before = False


# Bytes of the next buffer.
cdef inline uint32_t receive_size_next(const ReceiveSize* size) noexcept nogil:
    cdef int64_t guess = receive_size_at(size.index)
    if guess < size.minimum:
        return size.minimum
    return <uint32_t>guess if guess <= size.maximum else size.maximum


# The last read brought so many bytes.
cdef inline void receive_size_record(ReceiveSize* size, int64_t read) noexcept nogil:
    cdef int32_t below = size.index - STEPS_DOWN if size.index > 0 else 0
    if read <= receive_size_at(below):
        if size.small_before and size.index - STEPS_DOWN >= size.lowest:
            size.index -= STEPS_DOWN
        size.small_before = not size.small_before
    elif read >= receive_size_next(size):
        if size.index < size.highest:
            size.index = size.index + STEPS_UP if size.index + STEPS_UP < size.highest else size.highest
        size.small_before = False
