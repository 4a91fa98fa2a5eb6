# The two cursor containers as Python objects, which know cursors by name.
#
# A query or an update of few cursors is a short call, see gate.pxi.

import threading
from collections import namedtuple

from libc.stdint cimport uint64_t

from pulsar_ml.structures.active_cursors cimport (
    ActiveCursors, ActiveMemory, active_cursors_add, active_cursors_destroy,
    active_cursors_init, active_cursors_look, active_cursors_rank, active_cursors_rank_at,
    active_cursors_remove, active_cursors_replace, active_cursors_should_cache, active_cursors_slowest,
    active_cursors_slowest_cursor, active_cursors_update, active_memory_destroy, active_memory_init,
)
from pulsar_ml.structures.cursor_heap cimport (
    CursorHeap, SlowestChange, cursor_heap_add, cursor_heap_destroy, cursor_heap_init, cursor_heap_look,
    cursor_heap_remove, cursor_heap_replace, cursor_heap_slowest, cursor_heap_slowest_cursor,
    cursor_heap_update, heap_pool_init,
)
from pulsar_ml.structures.cursor_registry cimport (
    CursorPosition, CursorRegistry, CursorState, registry_has_durable, registry_size, registry_state,
    registry_version, tracked_at, untracked,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy


cdef enum:
    MOST_CURSORS = 1 << 24      # of each kind in one process
    FEW_CURSORS = 256           # with more, a call may sort for longer than others should wait


CursorInfo = namedtuple("CursorInfo", ("name", "position", "durable"))
CursorInfo.__doc__ = """A cursor of a container; without a position (None) it is not tracked."""
CursorInfo.__module__ = "pulsar_ml._core"


cdef CursorPosition to_cursor_position(object value) except *:
    if value is None:
        return untracked()
    return tracked_at(to_position(value, "position"))


# The memory of all containers of the process: what one gives back the next one takes.
@cython.final
@cython.internal
cdef class NativeCursorMemory:
    cdef ActiveMemory active
    cdef Pool heap

    def __cinit__(self):
        check_status(active_memory_init(&self.active, CHUNK_BITS, MOST_CURSORS), position(0, 0))
        check_status(heap_pool_init(&self.heap, CHUNK_BITS, MOST_CURSORS), position(0, 0))

    def __dealloc__(self):
        active_memory_destroy(&self.active)
        pool_destroy(&self.heap)


cdef NativeCursorMemory cursor_memory = NativeCursorMemory.__new__(NativeCursorMemory)


# Cursors by name in a registry that counts them. The native operations are those of the two
# containers.
@cython.internal
@cython.no_gc
cdef class NamedCursors:
    cdef NativeCursorMemory owner
    cdef CursorRegistry* registry
    cdef dict ids               # by name
    cdef dict names             # by id
    cdef object naming          # held while a name comes or goes
    cdef object recent          # with a GIL, the Position that was answered last; None for none
    cdef NativePosition recent_at

    def __cinit__(self, *arguments, **options):
        if type(self) is NamedCursors:
            raise TypeError("a container of cursors is active or not; create one of the two classes")
        self.owner = cursor_memory
        self.ids = {}
        self.names = {}
        self.naming = GatedLock.__new__(GatedLock)

    # The data version of the change, or 0 without memory; an id of 0 adds a cursor.
    cdef int64_t native_put(self, uint64_t* id, CursorPosition target, bint durable) noexcept nogil:
        return 0

    cdef void native_remove(self, uint64_t id, int64_t now) noexcept nogil:
        pass

    # The data version of the change, or 0 when the cursor did not move.
    cdef int64_t native_update(
        self, uint64_t id, CursorPosition target, SlowestChange* change
    ) noexcept nogil:
        return 0

    cdef CursorPosition native_slowest(self) noexcept nogil:
        return untracked()

    cdef CursorState native_look(self, uint64_t id) noexcept nogil:
        return registry_state(NULL, untracked())

    cdef CursorState native_slowest_cursor(self) noexcept nogil:
        return registry_state(NULL, untracked())

    cdef uint64_t id_of(self, str name) except? 0:
        return self.ids.get(name, 0)

    cdef bint is_small(self) noexcept:
        return registry_size(self.registry) <= FEW_CURSORS

    # The slowest position changes rarely: mostly it is the object that was answered before.
    cdef object from_place(self, CursorPosition seen):
        if not seen.tracked:
            return None
        # Without a GIL this cache would need a lock.
        if FREE_THREADED:
            return new_position(seen.at)
        if self.recent is None or not position_equal(self.recent_at, seen.at):
            self.recent = new_position(seen.at)
            self.recent_at = seen.at
        return self.recent

    cdef object info(self, str name, CursorState state):
        return CursorInfo(
            name, new_position(state.place.at) if state.place.tracked else None, bool(state.durable))

    def add(self, str name not None, position=None, *, bint durable=True) -> None:
        """Register a cursor, at a position or without one.

        A name that is there already keeps its place in the order and gets this position and
        durability. Raises InvalidPositionError, AllocationError.
        """
        cdef CursorPosition target = to_cursor_position(position)
        cdef uint64_t id = 0
        cdef int64_t version
        with self.naming:
            id = self.id_of(name)
            with nogil:
                native_enter()
                version = self.native_put(&id, target, durable)
                native_leave()
            if not version:
                raise AllocationError(f"no native memory for the cursor {name!r}; nothing was changed")
            self.ids[name] = id
            self.names[id] = name

    # Removes a cursor at a time; False when there is none of that name.
    cdef bint remove(self, str name, int64_t now) except -1:
        cdef uint64_t id = 0
        with self.naming:
            id = self.ids.pop(name, 0)
            with nogil:
                native_enter()
                self.native_remove(id, now)
                native_leave()
            self.names.pop(id, None)
        return id != 0

    def update_cursors(self, names, positions) -> int:
        """Say where many cursors are now; return how many moved, which are those that
        :meth:`update_cursor` moves.

        ``names`` are as many strings as ``positions``, which are an array of 64-bit integers with
        the shape (n, 2), or a sequence of positions. All are checked first, and the GIL is given up
        once. Raises InvalidPositionError, TypeError (a name that is no string), UsageError (other
        numbers of names).
        """
        cdef Block places = to_places(positions, True)
        cdef Block block = new_block(places.count, sizeof(uint64_t))
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef uint64_t* ids = <uint64_t*>block.items
        cdef SlowestChange change
        cdef Py_ssize_t i
        cdef int64_t moved = 0
        cdef tuple rows = tuple(names)
        check_length(places.count, len(rows), "names")
        for i in range(places.count):
            if not isinstance(rows[i], str):
                raise TypeError(f"names[{i}]={rows[i]!r} must be a string")
        for i in range(places.count):
            ids[i] = self.id_of(rows[i])
        with nogil:
            native_enter()
            for i in range(places.count):
                moved += self.native_update(ids[i], tracked_at(at[i]), &change) != 0
            native_leave()
        return moved

    def get(self, str name not None) -> CursorInfo | None:
        """The cursor of a name with its position, or None."""
        cdef uint64_t id = self.id_of(name)
        cdef CursorState state
        with nogil:
            native_enter()
            state = self.native_look(id)
            native_leave()
        return self.info(name, state) if state.id else None

    def slowest_cursor(self) -> CursorInfo | None:
        """The cursor at the lowest position, None when none is tracked.

        Of several at that position, the one that was registered first.
        """
        cdef CursorState state
        with self.naming:
            with nogil:
                native_enter()
                state = self.native_slowest_cursor()
                native_leave()
            return self.info(self.names[state.id], state) if state.id else None

    def slowest_cursor_position(self) -> Position | None:
        """The lowest position of all tracked cursors, None when there is none."""
        cdef CursorPosition slowest
        if self.is_small():
            short_enter()
            slowest = self.native_slowest()
            short_leave()
        else:
            with nogil:
                native_enter()
                slowest = self.native_slowest()
                native_leave()
        return self.from_place(slowest)

    @property
    def is_empty(self) -> bool:
        return registry_size(self.registry) == 0

    @property
    def has_durable_cursors(self) -> bool:
        return registry_has_durable(self.registry)

    @property
    def data_version(self) -> int:
        """A number that grows with every change."""
        return registry_version(self.registry)

    def __len__(self) -> int:
        """Registered cursors, tracked or not."""
        return registry_size(self.registry)

    def __bool__(self) -> bool:
        """True, also for one without cursors; see :attr:`is_empty`."""
        return True

    def __contains__(self, name) -> bool:
        return name in self.ids

    def __iter__(self):
        """Names in the order of registration, without those removed before they are reached."""
        with self.naming:
            names = list(self.ids)
        return (name for name in names if name in self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self)} cursors>"


