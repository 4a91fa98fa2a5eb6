"""Permits of reads under way: who has how many, who waits for some, and who is being told.

Each call decides at one moment and then does the rest in moments of its own: it tells the requests that it
took off the queue, gives back what these decline, which may take off others, and looks at the limiter at its
end. ``step`` does all of it at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import HANDS, Hands

GRANTED, WAITING, REFUSED, NOTHING, FULL = range(5)

REQUESTS = 4  # of one thread

# What a request's thread knows of the answer: nothing was decided; somebody tells it now; it was told; the
# thread was in the limiter since and must see that.
OPEN, TELLING, TOLD, KNOWN = range(4)

TICK, SETTLE, DUE, GIVE_BACK = "tick", "settle", "due", "give back"


@dataclass(eq=False, slots=True)
class Request:
    permits: int
    declines: bool
    since: int = 0
    state: str = "held"
    stage: int = KNOWN
    teller: int = -1


@dataclass(eq=False, slots=True)
class Share:
    permits: int
    copies: int


@dataclass(eq=False, slots=True)
class Owner:
    requests: list[Request | None] = field(default_factory=lambda: [None] * REQUESTS)


@dataclass(slots=True)
class Call:
    """A call under way: what it has to do yet, and what it found out."""

    to_do: list[str] = field(default_factory=list)
    owed: int = 0  # permits that it has and gives back next
    telling: int = 0  # requests that it took off the queue
    now: int = 0
    due: int = 0


class Model:
    """The operations of the subject ``inflight_limiter``."""

    fresh = False
    weak: ClassVar[Mapping[str, str]] = {
        "acquire": "The status is of one moment; what remains and waits, of a moment at the end, when "
        "whatever "
        "this call took off the queue was told and what was declined came back. In between permits may be "
        "with neither. The requests told are between those of calls that ended and those taken off.",
        "release": "As acquire. WAITING may be about a request that was granted or failed, as long as nobody "
        "who told it has ended and its thread was in the limiter since.",
        "share": "As release.",
        "pass_on": "As acquire.",
        "drop": "As acquire: the last copy goes at one moment, its permits come back at a later one.",
        "expire": "As acquire. The time is told, the requests fail and the next one is looked at in three "
        "moments.",
    }
    spans = frozenset(weak)
    foresees = True

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.maximum = settings["maximum"]
        self.timeout = settings["timeout"]
        self.queue_size = settings["queue_size"]
        self.remaining = self.maximum
        self.clock = 0
        self.now = 0  # the latest time that the limiter was told
        self.taken = 0  # requests that were taken off the queue
        self.told = 0  # those of them that were told by calls that ended
        self.queue: deque[Request] = deque()
        self.owners = [Owner() for _ in range(threads)]
        self.copies: Hands[Share] = Hands(threads)
        self.calls: list[Call | None] = [None] * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status = self.start(operation, arguments, thread, None)
        call = self.calls[thread]
        while call is not None and call.to_do:
            self.happens(thread)
        given = answer(status, self.remaining, len(self.queue), self.taken, call.due if call else 0)
        self.concurrent(operation, arguments, thread=thread, given=given)
        return given

    # The moments of a call --------------------------------------------------------------------------

    def begins(self, operation: str, arguments: Sequence[int], *, thread: int, given: Answer | None) -> bool:
        status = self.start(operation, arguments, thread, None if given is None else given[0])
        return given is None or status == given[0]

    def start(self, operation: str, arguments: Sequence[int], thread: int, given: int | None) -> int:
        """The status, decided now; of several that may be, the one that is given."""
        self.calls[thread] = Call()
        if operation == "acquire":
            return self.acquire(thread, arguments[0], bool(arguments[1]))
        if operation == "release":
            return self.release(thread, arguments[0], given)
        if operation == "share":
            return self.share(thread, arguments[0], arguments[1], given)
        if operation == "pass_on":
            return GRANTED if self.copies.exchange(thread, arguments[0]) else NOTHING
        if operation == "drop":
            return self.drop(thread, arguments[0])
        if operation == "expire":
            self.clock += arguments[0]
            self.calls[thread] = Call([TICK, SETTLE, DUE], now=self.clock)
            return GRANTED
        raise unknown("inflight_limiter", operation)

    def hidden(self) -> list[int]:
        return [thread for thread, call in enumerate(self.calls) if call is not None and call.to_do]

    def happens(self, thread: int) -> None:
        """The next moment of the thread's call."""
        call = self.calls[thread]
        assert call is not None
        step = call.to_do.pop(0)
        if step == TICK:
            self.now = max(self.now, call.now)
        elif step == SETTLE:
            self.settle(thread, call)
        elif step == GIVE_BACK:
            self.remaining += call.owed
            call.owed = 0
            self.settle(thread, call)
        else:
            first = self.queue[0] if self.queue else None
            call.due = -1 if first is None else self.timeout - (self.now - first.since)

    def concurrent(self, operation: str, arguments: Sequence[int], *, thread: int, given: Answer) -> bool:
        """The look at the end of a call."""
        call = self.calls[thread]
        if call is None or call.to_do:
            return False
        self.calls[thread] = None
        remaining, waiting, told, due = given[1]
        right = self.told + call.telling <= told <= self.taken
        right = right and (remaining, waiting, due) == (self.remaining, len(self.queue), call.due)
        self.told += call.telling
        for owner in self.owners:
            for request in owner.requests:
                if request is not None and request.stage == TELLING and request.teller == thread:
                    request.stage, request.teller = TOLD, -1
        for request in self.owners[thread].requests:
            if request is not None and request.stage == TOLD:
                request.stage = KNOWN
        return right

    # Operations --------------------------------------------------------------------------------------

    def acquire(self, thread: int, permits: int, declines: bool) -> int:
        requests = self.owners[thread].requests
        if None not in requests:
            return FULL
        call = self.calls[thread]
        assert call is not None
        if self.maximum > 0:
            self.settle(thread, call)
        request = Request(permits, declines, self.now)
        if self.maximum == 0:
            request.permits = 0
        elif permits <= self.remaining:
            self.remaining -= permits
        elif len(self.queue) < self.queue_size:
            request.state, request.stage = "waits", OPEN
            self.queue.append(request)
        else:
            return REFUSED
        requests[requests.index(None)] = request
        return WAITING if request.state == "waits" else GRANTED

    def seems_to_wait(self, request: Request, thread: int, given: int | None) -> bool:
        """Whether the request's thread is not told yet; where it may or may not be, as the answer says."""
        if request.stage == OPEN:
            return True
        if request.stage == KNOWN or given != WAITING:
            return False
        return not self.fresh if request.stage == TOLD else request.teller != thread

    def release(self, thread: int, which: int, given: int | None) -> int:
        request = self.owners[thread].requests[which]
        if request is None:
            return NOTHING
        if self.seems_to_wait(request, thread, given):
            return WAITING
        self.owners[thread].requests[which] = None
        if request.state == "held":
            self.owe(thread, request.permits)
        return GRANTED

    def share(self, thread: int, which: int, copies: int, given: int | None) -> int:
        request = self.owners[thread].requests[which]
        if request is not None and self.seems_to_wait(request, thread, given):
            return WAITING
        if request is None or request.state != "held":
            return NOTHING
        if len(self.copies.threads[thread]) + copies > HANDS:
            return FULL
        self.copies.threads[thread] += [Share(request.permits, copies)] * copies
        self.owners[thread].requests[which] = None
        return GRANTED

    def drop(self, thread: int, which: int) -> int:
        if not self.copies.threads[thread]:
            return NOTHING
        share = self.copies.pick(thread, which)
        share.copies -= 1
        if share.copies == 0:
            self.owe(thread, share.permits)
        return GRANTED

    def owe(self, thread: int, permits: int) -> None:
        call = self.calls[thread]
        assert call is not None
        if permits:
            call.owed += permits
            call.to_do.insert(0, GIVE_BACK)

    def settle(self, thread: int, call: Call) -> None:
        """Takes off the queue what fits or is too old; the thread tells it, and owes what is declined."""
        declined = 0
        while self.queue:
            request = self.queue[0]
            if self.now - request.since >= self.timeout:
                request.state = "failed"
            elif request.permits > self.remaining:
                break
            else:
                request.state = "declined" if request.declines else "held"
                self.remaining -= request.permits
                declined += request.permits if request.declines else 0
            request.stage, request.teller = TELLING, thread
            self.queue.popleft()
            self.taken += 1
            call.telling += 1
        self.owe(thread, declined)
