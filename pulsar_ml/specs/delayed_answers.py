"""The legal answers of views of delayed messages while other calls run: which messages may come.

The model ``delayed_manager`` says what each call answers when nothing runs beside it; this one says
what all schedules have in common. Of each topic it knows the messages that were added by calls that
ended, and those of calls under way; of each view which it returned, so which must come with the
next answer and which may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, delay, delayed_manager, unknown
from pulsar_ml.specs.delay import (
    BATCH,
    CHUNK,
    CLOSED,
    DELIVER_NOW,
    NO_MEMORY,
    TRACKED,
    Rule,
    digest,
    message_time,
)
from pulsar_ml.specs.delayed_manager import FULL, NONE, SLOTS, TOPICS, VIEWS

Pair = tuple[int, int]  # bucket and message

MOST_KEY = 2**63
Exact = delayed_manager.Model  # judges programs of one thread
NOBODY = -1  # no thread


class Topic:
    """A manager, from its first view to its last."""

    __slots__ = ("ever", "number", "open_views", "sure", "ticks", "top_mark")

    def __init__(self, number: int, tick: int) -> None:
        self.number = number
        self.sure: frozenset[Pair] = frozenset()  # added by calls that ended; perhaps pruned
        self.ever: frozenset[Pair] = frozenset()  # by calls that began
        self.ticks: tuple[tuple[int, int], ...] = ((tick, NOBODY),)  # and the threads that set them
        self.top_mark = NONE  # the highest mark-delete position of any view
        self.open_views = 0

    def state(self) -> object:
        return self.number, self.sure, self.ever, self.ticks, self.top_mark, self.open_views


class View:
    """The knowledge of a view: the pairs that it ``returned``, those of them that may come
    ``again``, and those that may be ``pruned``, as it and all others had marked them."""

    __slots__ = (
        "again", "closers", "closing", "ended", "late", "mark", "pruned", "reach", "returned",
        "topic",
    )  # fmt: skip

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.returned: frozenset[Pair] = frozenset()
        self.again: frozenset[Pair] = frozenset()
        self.pruned = frozenset(pair for pair in topic.ever if pair[1] <= topic.top_mark)
        # Added perhaps behind it, and by which thread.
        self.late: frozenset[tuple[Pair, int]] = frozenset()
        self.reach = -1  # the highest bucket that a call may have looked at
        self.mark = NONE
        self.closers = 0  # closes that began
        self.closing = False  # a call saw that it is closed
        self.ended = False  # a close said so

    def state(self) -> object:
        return (
            self.returned, self.again, self.pruned, self.late, self.reach, self.mark,
            self.closers, self.closing, self.ended,
        )  # fmt: skip

    def is_closed(self) -> bool:
        """A call that answers so: from now on all do."""
        self.closing = True
        return self.closers > 0


@dataclass(frozen=True, slots=True)
class DelayedCall:
    """A call under way. When it began: the place of its view, its topic's sure messages, whether
    the view was closed. Meanwhile: the buckets of messages that others began to add."""

    operation: str
    place: int
    before: frozenset[Pair] = frozenset()
    closed: bool = False
    meanwhile: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Adding:
    """A message on its way into a topic, and whether a view returned it already."""

    topic: int
    pair: Pair
    returned: bool = False


class Model:
    """The operations of the subject ``delayed_manager``; only ``pass_time`` is linearizable."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "open": "1: the slot's view was closed, and a new view has joined its topic, or is the "
        "first of a new topic. 0: the slot's view was open at one moment.",
        "close": "From one moment of the call on other calls find the view closed; at a later one "
        "the view leaves its topic. CLOSED: another close began before.",
        "add": "Kept: each view gets the message from a moment of its own on, all of them when the "
        "call ends. Closed and too late are of one moment, with a tick that the topic had.",
        "scheduled": "Each bucket at a moment of its own, in order. Messages added by calls that "
        "ended before this one began come; messages that are added meanwhile may come. No "
        "message comes twice, except from the first bucket on that got a message after the view "
        "had passed it.",
        "has_message": "1: a message was due at one moment. 0: no message was due of those added "
        "before the call began, by the caller or ahead of the view.",
        "count": "Each bucket at a moment of its own: at least the messages that were added "
        "before the call began, by the caller or ahead of the view, and at most those that any "
        "call began to add.",
        "should_pause": "1: at one moment no message was due, and at one moment as many messages "
        "as the lookahead were kept. 0: the answer says nothing.",
        "clear": "The call takes effect at one moment. Weak only in the view that it is about: "
        "CLOSED may be the answer of a view that another one replaced meanwhile.",
        "mark_delete": "As clear. Messages that the mark lets other calls prune go later.",
        "set_tick": "Calls under way may use the old tick, and so may threads that do not know of "
        "the call. Of two calls that do not know of each other, the earlier one may stay.",
        "fire": "Each view by itself; -1: the timer was not armed, or for later.",
        "timer": "The state of one moment. Messages that are being added may have no timer yet.",
        "topic": "Messages: at most those that were added. Buckets: those of one moment.",
    }
    spans = frozenset(
        ("open", "close", "add", "scheduled", "has_message", "count", "should_pause", "topic")
    )

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.tick = settings["tick"]
        self.rule = Rule(self.tick, bool(settings["strict"]))
        self.lookahead = settings["lookahead"]
        self.clocks = delay.clocks_of(settings, threads)
        self.messages = 2 << settings["spread"]
        self.n_topics = 0
        self.current: list[Topic | None] = [None] * TOPICS
        self.views: list[View] = []
        self.slots = list(range(SLOTS))
        for slot in range(SLOTS):
            self.join(slot % TOPICS)
        # By thread: the tick that it set last, by topic, and its call under way.
        self.known: list[dict[int, int]] = [{} for _ in range(threads)]
        self.under_way: list[DelayedCall | None] = [None] * threads
        self.adding: list[Adding | None] = [None] * threads

    def canonical(self) -> object:
        topics = {id(view.topic): view.topic for view in self.views}
        return (
            tuple(self.clocks),
            tuple(-1 if topic is None else topic.number for topic in self.current),
            tuple(topic.state() for topic in topics.values()),
            tuple((view.topic.number, view.state()) for view in self.views),
            tuple(self.slots),
            tuple(frozenset(known.items()) for known in self.known),
            tuple(self.under_way),
            tuple(self.adding),
        )

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation != "pass_time":
            raise unknown("delayed_answers", operation)
        self.clocks[thread] = delay.later(self.clocks[thread], arguments[0])
        return answer(TRACKED)

    def join(self, number: int) -> View:
        topic = self.current[number]
        if topic is None:
            topic = self.current[number] = Topic(self.n_topics, self.tick)
            self.n_topics += 1
        topic.open_views += 1
        view = View(topic)
        self.views.append(view)
        return view

    def ticks(self, topic: Topic, thread: int) -> tuple[int, ...]:
        """The ticks that a call of a thread may use: none before its own last one, which may
        itself stand before those that others set, as nothing orders the stores.
        """
        last = self.known[thread].get(topic.number, 0)
        later = [tick for tick, _ in topic.ticks[last:]]
        if last and not self.fresh:
            later += [tick for tick, by in topic.ticks[:last] if by not in (thread, NOBODY)]
        return tuple(later)

    def limits(self, topic: Topic, thread: int) -> list[int]:
        return [self.rule.limit(tick, self.clocks[thread]) for tick in self.ticks(topic, thread)]

    # Beginnings -----------------------------------------------------------------------------------

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> None:
        if self.under_way[thread] is not None:
            # Of one call at a time; the smallest part of a wrong history is made otherwise.
            return
        if operation == "open":
            # Undone at its end if the slot's view turns out to be open.
            self.join(arguments[0] % TOPICS)
            self.under_way[thread] = DelayedCall(operation, len(self.views) - 1)
            return
        place = self.slots[arguments[0]]
        view = self.views[place]
        meanwhile = frozenset(one.pair[0] for one in self.added_to(view.topic))
        self.under_way[thread] = DelayedCall(
            operation, place, view.topic.sure, view.closing, meanwhile
        )
        if operation == "close":
            view.closers += 1
        elif operation == "scheduled":
            view.reach = max(view.reach, *self.limits(view.topic, thread))
        elif operation == "add":
            self.begins_to_add(view, arguments, thread)

    def begins_to_add(self, view: View, arguments: Sequence[int], thread: int) -> None:
        deliver_at = message_time(arguments[2], self.clocks[thread])
        if deliver_at < 0:
            return
        pair = self.rule.key(deliver_at), arguments[1] % self.messages
        self.adding[thread] = Adding(view.topic.number, pair)
        view.topic.ever |= {pair}
        for other in self.views:
            if other.topic is view.topic:
                other.again |= {come for come in other.returned if come[0] >= pair[0]}
                # A view that seeks back waits for a prune that relies on its mark.
                if pair[1] <= other.mark:
                    other.pruned |= {pair}
                elif not self.scarce:  # or the call gets no memory, and the message stays away
                    other.pruned -= {pair}
        for number, call in enumerate(self.under_way):
            if call is not None and self.views[call.place].topic is view.topic:
                self.under_way[number] = replace(call, meanwhile=call.meanwhile | {pair[0]})

    def added_to(self, topic: Topic) -> list[Adding]:
        return [one for one in self.adding if one is not None and one.topic == topic.number]

    # Ends -----------------------------------------------------------------------------------------

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int = 0, result: Answer
    ) -> bool:
        status, words = result
        if operation not in self.spans:
            return self.at_once(operation, arguments, thread, status, words)
        call, self.under_way[thread] = self.under_way[thread], None
        if call is None or call.operation != operation:
            return False  # it ends before it began
        view = self.views[call.place]
        if operation == "open":
            return self.open(view, arguments[0], status, words)
        if operation == "topic":
            return topic_fits(view, call.before, words[:2])
        if operation == "close":
            return self.close(view, status)
        if operation == "add":
            return self.add(view, call, arguments, thread, status)
        if status == CLOSED or words[0] == -1:
            return view.is_closed()
        if view.closing:
            return False
        ends: Callable[..., bool] = getattr(self, operation)
        return ends(view, call, arguments, thread, words)

    def at_once(
        self,
        operation: str,
        arguments: Sequence[int],
        thread: int,
        status: int,
        words: Sequence[int],
    ) -> bool:
        place = self.slots[arguments[0]]
        view = self.views[place]
        if operation == "set_tick":
            self.known[thread][view.topic.number] = len(view.topic.ticks)
            view.topic.ticks += ((arguments[1], thread),)
        elif operation == "fire":
            return -1 <= words[0] <= VIEWS
        elif operation == "timer":
            return words[0] in (0, 1)
        elif not words[0]:
            # A close of this view, or of one that had the slot when the call began.
            return any(other.closers for other in self.views)
        elif view.closing:
            return False
        elif operation == "clear" or arguments[1] % self.messages < view.mark:
            view.returned = view.again = frozenset()
        if operation == "mark_delete":
            view.mark = arguments[1] % self.messages
            view.topic.top_mark = max(view.topic.top_mark, view.mark)
            view.pruned |= {pair for pair in view.topic.ever if pair[1] <= view.mark}
        return True

    def open(self, view: View, slot: int, status: int, words: Sequence[int]) -> bool:
        before = self.views[self.slots[slot]]
        if status == TRACKED and words[0]:
            self.slots[slot] = self.views.index(view)
            return before.is_closed()
        # It was not made. If that made a difference to a close meanwhile, this is not the order of
        # the calls.
        topic = view.topic
        topic.open_views -= 1
        if self.views[-1] is not view:
            return False
        self.views.pop()
        if not topic.open_views:
            if any(other.topic is topic for other in self.views):
                return False
            self.current[slot % TOPICS] = None
            self.n_topics -= topic.number == self.n_topics - 1
        if words[0]:
            full = status == FULL and len(self.views) == VIEWS
            return (full or (self.scarce and status == NO_MEMORY)) and before.is_closed()
        return not before.closing

    def close(self, view: View, status: int) -> bool:
        if status == CLOSED:
            view.closing = True
            return view.closers > 1
        if view.ended:
            return False
        view.ended = view.closing = True
        topic = view.topic
        topic.open_views -= 1
        if not topic.open_views:
            self.current[self.current.index(topic)] = None
        return True

    def add(
        self, view: View, call: DelayedCall, arguments: Sequence[int], thread: int, status: int
    ) -> bool:
        adding, self.adding[thread] = self.adding[thread], None
        returned = adding is not None and adding.returned
        if status == CLOSED:
            return view.is_closed() and not returned
        if call.closed:
            return False
        deliver_at = message_time(arguments[2], self.clocks[thread])
        now = self.clocks[thread]
        late = [
            deliver_at < 0 or deliver_at <= self.rule.cutoff(tick, now)
            for tick in self.ticks(view.topic, thread)
        ]
        if self.scarce and status == NO_MEMORY:
            return not all(late) and not returned
        if status == DELIVER_NOW:
            return any(late) and not returned
        if status != TRACKED or all(late) or adding is None:
            return False
        view.topic.sure |= {adding.pair}
        for other in self.views:
            if other.topic is view.topic and other.reach >= adding.pair[0]:
                other.late |= {(adding.pair, thread)}
        return True

    # Messages -------------------------------------------------------------------------------------

    def wanted(self, view: View, before: Iterable[Pair], limit: int) -> set[Pair]:
        """Messages that are there and that the view must find."""
        gone = view.returned | view.pruned
        return {
            pair for pair in before if pair[0] <= limit and pair[1] > view.mark and pair not in gone
        }

    def known_to(self, view: View, thread: int, before: Iterable[Pair]) -> Iterable[Pair]:
        """The messages that a call which does not move the view cannot miss."""
        if self.fresh:
            return before
        unknown_ones = {pair for pair, by in view.late if by != thread}
        return [pair for pair in before if pair not in unknown_ones]

    def possible(self, view: View, limit: int) -> set[Pair]:
        """Messages that the view may find."""
        adding = {one.pair for one in self.added_to(view.topic)}
        return {
            pair
            for pair in view.topic.sure | adding
            if pair[0] <= limit
            and pair[1] > view.mark
            and (pair not in view.returned or pair in view.again)
        }

    def scheduled(
        self,
        view: View,
        call: DelayedCall,
        arguments: Sequence[int],
        thread: int,
        words: Sequence[int],
    ) -> bool:
        limits = self.limits(view.topic, thread)
        most = arguments[1] if arguments[1] < BATCH else CHUNK
        wanted = self.wanted(view, call.before, min(limits))
        taken = chosen(wanted, self.possible(view, max(limits)), most, words[0], words[1])
        if taken is None:
            return False
        view.returned |= taken
        view.again |= {pair for pair in taken if any(key <= pair[0] for key in call.meanwhile)}
        view.late = frozenset(one for one in view.late if one[0] not in call.before)
        adding = [one.pair for one in self.added_to(view.topic)]
        for number, one in enumerate(self.adding):
            # Nobody else can have brought it.
            if (
                one is not None
                and one.pair in taken - view.topic.sure
                and adding.count(one.pair) == 1
            ):
                self.adding[number] = replace(one, returned=True)
        return True

    def has_message(
        self,
        view: View,
        call: DelayedCall,
        arguments: Sequence[int],
        thread: int,
        words: Sequence[int],
    ) -> bool:
        limits = self.limits(view.topic, thread)
        if words[0]:
            return bool(self.possible(view, max(limits)))
        return not self.wanted(view, self.known_to(view, thread, call.before), min(limits))

    def count(
        self,
        view: View,
        call: DelayedCall,
        arguments: Sequence[int],
        thread: int,
        words: Sequence[int],
    ) -> bool:
        if words[0] > len(self.possible(view, MOST_KEY)):
            return False
        least = len(self.wanted(view, self.known_to(view, thread, call.before), MOST_KEY))
        return words[0] >= min(least, arguments[1])

    def should_pause(
        self,
        view: View,
        call: DelayedCall,
        arguments: Sequence[int],
        thread: int,
        words: Sequence[int],
    ) -> bool:
        if not words[0]:
            return True
        due = self.wanted(
            view, self.known_to(view, thread, call.before), min(self.limits(view.topic, thread))
        )
        return 0 < self.lookahead <= len(self.possible(view, MOST_KEY)) and not due