@cython.final
@cython.no_gc
cdef class ActiveManagedCursorContainer(NamedCursors):
    """The active cursors of a managed ledger: how many are at the position of one of them or before
    it.

    Positions are recorded at once and sorted by the next query. A cursor without a position (None)
    is registered and counts for the size, not for ranks or the slowest position.

    ``continue_caching_added_entries_after_last_active_cursor_leaves_ms``: for how long entries that
    are added are still worth caching when no cursor is active; Pulsar's setting of that name, in
    milliseconds. ``now_ns`` is when the container begins, by default the monotonic clock now.
    Raises InvalidSizeError for a negative time.

    All methods may be called from any number of threads. Origin:
    ``ActiveManagedCursorContainerImpl`` of Pulsar 4.1 (PIP-430), with ranks that are right after
    every move.
    """

    cdef ActiveCursors native

    def __cinit__(
        self, *, continue_caching_added_entries_after_last_active_cursor_leaves_ms=2000, now_ns=None
    ):
        cdef int64_t grace = to_span(
            continue_caching_added_entries_after_last_active_cursor_leaves_ms,
            "continue_caching_added_entries_after_last_active_cursor_leaves_ms", 0)
        self.registry = &self.native.registry
        active_cursors_init(&self.native, &self.owner.active, grace, to_now(now_ns, "now_ns"))

    def __dealloc__(self):
        if self.native.memory is not NULL:
            with nogil:
                native_enter()
                active_cursors_destroy(&self.native)
                native_leave()

    cdef int64_t native_put(self, uint64_t* id, CursorPosition target, bint durable) noexcept nogil:
        if id[0]:
            return active_cursors_replace(&self.native, id[0], target, durable)
        return active_cursors_add(&self.native, target, durable, id)

    cdef void native_remove(self, uint64_t id, int64_t now) noexcept nogil:
        active_cursors_remove(&self.native, id, now)

    cdef int64_t native_update(
        self, uint64_t id, CursorPosition target, SlowestChange* change
    ) noexcept nogil:
        return active_cursors_update(&self.native, id, target)

    cdef CursorPosition native_slowest(self) noexcept nogil:
        return active_cursors_slowest(&self.native)

    cdef CursorState native_look(self, uint64_t id) noexcept nogil:
        return active_cursors_look(&self.native, id)

    cdef CursorState native_slowest_cursor(self) noexcept nogil:
        return active_cursors_slowest_cursor(&self.native)

    def remove_cursor(self, str name not None, *, now_ns=None) -> bool:
        """Remove a cursor; False when there is none of that name.

        ``now_ns`` begins the time for which caching goes on when it was the last one.
        """
        return self.remove(name, to_now(now_ns, "now_ns"))

    def update_cursor(self, str name not None, position) -> bool:
        """Say where a cursor is now; with None it is not tracked any more. False for an unknown
        name.

        Raises InvalidPositionError.
        """
        cdef CursorPosition target = to_cursor_position(position)
        cdef uint64_t id = self.id_of(name)
        cdef int64_t version
        if self.is_small():
            short_enter()
            version = active_cursors_update(&self.native, id, target)
            short_leave()
            return version != 0
        with nogil:
            native_enter()
            version = active_cursors_update(&self.native, id, target)
            native_leave()
        return version != 0

    def number_of_cursors_at_same_position_or_before(self, str name not None) -> int:
        """The number of tracked cursors at this cursor's position or before it, itself included.

        The reads to expect of entries that it just read from storage. 0 for a name that is unknown
        or not tracked.
        """
        cdef uint64_t id = self.id_of(name)
        cdef int64_t rank
        if self.is_small():
            short_enter()
            rank = active_cursors_rank(&self.native, id)
            short_leave()
            return rank
        with nogil:
            native_enter()
            rank = active_cursors_rank(&self.native, id)
            native_leave()
        return rank

    def number_of_cursors_at_position_or_before(self, str name, position) -> int:
        """The number of tracked cursors at a position or before it.

        The reads to expect of entries that are read from storage ahead of a cursor. ``name`` is the
        cursor from which the count is short, or None; it changes nothing but the time. Raises
        InvalidPositionError.
        """
        cdef NativePosition place = to_position(position, "position")
        cdef uint64_t id = self.id_of(name)
        cdef int64_t rank
        with nogil:
            native_enter()
            rank = active_cursors_rank_at(&self.native, id, place)
            native_leave()
        return rank

    def should_cache_added_entry(self, *, now_ns=None) -> bool:
        """True if an entry that is added now is worth caching.

        True while a cursor is registered, and for the time given at creation after the last one
        left, or after the container began.
        """
        return active_cursors_should_cache(&self.native, to_now(now_ns, "now_ns"))


