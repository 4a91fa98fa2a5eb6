"""The Python face of the broker cache: argument checks, GIL release, errors, and nothing else."""

from __future__ import annotations

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyBUF_SIMPLE, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_Index
from libc.stdint cimport INT32_MAX, INT64_MAX, UINT16_MAX, int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from pulsar_ml.structures.entry cimport (
    Payload, entry_at, entry_copy, entry_new, entry_payload, entry_read_count, entry_references,
    entry_release, payload_bytes, payload_new, payload_release, read_count_maybe_new,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.position cimport position, position_is_stored, position_less
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    Removed as NativeRemoved, cache_memory_destroy, cache_memory_init, range_cache_cursor,
    range_cache_delete, range_cache_exists, range_cache_get, range_cache_new, range_cache_next,
    range_cache_put, range_cache_remove, range_cache_size,
)
from pulsar_ml.structures.read_count cimport read_count_increment, read_count_release, read_count_value
from pulsar_ml.structures.removal_queue cimport (
    removal_queue_configure, removal_queue_destroy, removal_queue_init, removal_queue_synchronize,
    removal_run, size_pass, time_pass,
)
from pulsar_ml.structures.status cimport PML_EXISTS, PML_OK, Status
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate_zeroed, release

from pulsar_ml.errors import (
    AllocationError, ClosedError, InvalidPositionError, InvalidSizeError, PositionMismatchError,
    ReleasedError, UsageError,
)
from pulsar_ml.positions import Evicted, Position, Removed


cdef enum:
    CHUNK_BITS = 12             # objects of a pool chunk: 4,096
    MOST_OBJECTS = 1 << 28      # of each kind in one manager
    SLICE = 1 << 16             # steps between two looks at pending signals
    GATHER = 256                # entries of a range fetched at a time


cdef NativePosition to_position(object given, str role) except *:
    try:
        ledger_id, entry_id = given
        return position(PyNumber_Index(ledger_id), PyNumber_Index(entry_id))
    except (TypeError, ValueError):
        raise InvalidPositionError(
            f"{role} must be a Position or a (ledger_id, entry_id) pair, not {given!r}") from None
    except OverflowError:
        raise InvalidPositionError(f"{role} {given!r} does not fit signed 64-bit ids") from None


cdef NativePosition to_stored(object given) except *:
    cdef NativePosition at = to_position(given, "position")
    if not position_is_stored(at):
        raise InvalidPositionError(
            f"position {at.ledger_id}:{at.entry_id} names no stored entry; both ids must be >= 0")
    return at


cdef int check_range(NativePosition first, NativePosition last) except -1:
    if position_less(last, first):
        raise InvalidPositionError(
            f"the range {first.ledger_id}:{first.entry_id} .. {last.ledger_id}:{last.entry_id} ends "
            "before it begins")
    return 0


cdef int64_t to_time(object given, str role) except? -1:
    if given is None:
        return monotonic_ns()
    try:
        return PyNumber_Index(given)
    except OverflowError:
        raise InvalidSizeError(f"{role}={given!r} does not fit 64-bit nanoseconds") from None


cdef int32_t to_count(object given, str role, int32_t most) except -1:
    given = PyNumber_Index(given)
    if not 0 <= given <= most:
        raise InvalidSizeError(f"{role}={given!r} is outside 0..{most}")
    return given


# The one place where a status becomes an exception.
cdef int check_status(Status status, NativePosition at) except -1:
    if status == PML_OK:
        return 0
    if status == Status.PML_NO_MEMORY:
        raise AllocationError("no native memory left; nothing was changed")
    if status == Status.PML_MISMATCH:
        raise PositionMismatchError(f"the entry is not the one at {at.ledger_id}:{at.entry_id}")
    raise ReleasedError("the entry has no reference left")


# Not internal: an extension that cimports a class below imports this one too.
@cython.final
cdef class NativeMemory:
    """The native memory and removal queue of one manager; of use to extensions only.

    It lives as long as the manager, a cache or an entry of it.
    """

    def __cinit__(self, int32_t max_requeue_count, bint extend_recently_accessed):
        cdef Status status
        self.memory = <CacheMemory*>allocate_zeroed(1, sizeof(CacheMemory))
        self.queue = <RemovalQueue*>allocate_zeroed(1, sizeof(RemovalQueue))
        if self.memory is NULL or self.queue is NULL:
            raise AllocationError("no native memory for a cache manager")
        status = cache_memory_init(self.memory, CHUNK_BITS, MOST_OBJECTS)
        if status == PML_OK:
            status = removal_queue_init(self.queue, self.memory, CHUNK_BITS, max_requeue_count,
                                        extend_recently_accessed)
        check_status(status, position(0, 0))

    def __dealloc__(self):
        with nogil:
            if self.queue is not NULL:
                removal_queue_destroy(self.queue)
            if self.memory is not NULL:
                cache_memory_destroy(self.memory)
            release(self.queue)
            release(self.memory)


