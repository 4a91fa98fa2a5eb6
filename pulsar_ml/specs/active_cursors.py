"""The active cursors: a rank is counted, nothing is put off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pulsar_ml.specs import Answer, answer
from pulsar_ml.specs.cursor_moments import UNTRACKED, Moment
from pulsar_ml.specs.cursor_world import DONE, REFUSED, UNKNOWN, CursorModel, put


class Churn(NamedTuple):
    """Its value and time, and whether the registry was emptied by others meanwhile."""

    value: int
    time: int
    emptied: bool = False


class Model(CursorModel):
    """The operations of the subject ``active_cursors``."""

    structure = "active_cursors"
    operations = CursorModel.operations | {"rank", "rank_at", "should_cache", "churn"}
    spans = CursorModel.spans | {"should_cache", "churn"}
    weak: ClassVar[Mapping[str, str]] = {
        **CursorModel.weak,
        "rank": "As slowest.",
        "rank_at": "As slowest.",
        "should_cache": "The answer is of the moment at which the size was read; the time when "
        "the last cursor left is not older than that.",
        "churn": "Cursors come and go, each change in a section of its own.",
    }

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.grace = settings["grace"]
        # Under way, by thread.
        self.churns: tuple[Churn | None, ...] = (None,) * threads
        self.may_change = 0  # changes that churns may still make
        self.must_change = 0  # changes made by others' churns, less those of churns that ended
        super().__init__(settings, threads)

    def canonical(self) -> object:
        return (
            self.moments,
            self.names,
            self.n_registered,
            self.to_remove,
            self.walks,
            self.churns,
            self.may_change,
            self.must_change,
            *self.views,
        )

    # Changes that are somewhere in between --------------------------------------------------------

    def now(self) -> Moment:
        return Moment(
            self.lowest,
            len(self.cursors),
            self.durable,
            self.changes,
            self.cursors,
            self.left_at,
            tuple([churn.value for churn in self.churns if churn]),
            self.may_change,
        )

    def churning(self) -> int:
        return self.may_change

    def comes_next(self, version: int) -> bool:
        return 0 <= version - self.changes - 1 <= self.may_change

    def count(self, version: int) -> None:
        between = version - self.changes - 1
        self.may_change -= between
        self.must_change += between
        self.changes = version

    def left(self, now: int) -> None:
        self.left_at = frozenset({now, *self.churned_at()})
        self.churns = tuple([churn and churn._replace(emptied=True) for churn in self.churns])

    def churned_at(self) -> list[int]:
        return [churn.time for churn in self.churns if churn]

    def churn(self, thread: int, count: int, value: int, now: int) -> Answer:
        return answer(DONE)

    def begin_churn(self, thread: int, count: int, value: int, now: int) -> bool:
        self.churns = put(self.churns, thread, Churn(self.place(value), now))
        self.may_change += 2 * count
        if not self.cursors:
            self.left_at |= {now}
        self.more_walked(count)
        return self.happened(thread)

    def may_churn(self, thread: int, result: Answer, count: int, value: int, now: int) -> bool:
        churn = self.churns[thread]
        if churn is None:
            return False
        self.churns = put(self.churns, thread, None)
        pairs = count
        if self.scarce and result[0] == REFUSED:
            pairs = result[1][0]  # cursors that came and went before memory ran out
            if not 0 <= pairs < count or result != answer(REFUSED, pairs):
                return False
        elif result != answer(DONE):
            return False
        # The changes that were not seen happened after all that were.
        unseen = max(0, 2 * pairs - self.must_change)
        self.must_change = max(0, self.must_change - 2 * pairs)
        self.may_change -= unseen + 2 * (count - pairs)
        self.changes += unseen
        if self.may_change < 0:
            return False
        if not self.cursors and pairs:
            others = frozenset(self.churned_at())
            self.left_at = self.left_at | {now} if churn.emptied else others | {now}
        return self.happened(thread)

    def begins(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer | None
    ) -> bool:
        right = super().begins(operation, arguments, thread=thread, result=result)
        return self.begin_churn(thread, *arguments) if operation == "churn" else right

    # Operations -----------------------------------------------------------------------------------

    def update(self, thread: int, number: int, value: int) -> Answer:
        tag = self.tag_of(self.name(thread, number))
        return answer(DONE, self.changes + 1, tag) if tag else answer(UNKNOWN)

    def may_update(self, thread: int, result: Answer, number: int, value: int) -> bool:
        version, tag, *_ = result[1]
        cursor = self.find(tag)
        if not self.right_tag(self.name(thread, number), tag):
            return False
        if cursor is None:
            return result == answer(UNKNOWN, 0, tag) and self.was_inside(thread)
        if result != answer(DONE, version, tag) or not self.comes_next(version):
            return False
        self.put(cursor._replace(value=self.place(value)), cursor)
        self.count(version)
        return self.happened(thread)

    def rank(self, thread: int, number: int) -> Answer:
        tag = self.tag_of(self.name(thread, number))
        at = self.find(tag)
        if at is None or at.value == UNTRACKED:
            return answer(DONE, 0, tag)
        return answer(
            DONE, sum(UNTRACKED < cursor.value <= at.value for cursor in self.cursors), tag
        )

    def may_rank(self, thread: int, result: Answer, number: int) -> bool:
        rank, tag = result[1][:2]
        if result != answer(DONE, rank, tag) or not self.right_tag(self.name(thread, number), tag):
            return False
        for number in self.seen(thread, self.since(thread)):
            if self.moment(number).rank(tag, rank):
                return self.knows(thread, number)
        return False

    def rank_at(self, thread: int, number: int, value: int) -> Answer:
        place = self.place(value)
        return answer(DONE, sum(UNTRACKED < cursor.value <= place for cursor in self.cursors))

    def may_rank_at(self, thread: int, result: Answer, number: int, value: int) -> bool:
        rank = result[1][0]
        if result != answer(DONE, rank):
            return False
        for moment in self.seen(thread, self.since(thread)):
            if self.moment(moment).counts(self.place(value), rank):
                return self.knows(thread, moment)
        return False

    def should_cache(self, thread: int, now: int) -> Answer:
        return answer(DONE, bool(self.cursors) or self.in_grace(self.left_at, now))

    def in_grace(self, left_at: frozenset[int], now: int) -> bool:
        return self.grace > 0 and any(now - time < self.grace for time in left_at)

    def may_should_cache(self, thread: int, result: Answer, now: int) -> bool:
        known, size, durable, began, version = self.views[thread]
        for number in self.seen(thread, began - 1 if self.fresh else size):
            moment = self.moment(number)
            if (result == answer(DONE, True) and (moment.size or moment.churned)) or (
                moment.size == 0 and self.may_be_idle(thread, result, now, number)
            ):
                self.views = put(self.views, thread, (known, number, durable, began, version))
                return True
        return False

    def may_be_idle(self, thread: int, result: Answer, now: int, since: int) -> bool:
        """True if the answer may be that for no cursor; the time is not older than the size."""
        times = [self.moment(number).left_at for number in self.seen(thread, since)]
        idle = [self.grace <= 0 or any(now - time >= self.grace for time in left) for left in times]
        kept = [self.in_grace(left, now) for left in times]
        return result == answer(DONE, any(kept)) or (result == answer(DONE, False) and any(idle))
