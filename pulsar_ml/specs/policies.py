"""The eviction policies, one call after the other: which wrappers leave in which order.

A policy is told what was put and what was hit. A pass runs step by step over it, as the native one
does; ``POLICIES`` has the kinds in the order of their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pulsar_ml.specs.cached import Cache, Wrapper


@dataclass(slots=True)
class Rules:
    """The settings of all policies; ``life`` is the longest life of what still expects reads."""

    max_requeue: int
    extend: bool
    life: int


@dataclass(slots=True)
class Pass:
    """A time pass (with a threshold) or a size pass (with a target), and what it did so far."""

    now: int
    threshold: int | None = None
    target: int = 0
    entries: int = 0
    bytes: int = 0
    requeued: int = 0
    missing: int = 0
    victims: list[tuple[int, int]] = field(default_factory=list)
    begun: bool = False
    second: bool = False
    end: int = 0
    plan: int = 0  # the number of the plan that it follows
    walk: Iterator[Wrapper] | None = None
    kept: list[Wrapper] = field(default_factory=list)  # in the stash; it does not come back to them

    def stops_at(self, wrapper: Wrapper) -> bool:
        if self.threshold is not None:
            return wrapper.timestamp >= self.threshold
        return self.bytes >= self.target


class Policy:
    """The common part of all policies."""

    name: ClassVar[str]
    merges_counts = False
    counts_of_4 = False  # read counts as Pulsar 4.2.4 has them

    def __init__(self, caches: Sequence[Cache], rules: Rules) -> None:
        self.caches = caches
        self.rules = rules
        self.arrived: deque[Wrapper] = deque()

    def put(self, wrapper: Wrapper) -> None:
        self.arrived.append(wrapper)

    def hit(self, wrapper: Wrapper) -> None:
        """A read found the wrapper; its mark says so already."""

    def step(self, run: Pass) -> bool:
        """Handles one wrapper; False when the pass is over."""
        raise NotImplementedError

    def run(self, run: Pass, most_steps: int) -> bool:
        """Takes at most so many steps; True if the pass is not over yet."""
        return all(self.step(run) for _ in range(most_steps))

    def take_turn(self, run: Pass) -> bool:
        """Handles wrappers until one leaves the policy; False when the pass is over."""
        gone = run.entries + run.missing
        while run.entries + run.missing == gone:
            if not self.step(run):
                return False
        return True

    def forget(self) -> None:
        """Everything was removed, and empty wrappers are dropped."""
        self.arrived.clear()

    def take(self, queue: MutableSequence[Wrapper], wrapper: Wrapper, run: Pass) -> None:
        """The wrapper leaves the policy, with its entry if it still holds one."""
        queue.remove(wrapper)
        if wrapper.entry is None:
            run.missing += 1
        else:
            self.remove(wrapper, run)

    def remove(self, wrapper: Wrapper, run: Pass) -> None:
        run.entries += 1
        run.victims.append((wrapper.cache, wrapper.key))
        run.bytes += self.caches[wrapper.cache].take_out(wrapper, mark=self.merges_counts)


class ReleasedQueue(Policy):
    """First in, first out; what is to be kept goes to the tail as often as it comes round."""

    name = "released_queue"
    counts_of_4 = True

    def __init__(self, caches: Sequence[Cache], rules: Rules) -> None:
        super().__init__(caches, rules)
        self.polled = 0

    def step(self, run: Pass) -> bool:
        if not run.begun:
            run.begun, run.end = True, self.polled + len(self.arrived)
        if not self.arrived:
            return False
        wrapper = self.arrived[0]
        if wrapper.entry is not None and run.stops_at(wrapper):
            return False
        kept = wrapper.entry is not None and self.keeps(wrapper, run)
        self.arrived.popleft()
        self.polled += 1
        if wrapper.entry is None:
            run.missing += 1
        elif kept:
            wrapper.timestamp, wrapper.accessed = run.now, False
            self.arrived.append(wrapper)
            run.requeued += 1
        else:
            self.remove(wrapper, run)
        return True

    def keeps(self, wrapper: Wrapper, run: Pass) -> bool:
        """One budget for both reasons to keep it."""
        expected = wrapper.requeues < self.rules.max_requeue and wrapper.expects_reads()
        kept = expected or (self.rules.extend and wrapper.accessed)
        wrapper.requeues += kept
        return kept


class Released5(ReleasedQueue):
    """A size pass keeps in its first round only."""

    name = "released_5"
    counts_of_4 = False

    def keeps(self, wrapper: Wrapper, run: Pass) -> bool:
        if run.threshold is None and self.polled >= run.end:
            return False
        return super().keeps(wrapper, run)


class CentralQueue(ReleasedQueue):
    """Keeps in the first round of a pass only; an access costs nothing."""

    name = "central_queue"
    counts_of_4 = False

    def keeps(self, wrapper: Wrapper, run: Pass) -> bool:
        if self.polled >= run.end:
            return False
        if self.rules.extend and wrapper.accessed:
            return True
        if wrapper.requeues < self.rules.max_requeue and wrapper.expects_reads():
            wrapper.requeues += 1
            return True
        return False


class StashQueue(Policy):
    """The stash, then the queue; what expects reads and is not too old is stashed."""

    name = "stash_queue"
    merges_counts = True

    def __init__(self, caches: Sequence[Cache], rules: Rules) -> None:
        super().__init__(caches, rules)
        self.stash: list[Wrapper] = []

    def step(self, run: Pass) -> bool:
        if not run.second:
            for wrapper in self.stash:
                if any(wrapper is one for one in run.kept):
                    continue
                if wrapper.entry is not None:
                    if run.stops_at(wrapper):
                        return False
                    if self.keeps(wrapper, run):
                        run.kept.append(wrapper)
                        continue
                self.take(self.stash, wrapper, run)
                return True
            run.second = True
        if not self.arrived:
            return False
        wrapper = self.arrived[0]
        if wrapper.entry is not None:
            if run.stops_at(wrapper):
                return False
            if self.keeps(wrapper, run):
                self.stash.append(self.arrived.popleft())
                run.requeued += 1
                return True
        self.take(self.arrived, wrapper, run)
        return True

    def keeps(self, wrapper: Wrapper, run: Pass) -> bool:
        return wrapper.expects_reads() and wrapper.timestamp >= run.now - self.rules.life

    def forget(self) -> None:
        super().forget()
        self.stash.clear()


class PriorityQueue(Policy):
    """A size pass takes the fewest expected reads first, as they were when the pass began; a time
    pass goes by arrival and leaves what expects reads and is not too old.
    """

    name = "priority_queue"

    def __init__(self, caches: Sequence[Cache], rules: Rules) -> None:
        super().__init__(caches, rules)
        self.plan: deque[Wrapper] = deque()

    def step(self, run: Pass) -> bool:
        return self.step_by_size(run) if run.threshold is None else self.step_by_time(run)

    @staticmethod
    def order(wrapper: Wrapper) -> tuple[bool, int, int]:
        """Empty wrappers first; arrival decides between equals."""
        if wrapper.entry is None:
            return False, 0, 0
        return True, wrapper.entry.expected_reads(), wrapper.timestamp

    def step_by_size(self, run: Pass) -> bool:
        if not run.begun or not self.plan:
            run.begun, self.plan = True, deque(sorted(self.arrived, key=self.order))
        if not self.plan:
            return False
        wrapper = self.plan[0]
        if wrapper.entry is not None and run.stops_at(wrapper):
            return False
        self.plan.popleft()
        self.take(self.arrived, wrapper, run)
        return True

    def step_by_time(self, run: Pass) -> bool:
        for wrapper in self.arrived:
            if wrapper.entry is not None:
                if run.stops_at(wrapper):
                    return False
                if wrapper.expects_reads() and wrapper.timestamp >= run.now - self.rules.life:
                    continue
            self.take(self.arrived, wrapper, run)
            self.plan.clear()  # a size pass that is not over makes another
            return True
        return False


class LedgerScan(Policy):
    """Each cache from its first position: by time all, by size the largest in proportion.

    There is one plan of parts. A size pass makes another for the rest of its target when another
    pass made one since.
    """

    name = "ledger_scan"
    plans = 0

    def put(self, wrapper: Wrapper) -> None:
        """Nothing is queued."""

    def step(self, run: Pass) -> bool:
        if run.threshold is None and (run.walk is None or run.plan != self.plans):
            if run.bytes >= run.target:
                return False
            self.plans += 1
            run.plan = self.plans
            run.walk = self.by_size(run)
        elif run.walk is None:
            run.walk = self.by_time(run)
        return next(run.walk, None) is not None

    def by_time(self, run: Pass) -> Iterator[Wrapper]:
        """Yields each wrapper whose entry was removed."""
        for cache in self.caches:
            for wrapper in cache.ascending(0, 1 << 16):
                if run.stops_at(wrapper):
                    break
                self.remove(wrapper, run)
                yield wrapper

    def by_size(self, run: Pass) -> Iterator[Wrapper]:
        """Likewise, with the parts as they were at the first step."""
        for cache, share in self.shares(run.target - run.bytes):
            freed = run.bytes
            for wrapper in cache.ascending(0, 1 << 16):
                if run.bytes - freed >= share:
                    break
                self.remove(wrapper, run)
                yield wrapper

    def shares(self, target: int) -> list[tuple[Cache, int]]:
        chosen: list[Cache] = []
        half = int(sum(cache.size for cache in self.caches) * 0.5)
        for cache in sorted(self.caches, key=lambda cache: -cache.size):
            if sum(other.size for other in chosen) >= half:
                break
            chosen.append(cache)
        total = sum(cache.size for cache in chosen)
        return [(cache, int(target * (cache.size / total))) for cache in chosen]


class Lru(Policy):
    """The least recently used first."""

    name = "lru"

    def hit(self, wrapper: Wrapper) -> None:
        self.arrived.remove(wrapper)
        self.arrived.append(wrapper)

    def step(self, run: Pass) -> bool:
        if not self.arrived:
            return False
        wrapper = self.arrived[0]
        if wrapper.entry is None:
            run.missing += 1
        elif run.stops_at(wrapper):
            return False
        else:
            self.remove(wrapper, run)
        self.arrived.popleft()
        return True


class S3Fifo(Policy):
    """A small queue for what is new, a main one, and a ghost that remembers what left the small
    one.
    """

    name = "s3_fifo"

    def __init__(self, caches: Sequence[Cache], rules: Rules) -> None:
        super().__init__(caches, rules)
        self.small: deque[Wrapper] = deque()
        self.main: deque[Wrapper] = deque()
        self.ghost: dict[tuple[int, int], int] = {}
        self.capacity = 0

    def hit(self, wrapper: Wrapper) -> None:
        wrapper.visits = min(wrapper.visits + 1, 3)

    def collect(self, run: Pass) -> None:
        while self.arrived:
            wrapper = self.arrived.popleft()
            if wrapper.entry is None:
                run.missing += 1
            elif self.ghost.pop((wrapper.cache, wrapper.key), None) is not None:
                self.main.append(wrapper)
            else:
                self.small.append(wrapper)

    def step(self, run: Pass) -> bool:
        self.collect(run)
        if not run.begun:
            run.begun, run.end = True, 4 * (len(self.small) + len(self.main))
            if run.threshold is None:
                self.capacity = self.bytes(self.small) + self.bytes(self.main)
        return self.step_by_size(run) if run.threshold is None else self.step_by_time(run)

    @staticmethod
    def bytes(queue: deque[Wrapper]) -> int:
        """Empty wrappers count what they held."""
        return sum(wrapper.size for wrapper in queue)

    def step_by_time(self, run: Pass) -> bool:
        for queue in (self.main,) if run.second else (self.small, self.main):
            if queue and (queue[0].entry is None or not run.stops_at(queue[0])):
                self.drop(queue, run)
                return True
            run.second = True
        return False

    def step_by_size(self, run: Pass) -> bool:
        if not self.small and not self.main:
            return False
        if not run.second:
            self.turn = self.small if self.bytes(self.small) * 10 >= self.capacity else self.main
            run.second = True
        if not self.turn:
            self.turn = self.main if self.turn is self.small else self.small
        queue, is_small = self.turn, self.turn is self.small
        wrapper = queue[0]
        if wrapper.entry is None:
            self.drop(queue, run)
        elif run.stops_at(wrapper):
            return False
        elif wrapper.visits > is_small and run.requeued < run.end:
            wrapper.visits = 0 if is_small else wrapper.visits - 1
            wrapper.timestamp, wrapper.accessed = run.now, False
            self.main.append(queue.popleft())
            run.requeued += 1
        else:
            self.drop(queue, run)
            run.second = False
            if is_small:
                self.remember(wrapper)
        return True

    def drop(self, queue: deque[Wrapper], run: Pass) -> None:
        wrapper = queue.popleft()
        if wrapper.entry is None:
            run.missing += 1
        else:
            self.remove(wrapper, run)

    def remember(self, wrapper: Wrapper) -> None:
        self.ghost.pop((wrapper.cache, wrapper.key), None)
        self.ghost[wrapper.cache, wrapper.key] = wrapper.size
        while sum(self.ghost.values()) > self.capacity - self.capacity // 10:
            del self.ghost[next(iter(self.ghost))]

    def forget(self) -> None:
        super().forget()
        self.small.clear()
        self.main.clear()


POLICIES: tuple[type[Policy], ...] = (
    CentralQueue,
    ReleasedQueue,
    StashQueue,
    LedgerScan,
    Lru,
    S3Fifo,
    Released5,
    PriorityQueue,
)