# Entries -----------------------------------------------------------------------------------------

cdef Entry wrap_entry(NativeMemory owner, uint32_t handle):
    cdef Entry entry = Entry.__new__(Entry)
    entry.owner = owner
    entry.handle = handle
    return entry


cdef uint32_t new_entry(
    NativeMemory owner, NativePosition at, object data, object expected_reads, bint counts_read
) except 0:
    cdef int32_t expected = to_count(expected_reads, "expected_reads", INT32_MAX)
    cdef uint32_t read_count = 0
    cdef uint32_t handle = 0
    cdef Payload* payload
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX:
            raise InvalidSizeError(f"an entry of {view.len} bytes is too large; at most {INT32_MAX}")
        with nogil:
            payload = payload_new(<uint32_t>view.len)
            if payload is not NULL:
                memcpy(payload_bytes(payload), view.buf, <size_t>view.len)
                if read_count_maybe_new(&owner.memory.entries, expected, &read_count):
                    handle = entry_new(&owner.memory.entries, at, payload, read_count, counts_read)
                if not handle:
                    payload_release(payload)
                    if read_count:
                        read_count_release(&owner.memory.entries.read_counts, read_count)
    finally:
        PyBuffer_Release(&view)
    if not handle:
        raise AllocationError(f"no native memory for an entry of {view.len} bytes; nothing was changed")
    return handle


