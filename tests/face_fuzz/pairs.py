"""Pairs of calls: each member of a class beside each other one, from two threads on one object.

A fork is a member, too: its child calls the other member. Callbacks call the same object, or raise.
When the pairs of a class are over, permits and native objects that are still in use are an error.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from inspect import getattr_static
from typing import Any, ClassVar

from pulsar_ml import (
    AckState,
    ActiveManagedCursorContainer,
    EntryCacheManager,
    InflightReadsLimiter,
    ManagedCursorContainer,
    PendingReadsManager,
    ReceiveBufferSize,
)  # fmt: skip
from pulsar_ml._core import InMemoryDelayedDeliveryTrackerFactory
from tests.face_fuzz.face import PROTOCOLS, members
from tests.face_fuzz.fuzzer import Failure, Worker, is_named
from tests.face_fuzz.values import hostile

OPERATORS = ("len", "repr", "next", "iter", "bytes", "memoryview", "in", "with", "end of with")
FORK = "fork"
PERMITS = 50
CONTROLS = {"Planted", "Unguarded"}  # classes with mistakes; see free_threading/sanitizer
HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
FIRST, LAST = (1, 0), (1, 60)


class Caller(Worker):
    """One of the threads. Its callbacks call the object of the pair."""

    subject: Any = None
    next_call: tuple[str, Callable[[], object]] = ("", lambda: None)
    other = "repr"
    rounds = 0

    def keep(self, *things: Any) -> None:
        """Keeps nothing: what a call returns is dropped at once."""

    def nested(self) -> None:
        if self.depth < 2 and self.subject is not None:
            self.depth += 1
            try:
                self.make(self.prepared(self.random.choice(actions(type(self.subject))[1:])))
            finally:
                self.depth -= 1

    def choose(self) -> tuple[str, Callable[[], object]]:
        return self.next_call

    def prepared(self, action: str) -> tuple[str, Callable[[], object]]:
        """A call of a member or operator of the object, with its arguments."""
        subject, kind = self.subject, type(self.subject)
        name = f"{kind.__name__}.{action}"
        if action == FORK:
            return name, self.fork
        # Bound here, see make_all.
        if action in OPERATORS and not hasattr(kind, action):
            return name, partial(PROTOCOLS[action], subject, hostile(self))
        if callable(getattr(kind, action)):
            positional, named = self.arguments(kind, action)
            return name, partial(getattr(subject, action), *positional, **named)
        return name, partial(getattr_static(kind, action).__get__, subject)

    def make(self, call: tuple[str, Callable[[], object]]) -> None:
        """Makes a call; raises Failure."""
        self.next_call = call
        super().step()

    def make_all(self, calls: list[tuple[str, Callable[[], object]]]) -> None:
        """Makes calls one behind the other, and counts them afterwards; raises Failure.

        Without a GIL, look-ups in classes take locks and count references by atomic instructions.
        They order the threads, and a thread sanitizer finds no race between what is ordered. So
        there are none between these calls.
        """
        errors: list[BaseException | None] = []
        for _, work in calls:
            try:
                work()
                errors.append(None)
            except BaseException as error:
                errors.append(error)
                if not is_named(error):
                    break
        # An exception has this frame; what both refer to would stay until a collection.
        errors.reverse()
        for name, _ in calls[: len(errors)]:
            self.count(name, errors.pop())

    def step(self) -> None:
        """A call of a forked child: the other member of the pair."""
        self.make(self.prepared(self.other))


def actions(kind: type) -> list[str]:
    """A fork, and the members and operators of a class."""
    return [FORK, *members(kind), *[each for each in OPERATORS if has_operator(kind, each)]]


def has_operator(kind: type, name: str) -> bool:
    special = {
        "len": "__len__", "next": "__next__", "iter": "__iter__", "in": "__contains__",
        "bytes": "__buffer__", "memoryview": "__buffer__", "with": "__enter__",
        "end of with": "__exit__", "repr": "__repr__",
    }[name]  # fmt: skip
    return hasattr(kind, special) or (special == "__buffer__" and kind.__name__ == "Entry")


class Planted:
    """Two mistakes for the pairs to find: an unguarded section, and permits that stay out."""

    def __init__(self, permits: Any) -> None:
        self.permits = permits
        self.meeting = threading.Barrier(2)

    def meet(self) -> None:
        """Ends when both threads are inside, and raises what no call of the face may raise."""
        self.meeting.wait()
        raise SystemError("two threads are inside")

    def leak(self) -> None:
        """Keeps permits for ever."""
        LEAKED.append(self.permits)


LEAKED: list[Any] = []


class Scene:
    """Objects that the calls of all pairs of a class share, and new objects for them."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.manager = EntryCacheManager(max_size=20_000)
        self.limiter = InflightReadsLimiter(max_bytes=PERMITS, acquire_queue_size=5)
        self.pending: PendingReadsManager | None = None

    def entry(self) -> Any:
        place = (1, self.caller.random.randrange(60))
        return self.manager.entry(place, b"x" * 20, expected_reads=1)

    def buffer(self) -> Any:
        buffer = self.manager.receive_buffer(2_000)
        buffer.write(b"x" * 100)
        return buffer

    def cache(self) -> Any:
        self.manager.range_cache("a").close()
        cache = self.manager.range_cache("a")
        for number in range(LAST[1]):
            cache.put((1, number), b"x" * 20, expected_reads=number % 2)
        return cache

    def running(self) -> Any:
        manager = EntryCacheManager(max_size=100, start=self.caller.random.random() < 0.1)
        manager.range_cache("a").put((1, 1), b"x" * 50)
        return manager

    def cursors(self, container: Any) -> Any:
        for number, name in enumerate("abc"):
            container.add(name, (1, number * 10))
        return container

    def factory(self) -> Any:
        factory = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1, topic_manager_idle_ms=5)
        self.caller.pool.append(factory.new_tracker("a", self.caller.callback(), subscription="a"))
        return factory

    def view(self) -> Any:
        factory = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=1)
        view = factory.new_tracker("a", self.caller.callback(), subscription="a")
        view.add_messages([(1, number) for number in range(5)], range(5), now_ms=-1)
        return view

    def permits(self) -> Any:
        return self.limiter.acquire(5, self.caller.callback())

    def reads(self) -> Any:
        # Requests without an answer keep their manager, and what its exceptions refer to.
        if self.pending is not None:
            self.pending.close()
        self.pending = PendingReadsManager(self.manager, self.caller.callback(), read_timeout_ms=1)
        return self.pending

    MAKERS: ClassVar[dict[str, Callable[[Scene], Any]]] = {
        "AckState": lambda scene: AckState((1, -1), on_resume=scene.caller.callback()),
        "ActiveManagedCursorContainer": lambda scene: scene.cursors(ActiveManagedCursorContainer()),
        "BufferSlice": lambda scene: scene.buffer().slice(0, 10),
        "CachedIterator": lambda scene: scene.cache().iterate_cached(FIRST, LAST),
        "Entry": entry,
        "EntryCacheManager": running,
        "InMemoryDelayedDeliveryTrackerFactory": factory,
        "InMemoryTopicDelayedDeliveryTrackerView": view,
        "InflightReadsLimiter": lambda _: InflightReadsLimiter(max_bytes=5, acquire_queue_size=3),
        "ManagedCursorContainer": lambda scene: scene.cursors(ManagedCursorContainer()),
        "PendingReadsManager": reads,
        "Permits": permits,
        "Planted": lambda scene: Planted(scene.permits()),
        "RangeCache": cache,
        "RangeIterator": lambda scene: scene.cache().iterate(FIRST, LAST),
        "ReceiveBuffer": buffer,
        "ReceiveBufferSize": lambda _: ReceiveBufferSize(),
        "Unguarded": lambda _: importlib.import_module("unguarded").Counter(),
    }  # fmt: skip

    def problem(self) -> str:
        """An account that does not balance when nobody is inside, or ""."""
        if self.pending is not None:
            self.pending.close()
            self.pending = None
        gc.collect()
        if self.limiter.remaining != PERMITS:
            return f"{self.limiter.remaining} permits of {PERMITS} remain"
        self.manager.close()
        left = {kind: n for kind, n in self.manager.objects_in_use().items() if n}
        left.pop("range_caches", None)  # closed ones are kept by their names
        return f"in use when nobody is inside: {left}" if left else ""


