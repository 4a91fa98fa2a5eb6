# The delayed-delivery trackers as Python objects: a factory that knows topics by name.

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


# A topic without an open view, and the native view that keeps its messages. Its factory ends it.
@cython.final
@cython.internal
cdef class IdleTopic:
    cdef DelayedView* native
    cdef pml_i32 triggered      # by a fire; nobody looks
    cdef object until           # the millisecond at which the messages are forgotten, or None

    cdef int end(self) except -1:
        cdef DelayedView* native = self.native
        self.native = NULL
        with nogil:
            native_enter()
            delayed_view_free(native)
            native_leave()
        return 0


@cython.final
@cython.no_gc_clear
cdef class InMemoryDelayedDeliveryTrackerFactory:
    """Trackers of delayed messages, which keep each message of a topic once for all its
    subscriptions.

    ``tick_time_ms``: how exact delivery is, and how wide buckets are; ``strict``: a message may
    not come before its time (else it may come a tick before it);
    ``fixed_delay_detection_lookahead``: how many messages of one fixed delay pause a dispatcher, 0
    for never; ``prune_interval_ms``: least time between two prunes of a topic;
    ``prune_eligible_ratio``: the share of a topic's views with a due message at which its timer
    prunes; ``topic_manager_idle_ms``: how long a topic's messages stay after its last view was
    closed, see :meth:`expire`. Raises InvalidSizeError, AllocationError.

    All methods may be called from any number of threads, also while a view is closed. Times are
    milliseconds of one clock, the one of the delivery times. Origin: PIP-448.
    """

    cdef DelayedFactory native
    cdef dict topics            # name -> number, and weak references to views by their numbers
    cdef object naming
    cdef int64_t numbered       # topics and views
    cdef object dropped         # (topic, number) of views that were collected without close()
    cdef int64_t idle_ms
    cdef dict idle              # name -> IdleTopic

    def __cinit__(
        self, *, tick_time_ms=1000, strict=False, fixed_delay_detection_lookahead=50000,
        prune_interval_ms=1000, prune_eligible_ratio=0.5, topic_manager_idle_ms=0
    ):
        cdef DelayedSettings settings
        settings.tick = to_size(tick_time_ms, "tick_time_ms")
        settings.strict = strict
        settings.lookahead = to_size(
            fixed_delay_detection_lookahead, "fixed_delay_detection_lookahead")
        settings.prune_interval = to_size(prune_interval_ms, "prune_interval_ms")
        settings.prune_ratio = prune_eligible_ratio
        if not 0 <= settings.prune_ratio <= 1:
            raise InvalidSizeError(f"prune_eligible_ratio={prune_eligible_ratio!r} is outside 0..1")
        self.idle_ms = to_size(topic_manager_idle_ms, "topic_manager_idle_ms")
        self.idle = {}
        self.topics = {}
        self.naming = GatedLock.__new__(GatedLock)
        self.dropped = deque()
        check_status(
            delayed_factory_init(&self.native, settings, delay_told, NULL, BUCKET_CHUNK_BITS, MOST_BUCKETS),
            position(0, 0))

    def __dealloc__(self):
        # Views keep their factory; idle topics do not.
        for kept in (self.idle or {}).values():
            (<IdleTopic>kept).end()
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
                i32_store_relaxed(&view.open, 1)
                known[1][view.number] = weakref.ref(view)
                self.topics[topic] = known
                self.end_idle(topic)
            with calling, cython.critical_section(view):
                view.trigger = trigger
                view.may_dispatch = may_dispatch
        return view

    def get(
        self, str topic not None, str subscription not None
    ) -> InMemoryTopicDelayedDeliveryTrackerView | None:
        """The open view of a subscription of a topic, or None. It makes none."""
        with self.naming:
            self.forget_dropped()
            known = self.topics.get(topic)
            return None if known is None else self.view_of(known[1], subscription)

    # The open view of a subscription among the views of a topic, or None. The caller holds
    # `naming`.
    cdef InMemoryTopicDelayedDeliveryTrackerView view_of(self, dict views, str subscription):
        cdef InMemoryTopicDelayedDeliveryTrackerView view
        if subscription is not None:
            for reference in views.values():
                view = reference()
                if view is not None and i32_load_relaxed(&view.open) and view.subscription == subscription:
                    return view
        return None

    # A view of a topic of this number, which nobody knows yet. The caller holds `naming`.
    cdef InMemoryTopicDelayedDeliveryTrackerView open_view(self, str topic, int64_t number):
        cdef InMemoryTopicDelayedDeliveryTrackerView view = InMemoryTopicDelayedDeliveryTrackerView.__new__(
            InMemoryTopicDelayedDeliveryTrackerView)
        view.topic = topic
        view.native = self.open_native(topic, number, &view.triggered, &view.number)
        return view

    # A native view of a topic of this number; `own` gets its number. The caller holds `naming`.
    cdef DelayedView* open_native(
        self, str topic, int64_t number, pml_i32* triggered, int64_t* own
    ) except NULL:
        cdef DelayedView* native
        # A number a view: a view that is being collected is not the one that comes after it.
        self.numbered += 1
        own[0] = self.numbered
        with nogil:
            native_enter()
            native = delayed_view_open(&self.native, number, own[0], <int64_t>triggered)
            native_leave()
        if native is NULL:
            raise AllocationError(f"no native memory for a view of {topic!r}; nothing was changed")
        return native

    # Before the last view of a topic is closed: its messages are kept for a while. The caller holds
    # `naming`.
    cdef int keep_idle(self, str topic, object now_ms) except -1:
        cdef IdleTopic kept
        cdef int64_t number
        known = self.topics.get(topic)
        if self.idle_ms and known is not None and len(known[1]) == 1:
            kept = IdleTopic.__new__(IdleTopic)
            kept.native = self.open_native(topic, known[0], &kept.triggered, &number)
            kept.until = None if now_ms is None else now_ms + self.idle_ms
            self.idle[topic] = kept
        return 0

    # Before a topic gets a view again, or is forgotten. The caller holds `naming`.
    cdef int end_idle(self, str topic) except -1:
        kept = self.idle.pop(topic, None)
        if kept is not None:
            (<IdleTopic>kept).end()
        return 0

    def expire(self, *, now_ms) -> int:
        """Forgets the messages of topics that had no view for ``topic_manager_idle_ms``;
        returns the number of these topics.

        The time counts from the ``now_ms`` of the last close, or from the first call of this method
        after it. A ``fire`` calls this method.
        """
        cdef int64_t clock = to_time(now_ms, "now_ms")
        cdef IdleTopic kept
        gone = 0
        with self.naming:
            for topic in list(self.idle):
                kept = self.idle[topic]
                if kept.until is None:
                    kept.until = clock + self.idle_ms
                if kept.until <= clock:
                    self.end_idle(topic)
                    gone += 1
                    if not self.topics[topic][1]:
                        del self.topics[topic]
        return gone

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
        cdef IdleTopic kept
        cdef int64_t size
        found = []
        with self.naming:
            self.forget_dropped()
            topics = list(self.topics)
            for topic, value in self.idle.items():
                kept = <IdleTopic>value
                with nogil:
                    native_enter()
                    size = delayed_manager_bytes(kept.native.manager)
                    native_leave()
                found.append((topic, size))
        idle = {topic for topic, _ in found}
        for topic in topics:
            views = [] if topic in idle else self.views(topic)
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
