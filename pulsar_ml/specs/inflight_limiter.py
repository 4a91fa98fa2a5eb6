"""Permits of reads under way: the permits of each request, the requests that wait, and the answers
on their way.

Each call decides at one moment and then does the rest in moments of its own: it tells the requests
that it took off the queue, gives back what these decline, which may take off others, and looks at
the limiter at its end. ``step`` does all of it at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import HANDS, MAILBOXES

GRANTED, WAITING, REFUSED, NOTHING, FULL = range(5)

REQUESTS = 4  # of one thread

# The states of a request: it is in the queue; it has its permits; it failed, or declined them.
WAITS, HELD, CRASHED = range(3)

# The states of a request's answer: undecided; on its way; delivered; delivered, and the thread was
# in the limiter since and must see that.
OPEN, TELLING, ANSWERED, KNOWN = range(4)

TICK, SETTLE, DUE, GIVE_BACK = "tick", "settle", "due", "give back"


class Request(NamedTuple):
    permits: int
    declines: bool = False
    since: int = 0  # of one that waits, from now on
    state: int = HELD
    stage: int = KNOWN
    teller: int = -1


class LimiterCall(NamedTuple):
    """A call under way: what it has to do yet, and what it found out."""

    to_do: tuple[str, ...] = ()
    owed: int = 0  # permits that it has and gives back next
    telling: int = 0  # requests that it took off the queue
    now: int = 0
    due: int = 0  # until the next request fails, from its own time on; -1: none will


NOBODY = -1  # in a mailbox

IDLE: LimiterCall | None = None
EMPTY: Request | None = None


class Model:
    """The operations of the subject ``inflight_limiter``."""

    fresh = False
    scarce = False
    weak: ClassVar[Mapping[str, str]] = {
        "acquire": "The status is of one moment. Permits that remain and requests that wait are "
        "of a moment at the end, when the requests that this call took off the queue have their "
        "answers and declined permits came back; in between permits may be with neither. The "
        "answers counted are at least those of calls that ended, and at most the requests taken "
        "off.",
        "try_acquire": "As acquire.",
        "release": "As acquire. WAITING may be answered for a request that was granted or failed, "
        "until the call that answers the request has ended and the request's thread was in the "
        "limiter since.",
        "share": "As release.",
        "pass_on": "As acquire.",
        "drop": "As acquire: the last copy is released at one moment, its permits come back at a "
        "later one.",
        "expire": "As acquire. The time is set, the requests fail and the next request is looked "
        "at in three moments.",
    }
    spans = frozenset(weak)
    foresees = True

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.maximum = max(settings["maximum"], 0)  # 0: no limit
        self.timeout = settings["timeout"]
        self.queue_size = settings["queue_size"]
        self.remaining = self.maximum
        self.clock = 0
        self.now = 0  # the latest time that a call named
        self.taken = 0  # requests that were taken off the queue
        self.answers = 0  # those of them that calls answered which ended
        # By number: thread * REQUESTS + place. Whoever waits is not forgotten by its thread.
        self.requests = (EMPTY,) * (REQUESTS * threads)
        self.queue: tuple[int, ...] = ()  # their numbers
        # By number: permits, and copies that hold them. Shares are numbered as they are met in the
        # hands of the threads and then in the mailboxes.
        self.shares: tuple[tuple[int, int], ...] = ()
        self.held: tuple[tuple[int, ...], ...] = ((),) * threads  # copies: the numbers of shares
        self.mailboxes = (NOBODY,) * MAILBOXES
        self.calls = (IDLE,) * threads

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status = self.start(operation, arguments, thread, None)
        while self.underway(thread).to_do:
            self.happens(thread)
        due = self.underway(thread).due
        result = answer(status, self.remaining, len(self.queue), self.taken, due)
        self.concurrent(operation, arguments, thread=thread, result=result)
        return result

    def canonical(self) -> object:
        """Times count from now on."""
        now, calls = self.now, self.calls
        if now and any(call is not None and DUE in call.to_do for call in calls):
            calls = tuple(
                [
                    call._replace(now=call.now - now)
                    if call is not None and DUE in call.to_do
                    else call
                    for call in calls
                ]
            )
        return (
            self.remaining,
            self.clock - now,
            self.taken,
            self.answers,
            self.requests,
            self.queue,
            self.shares,
            self.held,
            self.mailboxes,
            calls,
        )

    # The moments of a call ------------------------------------------------------------------------

    def underway(self, thread: int) -> LimiterCall:
        call = self.calls[thread]
        assert call is not None
        return call

    def put_call(self, thread: int, call: LimiterCall | None) -> None:
        self.calls = (*self.calls[:thread], call, *self.calls[thread + 1 :])

    def put(self, number: int, request: Request | None) -> None:
        self.requests = (*self.requests[:number], request, *self.requests[number + 1 :])

    def begins(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer | None
    ) -> bool:
        status = self.start(operation, arguments, thread, None if result is None else result[0])
        return result is None or status == result[0]

    def start(
        self, operation: str, arguments: Sequence[int], thread: int, result: int | None
    ) -> int:
        """The status, decided now; of several that may be, the one that is given."""
        self.put_call(thread, LimiterCall())
        if operation == "acquire":
            return self.acquire(thread, arguments[0], bool(arguments[1]), result)
        if operation == "try_acquire":
            return self.try_acquire(thread, arguments[0])
        if operation == "release":
            return self.release(thread, arguments[0], result)
        if operation == "share":
            return self.share(thread, arguments[0], arguments[1], result)
        if operation == "pass_on":
            return self.pass_on(thread, arguments[0])
        if operation == "drop":
            return self.drop(thread, arguments[0])
        if operation == "expire":
            self.clock += arguments[0]
            self.put_call(thread, LimiterCall((TICK, SETTLE, DUE), now=self.clock))
            return GRANTED
        raise unknown("inflight_limiter", operation)

    def hidden(self) -> list[int]:
        return [thread for thread, call in enumerate(self.calls) if call is not None and call.to_do]

    def happens(self, thread: int) -> None:
        """The next moment of the thread's call."""
        call = self.underway(thread)
        step = call.to_do[0]
        to_do, owed, telling, now, due = call
        if step == TICK:
            self.tick(now)
        elif step == DUE:
            due = -1
            if self.queue and self.timeout > 0:
                due = self.timeout - self.age(self.queue[0]) + self.now - now
            now = 0
        elif step == GIVE_BACK:
            self.remaining += owed
            owed = 0
        self.put_call(thread, LimiterCall(to_do[1:], owed, telling, now, due))
        if step in (SETTLE, GIVE_BACK):
            self.settle(thread)

    def tick(self, now: int) -> None:
        if now > self.now:
            later, self.now = now - self.now, now
            for number in self.queue:
                request = self.waiting(number)
                self.put(number, request._replace(since=request.since - later))

    def fits(self, operation: str, *, thread: int, result: Answer) -> bool:
        """True if a call may see these values at its end."""
        call = self.calls[thread]
        remaining, waiting, answers, due = result[1]
        return (
            call is not None
            and not call.to_do
            and (remaining, waiting, due) == (self.remaining, len(self.queue), call.due)
            and self.answers + call.telling <= answers <= self.taken
        )

    def concurrent(
        self, operation: str, arguments: Sequence[int], *, thread: int, result: Answer
    ) -> bool:
        """The look at the end of a call."""
        if not self.fits(operation, thread=thread, result=result):
            return False
        self.answers += self.underway(thread).telling
        self.put_call(thread, None)
        for number, request in enumerate(self.requests):
            if request is None or request.stage == OPEN or request.stage == KNOWN:
                continue
            stage = request.stage
            if stage == TELLING and request.teller == thread:
                stage = ANSWERED
            if stage == ANSWERED and number // REQUESTS == thread:
                stage = KNOWN
            if stage != request.stage:
                permits, declines, since, state, _, _ = request
                self.put(number, Request(permits, declines, since, state, stage, -1))
        return True

    # Operations -----------------------------------------------------------------------------------

    def starved(self, result: int | None) -> bool:
        """True if a call that allocates got no memory, for which it answers REFUSED."""
        return self.scarce and result == REFUSED

    def acquire(self, thread: int, permits: int, declines: bool, result: int | None) -> int:
        mine = thread * REQUESTS
        if None not in self.requests[mine : mine + REQUESTS]:
            return FULL
        if self.maximum > 0:
            self.settle(thread)
        number = self.requests.index(None, mine)
        permits = min(permits, self.maximum)
        if self.maximum == 0:
            self.put(number, Request(0))
        elif permits <= self.remaining:
            self.remaining -= permits
            self.put(number, Request(permits))
        elif len(self.queue) < self.queue_size and not self.starved(result):
            self.queue += (number,)
            self.put(number, Request(permits, declines, 0, WAITS, OPEN))
            return WAITING
        else:
            return REFUSED
        return GRANTED

    def try_acquire(self, thread: int, permits: int) -> int:
        """Never waits, and lets no request that waits time out."""
        mine = thread * REQUESTS
        if None not in self.requests[mine : mine + REQUESTS]:
            return FULL
        permits = min(permits, self.maximum)
        if self.maximum and (self.queue or permits > self.remaining):
            return REFUSED
        self.remaining -= permits
        self.put(self.requests.index(None, mine), Request(permits))
        return GRANTED

    def seems_to_wait(self, request: Request, thread: int, result: int | None) -> bool:
        """True if the request has no answer yet; where both are possible, the result decides."""
        if request.stage == OPEN:
            return True
        if request.stage == KNOWN or result != WAITING:
            return False
        return not self.fresh if request.stage == ANSWERED else request.teller != thread

    def release(self, thread: int, which: int, result: int | None) -> int:
        number = thread * REQUESTS + which
        request = self.requests[number]
        if request is None:
            return NOTHING
        if self.seems_to_wait(request, thread, result):
            return WAITING
        self.put(number, None)
        if request.state == HELD:
            self.owe(thread, request.permits)
        return GRANTED

    def share(self, thread: int, which: int, copies: int, result: int | None) -> int:
        number = thread * REQUESTS + which
        request = self.requests[number]
        if request is not None and self.seems_to_wait(request, thread, result):
            return WAITING
        if request is None or request.state != HELD:
            return NOTHING
        if len(self.held[thread]) + copies > HANDS:
            return FULL
        if self.starved(result):
            return REFUSED
        self.shares += ((request.permits, copies),)
        self.put_hands(
            thread, (*self.held[thread], *[len(self.shares) - 1] * copies), self.mailboxes
        )
        self.put(number, None)
        return GRANTED

    def put_hands(self, thread: int, held: tuple[int, ...], mailboxes: tuple[int, ...]) -> None:
        hands = (*self.held[:thread], held, *self.held[thread + 1 :])
        numbers: dict[int, int] = {NOBODY: NOBODY}
        for place in (*hands, mailboxes):
            for share in place:
                numbers.setdefault(share, len(numbers) - 1)
        self.shares = tuple([self.shares[share] for share in numbers if share != NOBODY])
        self.held = tuple([tuple([numbers[share] for share in place]) for place in hands])
        self.mailboxes = tuple([numbers[share] for share in mailboxes])

    def pass_on(self, thread: int, mailbox: int) -> int:
        """Leaves its last copy in the mailbox and takes what was there."""
        held, theirs = self.held[thread], self.mailboxes[mailbox]
        mine = held[-1] if held else NOBODY
        mailboxes = (*self.mailboxes[:mailbox], mine, *self.mailboxes[mailbox + 1 :])
        taken = () if theirs == NOBODY else (theirs,)
        self.put_hands(thread, (*held[:-1], *taken), mailboxes)
        return GRANTED if taken else NOTHING

    def drop(self, thread: int, which: int) -> int:
        held = self.held[thread]
        if not held:
            return NOTHING
        index = which % len(held)
        number = held[index]
        permits, copies = self.shares[number]
        self.shares = (*self.shares[:number], (permits, copies - 1), *self.shares[number + 1 :])
        # The last one moves to its place.
        rest = (
            held[:-1]
            if index == len(held) - 1
            else (*held[:index], held[-1], *held[index + 1 : -1])
        )
        self.put_hands(thread, rest, self.mailboxes)
        if copies == 1:
            self.owe(thread, permits)
        return GRANTED

    def owe(self, thread: int, permits: int) -> None:
        if permits:
            call = self.underway(thread)
            self.put_call(
                thread, call._replace(to_do=(GIVE_BACK, *call.to_do), owed=call.owed + permits)
            )

    def waiting(self, number: int) -> Request:
        request = self.requests[number]
        assert request is not None
        return request

    def age(self, number: int) -> int:
        return -self.waiting(number).since

    def settle(self, thread: int) -> None:
        """Takes requests that fit or are too old off the queue; the thread answers them, and owes
        what is declined.
        """
        declined = 0
        while self.queue:
            number = self.queue[0]
            request = self.waiting(number)
            late = 0 < self.timeout <= self.age(number)
            if not late:
                if request.permits > self.remaining:
                    break
                self.remaining -= request.permits
                declined += request.permits if request.declines else 0
            got = 0 if late or request.declines else request.permits
            state = CRASHED if late or request.declines else HELD
            self.put(number, Request(got, state=state, stage=TELLING, teller=thread))
            self.queue = self.queue[1:]
            self.taken += 1
            call = self.underway(thread)
            self.put_call(thread, call._replace(telling=call.telling + 1))
        self.owe(thread, declined)
