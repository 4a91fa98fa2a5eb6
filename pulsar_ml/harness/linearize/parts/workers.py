"""Workers: forked processes that do pieces of one check side by side.

A worker is a fork of this process at the moment at which it begins, so the history and the model
are not copied to it. It gets numbers of pieces and returns their results: one piece at first, and
more at once while they take less time than their way. A worker that dies loses nothing: each of its
pieces goes to a new worker once, alone, and then ends in :class:`Death`.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pulsar_ml.errors import PulsarMlError

if TYPE_CHECKING:  # imported when workers begin: most checks are over before
    from multiprocessing.connection import Connection

MOST_DEATHS = 2  # of the workers of one piece; behind the last, the piece is lost
PATIENCE = 5.0  # seconds for a worker that closed its pipe to end
AT_ONCE = 0.01  # seconds of work that a worker gets at once, and after which it sends results


class WorkerError(PulsarMlError, RuntimeError):
    """Worker processes died while they checked a part, which therefore has no answer."""


class Death(NamedTuple):
    """Stands for the result of a piece whose workers died; ``how`` says by which signal or code."""

    how: str


class Raised(NamedTuple):
    """Stands for the result of a piece whose work raised an exception in its worker."""

    text: str


class Worker:
    """One process, and the pieces it works on. ``share``: how many it gets at once."""

    def __init__(self, work: Callable[[Any], Any], begin: Callable[[], None]) -> None:
        from multiprocessing import get_context

        fork = get_context("fork")
        self.pieces: deque[int] = deque()
        self.share = 1
        self.begun = 0.0
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=serve, args=(work, begin, other, self.pipe), daemon=True)
        self.process.start()
        other.close()

    def give(self, pieces: Sequence[int], items: Sequence[Any]) -> None:
        """Send the worker pieces. Its death is noticed later, by :meth:`Workers.results`."""
        self.pieces.extend(pieces)
        self.begun = time.monotonic()
        with suppress(OSError):
            self.pipe.send([items[piece] for piece in pieces])

    def receive(self) -> list[tuple[int, Any]]:
        """Return pieces with their results; EOFError or OSError when the worker died."""
        results = [(self.pieces.popleft(), result) for result in self.pipe.recv()]
        if not self.pieces:
            took = time.monotonic() - self.begun
            self.share = 2 * self.share if took < AT_ONCE else max(1, self.share // 2)
        return results

    def how_it_died(self) -> str:
        self.process.join(PATIENCE)
        code = self.process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.process.close()


class Workers:
    """Up to ``count`` worker processes that call ``work`` on items; a context that ends them.

    ``deaths`` has a sentence for each worker that died.
    """

    def __init__(
        self, work: Callable[[Any], Any], count: int, begin: Callable[[], None] = lambda: None
    ) -> None:
        """``begin`` is called once in each worker."""
        self.work = work
        self.begin = begin
        self.count = count
        self.workers: list[Worker] = []
        self.deaths: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End all workers, whatever they do."""
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def in_order(self, items: Sequence[Any]) -> Generator[Any, None, None]:
        """Yield the result of each item in the order of the items.

        The consumer may stop: nothing is begun behind an item that it has not yet seen but for the
        few that keep the workers busy.
        """
        finished: dict[int, Any] = {}
        place = 0
        with closing(self.results(items)) as results:
            for piece, result in results:
                finished[piece] = result
                while place in finished:
                    yield finished.pop(place)
                    place += 1

    def results(self, items: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
        """Yield the number of each item with its result, as they come."""
        waiting = deque(range(len(items)))
        deaths = dict.fromkeys(waiting, 0)
        while len(self.workers) < min(self.count, len(items)):
            self.workers.append(Worker(self.work, self.begin))
        left = len(items)
        try:
            while left:
                for worker in self.workers:
                    if waiting and not worker.pieces:
                        worker.give(self.next_of(waiting, worker.share, deaths), items)
                for worker in self.ready():
                    try:
                        results = worker.receive()
                    except (EOFError, OSError):
                        results = []
                        how = self.replace(worker)
                        for piece in reversed(worker.pieces):
                            deaths[piece] += 1
                            if deaths[piece] < MOST_DEATHS:
                                waiting.appendleft(piece)
                            else:
                                results.append((piece, Death(how)))
                    left -= len(results)
                    yield from results
        finally:
            # A consumer that stopped leaves workers with work that nobody needs.
            for worker in [one for one in self.workers if one.pieces]:
                self.workers.remove(worker)
                worker.end()

    def next_of(self, waiting: deque[int], share: int, deaths: Mapping[int, int]) -> list[int]:
        """Take the pieces that a worker gets at once; one alone that a worker died of."""
        most = max(1, min(share, len(waiting) // (2 * self.count)))
        pieces = [waiting.popleft()]
        while len(pieces) < most and not deaths[pieces[0]] and not deaths[waiting[0]]:
            pieces.append(waiting.popleft())
        return pieces

    def ready(self) -> list[Worker]:
        """Wait for busy workers that have a result, or died."""
        from multiprocessing.connection import wait

        busy: dict[Any, Worker] = {one.pipe: one for one in self.workers if one.pieces}
        return [busy[one] for one in wait(list(busy))]

    def replace(self, worker: Worker) -> str:
        """Put a new worker in the place of one that died; return how it died."""
        how = worker.how_it_died()
        self.deaths.append(how)
        self.workers[self.workers.index(worker)] = Worker(self.work, self.begin)
        worker.end()
        return how


def serve(
    work: Callable[[Any], Any], begin: Callable[[], None], pipe: Connection, parents: Connection
) -> None:
    """Answer items until the pipe closes; the body of a worker."""
    from pulsar_ml.harness.search.descendants import die_with_parent

    parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends workers
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    parent = os.getppid()
    die_with_parent()
    begin()
    with suppress(EOFError, OSError):
        while os.getppid() == parent:
            results: list[Any] = []
            sent = time.monotonic()
            for item in pipe.recv():
                try:
                    results.append(work(item))
                except Exception as error:  # raised again by the parent, which does it itself
                    results.append(Raised(f"{type(error).__name__}: {error}"))
                if time.monotonic() - sent >= AT_ONCE:
                    pipe.send(results)
                    results, sent = [], time.monotonic()
            if results:
                pipe.send(results)
