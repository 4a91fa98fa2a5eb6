# A range cache as a Python object.

# The collector may not take the native memory away before the cache, but the clock's cycle ends at
# the clock.
@cython.final
@cython.no_gc_clear
cdef class RangeCache:
    """The cached entries of one managed ledger, by position. Made by EntryCacheManager.range_cache.

    All methods may be called from any number of threads. Origin: ``RangeCache`` of Pulsar 4.1.
    """

    def __dealloc__(self):
        cdef MapCursor cursor
        if self.native is NULL:
            return
        with nogil:
            native_enter()
            cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
            cache_manager_remove(self.owner.manager, self.native, &cursor, INT64_MAX)
            range_cache_delete(self.native)
            native_leave()

    cdef bint is_closed(self) noexcept:
        return u32_load_acquire(&self.closed_mark) != 0

    cdef int check_open(self) except -1:
        if self.is_closed():
            raise ClosedError(f"the range cache {self.name!r} is closed")
        return 0

    @property
    def closed(self) -> bool:
        return self.is_closed()

    @property
    def size(self) -> int:
        """Bytes counted for the cached entries; exact when nobody is changing the cache."""
        return 0 if self.native is NULL else range_cache_size(self.native)

    def put(self, position, value, *, expected_reads=0, timestamp_ns=None) -> bool:
        """Cache an entry; False when the position is taken or the cache has size 0.

        Then nothing changed but that an entry which is cached already shares the expected reads of
        this newer one from here on.

        ``value`` is a bytes-like object, which is copied once, a BufferSlice, whose bytes the cache
        shares, or an Entry of the same manager, whose bytes and expected reads the cache shares; a
        manager with ``copy_entries`` shares no bytes. ``expected_reads`` does not go with an Entry.
        ``timestamp_ns`` is the entry's age for time passes, by default the manager's clock now.
        Where the manager has no thread, a put that makes its caches too large evicts before it
        returns.

        Raises InvalidPositionError, PositionMismatchError (an Entry of another position),
        InvalidSizeError, UsageError (an Entry of another manager, or expected_reads with an Entry),
        ReleasedError, ClosedError, AllocationError.
        """
        self.check_open()
        cdef NativePosition key = to_stored(position, "position")
        cdef int64_t now = time_of(self.clock, timestamp_ns, "timestamp_ns")
        cdef uint32_t handle
        self.check_open()       # the clock may have closed it
        handle = self.cache_copy(key, value, expected_reads)
        cdef uint32_t length = entry_length(&self.owner.memory.entries, handle)
        cdef Status status
        cdef bint closed
        with nogil:
            native_enter()
            # A close that comes later waits for this put; one that came before is seen here. Both
            # change one word each and read the other's, with a fence between.
            u32_fetch_add_relaxed(&self.putting, 1)
            fence_seq_cst()
            closed = u32_load_acquire(&self.closed_mark) != 0
            status = PML_OK
            if not closed:
                status = cache_manager_put(self.owner.manager, self.native, key, handle, length, now)
            if closed or status != PML_OK:
                entry_release(&self.owner.memory.entries, handle, 1)
            u32_fetch_sub_release(&self.putting, 1)
            fence_seq_cst()
            if u32_load_relaxed(&self.closed_mark):
                wake_one(&self.putting)
            native_leave()
        drop_released_objects()
        if closed:
            self.check_open()
        if status == PML_EXISTS or status == PML_DISABLED:
            return False
        check_status(status, key)
        return True

    def put_all(self, positions, values, *, expected_reads=0, timestamp_ns=None) -> int:
        """Cache the bytes of many entries; return how many were not cached before.

        ``positions`` is an array of 64-bit integers with the shape (n, 2), or a sequence of
        positions; ``values`` are as many bytes-like objects. All are checked first. The GIL is
        given up once, and the clock read once. The others are as for :meth:`put`. Raises what put
        raises, and UsageError for other numbers of values; AllocationError, and then those before
        are cached.
        """
        self.check_open()
        cdef Block places = to_places(positions)
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef int32_t expected = to_count(expected_reads, "expected_reads", INT32_MAX)
        cdef int64_t now = time_of(self.clock, timestamp_ns, "timestamp_ns")
        cdef Block block = new_block(places.count, sizeof(Py_buffer))
        cdef Py_buffer* views = <Py_buffer*>block.items
        cdef Py_ssize_t taken = 0, i = 0
        cdef int64_t added = 0
        cdef uint32_t handle
        cdef Status status = PML_OK
        cdef bint closed
        values = tuple(values)
        check_length(places.count, len(values), "values")
        try:
            while taken < places.count:
                try:
                    PyObject_GetBuffer(values[taken], &views[taken], PyBUF_SIMPLE)
                except TypeError:
                    raise TypeError(f"values[{taken}]={values[taken]!r} is not bytes-like") from None
                taken += 1
                if views[taken - 1].len > INT32_MAX:
                    raise InvalidSizeError(f"values[{taken - 1}] of {views[taken - 1].len} bytes is too "
                                           f"large; at most {INT32_MAX}")
            with nogil:
                native_enter()
                # As in put.
                u32_fetch_add_relaxed(&self.putting, 1)
                fence_seq_cst()
                closed = u32_load_acquire(&self.closed_mark) != 0
                while i < places.count and not closed:
                    handle = entry_over(self.owner, at[i], copied(self.owner, &views[i]), expected, False)
                    if not handle:
                        status = Status.PML_NO_MEMORY
                        break
                    status = cache_manager_put(
                        self.owner.manager, self.native, at[i], handle, <uint32_t>views[i].len, now)
                    if status == PML_OK:
                        added += 1
                    else:
                        entry_release(&self.owner.memory.entries, handle, 1)
                        if status != PML_EXISTS and status != PML_DISABLED:
                            break
                    i += 1
                u32_fetch_sub_release(&self.putting, 1)
                fence_seq_cst()
                if u32_load_relaxed(&self.closed_mark):
                    wake_one(&self.putting)
                native_leave()
        finally:
            while taken:
                taken -= 1
                PyBuffer_Release(&views[taken])
        if closed:
            self.check_open()
        if i < places.count:
            raise AllocationError(f"no native memory for the entry {new_position(at[i])}; "
                                  f"{added} entries before it are cached")
        return added

    cdef uint32_t cache_copy(self, NativePosition key, object value, object expected_reads) except 0:
        cdef Entry entry
        cdef uint32_t handle
        # The cache's own copy is never delivered, so it counts no read when it goes.
        if isinstance(value, BufferSlice) and self.owner.copy_entries:
            value = wrap_entry(&self.shares.native, new_entry(self.owner, key, value, expected_reads, False))
            expected_reads = 0
        if not isinstance(value, Entry):
            return new_entry(self.owner, key, value, expected_reads, False)
        # The number's __bool__ may release the entry.
        if expected_reads:
            raise UsageError("expected_reads goes with bytes; an Entry brings its own")
        entry = <Entry>value
        if entry.share.owner is not self.owner:
            raise UsageError(f"{entry!r} belongs to another manager; copy its bytes instead")
        begin_use(entry)
        try:
            if not entry_matches(&self.owner.memory.entries, entry.handle, key):
                check_status(Status.PML_MISMATCH, key)
            with nogil:
                native_enter()
                if self.owner.copy_entries:
                    handle = entry_copy_bytes(&self.owner.memory.entries, entry.handle, False)
                else:
                    handle = entry_copy(&self.owner.memory.entries, entry.handle, False)
                native_leave()
        finally:
            end_use(entry, 1)
        if not handle:
            raise AllocationError("no native memory for a cache copy; nothing was changed")
        return handle

    def get(self, position) -> Entry | None:
        """The entry at a position with a reference for the caller, or None.

        Takes no lock. A hit marks the entry as recently accessed. Raises InvalidPositionError,
        ClosedError.
        """
        self.check_open()
        cdef NativePosition key = to_stored(position, "position")
        cdef uint32_t handle = cache_manager_get(self.owner.manager, self.native, key, own_stripe())
        return wrap_entry(&self.shares.native, handle) if handle else None

    def get_all(self, positions) -> list[Entry | None]:
        """The entries at many positions, each as :meth:`get` answers it. Gives the GIL up once.

        ``positions`` is an array of 64-bit integers with the shape (n, 2), a ledger id and an entry
        id in each row, or a sequence of positions. Raises InvalidPositionError, ClosedError.
        """
        self.check_open()
        cdef Block places = to_places(positions)
        cdef Block block = new_block(places.count, sizeof(uint32_t))
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef uint32_t* handles = <uint32_t*>block.items
        cdef uint32_t stripe = own_stripe()
        cdef Py_ssize_t i = 0
        cdef list found = []
        self.check_open()       # the positions' conversions may have closed it
        with nogil:
            native_enter()
            for i in range(places.count):
                handles[i] = cache_manager_get(self.owner.manager, self.native, at[i], stripe)
            native_leave()
        i = 0
        try:
            while i < places.count:
                found.append(wrap_entry(&self.shares.native, handles[i]) if handles[i] else None)
                i += 1
        finally:
            while i < places.count:
                if handles[i]:
                    give_reference_back(self.owner.memory, handles[i])
                i += 1
        return found

    def __contains__(self, position) -> bool:
        """True if an entry is cached at a position; does not count as an access."""
        self.check_open()
        cdef NativePosition key = to_stored(position, "position")
        return not cache_manager_disabled(self.owner.manager) and range_cache_exists(self.native, key)

    def get_range(self, first, last) -> list[Entry]:
        """The cached entries of [first, last], ascending, each with a reference for the caller.

        Not a snapshot: what is put or removed meanwhile may or may not be among them; what is
        cached all the while is. Raises InvalidPositionError (first > last included), ClosedError.
        """
        return list(self.iterate(first, last))

    def visit_range(self, first, last, visitor) -> int:
        """Call ``visitor(entry)`` for each cached entry of [first, last] and return their number.

        The entry is released after the call, also when it raises; keep a copy to keep it. No lock
        is held: the visitor may change the cache. Raises what the visitor raises,
        InvalidPositionError, ClosedError.
        """
        cdef int64_t count = 0
        for entry in self.iterate(first, last):
            with entry:
                count += 1
                visitor(entry)
        return count

    def iterate(self, first, last):
        """Like get_range, one entry at a time.

        One thread at a time uses an iterator: a call beside another one raises UsageError.
        """
        cdef RangeIterator walk = RangeIterator.__new__(RangeIterator)
        walk.cursor = to_walk(self, first, last)
        walk.cache = self
        return walk

    def iterate_cached(self, first, last):
        """Describe the cached entries of [first, last], ascending, one CachedEntry at a time.

        It takes no reference and counts as no access. One thread at a time uses an iterator: a call
        beside another one raises UsageError. Raises InvalidPositionError (first > last included),
        ClosedError.
        """
        cdef CachedIterator walk = CachedIterator.__new__(CachedIterator)
        walk.cursor = to_walk(self, first, last)
        walk.cache = self
        return walk

    def count_misses(self, entries, bytes) -> None:
        """Count what a reader had to take from storage: so many entries of so many bytes together.

        Hits are counted by the reads themselves; what a read did not find may be no entry at all.
        Raises InvalidSizeError for negative numbers.
        """
        cdef int64_t count = to_size(entries, "entries")
        cache_manager_miss(self.owner.manager, own_stripe(), count, to_size(bytes, "bytes"))

    def remove_range(self, first, last, *, bint last_inclusive=True) -> Removed:
        """Invalidate the entries of [first, last], or of [first, last) without ``last_inclusive``.

        Raises InvalidPositionError (first > last included), ClosedError.
        """
        self.check_open()
        cdef NativePosition low = to_position(first, "first")
        cdef NativePosition high = to_position(last, "last")
        check_range(low, high)
        if not last_inclusive:
            if low.ledger_id == high.ledger_id and low.entry_id == high.entry_id:
                return Removed(0, 0)
            # The range before (L, 0) ends with the whole of every earlier ledger.
            if high.entry_id > 0:
                high.entry_id -= 1
            elif high.ledger_id > 0:
                high = position(high.ledger_id - 1, INT64_MAX)
            else:
                return Removed(0, 0)
        return self.remove(low, high)

    def invalidate_entries(self, position) -> Removed:
        """Invalidate all entries before a position. Raises InvalidPositionError, ClosedError."""
        cdef NativePosition end = to_position(position, "position")
        if end.ledger_id < 0 or (end.ledger_id == 0 and end.entry_id < 0):
            self.check_open()
            return Removed(0, 0)
        return self.remove_range((0, 0), position, last_inclusive=False)

    def remove_all(self, positions) -> Removed:
        """Invalidate the entries at many positions and return what this call removed.

        ``positions`` is as for :meth:`get_all`; all are checked first. Gives the GIL up once.
        Raises InvalidPositionError, ClosedError.
        """
        self.check_open()
        cdef Block places = to_places(positions)
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef MapCursor cursor
        cdef NativeRemoved removed
        cdef int64_t entries = 0, size = 0
        cdef Py_ssize_t i
        self.check_open()       # the positions' conversions may have closed it
        with nogil:
            native_enter()
            for i in range(places.count):
                cursor = range_cache_cursor(at[i], at[i])
                removed = cache_manager_remove(self.owner.manager, self.native, &cursor, 1)
                entries += removed.entries
                size += removed.bytes
            native_leave()
        drop_released_objects()
        return Removed(entries, size)

    def clear(self) -> Removed:
        """Invalidate everything and return what this call removed."""
        self.check_open()
        return self.remove(position(0, 0), position(INT64_MAX, INT64_MAX))

    cdef object remove(self, NativePosition first, NativePosition last):
        cdef MapCursor cursor = range_cache_cursor(first, last)
        cdef NativeRemoved removed
        cdef int64_t entries = 0, size = 0
        while True:
            with nogil:
                native_enter()
                removed = cache_manager_remove(self.owner.manager, self.native, &cursor, SLICE)
                native_leave()
            entries += removed.entries
            size += removed.bytes
            drop_released_objects()
            if removed.entries < SLICE:
                return Removed(entries, size)
            PyErr_CheckSignals()

    def close(self) -> Removed:
        """Refuse further use and invalidate everything, also what other threads put meanwhile: it
        waits for puts that are under way. Entries that are held stay valid.

        Closing again finishes what an interrupt cut short.
        """
        cdef uint32_t putting
        u32_store_release(&self.closed_mark, 1)
        fence_seq_cst()
        while True:
            putting = u32_load_acquire(&self.putting)
            if not putting:
                break
            with nogil:
                wait_while_equal(&self.putting, putting)
            PyErr_CheckSignals()
        # Another close may wait, too.
        wake_one(&self.putting)
        return self.remove(position(0, 0), position(INT64_MAX, INT64_MAX))

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.size} bytes"
        return f"<RangeCache {self.name!r} {state}>"