@cython.final
@cython.no_gc
cdef class ManagedCursorContainer(NamedCursors):
    """Cursors of a managed ledger: which position is the slowest, after every change.

    Of use for durable cursors, whose slowest position decides which ledgers can be trimmed, and for
    active ones where entries are evicted by the slowest cursor. A cursor without a position (None)
    is registered and does not count for the slowest position.

    All methods may be called from any number of threads. Origin: ``ManagedCursorContainerImpl`` of
    Pulsar 4.1, with removals that keep the order.
    """

    cdef CursorHeap native
    cdef object unmoved         # with a GIL, the answer (recent, recent) of an update, or None

    def __cinit__(self):
        self.registry = &self.native.registry
        cursor_heap_init(&self.native, &self.owner.heap)

    def __dealloc__(self):
        if self.native.registry.cursors is not NULL:
            with nogil:
                native_enter()
                cursor_heap_destroy(&self.native)
                native_leave()

    cdef int64_t native_put(self, uint64_t* id, CursorPosition target, bint durable) noexcept nogil:
        if id[0]:
            return cursor_heap_replace(&self.native, id[0], target, durable)
        return cursor_heap_add(&self.native, target, durable, id)

    cdef void native_remove(self, uint64_t id, int64_t now) noexcept nogil:
        cursor_heap_remove(&self.native, id)

    cdef int64_t native_update(
        self, uint64_t id, CursorPosition target, SlowestChange* change
    ) noexcept nogil:
        return cursor_heap_update(&self.native, id, target, change)

    cdef CursorPosition native_slowest(self) noexcept nogil:
        return cursor_heap_slowest(&self.native)

    cdef CursorState native_look(self, uint64_t id) noexcept nogil:
        return cursor_heap_look(&self.native, id)

    cdef CursorState native_slowest_cursor(self) noexcept nogil:
        return cursor_heap_slowest_cursor(&self.native)

    def remove_cursor(self, str name not None) -> bool:
        """Remove a cursor; False when there is none of that name."""
        return self.remove(name, 0)

    def update_cursor(
        self, str name not None, position
    ) -> tuple[Position | None, Position | None] | None:
        """Say where a cursor is now and return the slowest position before and after.

        With None it is not tracked any more. A cursor that is unknown or not tracked is not
        touched, and the answer is None: add it again to track it. Raises InvalidPositionError.
        """
        cdef CursorPosition target = to_cursor_position(position)
        cdef uint64_t id = self.id_of(name)
        cdef SlowestChange change
        cdef int64_t version
        if self.is_small():
            short_enter()
            version = cursor_heap_update(&self.native, id, target, &change)
            short_leave()
        else:
            with nogil:
                native_enter()
                version = cursor_heap_update(&self.native, id, target, &change)
                native_leave()
        if not version:
            return None
        previous = self.from_place(change.previous)
        if change.slowest.tracked != change.previous.tracked or not position_equal(
                change.slowest.at, change.previous.at):
            return previous, self.from_place(change.slowest)
        if FREE_THREADED:
            return previous, previous
        # Mostly the slowest position stays: the answer is the one of before.
        answer = self.unmoved
        if answer is None or (<tuple>answer)[0] is not previous:
            answer = self.unmoved = (previous, previous)
        return answer
