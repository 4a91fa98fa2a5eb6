# Receive buffers as Python objects, the slices that entries share with them, and the size of the
# next one.

cdef object buffer_released():
    return ReleasedError("this receive buffer was released; take another one from the manager")


@cython.final
@cython.no_gc
cdef class ReceiveBuffer:
    """A connection's receive buffer: bytes are appended once, and entries may be slices of them.

    Made by EntryCacheManager.receive_buffer. Each slice, and each entry made of one, keeps the
    whole buffer; so a cache that holds one entry of it pins all of it. ``with`` or :meth:`release`
    gives up the receiver's own share.

    All methods may be called from any number of threads; two writes take turns, and their bytes
    stand one behind the other. A slice of bytes whose write has not returned may have other bytes.

    Origin: the ByteBuf that a broker's connection reads into (PIP-430, "Note About Entry Cache
    Size").
    """

    def __dealloc__(self):
        if self.native is not NULL:
            receive_buffer_release(self.native)

    # The caller holds the critical section.
    cdef int check_usable(self) except -1:
        if self.native is NULL:
            raise buffer_released()
        return 0

    @property
    def capacity(self) -> int:
        """Bytes that it has; what a slice of it pins."""
        with cython.critical_section(self):
            self.check_usable()
            return self.native.capacity

    def __bool__(self) -> bool:
        """True, also for one without bytes; see ``len()``."""
        return True

    def __len__(self) -> int:
        """Bytes received so far."""
        with cython.critical_section(self):
            self.check_usable()
            return self.native.filled

    def write(self, data) -> int:
        """Append a bytes-like object and return where it begins.

        Raises InvalidSizeError when it does not fit; then nothing changed. ReleasedError.
        """
        cdef Py_buffer view
        cdef uint32_t start
        cdef char* place = NULL
        cdef NativeBuffer* native
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            with cython.critical_section(self):
                # Not before: the object may release this buffer when it gives its bytes.
                self.check_usable()
                start = self.native.filled
                if view.len <= self.native.capacity:
                    place = receive_buffer_append(self.native, <uint32_t>view.len)
                if place is NULL:
                    raise InvalidSizeError(
                        f"{view.len} bytes do not fit; {self.native.capacity - self.native.filled} of "
                        f"{self.native.capacity} are left")
                # Another thread may release it meanwhile.
                native = self.native
                receive_buffer_retain(native)
            with nogil:
                native_enter()
                memcpy(place, view.buf, <size_t>view.len)
                receive_buffer_release(native)
                native_leave()
        finally:
            PyBuffer_Release(&view)
        return start

    def slice(self, offset, length) -> BufferSlice:
        """Received bytes, without a copy.

        Raises InvalidSizeError, ReleasedError, AllocationError.
        """
        cdef int64_t first = to_count(offset, "offset", INT32_MAX)
        cdef int64_t size = to_count(length, "length", INT32_MAX)
        cdef BufferSlice part = BufferSlice.__new__(BufferSlice)
        part.owner = self.owner
        with cython.critical_section(self):
            self.check_usable()
            if first + size > self.native.filled:
                raise InvalidSizeError(
                    f"bytes {first}..{first + size} were not received; {self.native.filled} were")
            part.payload = payload_slice(self.native, <uint32_t>first, <uint32_t>size)
        if part.payload is NULL:
            raise AllocationError("no native memory for a slice; nothing was changed")
        return part

    def release(self) -> None:
        """Give up the receiver's share; slices keep the buffer. ReleasedError when that was done
        before.
        """
        if not self.give_up():
            raise buffer_released()

    # Gives up the receiver's share; False when that was done before.
    cdef bint give_up(self) noexcept:
        cdef NativeBuffer* native
        with cython.critical_section(self):
            native = self.native
            self.native = NULL
        if native is NULL:
            return False
        receive_buffer_release(native)
        return True

    def __enter__(self) -> ReceiveBuffer:
        with cython.critical_section(self):
            self.check_usable()
        return self

    def __exit__(self, *exception) -> None:
        self.give_up()


@cython.final
@cython.no_gc
cdef class BufferSlice:
    """Bytes of a receive buffer, to make an entry of; keeps the buffer.

    From ReceiveBuffer.slice. It does not change: any number of threads may use it.
    """

    def __dealloc__(self):
        if self.payload is not NULL:
            payload_release(&self.owner.memory.entries.payloads, self.payload)

    def __bool__(self) -> bool:
        """True, also for one without bytes; see ``len()``."""
        return True

    def __len__(self) -> int:
        return 0 if self.payload is NULL else payload_length(self.payload)


# One more reference to the slice's bytes.
cdef Payload* shared_slice(NativeMemory owner, BufferSlice data) except NULL:
    if data.payload is NULL or data.owner is not owner:
        raise UsageError("the slice belongs to another manager's buffer; copy its bytes instead")
    payload_retain(data.payload)
    return data.payload


@cython.final
cdef class ReceiveBufferSize:
    """The size of a connection's next receive buffer.

    Four steps up when a read filled the last one, one down after two reads that the next smaller
    size would have held.

    Bounds in bytes, 1 <= minimum <= initial <= maximum <= 2**30
    (brokerAdaptiveRecvByteBufAllocatorMinimumSize and the like). All methods may be called from any
    number of threads; each call takes its turn.

    Origin: Netty's ``AdaptiveRecvByteBufAllocator``.
    """

    def __cinit__(self, *, minimum=1024, initial=16384, maximum=1048576):
        minimum, initial, maximum = [PyNumber_Index(size) for size in (minimum, initial, maximum)]
        if not 1 <= minimum <= initial <= maximum <= MOST_BUFFER:
            raise InvalidSizeError(
                f"minimum={minimum}, initial={initial}, maximum={maximum} are not in order within "
                f"1..{MOST_BUFFER}")
        receive_size_init(&self.native, minimum, initial, maximum)

    @property
    def next(self) -> int:
        """Bytes of the next buffer."""
        with cython.critical_section(self):
            return receive_size_next(&self.native)

    def record(self, read) -> None:
        """The last read brought ``read`` bytes. Raises InvalidSizeError."""
        cdef int32_t count = to_count(read, "read", INT32_MAX)
        with cython.critical_section(self):
            receive_size_record(&self.native, count)
