"""Storage reads under way, joined and split, one call after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_ml.specs import Answer, answer, unknown

DONE, WAITING, NOTHING, FULL = range(4)

REQUESTS = 4  # of one thread
KEYS = 24  # entries of a ledger

# Kinds of answers of the storage that hold every entry that was asked for.
COMPLETE = (0, 1, 4)
WITHOUT_LAST, WITHOUT_FIRST, NOTHING_AT_ALL = 3, 5, 7


@dataclass(eq=False, slots=True)
class Request:
    first: int
    last: int
    parts: int = 0
    failed: bool = False
    answered: bool = False


@dataclass(eq=False, slots=True)
class Read:
    ledger: int
    first: int
    last: int
    since: int
    joinable: bool = True
    parts: list[tuple[Request, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    read: int = 0
    not_read: int = 0
    matched: int = 0
    matched_included: int = 0
    missed: int = 0
    miss_left: int = 0
    miss_right: int = 0
    miss_both: int = 0


class Model:
    """The operations of the subject ``pending_reads``."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.immediate = bool(settings["immediate"])
        self.timeout = settings["timeout"]
        self.clock = 0
        self.running: list[Read] = []
        self.outstanding: list[Read] = []
        self.requests: list[list[Request | None]] = [[None] * REQUESTS for _ in range(threads)]
        self.delivered = self.failed = 0
        self.counts = Counts()

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        if operation == "counts":
            return answer(DONE, *self.counted(arguments[0]))
        status = DONE
        if operation == "read":
            status = self.read(thread, *arguments)
        elif operation == "answer":
            status = self.answer(arguments[0], arguments[1])
        elif operation == "collect":
            status = self.collect(thread, arguments[0])
        elif operation == "expire":
            self.expire(arguments[0])
        elif operation == "invalidate":
            for read in self.running:
                read.joinable &= read.ledger != arguments[0]
        else:
            raise unknown("pending_reads", operation)
        return answer(status, len(self.outstanding), len(self.running), self.delivered, self.failed)

    def counted(self, which: int) -> tuple[int, int, int, int]:
        counts = self.counts
        if which == 0:
            return counts.read, counts.not_read, counts.matched, counts.matched_included
        return counts.missed, counts.miss_left, counts.miss_right, counts.miss_both

    def read(self, thread: int, ledger: int, first: int, entries: int) -> int:
        mine = self.requests[thread]
        if None not in mine:
            return FULL
        request = Request(first, min(first + entries, KEYS) - 1)
        mine[mine.index(None)] = request
        made = self.split(request, ledger)
        # Its own count keeps a request open while its reads are started.
        request.parts += 1
        for read in reversed(made):
            if self.immediate and read.first % 4 == 0:
                self.complete(read, 0)
            else:
                self.outstanding.append(read)
        self.part_done(request)
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
                self.counts.missed += last - first + 1
            if joined is None or joined.first > first:
                end = last if joined is None else joined.first - 1
                read = Read(ledger, first, end, self.clock)
                self.counts.read += end - first + 1
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
        counts.not_read += matched
        if (read.first, read.last) == (first, last):
            counts.matched += matched
        elif read.first <= first and read.last >= last:
            counts.matched_included += matched
        elif read.first <= first:
            counts.miss_right += matched
        elif read.last >= last:
            counts.miss_left += matched
        else:
            counts.miss_both += matched

    def answer(self, which: int, kind: int) -> int:
        if not self.outstanding:
            return NOTHING
        index = (which >> 1) % len(self.outstanding)
        read = self.outstanding.pop(-1 - index if which & 1 else index)
        self.complete(read, kind)
        return DONE

    def complete(self, read: Read, kind: int) -> None:
        """What the storage answers to a read; None for one that was failed before."""
        if read not in self.running:
            return
        self.running.remove(read)
        there = self.answered_positions(read, kind)
        for request, first, last in read.parts:
            if not there.issuperset(range(first, last + 1)):
                request.failed = True
            self.part_done(request)

    def answered_positions(self, read: Read, kind: int) -> set[int]:
        if kind in COMPLETE:
            return set(range(read.first, read.last + 1))
        if kind == WITHOUT_LAST:
            return set(range(read.first, read.last))
        if kind == WITHOUT_FIRST:
            return set(range(read.first + 1, read.last + 1))
        return set()

    def part_done(self, request: Request) -> None:
        request.parts -= 1
        if request.parts == 0:
            request.answered = True
            if request.failed:
                self.failed += 1
            else:
                self.delivered += 1

    def collect(self, thread: int, which: int) -> int:
        request = self.requests[thread][which]
        if request is None:
            return NOTHING
        if not request.answered:
            return WAITING
        self.requests[thread][which] = None
        return DONE

    def expire(self, ticks: int) -> None:
        self.clock += ticks
        if self.timeout > 0:
            for read in [read for read in self.running if self.clock - read.since >= self.timeout]:
                self.complete(read, NOTHING_AT_ALL)
