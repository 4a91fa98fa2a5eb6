# The delayed-delivery trackers as Python objects: a factory that knows topics by name, and their
# views.

import weakref
from collections import deque

from pulsar_ml.structures.delayed_manager cimport (
    delayed_manager_buckets, delayed_manager_bytes, delayed_manager_count, delayed_manager_fire,
    delayed_manager_next_fire, delayed_manager_set_tick, delayed_view_add, delayed_view_clear,
    delayed_view_count, delayed_view_has_message, delayed_view_mark_delete, delayed_view_scheduled,
    delayed_view_should_pause,
)
from pulsar_ml.structures.delayed_tracker cimport (
    DELAY_CLOSED, DELAY_NO_MEMORY, DELAY_TRACKED, DelayAnswer,
)
from pulsar_ml.structures.delayed_views cimport (
    DelayedFactory, DelayedSettings, DelayedView, delayed_factory_destroy, delayed_factory_init,
    delayed_view_close, delayed_view_free, delayed_view_open,
)
from pulsar_ml.sync.atomics cimport i32_store_relaxed, pml_i32
from pulsar_ml.sync.memory cimport allocate


cdef enum:
    MOST_BUCKETS = 1 << 24      # of all topics of a factory
    BUCKET_CHUNK_BITS = 6


@cython.final
@cython.no_gc_clear
cdef class InMemoryDelayedDeliveryTrackerFactory:
    """Trackers of delayed messages, which keep each message of a topic once for all its
    subscriptions.

    ``tick_time_millis``: how exact delivery is, and how wide buckets are; ``strict``: a message may
    not come before its time (else it may come a tick before it);
    ``fixed_delay_detection_lookahead``: how many messages of one fixed delay pause a dispatcher, 0
    for never; ``prune_interval_millis``: least time between two prunes of a topic;
    ``prune_eligible_ratio``: the share of a topic's views with a due message at which its timer
    prunes; ``topic_manager_idle_millis``: how long a topic's messages stay after its last view was
    closed, see :meth:`expire`. Raises InvalidSizeError, AllocationError.

    All methods of factory and views may be called from any number of threads, also while a view is
    closed. Times are milliseconds of one clock, the one of the delivery times. Origin: PIP-448.
    """

    cdef DelayedFactory native
    cdef dict topics            # name -> number, and weak references to views by their numbers
    cdef object naming
    cdef int64_t numbered       # topics and views
    cdef object dropped         # (topic, number) of views that were collected without close()
    cdef int64_t idle_millis
    cdef dict idle              # name -> [a view that nobody has, its last millisecond or None]

    def __cinit__(
        self, *, tick_time_millis=1000, strict=False, fixed_delay_detection_lookahead=50000,
        prune_interval_millis=1000, prune_eligible_ratio=0.5, topic_manager_idle_millis=0
    ):
        cdef DelayedSettings settings
        settings.tick = to_milliseconds(tick_time_millis, "tick_time_millis")
        settings.strict = strict
        settings.lookahead = to_milliseconds(
            fixed_delay_detection_lookahead, "fixed_delay_detection_lookahead")
        settings.prune_interval = to_milliseconds(prune_interval_millis, "prune_interval_millis")
        settings.prune_ratio = prune_eligible_ratio
        if not 0 <= settings.prune_ratio <= 1:
            raise InvalidSizeError(f"prune_eligible_ratio={prune_eligible_ratio!r} is outside 0..1")
        self.idle_millis = to_milliseconds(topic_manager_idle_millis, "topic_manager_idle_millis")
        self.idle = {}
        self.topics = {}
        self.naming = GatedLock.__new__(GatedLock)
        self.dropped = deque()
        check_status(
            delayed_factory_init(&self.native, settings, delay_told, NULL, BUCKET_CHUNK_BITS, MOST_BUCKETS),
            position(0, 0))

    def __dealloc__(self):
        # Views keep their factory, but for those of idle topics.
        self.idle = None
        delayed_factory_destroy(&self.native)

    def new_tracker(
        self, str topic not None, trigger=None, *, str subscription=None, may_dispatch=None
    ) -> InMemoryTopicDelayedDeliveryTrackerView:
        """A view for a subscription of a topic; the topic's index is made for the first one.

        A ``subscription`` whose view is open gets the same view again, which then has this trigger
        and this ``may_dispatch``; without a name each call makes a new view.
        ``trigger`` is called without arguments by a ``fire`` when the view has a message.
        ``may_dispatch`` is called without arguments before messages are taken, and none is while it
        answers False, as a paused dispatcher does;
        :meth:`~InMemoryTopicDelayedDeliveryTrackerView.resume` goes on. Raises AllocationError.
        """
        cdef InMemoryTopicDelayedDeliveryTrackerView view
        if trigger is not None:
            check_callable(trigger, "trigger")
        if may_dispatch is not None:
            check_callable(may_dispatch, "may_dispatch")
        with self.naming:
            self.forget_dropped()
            known = self.topics.get(topic)
            if known is None:
                self.numbered += 1
                known = (self.numbered, {})
            view = self.view_of(known[1], subscription)
            if view is None:
                view = self.open_view(topic, known[0])
                view.factory = self
                view.subscription = subscription
                view.open = True
                known[1][view.number] = weakref.ref(view)
                self.topics[topic] = known
                self.idle.pop(topic, None)
            with calling:
                view.trigger = trigger
                view.may_dispatch = may_dispatch
        return view

    # The open view of a subscription among the views of a topic, or None. The caller holds
    # `naming`.
    cdef InMemoryTopicDelayedDeliveryTrackerView view_of(self, dict views, str subscription):
        cdef InMemoryTopicDelayedDeliveryTrackerView view
        if subscription is not None:
            for reference in views.values():
                view = reference()
                if view is not None and view.open and view.subscription == subscription:
                    return view
        return None

    # A view of a topic of this number, which nobody knows yet. The caller holds `naming`.
    cdef InMemoryTopicDelayedDeliveryTrackerView open_view(self, str topic, int64_t number):
        cdef InMemoryTopicDelayedDeliveryTrackerView view = InMemoryTopicDelayedDeliveryTrackerView.__new__(
            InMemoryTopicDelayedDeliveryTrackerView)
        # A number a view: a view that is being collected is not the one that comes after it.
        self.numbered += 1
        view.number = self.numbered
        view.topic = topic
        with nogil:
            native_enter()
            view.native = delayed_view_open(&self.native, number, view.number, <int64_t>&view.triggered)
            native_leave()
        if view.native is NULL:
            raise AllocationError(f"no native memory for a view of {topic!r}; nothing was changed")
        return view

    # Before the last view of a topic is closed: another view keeps its messages for a while. The
    # caller holds `naming`.
    cdef int keep_idle(self, str topic, object now) except -1:
        known = self.topics.get(topic)
        if self.idle_millis and known is not None and len(known[1]) == 1:
            self.idle[topic] = [
                self.open_view(topic, known[0]), None if now is None else now + self.idle_millis]
        return 0

    def expire(self, *, now) -> int:
        """Forgets the messages of topics that had no view for ``topic_manager_idle_millis``;
        returns the number of these topics.

        The time counts from the ``now`` of the last close, or from the first call of this method
        after it. A ``fire`` calls this method.
        """
        cdef int64_t clock = to_millis(now, "now")
        gone = []
        with self.naming:
            for topic, kept in list(self.idle.items()):
                if kept[1] is None:
                    kept[1] = clock + self.idle_millis
                if kept[1] <= clock:
                    gone.append(self.idle.pop(topic))
                    if not self.topics[topic][1]:
                        del self.topics[topic]
        return len(gone)

    def delayed_messages(self) -> list[tuple[str, str, int]]:
        """(topic, subscription or "", messages) of each open view; looks at each bucket."""
        cdef InMemoryTopicDelayedDeliveryTrackerView view
        found = []
        with self.naming:
            self.forget_dropped()
            topics = list(self.topics)
        for topic in topics:
            for value in self.views(topic):
                view = <InMemoryTopicDelayedDeliveryTrackerView>value
                try:
                    found.append((topic, view.subscription or "", view.number_of_delayed_messages()))
                except ClosedError:
                    pass    # Another thread closed the view meanwhile.
        return found

    def index_sizes(self) -> list[tuple[str, int]]:
        """(topic, bytes of its index), also of idle topics whose messages are kept."""
        with self.naming:
            self.forget_dropped()
            idle = {topic: kept[0] for topic, kept in self.idle.items()}
            topics = list(self.topics)
        found = []
        for topic in topics:
            views = self.views(topic) or ([idle[topic]] if topic in idle else [])
            if views:
                found.append((topic, views[0].topic_buffer_memory_bytes))
        return found

    # Forgets a view, and with the last one its topic. The caller holds `naming`.
    cdef int forget(self, str topic, int64_t number) except -1:
        known = self.topics.get(topic)
        if known is not None and known[1].pop(number, None) is not None and not known[1]:
            if topic not in self.idle:
                del self.topics[topic]
        return 0

    # The caller holds `naming`.
    cdef int forget_dropped(self) except -1:
        while self.dropped:
            topic, number = self.dropped.popleft()
            self.forget(topic, number)
        return 0

    # The open views of a topic.
    cdef list views(self, str topic):
        with self.naming:
            self.forget_dropped()
            known = self.topics.get(topic)
            references = [] if known is None else list(known[1].values())
        return [view for view in [reference() for reference in references] if view is not None]

    def __bool__(self) -> bool:
        """True, also for one without topics; see ``len()``."""
        return True

    def __len__(self) -> int:
        """Topics with an open view, and idle topics whose messages are kept."""
        with self.naming:
            self.forget_dropped()
            return len(self.topics)

    def __contains__(self, topic) -> bool:
        with self.naming:
            self.forget_dropped()
        # Outside: any object may be looked for, and its __hash__ and __eq__ may do anything.
        return topic in self.topics