def topic_fits(view: View, before: frozenset[Pair], words: Sequence[int]) -> bool:
    """True if a topic may have so many messages and buckets."""
    topic = view.topic
    most = {key for key, _ in topic.ever}
    least = (
        {key for key, message in before if message > topic.top_mark} if topic.open_views else set()
    )
    return 0 <= words[0] <= len(topic.ever) and len(least) <= words[1] <= len(most)


def chosen(
    wanted: set[Pair], possible: set[Pair], most: int, count: int, expected_digest: int
) -> frozenset[Pair] | None:
    """Messages whose digest is ``expected_digest``: the first so many of all that must and some
    that may come.
    """
    if not 0 <= count <= most:
        return None
    pairs = sorted(wanted | possible)

    def search(at: int, taken: tuple[Pair, ...]) -> tuple[Pair, ...] | None:
        if len(taken) == count:
            misses_one = count < most and any(pair in wanted for pair in pairs[at:])
            if not misses_one and digest(message for _, message in taken) == expected_digest:
                return taken
            return None
        if at == len(pairs):
            return None
        found = search(at + 1, (*taken, pairs[at]))
        if found is None and pairs[at] not in wanted:
            found = search(at + 1, taken)
        return found

    found = search(0, ())
    return None if found is None else frozenset(found)
