"""A session: while it lasts, the engine can execute Python functions with their threads.

The interpreter's locks, queues, clocks, random numbers and threads belong to the engine within an
execution. Everything is as it was outside executions, and after the session.
"""

from __future__ import annotations

import gc
import itertools
import logging
import random
import sys
import sysconfig
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Explorer  # noqa: F401  (its symbols are what _fibers calls)
from pulsar_ml.harness.pythreads import _fibers
from pulsar_ml.harness.pythreads.events import Events
from pulsar_ml.harness.pythreads.failures import ExceptionTexts, register
from pulsar_ml.harness.pythreads.native_modules import checked_modules
from pulsar_ml.harness.pythreads.points import CodeUnderTest, Described
from pulsar_ml.harness.pythreads.stuck import answer

SELECTIONS: dict[tuple[str, ...], int] = {}  # a number for each choice of code under test
SEMANTICS = ("gil", "free")


class Abandoned(BaseException):
    """Leaves the threads of an execution that was ended, so that ``finally`` and ``with`` run."""


class StartedEvent:
    """Stands for the event by which a thread tells that it has begun."""

    def __init__(self, happened: bool) -> None:
        self.happened = happened

    def is_set(self) -> bool:
        return self.happened

    def set(self) -> None:
        """Do nothing: one event stands for those of all threads."""

    def is_done(self) -> bool:
        """Return False, as the handle of a thread (3.13) that has not ended."""
        return False

    def _at_fork_reinit(self) -> None:
        """Do nothing, in a child process."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.happened


def run_timer(timer: threading.Timer) -> None:
    """The method ``run`` of timers: unlike a wait with a time-out, a sleep may end early."""
    time.sleep(timer.interval)
    if not timer.finished.is_set():
        timer.function(*timer.args, **timer.kwargs)
    timer.finished.set()


def prepare_execution() -> None:
    """Set back what the standard library counts."""
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None:
        futures.ThreadPoolExecutor._counter = itertools.count().__next__


def finish_test() -> None:
    """Tell idle workers of thread pools to end, as the interpreter does at its exit."""
    futures: Any = sys.modules.get("concurrent.futures.thread")
    if futures is not None:
        for queue in list(futures._threads_queues.values()):
            queue.put(None)


def is_enabled_for(logger: logging.Logger, level: int) -> bool:
    """The method of loggers, without its cache: to fill the cache takes a lock, which is a step."""
    if logger.disabled or logger.manager.disable >= level:
        return False
    return level >= logger.getEffectiveLevel()


def keep_quiet(quiet: int) -> None:
    """Switch the log off while the threads of an abandoned execution end, and on again.

    ``logging.disable`` would empty the caches of all loggers, too.
    """
    manager = logging.root.manager
    if quiet:
        keep_quiet.before = manager.disable  # type: ignore[attr-defined]
        manager.disable = logging.CRITICAL
    else:
        manager.disable = getattr(keep_quiet, "before", 0)


def require_support() -> None:
    """Raise UsageError unless this interpreter is one whose threads the engine can run."""
    if not _fibers.SUPPORTED:
        version = ".".join(map(str, sys.version_info[:3]))
        without = " without one" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
        raise UsageError(
            "Python threads run under the engine on CPython 3.11 to 3.14 with a GIL and on 3.14 "
            f"without one, and this is {version}{without}; use python3.14 for such tests"
        )


@contextmanager
def session(
    *, semantics: str = "gil", also: Iterable[str] = (), strict: bool = False
) -> Iterator[ExceptionTexts]:
    """Prepare this process for executions of Python functions.

    ``semantics`` is "gil", or "free" to report races as well. ``also`` names installed modules and
    packages that are under test, too. With ``strict`` a lock that stays locked at the end of its
    test, or that another thread releases, is a failure and no remark. Yields the texts of the last
    recorded failure.
    """
    require_support()
    register()
    if semantics not in SEMANTICS:
        raise UsageError(
            f"semantics {semantics!r} is not known; use one of: {', '.join(SEMANTICS)}"
        )
    under_test = CodeUnderTest(also)
    texts = ExceptionTexts()
    events = Events()
    answer()

    def describe_code(each: CodeType) -> Described | None:
        return under_test.describe(each)

    collects = gc.isenabled()
    gc.freeze()  # the collections behind executions pass over what is older, garbage or not
    gc.disable()
    methods = _fibers.attach(
        describe_code=describe_code,
        on_exception=texts.take,
        before=prepare_execution,
        finish=finish_test,
        after=collect_garbage,
        thread_class=threading.Thread,
        active_threads=threading._active,  # type: ignore[attr-defined]
        started_event=StartedEvent(True),
        new_event=StartedEvent(False),
        abandoned=Abandoned,
        deque=deque,
        run_method=threading.Thread.run,
        random=random._inst,
        local=threading.local,
        quiet=keep_quiet,
        watch=events.watch,
        on_native=texts.note_native,
        on_lock=texts.note_lock,
        selection=SELECTIONS.setdefault(under_test.also, len(SELECTIONS) + 1),
        checked=semantics == "free",
        native=bool(checked_modules()),
        strict=strict,
        contexts=bool(getattr(sys.flags, "thread_inherit_context", False)),  # 3.14 and later
    )
    with (
        events.open(),
        replaced_attributes(threading.Thread, methods),
        replaced_attributes(threading.Timer, {"run": run_timer}),
        replaced_attributes(logging.Logger, {"isEnabledFor": is_enabled_for}),
    ):
        try:
            yield texts
        finally:
            _fibers.detach()
            gc.unfreeze()
            if collects:
                gc.enable()


def collect_garbage() -> None:
    """Collect what executions left in cycles; within an execution the collector does not run."""
    gc.collect()


@contextmanager
def replaced_attributes(owner: type, values: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """Give a class other attributes for a while."""
    before = {name: owner.__dict__.get(name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, kept in before.items():
            if kept is None:
                delattr(owner, name)
            else:
                setattr(owner, name, kept)