@cython.final
@cython.no_gc
cdef class Entry:
    """One reference to a cached or copied entry; a read-only bytes-like object over its payload.

    Leave a ``with`` block or call :meth:`release` to give the reference back; after that every use
    but :attr:`released` raises ReleasedError. Views taken with ``memoryview(entry)`` share the bytes without
    a copy and stay valid: the reference goes back with the last of them. An entry that is
    collected gives its reference back too.

    One thread at a time may use an object of this class; take a :meth:`copy` for another thread.

    Origin: ``EntryImpl`` of Pulsar 4.1.
    """

    def __init__(self):
        raise TypeError("entries come from EntryCacheManager.entry, RangeCache.get and the like")

    def __dealloc__(self):
        if self.handle:
            with nogil:
                entry_release(&self.owner.memory.entries, self.handle, 1)

    cdef int give_back(self) except -1:
        cdef uint32_t handle = self.handle
        if self.exports == 0 and handle:
            self.handle = 0
            with nogil:
                entry_release(&self.owner.memory.entries, handle, 1)
        return 0

    def __getbuffer__(self, Py_buffer* view, int flags):
        check_usable(self)
        cdef Payload* payload = entry_payload(entry_at(&self.owner.memory.entries, self.handle))
        PyBuffer_FillInfo(view, self, payload_bytes(payload), payload.length, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1
        if self.released:
            self.give_back()

    def __len__(self) -> int:
        check_usable(self)
        return entry_payload(entry_at(&self.owner.memory.entries, self.handle)).length

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
        """Whether the reference was given back."""
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
        return Position(self.ledger_id, self.entry_id)

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
    def expected_reads(self) -> int | None:
        """Reads still expected, or None for an entry created without any. It may be negative."""
        check_usable(self)
        cdef uint32_t read_count = entry_read_count(&self.owner.memory.entries, self.handle)
        if not read_count:
            return None
        return read_count_value(&self.owner.memory.entries.read_counts, read_count)

    def expect_read(self) -> bool:
        """Expect one more read, as for an entry that joins a replay queue.

        False, and no effect, for an entry created without expected reads.
        """
        check_usable(self)
        cdef uint32_t read_count = entry_read_count(&self.owner.memory.entries, self.handle)
        if read_count:
            read_count_increment(&self.owner.memory.entries.read_counts, read_count)
        return read_count != 0

    def copy(self, *, bint counts_read=True) -> Entry:
        """Another entry over the same bytes and the same expected reads: a dispatch copy.

        With ``counts_read`` its release takes one off the expected reads; without, it was never delivered.
        Raises AllocationError.
        """
        check_usable(self)
        cdef uint32_t handle = entry_copy(&self.owner.memory.entries, self.handle, counts_read)
        if not handle:
            raise AllocationError("no native memory for a copy of an entry")
        return wrap_entry(self.owner, handle)

    def release(self) -> None:
        """Give the reference back. ReleasedError when that was done before."""
        check_usable(self)
        self.released = True
        self.give_back()


cdef int check_usable(Entry entry) except -1:
    # Without a handle it is one that only __new__ made.
    if entry.released or not entry.handle:
        raise ReleasedError("this entry was released; get it from the cache again")
    return 0


# Range cache -------------------------------------------------------------------------------------

@cython.final
@cython.no_gc
cdef class RangeCache:
    """The cached entries of one managed ledger, by position. Made by EntryCacheManager.range_cache.

    All methods may be called from any number of threads. Origin: ``RangeCache`` of Pulsar 4.1.
    """

    def __init__(self):
        raise TypeError("a range cache comes from EntryCacheManager.range_cache(name)")

    def __dealloc__(self):
        cdef MapCursor cursor
        if self.native is NULL:
            return
        with nogil:
            cursor = range_cache_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
            range_cache_remove(self.native, &cursor, INT64_MAX)
            removal_queue_synchronize(self.owner.queue)
            range_cache_delete(self.native)

    cdef int check_open(self) except -1:
        # Without a native cache it is one that only __new__ made.
        if self.is_closed or self.native is NULL:
            raise ClosedError(f"the range cache {self.name!r} is closed")
        return 0

    @property
    def closed(self) -> bool:
        return self.is_closed or self.native is NULL

    @property
    def size(self) -> int:
        """Bytes counted for the cached entries; exact when nobody is changing the cache."""
        return 0 if self.native is NULL else range_cache_size(self.native)

    def put(self, at, value, *, expected_reads=0, timestamp_ns=None) -> bool:
        """Cache an entry; False when the position is taken, and then nothing changed.

        ``value`` is a bytes-like object, which is copied once, or an Entry of the same manager, whose bytes
        and expected reads the cache then shares. ``expected_reads`` applies to bytes only.
        ``timestamp_ns`` is the entry's age for time passes, by default the monotonic clock now.

        Raises InvalidPositionError, PositionMismatchError (an Entry of another position), InvalidSizeError,
        UsageError (an Entry of another manager, or expected_reads with an Entry), ReleasedError,
        ClosedError, AllocationError.
        """
        self.check_open()
        cdef NativePosition key = to_stored(at)
        cdef int64_t now = to_time(timestamp_ns, "timestamp_ns")
        cdef uint32_t handle = self.cache_copy(key, value, expected_reads)
        cdef uint32_t length = entry_payload(entry_at(&self.owner.memory.entries, handle)).length
        cdef Status status
        with nogil:
            status = range_cache_put(self.native, key, handle, length, now)
            if status != PML_OK:
                entry_release(&self.owner.memory.entries, handle, 1)
        if status == PML_EXISTS:
            return False
        check_status(status, key)
        return True

    cdef uint32_t cache_copy(self, NativePosition key, object value, object expected_reads) except 0:
        cdef Entry entry
        cdef uint32_t handle
        if not isinstance(value, Entry):
            # The cache's own copy is never delivered, so it counts no read when it goes.
            return new_entry(self.owner, key, value, expected_reads, False)
        entry = <Entry>value
        check_usable(entry)
        if entry.owner is not self.owner:
            raise UsageError(f"{entry!r} belongs to another manager; copy its bytes instead")
        if expected_reads:
            raise UsageError("expected_reads goes with bytes; an Entry brings its own")
        handle = entry_copy(&self.owner.memory.entries, entry.handle, False)
        if not handle:
            raise AllocationError("no native memory for a cache copy; nothing was changed")
        return handle

    def get(self, at) -> Entry | None:
        """The entry at a position with a reference for the caller, or None.

        Takes no lock. A hit marks the entry as recently accessed. Raises InvalidPositionError, ClosedError.
        """
        self.check_open()
        cdef NativePosition key = to_stored(at)
        cdef uint32_t handle = range_cache_get(self.native, key)
        return wrap_entry(self.owner, handle) if handle else None

    def __contains__(self, at) -> bool:
        """Whether something is cached at a position; marks nothing."""
        self.check_open()
        cdef NativePosition key = to_stored(at)
        return range_cache_exists(self.native, key)

    def get_range(self, first, last) -> list[Entry]:
        """The cached entries of [first, last], ascending, each with a reference for the caller.

        Not a snapshot: what is put or removed meanwhile may or may not be among them; what is cached all
        the while is. Raises InvalidPositionError (first > last included), ClosedError.
        """
        return list(self.iterate(first, last))

    def visit_range(self, first, last, visitor) -> int:
        """Call ``visitor(entry)`` for each cached entry of [first, last] and return their number.

        The entry is released after the call, also when it raises; keep a copy to keep it. No lock is held:
        the visitor may change the cache. Raises what the visitor raises, InvalidPositionError,
        ClosedError.
        """
        cdef int64_t count = 0
        for entry in self.iterate(first, last):
            with entry:
                count += 1
                visitor(entry)
        return count

    def iterate(self, first, last):
        """Like get_range, one entry at a time."""
        self.check_open()
        cdef NativePosition low = to_position(first, "first")
        cdef NativePosition high = to_position(last, "last")
        check_range(low, high)
        return RangeIterator(self, low.ledger_id, low.entry_id, high.ledger_id, high.entry_id)

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
                removed = range_cache_remove(self.native, &cursor, SLICE)
            entries += removed.entries
            size += removed.bytes
            if removed.entries < SLICE:
                return Removed(entries, size)
            PyErr_CheckSignals()

    def close(self) -> Removed:
        """Refuse further use and invalidate everything. Entries that are held stay valid.

        Closing again finishes what an interrupt cut short.
        """
        self.is_closed = True
        if self.native is NULL:
            return Removed(0, 0)
        return self.remove(position(0, 0), position(INT64_MAX, INT64_MAX))

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.size} bytes"
        return f"<RangeCache {self.name!r} {state}>"


