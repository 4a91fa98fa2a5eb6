# Entries as Python objects: one reference each.
#
# A reference goes back with the GIL held: that takes less time than to give the GIL up. The lock of
# a limiter that gets its permits back has no holder that needs the GIL, and no process forks
# meanwhile, so that the gate is not needed.

cdef Entry wrap_entry(NativeMemory owner, uint32_t handle):
    cdef Entry entry = Entry.__new__(Entry)
    entry.owner = owner
    entry.handle = handle
    return entry


cdef Payload* copied(const Py_buffer* view) noexcept nogil:
    cdef Payload* payload = payload_new(<uint32_t>view.len)
    if payload is not NULL:
        memcpy(payload_bytes(payload), view.buf, <size_t>view.len)
    return payload


# An entry that takes over the caller's reference to the payload (NULL: none was made), or 0 when
# memory ran out; then the reference is given back.
cdef uint32_t entry_over(
    NativeMemory owner, NativePosition at, Payload* payload, int32_t expected, bint counts_read
) noexcept nogil:
    cdef uint32_t read_count = 0
    cdef uint32_t handle = 0
    if payload is NULL:
        return 0
    if read_count_maybe_new(&owner.memory.entries, expected, &read_count):
        handle = entry_new(&owner.memory.entries, at, payload, read_count, counts_read)
    if not handle:
        payload_release(payload)
        if read_count:
            read_count_release(&owner.memory.entries.read_counts, read_count)
    return handle


