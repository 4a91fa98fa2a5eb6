# The manager of a broker's range caches as a Python object.


cdef dict native_policies():
    """The rows of the native table: a summary by name, in the order of their numbers."""
    cdef PolicyRow row
    cdef dict found = {}
    while eviction_row(len(found), &row):
        found[row.name.decode()] = row.summary.decode()
    return found


EVICTION_POLICIES = MappingProxyType(native_policies())
DEFAULT_MAX_SIZE = 128 << 20    # of managedLedgerCacheSizeMB in a factory that nobody configured


cdef int64_t to_max_size(object value) except -1:
    return INT64_MAX if value is None else to_size(value, "max_size")


cdef int64_t to_watermark(object value) except -1:
    if not 0 < value <= 1:
        raise InvalidSizeError(f"watermark={value!r} must be a fraction above 0 and at most 1 of max_size")
    return round(value * MILLION)


@cython.final
@cython.no_gc_clear
cdef class EntryCacheManager:
    """The range caches of a broker under one eviction policy, kept below a size and an age.

    An insert that makes the caches larger than 98 % of ``max_size`` triggers a size pass, which
    evicts, oldest first over all caches, down to ``watermark`` times ``max_size``. With ``start``,
    or after :meth:`start`, a native thread of the manager's own runs it, and every
    ``eviction_interval_ms`` a time pass over what is older than ``time_threshold_ms``. Without a
    thread the insert that triggered evicts before it returns, and time passes are the caller's:
    :meth:`periodic_eviction`. The caches may be larger than ``max_size`` for a moment; no insert is
    refused for it.

    Args:
        max_size: bytes (managedLedgerCacheSizeMB); None is no bound, and with 0 the caches take
            nothing and find nothing.
        watermark: fraction of ``max_size``, above 0, at most 1
        (managedLedgerCacheEvictionWatermark).
        eviction_interval_ms: milliseconds between two time passes of the thread, at least 1
            (managedLedgerCacheEvictionIntervalMs).
        time_threshold_ms: milliseconds that an entry stays at least
            (managedLedgerCacheEvictionTimeThresholdMillis).
        time_threshold_max_ms: under stash_queue, and for time passes under priority_queue,
            milliseconds that an entry whose reads are expected stays at least
            (managedLedgerCacheEvictionTimeThresholdMillisMax of the proposal's first revision).
        policy: the eviction policy, one of EVICTION_POLICIES, for the manager's life.
        max_requeue_count: how often a pass keeps an entry whose reads are still expected, 0..65535
            (managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes).
        extend_ttl_of_recently_accessed: whether a pass keeps what was read since the last one
            (managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed).
        copy_entries: whether each cached entry has memory of its own; otherwise one that is a slice
            of a receive buffer keeps all of it, see :attr:`pinned_size`
            (managedLedgerCacheCopyEntries).
        start: whether the thread runs from the beginning.
        clock: called for nanoseconds wherever a time was left out, for example a simulation's; None
            is the monotonic clock. The thread follows the monotonic clock: it goes with None only.

    All methods may be called from any number of threads. ``with`` closes it. The thread takes no
    signals and needs no GIL; it ends with :meth:`stop`, :meth:`close` or the manager itself. A
    child of a fork has no thread until it calls :meth:`start`.

    Origin: ``RangeEntryCacheManagerImpl`` and ``EntryCachesEvictionHandler`` of Pulsar 4.1
    (PIP-430).
    """

    def __cinit__(
        self, *, max_size=DEFAULT_MAX_SIZE, watermark=0.9, eviction_interval_ms=10, time_threshold_ms=1000,
        time_threshold_max_ms=5000, policy="central_queue", max_requeue_count=5,
        extend_ttl_of_recently_accessed=True, bint copy_entries=False, start=False, clock=None
    ):
        if clock is not None and start:
            raise UsageError("start=True goes with the monotonic clock; with a clock of its own a manager is "
                             "driven by periodic_eviction()")
        if policy not in EVICTION_POLICIES:
            raise UsageError(f"no eviction policy {policy!r}; use one of: {', '.join(EVICTION_POLICIES)}")
        self.owner = NativeMemory.__new__(NativeMemory, list(EVICTION_POLICIES).index(policy))
        self.shares = new_shares(self.owner)
        self.policy = policy
        self.clock = None if clock is None else check_callable(clock, "clock")
        self.owner.copy_entries = copy_entries
        self.caches = {}
        self.naming = GatedLock.__new__(GatedLock)
        self.configure(
            max_size=max_size, watermark=watermark, eviction_interval_ms=eviction_interval_ms,
            time_threshold_ms=time_threshold_ms, time_threshold_max_ms=time_threshold_max_ms,
            max_requeue_count=max_requeue_count,
            extend_ttl_of_recently_accessed=extend_ttl_of_recently_accessed)
        if start:
            self.start()

    def __dealloc__(self):
        # Caches and entries may keep the memory; the thread has nothing to do any more.
        if self.owner is not None and self.owner.manager is not NULL:
            stop_thread(self.owner)

    cdef bint is_closed(self) noexcept:
        return u32_load_relaxed(&self.closed_mark) != 0

    cdef int check_open(self) except -1:
        if self.is_closed():
            raise ClosedError("the entry cache manager is closed")
        return 0

    @property
    def closed(self) -> bool:
        return self.is_closed()

    def range_cache(self, str name not None) -> RangeCache:
        """The open cache of that managed ledger name, made when there is none.

        Raises ClosedError, AllocationError.
        """
        cdef RangeCache cache
        with self.naming:
            self.check_open()
            cache = self.caches.get(name)
            if cache is not None and not cache.is_closed():
                return cache
            cache = RangeCache.__new__(RangeCache)
            cache.owner = self.owner
            cache.shares = self.shares
            cache.clock = self.clock
            cache.name = name
            cache.native = range_cache_new(self.owner.memory, &self.owner.policy.base.intake)
            if cache.native is NULL:
                raise AllocationError(f"no native memory for the range cache {name!r}")
            self.caches[name] = cache
        return cache

    def get(self, str name not None) -> RangeCache | None:
        """The open cache of that managed ledger name, or None. It makes none.

        Raises ClosedError.
        """
        cdef RangeCache cache
        with self.naming:
            self.check_open()
            cache = self.caches.get(name)
        return None if cache is None or cache.is_closed() else cache

    def remove_range_cache(self, str name not None) -> Removed:
        """Close the cache of that name and forget it; KeyError when there is none."""
        self.check_open()
        with self.naming:
            if name not in self.caches:
                raise KeyError(f"no range cache {name!r}; open ones: {sorted(self.caches)}")
            cache = self.caches.pop(name)
        return cache.close()

    def entry(self, position, data, *, expected_reads=0) -> Entry:
        """An entry that is not cached, over a copy of a bytes-like object or the bytes of a
        BufferSlice.

        Raises UsageError (a slice of another manager's buffer), InvalidPositionError,
        InvalidSizeError, ClosedError, AllocationError.
        """
        self.check_open()
        cdef NativePosition where = to_stored(position, "position")
        return wrap_entry(&self.shares.native, new_entry(self.owner, where, data, expected_reads, True))

    def receive_buffer(self, capacity) -> ReceiveBuffer:
        """An empty buffer of ``capacity`` bytes, 1..2**30, to receive into and to cut entries from.

        Raises InvalidSizeError, ClosedError, AllocationError.
        """
        self.check_open()
        cdef ReceiveBuffer buffer
        capacity = PyNumber_Index(capacity)
        if not 1 <= capacity <= MOST_BUFFER:
            raise InvalidSizeError(f"capacity={capacity!r} is outside 1..{MOST_BUFFER}")
        buffer = ReceiveBuffer.__new__(ReceiveBuffer)
        buffer.owner = self.owner
        buffer.native = receive_buffer_new(&self.owner.memory.buffers, capacity)
        if buffer.native is NULL:
            raise AllocationError(f"no native memory for a receive buffer of {capacity} bytes")
        return buffer

    @property
    def pinned_size(self) -> int:
        """Bytes that cached entries keep in memory: their own, and the whole of every receive
        buffer that one of them is a slice of, once; exact when nobody is changing them.

        ``size`` counts the lengths of entries. Without ``copy_entries`` this may be many times
        more.
        """
        return buffer_books_pinned(&self.owner.memory.buffers, self.stats().size)

    @property
    def receive_buffer_size(self) -> int:
        """Bytes of all receive buffers that are still referenced, cached or not."""
        return i64_load_relaxed(&self.owner.memory.buffers.allocated)

    @property
    def size(self) -> int:
        """Bytes cached; exact when nobody is changing them, and otherwise now and then even
        negative.
        """
        return self.stats().size

    @property
    def is_at_eviction_watermark(self) -> bool:
        """True if the caches have at least ``watermark`` times ``max_size``, which is not 0."""
        cdef int64_t low_mark = i64_load_relaxed(&self.owner.manager.low_mark)
        return not cache_manager_disabled(self.owner.manager) and self.stats().size >= low_mark

    @property
    def max_size(self) -> int | None:
        """Bytes that the caches may have; None is no bound. Set it under any load."""
        return self.stats().max_size

    @max_size.setter
    def max_size(self, value) -> None:
        self.configure(max_size=value)

    def configure(
        self, *, max_size=..., watermark=..., eviction_interval_ms=..., time_threshold_ms=...,
        time_threshold_max_ms=..., max_requeue_count=..., extend_ttl_of_recently_accessed=...
    ) -> None:
        """Change settings, those that are given, for every decision from now on.

        What is too much by a new size is evicted at once, as after an insert. Raises
        InvalidSizeError, and then nothing changed; ClosedError.
        """
        self.check_open()
        cdef ManagerSettings settings = unchanged_settings()
        cdef int64_t now = time_of(self.clock, None, "")
        if max_size is not ...:
            settings.max_size = to_max_size(max_size)
        if watermark is not ...:
            settings.watermark = to_watermark(watermark)
        if eviction_interval_ms is not ...:
            settings.interval = to_span(eviction_interval_ms, "eviction_interval_ms", 1)
        if time_threshold_ms is not ...:
            settings.time_to_live = to_span(time_threshold_ms, "time_threshold_ms", 0)
        if time_threshold_max_ms is not ...:
            settings.time_to_live_max = to_span(time_threshold_max_ms, "time_threshold_max_ms", 0)
        if max_requeue_count is not ...:
            settings.max_requeue_count = to_count(max_requeue_count, "max_requeue_count", UINT16_MAX)
        if extend_ttl_of_recently_accessed is not ...:
            settings.extend_recently_accessed = bool(extend_ttl_of_recently_accessed)
        with nogil:
            native_enter()
            cache_manager_configure(self.owner.manager, &settings, now)
            native_leave()

    def stats(self) -> CacheStats:
        """All counters; see CacheStats."""
        cdef ManagerStats stats
        cdef int64_t max_size = i64_load_relaxed(&self.owner.manager.max_size)
        cdef bint serving
        # Not with the GIL: around a fork another thread holds what this waits for.
        with nogil:
            native_enter()
            serving = eviction_thread_serves(self.owner.manager)
            native_leave()
        cache_manager_stats(self.owner.manager, &stats)
        return CacheStats(
            stats.size, None if max_size == INT64_MAX else max_size, stats.inserted_entries,
            stats.inserted_bytes, stats.evicted_entries, stats.evicted_bytes, stats.evictions, stats.requeued,
            stats.dropped, stats.hits, stats.hit_bytes, stats.misses, stats.miss_bytes, stats.tasks,
            serving)

    # The thread -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; no effect while it runs, or while another thread stops it.

        Raises UsageError (a manager with a clock of its own), ClosedError, AllocationError.
        """
        self.check_open()
        cdef Status status
        if self.clock is not None:
            raise UsageError("a manager with a clock of its own has no thread; call periodic_eviction()")
        with _starting:
            _serving.add(self.owner)
        with nogil:
            native_enter()
            status = eviction_thread_start(self.owner.manager)
            native_leave()
        if status == Status.PML_NO_MEMORY:
            raise AllocationError("the system gave no thread for the entry cache manager")
        if self.is_closed():  # close() may have looked for the thread before it was there
            self.stop()
            self.check_open()

    def stop(self) -> None:
        """End the thread; what was triggered is done first. No effect when there is none."""
        with nogil:
            native_enter()
            eviction_thread_stop(self.owner.manager)
            native_leave()

    def trigger_eviction(self) -> bool:
        """See to it that one eviction task is under way if the caches are larger than 98 % of
        ``max_size``.

        Whether this call made it, for the thread or, where there is none, before it returned.
        Raises ClosedError.
        """
        self.check_open()
        cdef int64_t now = time_of(self.clock, None, "")
        cdef bint triggered
        with nogil:
            native_enter()
            triggered = cache_manager_look(self.owner.manager, now)
            native_leave()
        return triggered

    # Passes ---------------------------------------------------------------------------------------

    def periodic_eviction(self, *, now_ns=None) -> Evicted:
        """Run the thread's periodic task: a time pass over entries that are too old, then a size
        pass.

        Returns both together. Ctrl-C ends it early. Raises ClosedError.
        """
        self.check_open()
        cdef int64_t now = time_of(self.clock, now_ns, "now_ns")
        cdef EvictionPass run = cache_manager_expiry(self.owner.manager, now)
        old = self.run(&run)
        over = self.evict_to_watermark(now_ns=now)
        return Evicted(*[a + b for a, b in zip(old, over)])

    def evict_to_watermark(self, *, now_ns=None) -> Evicted:
        """A size pass down to the watermark, if the caches are larger than 98 % of ``max_size``.

        Ctrl-C ends it early. Raises ClosedError.
        """
        self.check_open()
        cdef EvictionPass run = size_pass(0, time_of(self.clock, now_ns, "now_ns"))
        cdef bint more = True
        while more:
            with nogil:
                native_enter()
                more = cache_manager_evict(self.owner.manager, &run, SLICE)
                native_leave()
            drop_released_objects()
            PyErr_CheckSignals()
        return Evicted(run.removed.entries, run.removed.bytes, run.requeued, run.missing)

    def evict_entries_before(self, timestamp_ns, *, now_ns=None) -> Evicted:
        """A time pass: evict entries with a timestamp before ``timestamp_ns``, oldest first.

        It ends at the first entry that is not older. Times count modulo 2**64: those compared are
        less than 2**63 apart. Entries to keep get the timestamp ``now_ns`` (default: the manager's
        clock) and go to the tail. Ctrl-C ends it early. Raises ClosedError.
        """
        self.check_open()
        cdef EvictionPass run = time_pass(
            to_time(timestamp_ns, "timestamp_ns"), time_of(self.clock, now_ns, "now_ns"))
        return self.run(&run)

    def evict_bytes(self, size_to_free, *, now_ns=None) -> Evicted:
        """A size pass: evict in queue order until ``size_to_free`` (> 0) bytes are free.

        Entries to keep go to the tail with the timestamp ``now_ns``, once a pass; those that come
        round again in the same pass are removed, unless the policy is the released one. Ctrl-C ends
        it early. Raises InvalidSizeError, ClosedError.
        """
        self.check_open()
        size_to_free = PyNumber_Index(size_to_free)
        if not 0 < size_to_free <= INT64_MAX:
            raise InvalidSizeError(f"size_to_free={size_to_free!r} must be above 0 and fit 64 bits")
        cdef EvictionPass run = size_pass(size_to_free, time_of(self.clock, now_ns, "now_ns"))
        return self.run(&run)

    cdef object run(self, EvictionPass* run):
        cdef bint more = True
        while more:
            with nogil:
                native_enter()
                more = cache_manager_run(self.owner.manager, run, SLICE)
                native_leave()
            drop_released_objects()
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
        """End the thread, close every cache and refuse further use. Entries that are held stay
        valid.

        Closing again finishes what an interrupt cut short.
        """
        with self.naming:
            u32_store_release(&self.closed_mark, 1)
            caches = list(self.caches.values())
        with nogil:
            native_enter()
            eviction_thread_stop(self.owner.manager)
            native_leave()
        for cache in caches:
            cache.close()
        cdef EvictionPass run = time_pass(INT64_MAX, 0)
        # Every wrapper in the queue is empty by now; this gives them back.
        self.run(&run)

    def __enter__(self) -> EntryCacheManager:
        self.check_open()
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed() else f"{len(self.caches)} caches, {self.size} bytes"
        return f"<EntryCacheManager {state}>"


# The memory that a manager, its caches and its entries share and keep alive -----------------------

# Not internal: an extension that cimports a class below imports this one too. Holds no Python
# object, so entries and buffers, which keep it, can be in no cycle.
@cython.final
@cython.no_gc
cdef class NativeMemory:
    """The native memory, eviction policy, books and thread of one manager; of use to extensions
    only.

    It lives as long as the manager, a cache or an entry of it. Any number of threads may hold it.
    """

    def __cinit__(self, int64_t policy):
        cdef Status status
        cdef ManagerSettings settings = unchanged_settings()
        self.memory = <CacheMemory*>allocate_zeroed(1, sizeof(CacheMemory))
        self.policy = <EvictionPolicy*>allocate_zeroed(1, sizeof(EvictionPolicy))
        if self.memory is NULL or self.policy is NULL:
            raise AllocationError("no native memory for a cache manager")
        status = cache_memory_init(self.memory, CHUNK_BITS, MOST_OBJECTS)
        if status == PML_OK:
            status = entry_pool_keep_payloads(&self.memory.entries, KEPT_PAYLOAD_BYTES)
        if status == PML_OK:
            status = eviction_init(
                self.policy, policy, self.memory, CHUNK_BITS, PolicySettings(0, False, 0))
        check_status(status, position(0, 0))
        self.manager = <CacheManager*>allocate_zeroed(1, sizeof(CacheManager))
        if self.manager is NULL or cache_manager_init(self.manager, self.policy, &settings) != PML_OK:
            release(self.manager)
            self.manager = NULL
            raise AllocationError("no native memory for a cache manager")

    def __dealloc__(self):
        with nogil:
            native_enter()
            if self.manager is not NULL:
                eviction_thread_stop(self.manager)
                cache_manager_destroy(self.manager)
            if self.policy is not NULL:
                eviction_destroy(self.policy)
            if self.memory is not NULL:
                cache_memory_destroy(self.memory)
            release(self.manager)
            release(self.policy)
            release(self.memory)
            native_leave()


cdef ManagerSettings unchanged_settings() noexcept:
    return ManagerSettings(-1, -1, -1, -1, -1, -1, -1)
