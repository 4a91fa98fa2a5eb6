# Entries as Python objects: one reference each.
#
# A reference goes back with the GIL held: that takes less time than to give the GIL up. It may wait
# for the lock of a limiter that gets its permits back; see gate.pxi.
#
# An object counts its uses in one word: the calls under way, in any thread, and the open views. The
# last use of a released object gives the reference back, so that no other use finds it gone. This
# takes no lock. A call that takes entries over, such as PendingReadsManager.complete, marks them
# for its time; other calls are refused while the mark is there.

cdef enum:
    ENTRY_USES = 0x3FFFFFFF         # of `uses`; the rest are marks
    ENTRY_CLAIMED = 0x40000000      # a call takes it over
    ENTRY_RELEASED = 0x80000000


cdef inline Entry wrap_entry(NativeShares* shares, uint32_t handle):
    cdef Entry entry = Entry.__new__(Entry)
    entry.share = <MemoryShare>own_share(shares)
    entry.handle = handle
    return entry


# A copy has the share of the entry that it is a copy of.
cdef Entry copy_over(MemoryShare share, uint32_t handle):
    cdef Entry entry = Entry.__new__(Entry)
    entry.share = share
    entry.handle = handle
    return entry


cdef Payload* copied(NativeMemory owner, const Py_buffer* view) noexcept nogil:
    cdef Payload* payload = payload_new(&owner.memory.entries.payloads, <uint32_t>view.len)
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
        payload_release(&owner.memory.entries.payloads, payload)
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
            handle = entry_over(owner, at, copied(owner, &view), expected, counts_read)
        else:
            with nogil:
                native_enter()
                handle = entry_over(owner, at, copied(owner, &view), expected, counts_read)
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

    All methods may be called from any number of threads, and take no lock. A release ends the use
    of the object in all of them: calls that come later raise ReleasedError, those under way end
    with the bytes that they began with. A thread that needs the entry for longer takes a
    :meth:`copy`. While :meth:`Permits.share` or :meth:`PendingReadsManager.complete` works on the
    object, calls of other threads raise UsageError.

    Origin: ``EntryImpl`` of Pulsar 4.1.
    """

    def __dealloc__(self):
        if self.handle:
            give_reference_back(self.share.memory, self.handle)
            run_callbacks()

    def __getbuffer__(self, Py_buffer* view, int flags):
        begin_use(self)
        cdef Payload* payload = entry_payload(entry_at(&self.share.memory.entries, self.handle))
        try:
            PyBuffer_FillInfo(view, self, payload_bytes(payload), payload_length(payload), 1, flags)
        except BaseException:
            end_use(self, 1)
            raise

    def __releasebuffer__(self, Py_buffer* view):
        end_use(self, 1)

    def __bool__(self) -> bool:
        """True, also for an empty or a released one; see ``len()`` and :attr:`released`."""
        return True

    def __len__(self) -> int:
        begin_use(self)
        length = entry_length(&self.share.memory.entries, self.handle)
        end_use(self, 1)
        return length

    def __enter__(self) -> Entry:
        begin_use(self)
        end_use(self, 1)
        return self

    def __exit__(self, *exception) -> None:
        try_release(self, True)

    def __repr__(self) -> str:
        try:
            return f"<Entry {self.position} {len(self)} bytes>"
        except ReleasedError:
            return "<Entry released>"
        except UsageError:
            return "<Entry that a call takes over>"

    @property
    def released(self) -> bool:
        """True if the reference was given back."""
        return (u32_load_relaxed(&self.uses) & ENTRY_RELEASED) != 0

    @property
    def ledger_id(self) -> int:
        begin_use(self)
        ledger_id = entry_at(&self.share.memory.entries, self.handle).ledger_id
        end_use(self, 1)
        return ledger_id

    @property
    def entry_id(self) -> int:
        begin_use(self)
        entry_id = entry_at(&self.share.memory.entries, self.handle).entry_id
        end_use(self, 1)
        return entry_id

    @property
    def position(self) -> Position:
        begin_use(self)
        cdef NativeEntry* entry = entry_at(&self.share.memory.entries, self.handle)
        cdef NativePosition at = position(entry.ledger_id, entry.entry_id)
        end_use(self, 1)
        return new_position(at)

    @property
    def data(self) -> memoryview:
        """The payload, without a copy."""
        return memoryview(self)

    @property
    def references(self) -> int:
        """References to this entry, the caller's included, at some moment of the call."""
        begin_use(self)
        references = entry_references(&self.share.memory.entries, self.handle)
        end_use(self, 1)
        return references

    @property
    def expected_reads(self) -> int:
        """Reads still expected. It may be negative under released_queue and stash_queue only."""
        begin_use(self)
        expected = entry_expected_reads(&self.share.memory.entries, self.handle)
        end_use(self, 1)
        return expected

    def expect_read(self) -> None:
        """Expect one more read, as for an entry that joins a replay queue.

        Raises InvalidSizeError (2**31 - 1 are expected already), AllocationError.
        """
        begin_use(self)
        try:
            if entry_expected_reads(&self.share.memory.entries, self.handle) == INT32_MAX:
                raise InvalidSizeError(f"no more than {INT32_MAX} reads of an entry can be expected")
            if not entry_expect_read(&self.share.memory.entries, self.handle):
                raise AllocationError("no native memory for the expected reads of an entry")
        finally:
            end_use(self, 1)

    def copy(self, *, bint counts_read=True) -> Entry:
        """Another entry over the same bytes and the same expected reads: a dispatch copy.

        With ``counts_read`` its release takes one off the expected reads; without, it was never
        delivered. Raises AllocationError.
        """
        begin_use(self)
        cdef uint32_t handle = entry_copy(&self.share.memory.entries, self.handle, counts_read)
        end_use(self, 1)
        if not handle:
            raise AllocationError("no native memory for a copy of an entry")
        return copy_over(self.share, handle)

    @property
    def message_metadata(self):
        """The parsed value of this entry, None where there is none.

        It came by :meth:`initialize_message_metadata`, of this entry or of the one that this is a
        copy of.
        """
        value = parsed_of(self)
        return None if value is ABSENT else value

    def initialize_message_metadata(self, parse, /):
        """Return the parsed value of this entry; without one, attach ``parse(data)`` first.

        ``data`` is a view of the payload. Copies that are made later share the value, the cache's
        own included, and it is dropped after the last entry that has it; a copy under
        ``copy_entries`` begins without one. If two threads parse at a time, both get the value that
        was attached first. Nothing is attached when ``parse`` raises. Raises ReleasedError,
        AllocationError, and what ``parse`` raises.
        """
        cdef bint attached
        value = parsed_of(self)
        if value is ABSENT:
            parsed = parse(memoryview(self))
            begin_use(self)         # the parser may have released it
            attached = attach_object(&self.share.memory.entries, self.handle, parsed)
            value = parsed_of(self)
            end_use(self, 1)
            if not attached:
                raise AllocationError("no native memory for the parsed value of an entry")
        return value

    def release(self, *, bint delivered=True) -> None:
        """Give the reference back. ReleasedError when that was done before.

        A copy that was made to be dispatched and was not, not ``delivered``, takes nothing off the
        expected reads.
        """
        if not try_release(self, delivered):
            refuse_use(self)