@cython.final
@cython.internal
@cython.no_gc
cdef class RangeIterator:
    # Fetches entries in groups without the GIL; gives back what was not handed out. Not tracked by the
    # collector, which would take the cache away before the last handles go back; it is in no cycle.
    cdef RangeCache cache
    cdef MapCursor cursor
    cdef uint32_t[GATHER] handles
    cdef int next_handle, end_handle
    cdef bint fetching, ended

    def __cinit__(self, RangeCache cache, int64_t first_ledger, int64_t first_entry,
                  int64_t last_ledger, int64_t last_entry):
        self.cache = cache
        self.cursor = range_cache_cursor(position(first_ledger, first_entry),
                                         position(last_ledger, last_entry))

    def __dealloc__(self):
        while self.next_handle < self.end_handle:
            entry_release(&self.cache.owner.memory.entries, self.handles[self.next_handle], 1)
            self.next_handle += 1

    def __iter__(self):
        return self

    def __next__(self):
        cdef uint32_t handle
        if self.fetching:
            raise UsageError("this range iterator is fetching for another thread; use one for each thread")
        if self.next_handle == self.end_handle:
            if self.ended:
                raise StopIteration
            self.next_handle = self.end_handle = 0
            self.fetching = True
            with nogil:
                while self.end_handle < GATHER:
                    handle = range_cache_next(self.cache.native, &self.cursor)
                    if not handle:
                        break
                    self.handles[self.end_handle] = handle
                    self.end_handle += 1
            self.fetching = False
            self.ended = self.end_handle < GATHER
            if self.end_handle == 0:
                raise StopIteration
        handle = self.handles[self.next_handle]
        entry = wrap_entry(self.cache.owner, handle)
        self.next_handle += 1
        return entry


# Manager -----------------------------------------------------------------------------------------

