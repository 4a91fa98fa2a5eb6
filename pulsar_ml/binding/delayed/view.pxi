# A subscription's view of the delayed messages of a topic as a Python object.

@cython.final
@cython.no_gc_clear
cdef class InMemoryTopicDelayedDeliveryTrackerView:
    """The delayed messages of a topic as one subscription sees them. Made by the factory.

    Each message comes once, when its time has come, in the order of times and then of positions;
    those at or below the mark-delete position do not come. Methods raise ClosedError after
    :meth:`close`.

    All methods may be called from any number of threads, also from inside a trigger. Each trigger
    runs in one thread at a time.
    """

    cdef object __weakref__
    cdef DelayedView* native
    cdef InMemoryDelayedDeliveryTrackerFactory factory
    cdef readonly str topic
    cdef readonly str subscription
    cdef object trigger
    cdef object may_dispatch
    cdef TriggerRun run         # that calls the trigger now
    cdef int64_t number         # in its factory
    cdef pml_i32 open           # 0 once close() was called
    cdef pml_i32 triggered      # by a fire, until the trigger was called

    def __dealloc__(self):
        if self.native is not NULL:
            with nogil:
                native_enter()
                delayed_view_free(self.native)
                native_leave()
            if i32_load_relaxed(&self.open):
                # The collector may run while this thread holds the factory's lock.
                self.factory.dropped.append((self.topic, self.number))

    cdef object closed_error(self):
        return ClosedError(f"the view of {self.topic!r} is closed")

    cdef int check_added(self, DelayAnswer answer) except -1:
        if answer == DELAY_CLOSED:
            raise self.closed_error()
        if answer == DELAY_NO_MEMORY:
            raise AllocationError("no native memory for a delayed message; it is not kept")
        return 0

    def add_message(self, position, deliver_at_ms, *, now_ms) -> bool:
        """Keep a message until its time; False when the time has come, and then it is not kept.

        Raises InvalidPositionError, AllocationError, ClosedError.
        """
        cdef NativePosition where = to_stored(position, "position")
        cdef int64_t due = to_time(deliver_at_ms, "deliver_at_ms")
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef DelayAnswer answer
        with nogil:
            native_enter()
            answer = delayed_view_add(self.native, where, due, clock)
            native_leave()
        self.check_added(answer)
        return answer == DELAY_TRACKED

    def add_messages(self, positions, deliver_at_ms, *, now_ms) -> int:
        """Keep many messages until their times; return how many are kept, as their time is to come.

        ``positions`` is an array of 64-bit integers with the shape (n, 2), or a sequence of
        positions; ``deliver_at_ms`` is an array of as many 64-bit integers, or a sequence. All are
        checked first, and the GIL is given up once. Raises what :meth:`add_message` raises, and
        UsageError for other numbers of times; after ClosedError or AllocationError those before may
        be kept.
        """
        cdef Block places = to_places(positions)
        cdef Block due = to_numbers(deliver_at_ms, "deliver_at_ms")
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef const int64_t* times = <const int64_t*>due.items
        cdef DelayAnswer answer = DELAY_TRACKED
        cdef int64_t kept = 0
        cdef Py_ssize_t i = 0
        check_length(places.count, due.count, "times")
        with nogil:
            native_enter()
            while i < places.count:
                answer = delayed_view_add(self.native, at[i], times[i], clock)
                if answer == DELAY_CLOSED or answer == DELAY_NO_MEMORY:
                    break
                kept += answer == DELAY_TRACKED
                i += 1
            native_leave()
        if i < places.count:
            self.check_added(answer)
        return kept

    def get_scheduled_messages(self, max_messages, *, now_ms) -> list:
        """Positions of messages that are due and did not come before, at most ``max_messages``;
        none while dispatch is paused. Raises InvalidSizeError, AllocationError, ClosedError."""
        cdef int64_t most = to_size(max_messages, "max_messages")
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef int64_t n, i
        cdef NativePosition* out
        with cython.critical_section(self):
            may_dispatch = self.may_dispatch
        if may_dispatch is not None and i32_load_relaxed(&self.open) and not may_dispatch():
            return []
        most = min(most, <int64_t>1 << 20)
        out = <NativePosition*>allocate(<size_t>max(most, <int64_t>1) * sizeof(NativePosition))
        if out is NULL:
            raise AllocationError("no native memory left; nothing was changed")
        try:
            with nogil:
                native_enter()
                n = delayed_view_scheduled(self.native, out, most, clock)
                native_leave()
            if n < 0:
                raise self.closed_error()
            return [new_position(position(out[i].ledger_id, out[i].entry_id)) for i in range(n)]
        finally:
            release(out)

    def has_message_available(self, *, now_ms) -> bool:
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef int64_t due
        with nogil:
            native_enter()
            due = delayed_view_has_message(self.native, clock)
            native_leave()
        if due < 0:
            raise self.closed_error()
        return due != 0

    def should_pause_all_deliveries(self, *, now_ms) -> bool:
        """True if so many messages of one fixed delay are kept that the next ones would be due
        later still.
        """
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef int64_t pause
        with nogil:
            native_enter()
            pause = delayed_view_should_pause(self.native, clock)
            native_leave()
        if pause < 0:
            raise self.closed_error()
        return pause != 0

    def number_of_delayed_messages(self) -> int:
        """The number of messages that this view has still to get. Takes time with the number of
        buckets.
        """
        cdef int64_t count
        with nogil:
            native_enter()
            count = delayed_view_count(self.native, INT64_MAX)
            native_leave()
        if count < 0:
            raise self.closed_error()
        return count

    def update_mark_delete_position(self, position, *, now_ms) -> None:
        """Everything up to there is acknowledged. A lower position than before is a seek: what is
        above it comes once more. Raises InvalidPositionError, ClosedError."""
        cdef NativePosition where = to_position(position, "position")
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef bint open_
        with nogil:
            native_enter()
            open_ = delayed_view_mark_delete(self.native, where, clock)
            native_leave()
        if not open_:
            raise self.closed_error()

    def clear(self) -> None:
        """The dispatcher reads from the mark-delete position again: everything above it comes once
        more.
        """
        cdef bint open_
        with nogil:
            native_enter()
            open_ = delayed_view_clear(self.native)
            native_leave()
        if not open_:
            raise self.closed_error()

    def reset_tick_time(self, tick_time_ms) -> None:
        """Another tick for the topic; buckets stay as they are. Raises InvalidSizeError,
        ClosedError.
        """
        cdef int64_t tick = to_size(tick_time_ms, "tick_time_ms")
        if not i32_load_relaxed(&self.open):
            raise self.closed_error()
        with nogil:
            native_enter()
            delayed_manager_set_tick(self.native.manager, tick)
            native_leave()

    def next_fire_ms(self) -> int | None:
        """The time in milliseconds at which to call :meth:`fire` of any view of the topic; None
        when nothing is to come.
        """
        cdef int64_t at = 0
        cdef bint armed
        with nogil:
            native_enter()
            armed = delayed_manager_next_fire(self.native.manager, &at)
            native_leave()
        return at if armed else None

    def fire(self, *, now_ms) -> int:
        """The topic's timer: calls the triggers of the views that have a message. How many have
        one.

        All of them are called, whatever one raises: its exception is raised at the end, several as
        a BaseExceptionGroup. A trigger that runs in another thread is called once more there.
        """
        cdef list errors = []
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef int64_t fired
        with nogil:
            native_enter()
            fired = delayed_manager_fire(self.native.manager, clock)
            native_leave()
        if self.factory.idle_ms:
            self.factory.expire(now_ms=now_ms)
        if fired <= 0:
            return 0
        for view in self.factory.views(self.topic):
            errors += call_trigger(<InMemoryTopicDelayedDeliveryTrackerView>view)
        raise_all(errors)
        return fired

    def resume(self, *, now_ms) -> bool:
        """Dispatch goes on: calls the trigger if a message is due, and says whether one is.

        Call it when a paused dispatcher may read again: messages that became due meanwhile are
        still there, but the timer has triggered for them already. A trigger that runs in another
        thread is called once more there. Raises ClosedError, and what the trigger raises.
        """
        cdef bint due = self.has_message_available(now_ms=now_ms)
        if due:
            i32_store_relaxed(&self.triggered, 1)
            raise_all(call_trigger(self))
        return due

    def close(self, *, now_ms=None) -> bool:
        """No call has an effect any more, and the trigger is not called again. False when it was
        closed.

        Waits for a trigger that runs in another thread, but not inside a trigger, which may be the
        one that the other waits for. With the last view of its topic the messages are forgotten, or
        kept for ``topic_manager_idle_ms`` from ``now_ms``: see the factory's ``expire``.
        """
        cdef TriggerRun run
        if now_ms is not None:
            now_ms = to_time(now_ms, "now_ms")
        with calling:
            run = self.run
            was_open = i32_exchange_acquire(&self.open, 0) != 0
        if was_open:
            with self.factory.naming:
                self.factory.keep_idle(self.topic, now_ms)
                with nogil:
                    native_enter()
                    delayed_view_close(self.native)
                    native_leave()
                self.factory.forget(self.topic, self.number)
        if run is not None and not pml_calls.triggers:
            run.done.wait()
        return was_open

    @property
    def closed(self) -> bool:
        return not i32_load_relaxed(&self.open)

    @property
    def topic_delayed_messages(self) -> int:
        """Messages that the topic keeps, each counted once."""
        cdef int64_t count
        with nogil:
            native_enter()
            count = delayed_manager_count(self.native.manager)
            native_leave()
        return count

    @property
    def topic_buffer_memory_bytes(self) -> int:
        """Bytes of the topic's sets and buckets."""
        cdef int64_t count
        with nogil:
            native_enter()
            count = delayed_manager_bytes(self.native.manager)
            native_leave()
        return count

    @property
    def topic_buckets(self) -> int:
        """Spans of delivery times in which the topic has messages."""
        cdef int64_t count
        with nogil:
            native_enter()
            count = delayed_manager_buckets(self.native.manager)
            native_leave()
        return count
