"""Storage reads under way, joined and split, and who waits for them.

Each call decides at one moment and then does the rest in moments of its own: a request starts its reads, an
answer completes the read that was picked, an expiry completes what is too old, one after the other. Whoever
completes the last part of a request tells it, by the end of its call. ``step`` does all of it at once.

Which of the outstanding reads an answer picked is in the answer and believed, as long as it was one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown

DONE, WAITING, NOTHING, FULL = range(4)

REQUESTS = 4  # of one thread
KEYS = 24  # entries of a ledger

# Kinds of answers of the storage that hold every entry that was asked for.
COMPLETE = (0, 1, 4)
WITHOUT_LAST, WITHOUT_FIRST, NOTHING_AT_ALL = 3, 5, 7

FINISH, TICK, OVERDUE = "finish", "tick", "overdue"


@dataclass(eq=False, slots=True)
class Request:
    first: int
    last: int
    parts: int = 0
    failed: bool = False
    tellers: set[int] = field(default_factory=set)  # threads under way that were done with a part of it
    known: bool = False  # its thread was inside after it was told, and must see that


@dataclass(eq=False, slots=True)
class Read:
    ledger: int
    first: int
    last: int
    since: int
    tag: int = 0  # whose request started it, and its number
    joinable: bool = True
    parts: list[tuple[Request, int, int]] = field(default_factory=list)


NO_READ = Read(0, 0, 0, 0)


COUNTS = (
    "read", "not_read", "matched", "matched_included", "missed", "miss_left", "miss_right", "miss_both",
)  # fmt: skip


@dataclass(eq=False, slots=True)
class Step:
    what: str
    read: Read = NO_READ
    request: Request | None = None  # of which all reads are started after this step
    number: int = 0  # the kind of the storage's answer, or the time


class Model:
    """The operations of the subject ``pending_reads``."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "read": "The request is split at one moment, and its reads are started after it, one by one. What is "
        "outstanding and under way is of one moment at the end. The requests told are between those that "
        "calls told which ended and those of which no part is left.",
        "answer": "As read: a read is picked at one moment and completed at a later one.",
        "collect": "WAITING may be about a request that was told, as long as nobody who told it has ended "
        "and "
        "its thread was inside since. The rest as read.",
        "expire": "As read: the time is told, and what is too old is failed one by one, the oldest first.",
        "invalidate": "As read.",
    }
    spans = frozenset(weak)
    foresees = True

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.immediate = bool(settings["immediate"])
        self.timeout = settings["timeout"]
        self.clock = 0
        self.now = 0  # the latest time that was told
        self.running: list[Read] = []
        self.outstanding: list[Read] = []  # and those that are about to be
        self.started = [0] * threads
        self.before = [0] * threads  # of those, started by calls that ended
        self.requests: list[list[Request | None]] = [[None] * REQUESTS for _ in range(threads)]
        self.steps: list[list[Step] | None] = [None] * threads  # of the calls under way: what is to do yet
        self.answered = [0, 0]  # delivered and failed
        self.being_told: list[Request] = []
        self.counts = dict.fromkeys(COUNTS, 0)

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "counts":
            return answer(DONE, *self.counted(arguments[0]))
        given = self.start(operation, arguments, thread, None)
        while self.steps[thread]:
            self.happens(thread)
        first = given[1][0] or len(self.outstanding)
        given = answer(given[0], first, len(self.running), *self.answered)
        self.concurrent(operation, arguments, thread=thread, given=given)
        return given

    def canonical(self) -> object:
        """Times count from now on; of a read that was completed nothing is left but a late answer."""
        slots = {
            id(request): (thread, place)
            for thread, mine in enumerate(self.requests)
            for place, request in enumerate(mine)
            if request is not None
        }
        running = {read.tag for read in self.running}
        return (
            tuple(
                (
                    read.ledger,
                    read.first,
                    read.last,
                    read.tag,
                    read.joinable,
                    self.timeout and self.now - read.since,
                )
                + tuple((slots[id(request)], first, last) for request, first, last in read.parts)
                for read in (
                    self.running if self.timeout else sorted(self.running, key=lambda read: read.tag)
                )
            ),
            tuple(sorted((read.tag, read.tag in running) for read in self.outstanding)),
            tuple(
                None
                if steps is None
                else tuple(
                    (
                        step.what,
                        step.read.tag if step.read.tag in running else 0,
                        step.request and slots[id(step.request)],
                        step.number - self.now if step.what == TICK else step.number,
                    )
                    for step in steps
                )
                for steps in self.steps
            ),
            tuple(
                request and (request.parts, request.failed, tuple(sorted(request.tellers)), request.known)
                for mine in self.requests
                for request in mine
            ),
            # Those that were collected already.
            tuple(
                sorted(
                    (request.failed, *sorted(request.tellers))
                    for request in self.being_told
                    if id(request) not in slots
                )
            ),
            tuple(self.answered),
            tuple(self.started),
            tuple(self.before),
            self.timeout and self.clock - self.now,
            tuple(self.counts.values()),
        )

    # The moments of a call --------------------------------------------------------------------------

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int, given: Answer | None) -> bool:
        status, words = self.start(operation, arguments, thread, given)
        return given is None or (status == given[0] and words[0] in (0, given[1][0]))

    def start(self, operation: str, arguments: Sequence[int], thread: int, given: Answer | None) -> Answer:
        """The status and the read that was picked, decided now; of several that may be, what is given."""
        steps = self.steps[thread] = []
        if operation == "read":
            return answer(self.read(thread, *arguments))
        if operation == "answer":
            return self.answer(thread, arguments[0], arguments[1], given)
        if operation == "collect":
            return answer(self.collect(thread, arguments[0], given and given[0]))
        if operation == "expire":
            self.clock += arguments[0]
            if self.timeout:
                steps += [Step(TICK, number=self.clock), Step(OVERDUE)]
        elif operation == "invalidate":
            for read in self.running:
                read.joinable &= read.ledger != arguments[0]
        else:
            raise unknown("pending_reads", operation)
        return answer(DONE)

    def hidden(self) -> list[int]:
        return [thread for thread, steps in enumerate(self.steps) if steps]

    def happens(self, thread: int) -> None:
        """The next moment of the thread's call."""
        steps = self.steps[thread]
        assert steps
        step = steps.pop(0)
        if step.what == TICK:
            self.now = max(self.now, step.number)
        elif step.what == OVERDUE:
            if self.running and self.now - self.running[0].since >= self.timeout:
                self.complete(self.running[0], NOTHING_AT_ALL, thread)
                steps.append(step)
        else:
            self.complete(step.read, step.number, thread)
        if step.request is not None:
            self.part_done(step.request, thread)

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int, given: Answer) -> bool:
        """The look at the end of a call."""
        if self.steps[thread] is None or self.steps[thread]:
            return False
        self.steps[thread] = None
        self.before[thread] = self.started[thread]
        first, running, *told = given[1]
        if operation != "answer" or given[0] != DONE:
            least = sum(not self.about_to_start(read) for read in self.outstanding)
            if not least <= first <= len(self.outstanding):
                return False
        for request in self.being_told:
            request.tellers.discard(thread)
        left = [request.failed for request in self.being_told if request.tellers and not request.parts]
        right = running == len(self.running) and all(
            most - left.count(failed) <= seen <= most
            for seen, most, failed in zip(told, self.answered, (False, True), strict=True)
        )
        self.being_told = [request for request in self.being_told if request.tellers]
        for own in self.requests[thread]:
            if own is not None and not own.parts and not own.tellers:
                own.known = True
        return right

    def counted(self, which: int) -> list[int]:
        return [self.counts[name] for name in (COUNTS[:4] if which == 0 else COUNTS[4:])]

    # Operations --------------------------------------------------------------------------------------

    def read(self, thread: int, ledger: int, first: int, entries: int) -> int:
        mine = self.requests[thread]
        if None not in mine:
            return FULL
        request = Request(first, min(first + entries, KEYS) - 1)
        mine[mine.index(None)] = request
        made = self.split(request, ledger)
        # Its own part keeps a request open while its reads are started.
        request.parts += 1
        steps: list[Step] = []
        self.steps[thread] = steps
        for read in reversed(made):
            self.started[thread] += 1
            read.tag = thread << 32 | self.started[thread]
            if self.immediate and read.first % 4 == 0:
                steps.append(Step(FINISH, read))
            else:
                self.outstanding.append(read)
        if steps:
            steps[-1].request = request
        else:
            self.part_done(request, thread)
        return DONE

    def split(self, request: Request, ledger: int) -> list[Read]:
        """Joins the request to what is under way; the new reads between."""
        made = []
        first, last = request.first, request.last
        while first <= last:
            overlapping = [
                read
                for read in self.running
                if read.joinable and read.ledger == ledger and read.first <= last and read.last >= first
            ]
            joined = min(overlapping, key=lambda read: read.first, default=None)
            if joined is not None:
                self.count(joined, first, last)
            else:
                self.counts["missed"] += last - first + 1
            if joined is None or joined.first > first:
                end = last if joined is None else joined.first - 1
                read = Read(ledger, first, end, self.now)
                self.counts["read"] += end - first + 1
                self.running.append(read)
                made.append(read)
                self.attach(request, read, first, end)
                first = end + 1
            if joined is not None:
                end = min(joined.last, last)
                self.attach(request, joined, first, end)
                first = end + 1
        return made

    def attach(self, request: Request, read: Read, first: int, last: int) -> None:
        read.parts.append((request, first, last))
        request.parts += 1

    def count(self, read: Read, first: int, last: int) -> None:
        counts = self.counts
        matched = min(read.last, last) - max(read.first, first) + 1
        counts["not_read"] += matched
        if (read.first, read.last) == (first, last):
            counts["matched"] += matched
        elif read.first <= first and read.last >= last:
            counts["matched_included"] += matched
        elif read.first <= first:
            counts["miss_right"] += matched
        elif read.last >= last:
            counts["miss_left"] += matched
        else:
            counts["miss_both"] += matched

    def about_to_start(self, read: Read) -> bool:
        """Whether the call that starts it is still under way."""
        return (
            self.steps[read.tag >> 32] is not None
            and read.tag & ((1 << 32) - 1) > self.before[read.tag >> 32]
        )

    def answer(self, thread: int, which: int, kind: int, given: Answer | None) -> Answer:
        reads = self.outstanding
        if given is None:
            if not reads:
                return answer(NOTHING)
            index = (which >> 1) % len(reads)
            read = reads[-1 - index if which & 1 else index]
        elif given[0] == NOTHING:
            return answer(NOTHING if all(map(self.about_to_start, reads)) else DONE)
        else:
            found = [read for read in reads if read.tag == given[1][0]]
            if not found:
                return answer(NOTHING)
            read = found[0]
        reads.remove(read)
        self.steps[thread] = [Step(FINISH, read, number=kind)]
        return answer(DONE, read.tag)

    def complete(self, read: Read, kind: int, thread: int) -> None:
        """What the storage answers to a read; None for one that was failed before."""
        if read not in self.running:
            return
        self.running.remove(read)
        there = self.answered_positions(read, kind)
        for request, first, last in read.parts:
            if not there.issuperset(range(first, last + 1)):
                request.failed = True
            self.part_done(request, thread)

    def answered_positions(self, read: Read, kind: int) -> set[int]:
        if kind in COMPLETE:
            return set(range(read.first, read.last + 1))
        if kind == WITHOUT_LAST:
            return set(range(read.first, read.last))
        if kind == WITHOUT_FIRST:
            return set(range(read.first + 1, read.last + 1))
        return set()

    def part_done(self, request: Request, thread: int) -> None:
        request.parts -= 1
        if not request.tellers:
            self.being_told.append(request)
        request.tellers.add(thread)
        if request.parts == 0:
            self.answered[request.failed] += 1

    def collect(self, thread: int, which: int, given: int | None) -> int:
        request = self.requests[thread][which]
        if request is None:
            return NOTHING
        if request.parts:
            return WAITING
        if given == WAITING and not request.known:
            return DONE if self.fresh and request.tellers <= {thread} else WAITING
        self.requests[thread][which] = None
        return DONE