@cython.final
cdef class EntryCacheManager:
    """The range caches of a broker over one removal queue.

    ``max_requeue_count`` is how often an eviction pass keeps an entry whose reads are still expected
    (0..65535; managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes).
    ``extend_ttl_of_recently_accessed`` keeps what was read since the last pass
    (managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed).

    All methods may be called from any number of threads. ``with`` closes it. Origin:
    ``RangeEntryCacheManagerImpl`` of Pulsar 4.1 (PIP-430); global size, thresholds and the periodic task are
    the caller's.
    """

    def __cinit__(self, *, max_requeue_count=5, bint extend_ttl_of_recently_accessed=True):
        self.owner = NativeMemory(to_count(max_requeue_count, "max_requeue_count", UINT16_MAX),
                                  extend_ttl_of_recently_accessed)
        self.caches = {}

    cdef int check_open(self) except -1:
        if self.is_closed:
            raise ClosedError("the entry cache manager is closed")
        return 0

    @property
    def closed(self) -> bool:
        return self.is_closed

    def range_cache(self, str name not None) -> RangeCache:
        """The open cache of that managed ledger name, made when there is none.

        Raises ClosedError, AllocationError.
        """
        self.check_open()
        cdef RangeCache cache = self.caches.get(name)
        if cache is not None and not cache.is_closed:
            return cache
        cache = RangeCache.__new__(RangeCache)
        cache.owner = self.owner
        cache.name = name
        cache.native = range_cache_new(self.owner.memory, &self.owner.queue.queue)
        if cache.native is NULL:
            raise AllocationError(f"no native memory for the range cache {name!r}")
        self.caches[name] = cache
        return cache

    def remove_range_cache(self, str name not None) -> Removed:
        """Close the cache of that name and forget it; KeyError when there is none."""
        self.check_open()
        if name not in self.caches:
            raise KeyError(f"no range cache {name!r}; open ones: {sorted(self.caches)}")
        return self.caches.pop(name).close()

    def entry(self, at, data, *, expected_reads=0) -> Entry:
        """An entry that is not cached, over a copy of a bytes-like object.

        Raises InvalidPositionError, InvalidSizeError, ClosedError, AllocationError.
        """
        self.check_open()
        cdef NativePosition where = to_stored(at)
        return wrap_entry(self.owner, new_entry(self.owner, where, data, expected_reads, True))

    @property
    def size(self) -> int:
        """Bytes counted over all open caches; exact when nobody is changing them."""
        return sum([cache.size for cache in self.caches.values()])

    def configure(self, *, max_requeue_count, bint extend_ttl_of_recently_accessed) -> None:
        """Change both eviction settings for every decision from now on."""
        self.check_open()
        cdef int32_t most = to_count(max_requeue_count, "max_requeue_count", UINT16_MAX)
        with nogil:
            removal_queue_configure(self.owner.queue, most, extend_ttl_of_recently_accessed)

    def evict_entries_before(self, timestamp_ns, *, now_ns=None) -> Evicted:
        """A time pass: evict entries with a timestamp before ``timestamp_ns``, oldest first.

        It ends at the first entry that is not older. Times count modulo 2**64: those compared are less than
        2**63 apart. Entries to keep get the timestamp ``now_ns``
        (default: the monotonic clock) and go to the tail. Ctrl-C ends it early. Raises ClosedError.
        """
        self.check_open()
        cdef RemovalPass run = time_pass(to_time(timestamp_ns, "timestamp_ns"), to_time(now_ns, "now_ns"))
        return self.run(&run)

    def evict_bytes(self, size_to_free, *, now_ns=None) -> Evicted:
        """A size pass: evict in queue order until ``size_to_free`` (> 0) bytes are free.

        Entries to keep go to the tail with the timestamp ``now_ns`` and may come round again in the same
        pass. While readers keep touching every entry a pass need not end; Ctrl-C ends it early.
        Raises InvalidSizeError, ClosedError.
        """
        self.check_open()
        size_to_free = PyNumber_Index(size_to_free)
        if not 0 < size_to_free <= INT64_MAX:
            raise InvalidSizeError(f"size_to_free={size_to_free!r} must be above 0 and fit 64 bits")
        cdef RemovalPass run = size_pass(size_to_free, to_time(now_ns, "now_ns"))
        return self.run(&run)

    cdef object run(self, RemovalPass* run):
        cdef bint more = True
        while more:
            with nogil:
                more = removal_run(self.owner.queue, run, SLICE)
            PyErr_CheckSignals()
        return Evicted(run.removed.entries, run.removed.bytes, run.requeued, run.missing)

    def objects_in_use(self) -> dict[str, int]:
        """Native objects by kind that are not in their pool; exact when nobody is inside.

        While others are inside, the numbers mean nothing.
        """
        cdef CacheMemory* memory = self.owner.memory
        return {
            "entries": pool_in_use(&memory.entries.entries),
            "read_counts": pool_in_use(&memory.entries.read_counts),
            "wrappers": pool_in_use(&memory.wrappers),
            "pages": pool_in_use(&memory.map.pages),
            "branches": pool_in_use(&memory.map.branches),
            "range_caches": pool_in_use(&memory.caches),
        }

    def close(self) -> None:
        """Close every cache and refuse further use. Entries that are held stay valid.

        Closing again finishes what an interrupt cut short.
        """
        self.is_closed = True
        for cache in self.caches.values():
            cache.close()
        cdef RemovalPass run = time_pass(INT64_MAX, 0)
        # Every wrapper in the queue is empty by now; this gives them back.
        self.run(&run)

    def __enter__(self) -> EntryCacheManager:
        self.check_open()
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self.caches)} caches, {self.size} bytes"
        return f"<EntryCacheManager {state}>"