# Stands for no parsed value.
cdef object ABSENT = object()


# The parsed value of an entry, or ABSENT.
cdef object parsed_of(Entry entry):
    cdef int64_t value = 0
    begin_use(entry)
    found = ABSENT
    if entry_metadata(&entry.share.memory.entries, entry.handle, &value):
        found = parsed_value(value)
    end_use(entry, 1)
    return found


cdef inline void give_reference_back(CacheMemory* memory, uint32_t handle) noexcept:
    short_enter()
    entry_release(&memory.entries, handle, 1)
    short_leave()


cdef int refuse_use(Entry entry) except -1:
    if u32_load_relaxed(&entry.uses) & ENTRY_CLAIMED:
        raise UsageError("another call takes this entry over; wait for its end, or use a copy()")
    raise ReleasedError("this entry was released; get it from the cache again")


# Begins a use of an entry: its reference stays until end_use(entry, 1).
cdef inline int begin_use(Entry entry) except -1:
    cdef uint32_t seen = u32_load_relaxed(&entry.uses)
    while not seen & (ENTRY_RELEASED | ENTRY_CLAIMED):
        # Fails when another use began or ended. Python hands an object to other threads, and orders
        # its handle before.
        if u32_cas_weak_acquire(&entry.uses, &seen, seen + 1):
            return 0
    return refuse_use(entry)