# An entry over a copy of a bytes-like object, or over the bytes of a BufferSlice.
cdef uint32_t new_entry(
    NativeMemory owner, NativePosition at, object data, object expected_reads, bint counts_read
) except 0:
    cdef int32_t expected = to_count(expected_reads, "expected_reads", INT32_MAX)
    cdef uint32_t handle
    cdef Py_buffer view
    if isinstance(data, BufferSlice):
        handle = entry_over(owner, at, shared_slice(owner, <BufferSlice>data), expected, counts_read)
        if not handle:
            raise AllocationError("no native memory for an entry over a slice; nothing was changed")
        return handle
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX:
            raise InvalidSizeError(f"an entry of {view.len} bytes is too large; at most {INT32_MAX}")
        if view.len <= SHORT_ENTRY:
            handle = entry_over(owner, at, copied(&view), expected, counts_read)
        else:
            with nogil:
                native_enter()
                handle = entry_over(owner, at, copied(&view), expected, counts_read)
                native_leave()
    finally:
        PyBuffer_Release(&view)
    if not handle:
        raise AllocationError(f"no native memory for an entry of {view.len} bytes; nothing was changed")
    return handle


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Entry:
    """One reference to a cached or copied entry; a read-only bytes-like object over its payload.

    Leave a ``with`` block or call :meth:`release` to give the reference back; after that every use
    but :attr:`released` raises ReleasedError. Views taken with ``memoryview(entry)`` share the
    bytes without a copy and stay valid: the reference goes back with the last of them. An entry
    that is collected gives its reference back too.

    One thread at a time may use an object of this class; take a :meth:`copy` for another thread.

    Origin: ``EntryImpl`` of Pulsar 4.1.
    """

    def __dealloc__(self):
        if self.handle:
            entry_release(&self.owner.memory.entries, self.handle, 1)
            run_callbacks()

    cdef int give_back(self) except -1:
        cdef uint32_t handle = self.handle
        if self.exports == 0 and handle:
            self.handle = 0
            entry_release(&self.owner.memory.entries, handle, 1)
            run_callbacks()
        return 0

    def __getbuffer__(self, Py_buffer* view, int flags):
        check_usable(self)
        cdef Payload* payload = entry_payload(entry_at(&self.owner.memory.entries, self.handle))
        PyBuffer_FillInfo(view, self, payload_bytes(payload), payload_length(payload), 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.released:
            self.give_back()

    def __bool__(self) -> bool:
        """True, also for an empty or a released one; see ``len()`` and :attr:`released`."""
        return True

    def __len__(self) -> int:
        check_usable(self)
        return entry_length(&self.owner.memory.entries, self.handle)

    def __enter__(self) -> Entry:
        check_usable(self)
        return self

    def __exit__(self, *exception) -> None:
        if not self.released:
            self.release()

    def __repr__(self) -> str:
        if self.released or not self.handle:
            return "<Entry released>"
        return f"<Entry {self.position} {len(self)} bytes>"

    @property
    def released(self) -> bool:
        """True if the reference was given back."""
        return self.released

    @property
    def ledger_id(self) -> int:
        check_usable(self)
        return entry_at(&self.owner.memory.entries, self.handle).ledger_id

    @property
    def entry_id(self) -> int:
        check_usable(self)
        return entry_at(&self.owner.memory.entries, self.handle).entry_id

    @property
    def position(self) -> Position:
        check_usable(self)
        cdef NativeEntry* entry = entry_at(&self.owner.memory.entries, self.handle)
        return new_position(position(entry.ledger_id, entry.entry_id))

    @property
    def data(self) -> memoryview:
        """The payload, without a copy."""
        return memoryview(self)

    @property
    def references(self) -> int:
        """References to this entry, the caller's included, at some moment of the call."""
        check_usable(self)
        return entry_references(&self.owner.memory.entries, self.handle)

    @property
    def expected_reads(self) -> int:
        """Reads still expected. It may be negative under released_queue and stash_queue only."""
        check_usable(self)
        return entry_expected_reads(&self.owner.memory.entries, self.handle)

    def expect_read(self) -> None:
        """Expect one more read, as for an entry that joins a replay queue.

        Raises InvalidSizeError (2**31 - 1 are expected already), AllocationError.
        """
        check_usable(self)
        if entry_expected_reads(&self.owner.memory.entries, self.handle) == INT32_MAX:
            raise InvalidSizeError(f"no more than {INT32_MAX} reads of an entry can be expected")
        if not entry_expect_read(&self.owner.memory.entries, self.handle):
            raise AllocationError("no native memory for the expected reads of an entry")

    def copy(self, *, bint counts_read=True) -> Entry:
        """Another entry over the same bytes and the same expected reads: a dispatch copy.

        With ``counts_read`` its release takes one off the expected reads; without, it was never
        delivered. Raises AllocationError.
        """
        check_usable(self)
        cdef uint32_t handle = entry_copy(&self.owner.memory.entries, self.handle, counts_read)
        if not handle:
            raise AllocationError("no native memory for a copy of an entry")
        return wrap_entry(self.owner, handle)

    @property
    def message_metadata(self):
        """The parsed value of this entry, None where there is none.

        It came by :meth:`initialize_message_metadata`, of this entry or of the one that this is a
        copy of.
        """
        check_usable(self)
        cdef int64_t value = 0
        if entry_metadata(&self.owner.memory.entries, self.handle, &value):
            return parsed_value(value)
        return None

    def initialize_message_metadata(self, parse, /):
        """Return the parsed value of this entry; without one, attach ``parse(data)`` first.

        ``data`` is a view of the payload. Copies that are made later share the value, the cache's
        own included, and it is dropped after the last entry that has it; a copy under
        ``copy_entries`` begins without one. If two threads parse at a time, both get the value that
        was attached first. Nothing is attached when ``parse`` raises. Raises ReleasedError,
        AllocationError, and what ``parse`` raises.
        """
        check_usable(self)
        cdef int64_t value = 0
        if not entry_metadata(&self.owner.memory.entries, self.handle, &value):
            parsed = parse(memoryview(self))
            check_usable(self)      # the parser may have released it
            if not attach_object(&self.owner.memory.entries, self.handle, parsed):
                raise AllocationError("no native memory for the parsed value of an entry")
            entry_metadata(&self.owner.memory.entries, self.handle, &value)
        return parsed_value(value)

    def release(self, *, bint delivered=True) -> None:
        """Give the reference back. ReleasedError when that was done before.

        A copy that was made to be dispatched and was not, not ``delivered``, takes nothing off the
        expected reads.
        """
        check_usable(self)
        if not delivered:
            entry_not_delivered(&self.owner.memory.entries, self.handle)
        self.released = True
        self.give_back()


cdef int check_usable(Entry entry) except -1:
    if entry.released or not entry.handle:
        raise ReleasedError("this entry was released; get it from the cache again")
    return 0
