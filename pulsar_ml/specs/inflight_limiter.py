"""Permits of reads under way, one call after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pulsar_ml.specs import Answer, answer, unknown
from pulsar_ml.specs.hands import HANDS, Hands

GRANTED, WAITING, REFUSED, NOTHING, FULL = range(5)

REQUESTS = 4  # of one thread


@dataclass(eq=False, slots=True)
class Request:
    permits: int
    declines: bool
    since: int = 0
    state: str = "held"


@dataclass(eq=False, slots=True)
class Share:
    permits: int
    copies: int


@dataclass(eq=False, slots=True)
class Owner:
    requests: list[Request | None] = field(default_factory=lambda: [None] * REQUESTS)


class Model:
    """The operations of the subject ``inflight_limiter``."""

    def __init__(self, settings: Mapping[str, int], threads: int) -> None:
        self.maximum = settings["maximum"]
        self.timeout = settings["timeout"]
        self.queue_size = settings["queue_size"]
        self.remaining = self.maximum
        self.clock = 0
        self.told = 0
        self.queue: deque[Request] = deque()
        self.owners = [Owner() for _ in range(threads)]
        self.copies: Hands[Share] = Hands(threads)

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        due = 0
        if operation == "acquire":
            status = self.acquire(thread, arguments[0], bool(arguments[1]))
        elif operation == "release":
            status = self.release(thread, arguments[0])
        elif operation == "share":
            status = self.share(thread, arguments[0], arguments[1])
        elif operation == "pass_on":
            status = GRANTED if self.copies.exchange(thread, arguments[0]) else NOTHING
        elif operation == "drop":
            status = self.drop(thread, arguments[0])
        elif operation == "expire":
            status, due = GRANTED, self.expire(arguments[0])
        else:
            raise unknown("inflight_limiter", operation)
        return answer(status, self.remaining, len(self.queue), self.told, due)

    def acquire(self, thread: int, permits: int, declines: bool) -> int:
        requests = self.owners[thread].requests
        if None not in requests:
            return FULL
        request = Request(permits, declines, self.clock)
        if self.maximum == 0:
            request.permits = 0
        elif permits <= self.remaining:
            self.remaining -= permits
        elif len(self.queue) < self.queue_size:
            request.state = "waits"
            self.queue.append(request)
        else:
            return REFUSED
        requests[requests.index(None)] = request
        return WAITING if request.state == "waits" else GRANTED

    def release(self, thread: int, which: int) -> int:
        request = self.owners[thread].requests[which]
        if request is None:
            return NOTHING
        if request.state == "waits":
            return WAITING
        self.owners[thread].requests[which] = None
        if request.state == "held":
            self.give_back(request.permits)
        return GRANTED

    def share(self, thread: int, which: int, copies: int) -> int:
        request = self.owners[thread].requests[which]
        if request is not None and request.state == "waits":
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
            self.give_back(share.permits)
        return GRANTED

    def expire(self, ticks: int) -> int:
        """The time until the next request fails, -1 when none waits."""
        if self.maximum == 0:
            return -1
        self.clock += ticks
        self.settle()
        return self.timeout - (self.clock - self.queue[0].since) if self.queue else -1

    def give_back(self, permits: int) -> None:
        self.remaining += permits
        self.settle()

    def settle(self) -> None:
        """Tells requests from the head of the queue, in rounds: what one declines goes to the next round."""
        declined = -1
        while declined:
            declined = 0
            while self.queue:
                request = self.queue[0]
                if self.clock - request.since >= self.timeout:
                    request.state = "failed"
                elif request.permits > self.remaining:
                    break
                else:
                    request.state = "declined" if request.declines else "held"
                    self.remaining -= request.permits
                    declined += request.permits if request.declines else 0
                self.queue.popleft()
                self.told += 1
            self.remaining += declined