# Ends a use, or with ENTRY_CLAIMED a claim. The last one of a released object gives the reference
# back.
cdef inline void end_use(Entry entry, uint32_t use) noexcept:
    cdef uint32_t handle
    if u32_fetch_sub_release(&entry.uses, use) == ENTRY_RELEASED + use:
        # Pairs with the releases of the other uses.
        u32_load_acquire(&entry.uses)
        handle = entry.handle
        entry.handle = 0
        give_reference_back(entry.share.memory, handle)
        run_callbacks()


# Marks an entry as released; its last use gives the reference back. False when it was marked
# before, or is claimed.
cdef bint try_release(Entry entry, bint delivered) noexcept:
    cdef uint32_t seen = u32_load_relaxed(&entry.uses)
    while not seen & (ENTRY_RELEASED | ENTRY_CLAIMED):
        # This call is a use as well. Fails when another use began or ended.
        if u32_cas_weak_acquire(&entry.uses, &seen, (seen | ENTRY_RELEASED) + 1):
            if not delivered:
                entry_not_delivered(&entry.share.memory.entries, entry.handle)
            end_use(entry, 1)
            return True
    return False


# Claims an entry for a call that takes it over. Views may be open.
cdef int claim(Entry entry) except -1:
    cdef uint32_t seen = u32_load_relaxed(&entry.uses)
    while not seen & (ENTRY_RELEASED | ENTRY_CLAIMED):
        if u32_cas_weak_acquire(&entry.uses, &seen, seen | ENTRY_CLAIMED):
            return 0
    return refuse_use(entry)


# The entries of a list, each an Entry that nobody else holds, that has no permits and that is there
# once, all of them claimed. With an owner, entries of this manager without a view. The caller ends
# the claims.
cdef list claim_all(list entries, NativeMemory owner):
    cdef Entry entry
    cdef EntryPool* pool
    cdef list claimed = []
    cdef set seen = set()
    cdef str wrong = None
    entries = list(entries)
    for value in entries:
        if not isinstance(value, Entry):
            raise TypeError(f"{value!r} is not an Entry")
        if id(value) in seen:
            raise UsageError(f"{value!r} is in the list twice")
        seen.add(id(value))
    try:
        for entry in entries:
            claim(entry)
            claimed.append(entry)
            pool = &entry.share.memory.entries
            if entry_references(pool, entry.handle) != 1:
                wrong = "is held elsewhere; use a copy()"
            elif owner is not None and (
                    entry.share.owner is not owner or u32_load_relaxed(&entry.uses) & ENTRY_USES):
                wrong = "belongs to another manager, or a view of it is open"
            elif entry_has_callback(pool, entry.handle):
                wrong = "has permits already; use new entries"
            if wrong is not None:
                break
    except BaseException:
        end_claims(claimed)
        raise
    if wrong is not None:
        end_claims(claimed)
        raise UsageError(f"{entry!r} {wrong}")
    return entries


cdef int end_claims(list entries) except -1:
    for entry in entries:
        end_use(<Entry>entry, ENTRY_CLAIMED)
    return 0
