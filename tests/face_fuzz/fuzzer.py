"""The fuzzer's calls: random members of random objects of the face, with random arguments."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from pulsar_ml import _core
from pulsar_ml.errors import PulsarMlError
from tests.face_fuzz.face import PROTOCOLS, classes, members, parameters
from tests.face_fuzz.values import Hostile, argument, hostile

MOST_OBJECTS = 80
CHILD_SECONDS = 300
# Exceptions that name a mistake. OverflowError, SystemError and RecursionError are none of them.
NAMED = (
    PulsarMlError, Hostile, TypeError, ValueError, KeyError, AttributeError, StopIteration,
    BufferError, MemoryError, AssertionError, IndexError,
)  # fmt: skip


class Failure(Exception):
    """A call that raised what no call of the face may raise."""


def is_named(error: BaseException) -> bool:
    """True if the face may raise this exception."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_named(each) for each in error.exceptions)
    return isinstance(error, NAMED)


class Worker:
    """One thread of the fuzzer with its own random numbers; objects are shared by all threads."""

    def __init__(self, seed: str, pool: list[Any], kinds: list[type], log: list[str]) -> None:
        self.random = Random(seed)
        self.pool = pool
        self.kinds = kinds
        self.log = log  # of this thread: the last calls, for the report of a failure
        self.numbers: list[int] = [1]
        self.depth = 0
        self.calls = 0
        self.outcomes: Counter[str] = Counter()
        self.returned: set[str] = set()  # calls that returned

    # The world of values -------------------------------------------------------------------------

    def some(self, *kinds: str) -> Any:
        pool = list(self.pool)
        fitting = [each for each in pool if not kinds or type(each).__name__ in kinds]
        return self.random.choice(fitting) if fitting else None

    def number(self) -> int:
        return self.random.choice(self.numbers)

    def largest(self) -> int:
        return max(self.numbers)

    def disturb(self) -> None:
        if self.random.random() < 0.2:
            raise Hostile("disturbed")
        self.nested()

    def callback(self) -> Callable[..., object]:
        answer = self.random.choice([None, True, False, 0, 5, 2.5, "text"])

        def called(*arguments: Any) -> object:
            for each in arguments:
                if isinstance(each, int):
                    self.numbers[self.random.randrange(50) :] = [each]
                elif isinstance(each, list):
                    self.keep(*each[:3])
                else:
                    self.keep(each)
            self.disturb()
            return answer

        return called

    def nested(self) -> None:
        """A few calls inside a callback or a hostile value."""
        if self.depth < 3:
            self.depth += 1
            try:
                for _ in range(self.random.randrange(3)):
                    self.step()
            finally:
                self.depth -= 1

    def keep(self, *things: Any) -> None:
        """Puts objects of the core and views of entries into the pool, in the place of others."""
        for thing in things:
            ours = type(thing).__module__ == _core.__name__ and not isinstance(thing, tuple)
            if not ours and not isinstance(thing, memoryview):
                continue
            if len(self.pool) < MOST_OBJECTS:
                self.pool.append(thing)
            else:
                self.pool[self.random.randrange(MOST_OBJECTS)] = thing

    # Calls ---------------------------------------------------------------------------------------

    def step(self) -> None:
        """One call; raises Failure for an exception that the face may not raise."""
        what, work = self.choose()
        try:
            self.keep(work())
        except BaseException as error:
            self.count(what, error)
        else:
            self.count(what, None)

    def count(self, what: str, error: BaseException | None) -> None:
        """Counts a call that returned, or raised an error; raises Failure as above."""
        self.calls += 1
        self.log.append(what)
        del self.log[:-40]
        if error is None:
            self.outcomes["returned"] += 1
            self.returned.add(what)
            return
        if isinstance(error, Failure):
            raise error
        # Python's own views of several dimensions have no items.
        of_a_view = what.startswith("memoryview") and isinstance(error, NotImplementedError)
        if not is_named(error) and not of_a_view:
            raise Failure(f"{what} raised {type(error).__name__}: {error}") from error
        self.outcomes[type(error).__name__] += 1

    def choose(self) -> tuple[str, Callable[[], object]]:
        random = self.random
        thing = self.some()
        if thing is None or random.random() < 0.04:
            kind = random.choice(self.kinds)
            positional, named = self.arguments(kind, "__new__")
            return f"{kind.__name__}(...)", lambda: kind(*positional, **named)
        kind = type(thing)
        names = members(kind)
        if random.random() < 0.15 or not names:
            # An object without members is an iterator or a slice.
            name = random.choice([*PROTOCOLS] if names else [*PROTOCOLS, *["next", "len"] * 20])
            value = hostile(self)
            return f"{kind.__name__}: {name}", lambda: PROTOCOLS[name](thing, value)
        if random.random() < 0.02:
            return f"drop a {kind.__name__}", lambda: self.pool.remove(thing)
        member = random.choice(names)
        if kind is memoryview:
            return f"memoryview.{member}", thing.release
        if not callable(getattr(kind, member)):
            return f"{kind.__name__}.{member}", lambda: getattr(thing, member)
        positional, named = self.arguments(kind, member)
        return f"{kind.__name__}.{member}(...)", lambda: getattr(thing, member)(
            *positional, **named
        )

    def arguments(self, kind: type, member: str) -> tuple[list[Any], dict[str, Any]]:
        random = self.random
        positional: list[Any] = []
        named: dict[str, Any] = {}
        wanted = parameters(kind, member)
        first_is_position = "ledger_id" not in {each.name for each in wanted}
        for each in wanted:
            if each.has_default and random.random() < 0.6:
                continue
            value = argument(self, each.name, first_is_position=first_is_position)
            if each.by_name or named:
                named[each.name] = value
            else:
                positional.append(value)
        if random.random() < 0.02:
            positional.append(hostile(self))
        if random.random() < 0.02:
            named["nonsense"] = hostile(self)
        return positional, named

    def fork(self) -> None:
        """A child makes some calls, too."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for _ in range(20):
                    self.step()
                code = 0
            except Failure as error:
                print(f"in a child of a fork: {error}", file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(code)
        process = os.pidfd_open(child)
        ended = select.select([process], [], [], CHILD_SECONDS)[0]
        if not ended:
            os.kill(child, signal.SIGABRT)  # shows where it is
        os.close(process)
        status = os.waitpid(child, 0)[1]
        if not ended:
            raise Failure("a child of a fork did not end")
        if status:
            raise Failure(f"a child of a fork ended with status {status}")

    def run(self, calls: int) -> None:
        # The calls inside callbacks count.
        next_fork = self.random.randrange(4_000)
        while self.calls < calls:
            self.step()
            next_fork -= 1
            if next_fork < 0:
                next_fork = self.random.randrange(4_000)
                self.fork()


def fuzz(seed: int, calls: int, threads: int, extra: list[type]) -> dict[str, Any]:
    """Makes so many calls; returns counts. Raises Failure."""
    failures: list[BaseException] = []

    def unraisable(report: Any) -> None:
        error = report.exc_value
        if error is not None and not is_named(error):
            failures.append(Failure(f"unraisable {type(error).__name__}: {error}"))

    sys.unraisablehook = unraisable
    pool: list[Any] = []
    kinds = classes() + extra
    workers = [Worker(f"{seed}/{number}", pool, kinds, []) for number in range(threads)]

    def work(worker: Worker) -> None:
        try:
            worker.run(calls // threads)
        except BaseException as error:
            error.add_note("last calls: " + ", ".join(worker.log[-12:]))
            failures.append(error)

    if threads == 1:
        work(workers[0])
    else:
        running = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    if failures:
        raise failures[0]
    pool.clear()
    gc.collect()
    if failures:
        raise failures[0]
    outcomes = sum((worker.outcomes for worker in workers), Counter[str]())
    return {
        "calls": sum(worker.calls for worker in workers),
        "outcomes": dict(outcomes),
        "returned": sorted(set().union(*[worker.returned for worker in workers])),
    }