class Pairs:
    """The threads of a class. Each pair has some rounds, each with a new object: the threads meet,
    draw arguments, meet again, and make their calls at once.
    """

    def __init__(self, kind: str, seed: int, calls: int, rounds: int = 1, only: str = "") -> None:
        pool: list[Any] = []
        self.calls = calls
        self.callers = [Caller(f"{seed}/{kind}/{number}", pool, [], []) for number in range(2)]
        self.callers[1].numbers = self.callers[0].numbers
        self.scene, self.kind = Scene(self.callers[0]), kind
        names = actions(type(Scene.MAKERS[kind](self.scene)))
        chosen = itertools.combinations_with_replacement([only] if only else names, 2)
        self.all = [pair for pair in chosen for _ in range(1 if FORK in pair else rounds)]
        self.barrier = threading.Barrier(2, action=self.prepare)
        self.number = -1
        self.failures: list[BaseException] = []

    def prepare(self) -> None:
        """Makes a new object for the next pair, and what its calls may take as arguments."""
        self.number += 1
        pool = self.callers[0].pool
        pool.clear()
        subject = Scene.MAKERS[self.kind](self.scene)
        pool.extend([subject, self.scene.manager, *[self.scene.entry() for _ in range(3)]])
        pool.append(self.scene.buffer().slice(0, 10))
        for caller in self.callers:
            caller.subject = subject

    def work(self, number: int) -> None:
        caller = self.callers[number]
        try:
            for pair in self.all:
                self.barrier.wait()
                own, caller.other = pair[number], pair[1 - number]
                # Forks take long: one, beside all calls of the other member.
                count = self.calls if own != FORK else int(caller.other != FORK)
                calls = [caller.prepared(own) for _ in range(count)]
                self.start_at_once(number)
                caller.make_all(calls)
                del calls
        except BaseException as error:
            error.add_note(f"pair {self.all[self.number]}; " + ", ".join(caller.log[-12:]))
            self.failures.append(error)
            self.barrier.abort()

    def start_at_once(self, number: int) -> None:
        """Ends when both threads are here. Without a GIL they wait awake: calls are that short."""
        own, other = self.callers[number], self.callers[1 - number]
        own.rounds += 1
        while not HAS_GIL and other.rounds < own.rounds and not self.failures:
            os.sched_yield()

    def run(self) -> dict[str, Any]:
        """Makes the calls of all pairs; returns counts. Raises Failure."""

        def unraisable(report: Any) -> None:
            if report.exc_value is not None and not is_named(report.exc_value):
                self.failures.append(Failure(f"unraisable {report.exc_value!r}"))

        sys.unraisablehook = unraisable
        sys.setswitchinterval(1e-6)  # with a GIL, threads take turns within a call's callbacks
        warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
        threads = [threading.Thread(target=self.work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for caller in self.callers:
            caller.subject, caller.next_call = None, Caller.next_call
            caller.log.clear()
        self.callers[0].pool.clear()
        self.failures.sort(key=lambda error: isinstance(error, threading.BrokenBarrierError))
        if self.failures:
            raise self.failures[0]
        if problem := self.scene.problem():
            raise Failure(f"after the pairs of {self.kind}: {problem}")
        outcomes = sum((caller.outcomes for caller in self.callers), Counter[str]())
        return {
            "calls": sum(caller.calls for caller in self.callers),
            "outcomes": dict(outcomes),
            "returned": sorted(self.callers[0].returned | self.callers[1].returned),
            "pairs": len(self.all),
        }
