"""The common part of the models of both cursor containers: cursors, and the states a thread may
see.

Every change is one write section and answers the data version it made, so the order of changes is
given. A query that takes no lock sees the container as it was after one of them: not before the
last change that its thread knows of, but perhaps before others that are over. The model keeps those
moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.cursor_moments import NOTHING_SEEN, UNTRACKED, Cursor, Moment, Name, Walk

DONE, UNKNOWN, REFUSED = 0, 1, 3
OWN = 3  # the first numbers name cursors of the calling thread's own
TAGS = (1 << 14) - 1  # of one thread, until they are used again

Item = TypeVar("Item")


def least(values: list[int]) -> int:
    """The slowest of some values."""
    return min([value for value in values if value != UNTRACKED], default=UNTRACKED)


def put(items: tuple[Item, ...], place: int, item: Item) -> tuple[Item, ...]:
    """The items with another one at that place."""
    return (*items[:place], item, *items[place + 1 :])


class CursorModel:
    """The operations that both containers have.

    Each has a method of its name with what it answers when nothing runs beside it, and one that
    says whether it may answer something else, and does what it does. Everybody's cursors change
    hands: which one a number stood for is in the answer and believed, as long as that cursor was
    registered under it.
    """

    structure = ""
    operations: frozenset[str] = frozenset(
        {
            "add", "remove", "slowest", "size", "version", "iterate", "update", "update_stale",
            "inspect", "look", "slowest_cursor",
        }
    )  # fmt: skip
    fresh = False
    scarce = False
    foresees = True
    weak: ClassVar[Mapping[str, str]] = {
        "add": "Linearizable at the end of its write section. Weak only in the suite's numbers: "
        "two threads may register the same number, and the second one removes the cursor that it "
        "finds there in a section of its own.",
        "update": "Linearizable at the end of its write section. Weak only in the suite's numbers: "
        "UNKNOWN for a shared number may be about a cursor that it stood for before, or about "
        "none.",
        "remove": "As update.",
        "update_stale": "Finds nothing.",
        "inspect": "Reads the structure under the lock; the answer is of one moment.",
        "look": "Under the lock, so of one moment. Weak only in the suite's numbers, as update.",
        "slowest_cursor": "Under the lock, so of one moment. The tag is 0 where the caller knows "
        "no name of the cursor.",
        "slowest": "The state of one moment, not before the last change that the thread made or "
        "saw.",
        "size": "Each of the two words is of a moment of its own, as for slowest: one change may "
        "have reached one word and not the other.",
        "version": "As each word of size.",
        "iterate": "Every cursor that is registered during the whole call, and any of those that "
        "come or go meanwhile; each once.",
    }
    spans: frozenset[str] = frozenset({"add", "size", "iterate"})
    may: Mapping[str, str] = {}  # operation -> what says whether it may answer something

    def __init_subclass__(cls) -> None:
        cls.may = {operation: f"may_{operation}" for operation in cls.operations}

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.named = settings["cursors"]
        self.values = settings["values"]
        # Of all tags that each thread gave.
        self.names: tuple[tuple[Name, ...], ...] = ((),) * threads
        self.n_registered = (0,) * threads  # cursors registered by each thread
        self.cursors: tuple[Cursor, ...] = ()  # by name, then as they were registered
        self.lowest = UNTRACKED  # of their values
        self.durable = False  # whether one of them is
        self.changes = 0
        self.left_at: frozenset[int] = frozenset({settings.get("start", 0)})
        self.first = self.last = 0  # numbers of moments
        # Those from which somebody may see something, from first.
        self.moments: tuple[Moment, ...] = (self.now(),)
        self.views = (NOTHING_SEEN,) * threads
        # Data version, tag and number of what an ``add`` has yet to remove.
        self.to_remove: tuple[tuple[int, int, Name] | None, ...] = (None,) * threads
        self.walks: tuple[Walk | None, ...] = (None,) * threads

    def canonical(self) -> object:
        return (
            self.moments,
            self.cursors,
            self.names,
            self.n_registered,
            self.to_remove,
            self.walks,
            *self.views,
        )

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        result = self.alone(operation, arguments, thread)
        if operation in self.spans:
            self.begins(operation, arguments, thread=thread, result=result)
        self.concurrent(operation, arguments, thread=thread, result=result)
        return result

    def alone(self, operation: str, arguments: Sequence[int], thread: int) -> Answer:
        if operation not in self.operations:
            raise unknown(self.structure, operation)
        call: Callable[..., Answer] = getattr(self, operation)
        return call(thread, *arguments)

    def begins(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer | None
    ) -> bool:
        if result is None:
            result = self.alone(operation, arguments, thread)
        if operation != "add" or result[1][2]:
            self.put_began(thread, self.last if self.fresh else 0)
        if operation == "add":
            return self.may_begin_add(thread, result, *arguments)
        if operation == "iterate":
            walk = Walk(frozenset([cursor.tag for cursor in self.cursors]), self.churning())
            self.walks = put(self.walks, thread, walk)
        return True

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer
    ) -> bool:
        call: Callable[..., bool] = getattr(self, self.may[operation])
        if operation in self.spans and (operation != "add" or result[1][2]):
            if self.views[thread][3] < 0 or not call(thread, result, *arguments):
                return False
            self.put_began(thread, -1)
            return True
        return call(thread, result, *arguments)

    @staticmethod
    def idle(operation: str, result: Answer) -> bool:
        """An ``add`` that has nothing to remove is over when it begins."""
        return operation == "add" and result[1][2] == 0

    def hidden(self) -> list[int]:
        if not any(self.to_remove):
            return []
        return [
            thread
            for thread, removal in enumerate(self.to_remove)
            if removal and self.comes_next(removal[0]) and self.name_of(removal[1]) == removal[2]
        ]

    def happens(self, thread: int) -> None:
        """The second section of an ``add`` that found another thread's cursor."""
        removal = self.to_remove[thread]
        assert removal is not None
        self.to_remove = put(self.to_remove, thread, None)
        self.take_out(thread, *removal[:2], 0)

    # Cursors --------------------------------------------------------------------------------------

    def name(self, thread: int, number: int) -> Name:
        number %= self.named
        return (thread if number < OWN else -1, number)

    def place(self, value: int) -> int:
        return UNTRACKED if value == UNTRACKED else value % self.values

    def next_tag(self, thread: int) -> int:
        return thread << 14 | self.n_registered[thread] % TAGS + 1

    def name_of(self, tag: int) -> Name | None:
        """The name under which the cursor of that tag was registered."""
        thread, place = tag >> 14, (tag & TAGS) - 1
        if not 0 <= thread < len(self.names) or not 0 <= place < len(self.names[thread]):
            return None
        return self.names[thread][place]

    def tag_of(self, name: Name) -> int:
        """The tag of the cursor that the number stands for, while nothing runs beside the call or
        for own cursors; 0: none.
        """
        for cursor in reversed(self.cursors):
            if cursor.name == name:
                return cursor.tag
        return 0

    def find(self, tag: int) -> Cursor | None:
        for cursor in self.cursors:
            if cursor.tag == tag:
                return cursor
        return None

    def right_tag(self, name: Name, tag: int) -> bool:
        """True if the number may have stood for the tag's cursor, or for none."""
        if name[0] >= 0:
            return tag == self.tag_of(name)
        return tag == 0 or self.name_of(tag) == name

    def put(self, cursor: Cursor, before: Cursor) -> None:
        """It is another one now."""
        self.cursors = tuple([cursor if other is before else other for other in self.cursors])
        self.changed(before, cursor)

    def put_new(self, cursor: Cursor) -> None:
        place = sum([other.name <= cursor.name for other in self.cursors])
        self.cursors = (*self.cursors[:place], cursor, *self.cursors[place:])
        self.changed(None, cursor)

    def changed(self, before: Cursor | None, now: Cursor | None) -> None:
        lowest = self.lowest
        if (
            now is not None
            and now.value != UNTRACKED
            and (now.value <= lowest or lowest == UNTRACKED)
        ):
            self.lowest = now.value
        elif before is not None and before.value == lowest:
            self.lowest = least([cursor.value for cursor in self.cursors])
        if now is not None and now.durable:
            self.durable = True
        elif before is not None and before.durable:
            self.durable = any(cursor.durable for cursor in self.cursors)

    # Moments --------------------------------------------------------------------------------------

    def now(self) -> Moment:
        return Moment(self.lowest, len(self.cursors), self.durable, self.changes)

    def churning(self) -> int:
        """Cursors that may come besides, of calls that churn."""
        return 0

    def comes_next(self, version: int) -> bool:
        return version == self.changes + 1

    def count(self, version: int) -> None:
        self.changes = version

    def happened(self, thread: int) -> bool:
        """A new moment; the thread was in the section that made it."""
        self.moments = (*self.moments, self.now())
        self.last += 1
        return self.knows(thread, self.last)

    def was_inside(self, thread: int) -> bool:
        return self.knows(thread, self.last)

    def knows(self, thread: int, moment: int) -> bool:
        known, size, durable, began, version = self.views[thread]
        if moment > known:
            if size < moment:
                size = moment
            if durable < moment:
                durable = moment
            if 0 <= began < moment:
                began = moment
            views = self.views
            view = moment, size, durable, began, version
            self.views = views = (*views[:thread], view, *views[thread + 1 :])
            oldest = min([view[0] for view in views])
            if oldest > self.first:
                self.moments = self.moments[oldest - self.first :]
                self.first = oldest
        return True

    def put_began(self, thread: int, moment: int) -> None:
        known, size, durable, _, version = self.views[thread]
        if 0 <= moment < known:
            moment = known
        self.views = put(self.views, thread, (known, size, durable, moment, version))

    def seen(self, thread: int, since: int) -> range:
        """The numbers of the moments, since one, from which the thread may see something."""
        return range(max(since, self.views[thread][0]), self.last + 1)

    def moment(self, number: int) -> Moment:
        return self.moments[number - self.first]

    def since(self, thread: int) -> int:
        """The first moment from which a query that takes no lock may see something."""
        return self.last if self.fresh else self.views[thread][0]

    # Changes --------------------------------------------------------------------------------------

    def add(self, thread: int, number: int, value: int, durable: int) -> Answer:
        tag = self.tag_of(self.name(thread, number)) or self.next_tag(thread)
        return answer(DONE, self.changes + 1, tag)

    def may_begin_add(
        self, thread: int, result: Answer, number: int, value: int, durable: int
    ) -> bool:
        status, (version, tag, removal, removed) = result
        name = self.name(thread, number)
        if self.scarce and result == answer(REFUSED):
            # A cursor that is registered needs no memory.
            return name[0] < 0 or not self.tag_of(name)
        if status != DONE or not self.comes_next(version):
            return False
        cursor = self.find(tag)
        if cursor is not None:
            if not self.right_tag(name, tag) or removal or removed:
                return False
            self.put(cursor._replace(value=self.place(value), durable=bool(durable)), cursor)
        else:
            if tag != self.next_tag(thread) or (name[0] >= 0 and self.tag_of(name)):
                return False
            # The other cursor may have been registered after this one, and found its number first.
            if bool(removal) != bool(removed) or (removed and name[0] >= 0):
                return False
            given_before = self.names[thread]
            place = (tag & TAGS) - 1
            names = (*given_before[:place], name, *given_before[place + 1 :])
            self.names = put(self.names, thread, names)
            self.n_registered = put(self.n_registered, thread, self.n_registered[thread] + 1)
            self.more_walked(1)
            if removal:
                self.to_remove = put(self.to_remove, thread, (removal, removed, name))
            self.put_new(Cursor(tag, self.place(value), bool(durable), name, version))
        self.count(version)
        return self.happened(thread)

    def may_add(self, thread: int, result: Answer, number: int, value: int, durable: int) -> bool:
        return self.to_remove[thread] is None

    def remove(self, thread: int, number: int, now: int = 0) -> Answer:
        tag = self.tag_of(self.name(thread, number))
        return answer(DONE, self.changes + 1, tag) if tag else answer(UNKNOWN)

    def may_remove(self, thread: int, result: Answer, number: int, now: int = 0) -> bool:
        version, tag, *_ = result[1]
        name = self.name(thread, number)
        if not self.right_tag(name, tag) or result != answer(
            DONE if tag else UNKNOWN, version, tag
        ):
            return False
        if not tag:
            return version == 0 and self.was_inside(thread)
        if self.find(tag) is None or not self.comes_next(version):
            return False
        return self.take_out(thread, version, tag, now)

    def take_out(self, thread: int, version: int, tag: int, now: int) -> bool:
        gone = self.find(tag)
        self.cursors = tuple([cursor for cursor in self.cursors if cursor is not gone])
        self.changed(gone, None)
        if any(self.walks):
            self.walks = tuple(
                [
                    walk and Walk(walk.sure - {tag}, walk.more + (tag in walk.sure))
                    for walk in self.walks
                ]
            )
        if not self.cursors:
            self.left(now)
        self.count(version)
        return self.happened(thread)

    def more_walked(self, count: int) -> None:
        """Walks under way may meet so many cursors more."""
        if any(self.walks):
            self.walks = tuple([walk and Walk(walk.sure, walk.more + count) for walk in self.walks])

    def left(self, now: int) -> None:
        self.left_at = frozenset({now})

    def update_stale(self, thread: int, value: int) -> Answer:
        return answer(UNKNOWN)

    def may_update_stale(self, thread: int, result: Answer, value: int) -> bool:
        return result == answer(UNKNOWN) and self.was_inside(thread)

    # Queries --------------------------------------------------------------------------------------

    def look(self, thread: int, number: int) -> Answer:
        return self.looked(self.tag_of(self.name(thread, number)))

    def looked(self, tag: int) -> Answer:
        cursor = self.find(tag)
        if cursor is None:
            return answer(UNKNOWN, 0, 0, tag)
        return answer(DONE, cursor.value, cursor.durable, tag)

    def may_look(self, thread: int, result: Answer, number: int) -> bool:
        tag = result[1][2]
        right = self.right_tag(self.name(thread, number), tag) and result == self.looked(tag)
        return right and self.was_inside(thread)

    def slowest_cursor(self, thread: int) -> Answer:
        first = self.first_of_slowest()
        if first is None:
            return answer(DONE, UNTRACKED)
        known = first.name[0] in (-1, thread)
        return answer(DONE, first.value, first.durable, first.tag if known else 0)

    def first_of_slowest(self) -> Cursor | None:
        """The cursor at the slowest position that was registered first, if there is one."""
        at = [cursor for cursor in self.cursors if cursor.value == self.lowest != UNTRACKED]
        return min(at, key=lambda cursor: cursor.born, default=None)

    def may_slowest_cursor(self, thread: int, result: Answer) -> bool:
        value, durable, tag, _ = result[1]
        first = self.first_of_slowest()
        own = first is not None and first.name[0] == thread
        # A cursor without a name the caller can read: another thread's, one whose number changed
        # hands, or one of a churn.
        nameless = not tag and (
            (first is not None and not own and (value, durable) == (first.value, first.durable))
            or (value != UNTRACKED and not durable and self.may_be_churned(value))
        )
        right = nameless or result == self.slowest_cursor(thread)
        return right and result == answer(DONE, value, durable, tag) and self.was_inside(thread)

    def may_be_churned(self, value: int) -> bool:
        """True if a cursor of a churn may be the slowest, at this value."""
        now = self.now()
        return value in now.churned and now.may_be_slowest(value)

    def slowest(self, thread: int) -> Answer:
        return answer(DONE, self.lowest)

    def may_slowest(self, thread: int, result: Answer) -> bool:
        value = result[1][0]
        if result != (DONE, (value, 0, 0, 0)):
            return False
        for number in self.seen(thread, self.since(thread)):
            if self.moment(number).may_be_slowest(value):
                return self.knows(thread, number)
        return False

    def size(self, thread: int) -> Answer:
        return answer(DONE, len(self.cursors), self.durable)

    def may_size(self, thread: int, result: Answer) -> bool:
        size, durable = result[1][:2]
        if result != (DONE, (size, durable, 0, 0)):
            return False
        known, at_size, at_durable, began, version = self.views[thread]
        at_size = self.size_seen(thread, began - 1 if self.fresh else at_size, size)
        at_durable = self.durable_seen(thread, self.last - 1 if self.fresh else at_durable, durable)
        if min(at_size, at_durable) < 0:
            return False
        self.views = put(self.views, thread, (known, at_size, at_durable, began, version))
        return True

    def size_seen(self, thread: int, since: int, size: int) -> int:
        """The first moment from which it may have been seen; -1 for none. It leaves most open for
        what follows."""
        for number in self.seen(thread, since):
            moment = self.moment(number)
            if 0 <= size - moment.size <= len(moment.churned):
                return number
        return -1

    def durable_seen(self, thread: int, since: int, durable: int) -> int:
        for number in self.seen(thread, since):
            if self.moment(number).durable == durable:
                return number
        return -1

    def version(self, thread: int) -> Answer:
        return answer(DONE, self.changes)

    def may_version(self, thread: int, result: Answer) -> bool:
        version = result[1][0]
        known, size, durable, began, latest = self.views[thread]
        if version < latest or result != (DONE, (version, 0, 0, 0)):
            return False
        for number in self.seen(thread, self.last - 1 if self.fresh else 0):
            moment = self.moment(number)
            if 0 <= version - moment.version <= moment.more:
                self.views = put(self.views, thread, (known, size, durable, began, version))
                return True
        return False

    def iterate(self, thread: int) -> Answer:
        return answer(DONE, len(self.cursors))

    def may_iterate(self, thread: int, result: Answer) -> bool:
        walk = self.walks[thread]
        self.walks = put(self.walks, thread, None)
        count = result[1][0]
        right = walk is not None and 0 <= count - len(walk.sure) <= walk.more
        return right and result == answer(DONE, count) and self.was_inside(thread)

    def inspect(self, thread: int) -> Answer:
        return answer(DONE)

    def may_inspect(self, thread: int, result: Answer) -> bool:
        return result == answer(DONE) and self.was_inside(thread)