@cython.final
@cython.no_gc_clear
cdef class InMemoryTopicDelayedDeliveryTrackerView:
    """The delayed messages of a topic as one subscription sees them. Made by the factory.

    Each message comes once, when its time has come, in the order of times and then of positions;
    those at or below the mark-delete position do not come. Methods raise ClosedError after
    :meth:`close`.
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
    cdef bint open
    cdef pml_i32 triggered      # by a fire, until the trigger was called

    def __dealloc__(self):
        if self.native is not NULL:
            with nogil:
                native_enter()
                delayed_view_free(self.native)
                native_leave()
            if self.open:
                # The collector may run while this thread holds the factory's lock.
                self.factory.dropped.append((self.topic, self.number))

    cdef object closed_error(self):
        return ClosedError(f"the view of {self.topic!r} is closed")

    def add_message(self, at, deliver_at, *, now) -> bool:
        """Keep a message until its time; False when the time has come, and then it is not kept.

        Raises InvalidPositionError, AllocationError, ClosedError.
        """
        cdef NativePosition where = to_stored(at)
        cdef int64_t due = to_millis(deliver_at, "deliver_at")
        cdef int64_t clock = to_millis(now, "now")
        cdef DelayAnswer answer
        with nogil:
            native_enter()
            answer = delayed_view_add(self.native, where, due, clock)
            native_leave()
        if answer == DELAY_CLOSED:
            raise self.closed_error()
        if answer == DELAY_NO_MEMORY:
            raise AllocationError("no native memory left; nothing was changed")
        return answer == DELAY_TRACKED

    def get_scheduled_messages(self, max_messages, *, now) -> list:
        """Positions of messages that are due and did not come before, at most ``max_messages``;
        none while dispatch is paused. Raises InvalidSizeError, AllocationError, ClosedError."""
        cdef int64_t most = to_milliseconds(max_messages, "max_messages")
        cdef int64_t clock = to_millis(now, "now")
        cdef int64_t n, i
        cdef NativePosition* out
        if self.may_dispatch is not None and self.open and not self.may_dispatch():
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

    def has_message_available(self, *, now) -> bool:
        cdef int64_t clock = to_millis(now, "now")
        cdef int64_t due
        with nogil:
            native_enter()
            due = delayed_view_has_message(self.native, clock)
            native_leave()
        if due < 0:
            raise self.closed_error()
        return due != 0

    def should_pause_all_deliveries(self, *, now) -> bool:
        """True if so many messages of one fixed delay are kept that the next ones would be due
        later still.
        """
        cdef int64_t clock = to_millis(now, "now")
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

    def update_mark_delete_position(self, at, *, now) -> None:
        """Everything up to there is acknowledged. A lower position than before is a seek: what is
        above it comes once more. Raises InvalidPositionError, ClosedError."""
        cdef NativePosition where = to_position(at, "position")
        cdef int64_t clock = to_millis(now, "now")
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

    def reset_tick_time(self, tick_time_millis) -> None:
        """Another tick for the topic; buckets stay as they are. Raises InvalidSizeError,
        ClosedError.
        """
        cdef int64_t tick = to_milliseconds(tick_time_millis, "tick_time_millis")
        if not self.open:
            raise self.closed_error()
        with nogil:
            native_enter()
            delayed_manager_set_tick(self.native.manager, tick)
            native_leave()

    def next_fire(self) -> int | None:
        """When to call :meth:`fire` of any view of the topic; None when nothing is to come."""
        cdef int64_t at = 0
        cdef bint armed
        with nogil:
            native_enter()
            armed = delayed_manager_next_fire(self.native.manager, &at)
            native_leave()
        return at if armed else None

    def fire(self, *, now) -> int:
        """The topic's timer: calls the triggers of the views that have a message. How many have
        one.

        All of them are called, whatever one raises: its exception is raised at the end, several as
        a BaseExceptionGroup. A trigger that runs in another thread is called once more there.
        """
        cdef list errors = []
        cdef int64_t clock = to_millis(now, "now")
        cdef int64_t fired
        with nogil:
            native_enter()
            fired = delayed_manager_fire(self.native.manager, clock)
            native_leave()
        if self.factory.idle_millis:
            self.factory.expire(now=now)
        if fired <= 0:
            return 0
        for view in self.factory.views(self.topic):
            errors += call_trigger(<InMemoryTopicDelayedDeliveryTrackerView>view)
        raise_all(errors)
        return fired

    def resume(self, *, now) -> bool:
        """Dispatch goes on: calls the trigger if a message is due, and says whether one is.

        Call it when a paused dispatcher may read again: messages that became due meanwhile are
        still there, but the timer has triggered for them already. A trigger that runs in another
        thread is called once more there. Raises ClosedError, and what the trigger raises.
        """
        cdef bint due = self.has_message_available(now=now)
        if due:
            i32_store_relaxed(&self.triggered, 1)
            raise_all(call_trigger(self))
        return due

    def close(self, *, now=None) -> bool:
        """No call has an effect any more, and the trigger is not called again. False when it was
        closed.

        Waits for a trigger that runs in another thread, but not inside a trigger, which may be the
        one that the other waits for. With the last view of its topic the messages are forgotten, or
        kept for ``topic_manager_idle_millis`` from ``now``: see the factory's ``expire``.
        """
        cdef TriggerRun run
        if now is not None:
            now = to_millis(now, "now")
        with calling:
            run = self.run
            was_open, self.open = self.open, False
        if was_open:
            with self.factory.naming:
                self.factory.keep_idle(self.topic, now)
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
        return not self.open

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
