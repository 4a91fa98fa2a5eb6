"""Storage reads under way, joined and split, and the requests that wait for them.

Each call decides at one moment and then does the rest in moments of its own: a request starts its
reads, an answer completes the read that was picked, an expiry completes what is too old, one after
the other. Whoever completes the last part of a request tells it, by the end of its call. ``step``
does all of it at once.

Which of the outstanding reads an answer picked is in the answer and believed, as long as it was
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pulsar_ml.specs import Answer, answer, unknown

DONE, WAITING, NOTHING, FULL, NO_MEMORY = range(5)

REQUESTS = 4  # of one thread
KEYS = 24  # entries of a ledger

# Kinds of answers of the storage that have every entry of the read.
COMPLETE = (0, 1, 4)
WITHOUT_LAST, WITHOUT_FIRST, NOTHING_AT_ALL = 3, 5, 7

FINISH, TICK, OVERDUE = "finish", "tick", "overdue"

READ, NOT_READ, MATCHED, MATCHED_INCLUDED, MISSED, MISS_LEFT, MISS_RIGHT, MISS_BOTH = range(8)


class Request(NamedTuple):
    """Told by threads under way that were done with a part of it, a bit for each; ``known``: its
    thread was inside after the answer, and must see that."""

    parts: int = 0
    failed: bool = False
    tellers: int = 0
    known: bool = False


class RequestPart(NamedTuple):
    request: int
    first: int
    last: int


class Read(NamedTuple):
    """A read of a ledger; ``tag`` is its number, and says whose request started it."""

    tag: int
    ledger: int
    first: int
    last: int
    since: int  # from now on
    joinable: bool = True
    parts: tuple[RequestPart, ...] = ()


class Step(NamedTuple):
    what: str
    tag: int = 0  # of the read
    request: int = -1  # of which all reads are started after this step
    number: int = 0  # the kind of the storage's answer, or the time


FREE: Request | None = None
IDLE: tuple[Step, ...] | None = None


class Model:
    """The operations of the subject ``pending_reads``."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "read": "The request is split at one moment, and its reads are started after it, one by "
        "one. Outstanding reads and reads under way are of one moment at the end. The answers "
        "counted are at least those of calls that ended, and at most the requests that have no "
        "part left.",
        "answer": "As read: a read is picked at one moment and completed at a later one.",
        "collect": "WAITING may be answered for a request that has its answer, until the call "
        "that gave the answer has ended and the request's thread was inside since. The rest as "
        "read.",
        "expire": "As read: the time is set, and reads that are too old fail one by one, the "
        "oldest first.",
        "invalidate": "As read.",
    }
    spans = frozenset(weak)
    foresees = True

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.immediate = bool(settings["immediate"])
        self.timeout = settings["timeout"]
        self.clock = 0
        self.now = 0  # the latest time that a call named
        self.running: tuple[Read, ...] = ()
        self.outstanding: tuple[int, ...] = ()  # tags of those that are, or are about to be
        self.started = (0,) * threads
        self.before = (0,) * threads  # of those, started by calls that ended
        self.requests = (FREE,) * (REQUESTS * threads)  # by number: thread * REQUESTS + place
        self.collected: tuple[Request, ...] = ()  # those whose answer is still on its way
        self.steps = (IDLE,) * threads  # of the calls under way: what is to do yet
        self.answered = (0, 0)  # delivered and failed
        self.counts: tuple[int, ...] = (0,) * 8

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "counts":
            return answer(DONE, *(self.counts[:4] if arguments[0] == 0 else self.counts[4:]))
        result = self.start(operation, arguments, thread, None)
        while self.steps[thread]:
            self.happens(thread)
        first = result[1][0] or len(self.outstanding)
        result = answer(result[0], first, len(self.running), *self.answered)
        self.concurrent(operation, arguments, thread=thread, result=result)
        return result

    def canonical(self) -> object:
        """Times count from now on; all that a completed read leaves is a late answer."""
        running, steps = self.running, self.steps
        if not self.timeout and len(running) > 1:
            running = tuple(sorted(running))
        if any(steps):
            tags = [0, *[read.tag for read in running]]
            steps = tuple([under_way and self.from_now(under_way, tags) for under_way in steps])
        outstanding = self.outstanding
        outstanding = self.outstanding
        return (
            running,
            outstanding if len(outstanding) < 2 else tuple(sorted(outstanding)),
            steps,
            self.requests,
            self.collected if len(self.collected) < 2 else tuple(sorted(self.collected)),
            self.answered,
            self.started,
            self.before,
            self.timeout and self.clock - self.now,
            self.counts,
        )

    def from_now(self, steps: tuple[Step, ...], tags: Sequence[int]) -> tuple[Step, ...]:
        """Steps of reads that are running, with times from now on; other reads are all one."""
        for what, tag, _, number in steps:
            if tag not in tags or (what == TICK and number):
                break
        else:
            return steps
        return tuple(
            [
                Step(
                    what,
                    tag if tag in tags else 0,
                    request,
                    number - self.now if what == TICK else number,
                )
                for what, tag, request, number in steps
            ]
        )

    # The moments of a call ------------------------------------------------------------------------

    def put_steps(self, thread: int, steps: tuple[Step, ...] | None) -> None:
        self.steps = (*self.steps[:thread], steps, *self.steps[thread + 1 :])

    def put(self, number: int, request: Request | None) -> None:
        self.requests = (*self.requests[:number], request, *self.requests[number + 1 :])

    def request(self, number: int) -> Request:
        request = self.requests[number]
        assert request is not None
        return request

    def begins(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer | None
    ) -> bool:
        status, words = self.start(operation, arguments, thread, result)
        return result is None or (status == result[0] and words[0] in (0, result[1][0]))

    def start(
        self, operation: str, arguments: Sequence[int], thread: int, result: Answer | None
    ) -> Answer:
        """The status and the read that was picked, decided now; of several that may be, what is
        given.
        """
        self.put_steps(thread, ())
        if operation == "read":
            mine = thread * REQUESTS
            if self.scarce and result is not None and result[0] == NO_MEMORY:
                # Nothing changed: no part of the request is left, and no read was started.
                return answer(NO_MEMORY if FREE in self.requests[mine : mine + REQUESTS] else FULL)
            return answer(self.read(thread, *arguments))
        if operation == "answer":
            return self.answer(thread, arguments[0], arguments[1], result)
        if operation == "collect":
            return answer(self.collect(thread, arguments[0], result and result[0]))
        if operation == "expire":
            self.clock += arguments[0]
            if self.timeout:
                self.put_steps(thread, (Step(TICK, number=self.clock), Step(OVERDUE)))
        elif operation == "invalidate":
            self.running = tuple(
                [
                    read._replace(joinable=False) if read.ledger == arguments[0] else read
                    for read in self.running
                ]
            )
        else:
            raise unknown("pending_reads", operation)
        return answer(DONE)

    def hidden(self) -> list[int]:
        return [thread for thread, steps in enumerate(self.steps) if steps]

    def happens(self, thread: int) -> None:
        """The next moment of the thread's call."""
        steps = self.steps[thread]
        assert steps
        step = steps[0]
        self.put_steps(thread, steps[1:])
        if step.what == TICK:
            if (later := step.number - self.now) > 0:
                self.now = step.number
                self.running = tuple(
                    [read._replace(since=read.since - later) for read in self.running]
                )
        elif step.what == OVERDUE:
            if self.running and -self.running[0].since >= self.timeout:
                self.complete(self.running[0].tag, NOTHING_AT_ALL, thread)
                self.put_steps(thread, steps)
        else:
            self.complete(step.tag, step.number, thread)
        if step.request >= 0:
            self.part_done(step.request, False, thread)

    def fits(self, operation: str, *, thread: int, result: Answer) -> bool:
        """True if a call may see these values at its end."""
        if self.steps[thread] is None or self.steps[thread] or result[1][1] != len(self.running):
            return False
        # The answered requests that another call has still to inform.
        others = ~(1 << thread)
        delivered = failed = 0
        for request in self.requests:
            if request is not None and request.tellers & others and not request.parts:
                if request.failed:
                    failed += 1
                else:
                    delivered += 1
        for request in self.collected:
            if request.tellers & others and not request.parts:
                if request.failed:
                    failed += 1
                else:
                    delivered += 1
        seen, most = result[1], self.answered
        if self.scarce:
            # A read fails its requests when there is no memory for what they get.
            answers = seen[2] + seen[3]
            if not (
                sum(most) - delivered - failed <= answers <= sum(most)
                and seen[2] <= most[0]
                and seen[3] >= most[1] - failed
            ):
                return False
        elif not (
            most[0] - delivered <= seen[2] <= most[0] and most[1] - failed <= seen[3] <= most[1]
        ):
            return False
        if operation == "answer" and result[0] == DONE:
            return True
        count = len(self.outstanding)
        if seen[0] >= count:
            return seen[0] == count
        coming = [
            tag for tag in self.outstanding if tag >> 32 != thread and self.about_to_start(tag)
        ]
        return count - len(coming) <= seen[0]

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer
    ) -> bool:
        """The look at the end of a call."""
        if not self.fits(operation, thread=thread, result=result):
            return False
        self.put_steps(thread, None)
        self.before = (*self.before[:thread], self.started[thread], *self.before[thread + 1 :])
        others = ~(1 << thread)
        for number, request in enumerate(self.requests):
            if request is None or request.known:
                continue
            tellers = request.tellers & others
            known = number // REQUESTS == thread and not request.parts and not tellers
            if known or tellers != request.tellers:
                self.put(number, Request(request.parts, request.failed, tellers, known))
        if self.collected:
            rest = [
                request._replace(tellers=request.tellers & others) for request in self.collected
            ]
            self.collected = tuple([request for request in rest if request.tellers])
        return True

    # Operations -----------------------------------------------------------------------------------

    def read(self, thread: int, ledger: int, first: int, entries: int) -> int:
        mine = thread * REQUESTS
        if None not in self.requests[mine : mine + REQUESTS]:
            return FULL
        number = self.requests.index(None, mine)
        # Its own part keeps a request open while its reads are started.
        self.put(number, Request(1))
        steps: list[Step] = []
        for tag, start in self.split(thread, number, ledger, first, min(first + entries, KEYS) - 1):
            if self.immediate and start % 4 == 0:
                steps.append(Step(FINISH, tag))
            else:
                self.outstanding += (tag,)
        if steps:
            steps[-1] = steps[-1]._replace(request=number)
            self.put_steps(thread, tuple(steps))
        else:
            self.part_done(number, False, thread)
        return DONE

    def split(
        self, thread: int, request: int, ledger: int, first: int, last: int
    ) -> list[tuple[int, int]]:
        """Joins the request to what is under way. Tag and beginning of the new reads between, the
        last one
        first: so they are started."""
        gaps: list[tuple[int, int]] = []
        parts = 0
        while first <= last:
            overlapping = [
                read
                for read in self.running
                if read.joinable
                and read.ledger == ledger
                and read.first <= last
                and read.last >= first
            ]
            joined = min(overlapping, key=lambda read: read.first, default=None)
            if joined is not None:
                self.count_joined(joined, first, last)
            else:
                self.count(MISSED, last - first + 1)
            if joined is None or joined.first > first:
                end = last if joined is None else joined.first - 1
                self.count(READ, end - first + 1)
                gaps.append((first, end))
                first = end + 1
                parts += 1
            if joined is not None:
                end = min(joined.last, last)
                self.join(joined, RequestPart(request, first, end))
                first = end + 1
                parts += 1
        self.put(request, Request(1 + parts))
        latest = self.started[thread] + len(gaps)
        self.started = (*self.started[:thread], latest, *self.started[thread + 1 :])
        tags = [thread << 32 | latest - place for place in range(len(gaps))]
        self.running += tuple(
            [
                Read(tag, ledger, start, end, 0, True, (RequestPart(request, start, end),))
                for tag, (start, end) in zip(tags, gaps, strict=True)
            ]
        )
        return [
            (tag, start) for tag, (start, _) in zip(reversed(tags), reversed(gaps), strict=True)
        ]

    def join(self, joined: Read, part: RequestPart) -> None:
        self.running = tuple(
            [
                read._replace(parts=(*read.parts, part)) if read is joined else read
                for read in self.running
            ]
        )

    def count(self, which: int, entries: int) -> None:
        self.counts = (
            *self.counts[:which],
            self.counts[which] + entries,
            *self.counts[which + 1 :],
        )

    def count_joined(self, read: Read, first: int, last: int) -> None:
        matched = min(read.last, last) - max(read.first, first) + 1
        self.count(NOT_READ, matched)
        if (read.first, read.last) == (first, last):
            self.count(MATCHED, matched)
        elif read.first <= first and read.last >= last:
            self.count(MATCHED_INCLUDED, matched)
        elif read.first <= first:
            self.count(MISS_RIGHT, matched)
        elif read.last >= last:
            self.count(MISS_LEFT, matched)
        else:
            self.count(MISS_BOTH, matched)

    def about_to_start(self, tag: int) -> bool:
        """True if the call that starts the read is still under way."""
        thread = tag >> 32
        return self.steps[thread] is not None and tag & ((1 << 32) - 1) > self.before[thread]

    def answer(self, thread: int, which: int, kind: int, result: Answer | None) -> Answer:
        tags = self.outstanding
        if result is None:
            if not tags:
                return answer(NOTHING)
            index = (which >> 1) % len(tags)
            tag = tags[-1 - index if which & 1 else index]
        elif result[0] == NOTHING:
            return answer(NOTHING if all(map(self.about_to_start, tags)) else DONE)
        else:
            tag = result[1][0]
            if tag not in tags:
                return answer(NOTHING)
        self.outstanding = tuple([other for other in tags if other != tag])
        self.put_steps(thread, (Step(FINISH, tag, number=kind),))
        return answer(DONE, tag)

    def complete(self, tag: int, kind: int, thread: int) -> None:
        """Applies the storage's answer to a read; nothing if the read failed before."""
        read = next((read for read in self.running if read.tag == tag), None)
        if read is None:
            return
        self.running = tuple([other for other in self.running if other is not read])
        first = read.first + (kind == WITHOUT_FIRST)
        last = read.last - (kind == WITHOUT_LAST)
        whole = kind in (*COMPLETE, WITHOUT_FIRST, WITHOUT_LAST)
        for part in read.parts:
            self.part_done(
                part.request, not (whole and first <= part.first and part.last <= last), thread
            )

    def part_done(self, number: int, failed: bool, thread: int) -> None:
        request = self.request(number)
        failed = failed or request.failed
        parts = request.parts - 1
        self.put(number, Request(parts, failed, request.tellers | 1 << thread, request.known))
        if parts == 0:
            delivered, failures = self.answered
            self.answered = (delivered + (not failed), failures + failed)

    def collect(self, thread: int, which: int, result: int | None) -> int:
        number = thread * REQUESTS + which
        request = self.requests[number]
        if request is None:
            return NOTHING
        if request.parts:
            return WAITING
        if result == WAITING and not request.known:
            return DONE if self.fresh and not request.tellers & ~(1 << thread) else WAITING
        self.put(number, None)
        if request.tellers:
            self.collected += (request,)
        return DONE
