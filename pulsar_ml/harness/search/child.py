"""Work in a forked child process under a watchdog: code that ends its process, blocks it or eats the
machine's memory ends the child, and the parent says how.

The child is a fork, so nothing is loaded or compiled again. A page that both share says how far it has come;
it outlives the child, however that ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import mmap
import os
import pickle
import resource
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
Tell = Callable[[Any], None]

# How a child can be lost.
ENDED = "process ended"
STUCK = "process stuck"
MEMORY = "out of memory"

TOLD, DONE, RAISED = range(3)
LOOK_SECONDS = 0.1
TAIL_BYTES = 8192
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may take; None: as much as it likes.

    Attributes:
        wall, cpu: seconds without progress after which the child is stuck: of the clock, of its processor.
        memory: bytes resident in memory.
        address_space: bytes that it may reserve beyond those that it begins with.
    """

    wall: float = 30.0
    cpu: float | None = 10.0
    memory: int | None = None
    address_space: int | None = None


class LostError(RuntimeError):
    """The child process ended or had to be ended.

    ``execution`` is the number that the engine noted in the heart, ``item`` the one that the work noted.
    ``how`` is the signal's name, the exit status in words, or "".
    """

    def __init__(self, kind: str, message: str, heart: Heart, how: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.how = how
        self.execution, _, self.item, _ = heart.words()


class Heart:
    """A page that parent and child share: what is under way, and how many of them were begun.

    The first two words are the engine's, the next two the work's.
    """

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, mmap.PAGESIZE)

    def begin(self, item: int) -> None:
        """Note that the work of this number begins. Child only."""
        _, begun = struct.unpack_from("=QQ", self.page, 16)
        struct.pack_into("=QQ", self.page, 16, item, begun + 1)

    def words(self) -> tuple[int, int, int, int]:
        """Execution under way, executions begun, item under way, items begun."""
        execution, beats, item, begun = struct.unpack_from("=QQQQ", self.page)
        return execution, beats, item, begun


class Tail:
    """The last of what a child wrote to its standard output and error."""

    def __init__(self) -> None:
        self._bytes = b""

    def add(self, data: bytes) -> None:
        self._bytes = (self._bytes + data)[-TAIL_BYTES:]

    def lines(self, most: int) -> list[str]:
        """The last lines that are not empty."""
        text = self._bytes.decode(errors="replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()][-most:]


def call(work: Callable[[], T], *, limits: Limits | None = None) -> T:
    """What ``work`` returns, made in a child process. It must be possible to pickle it.

    Raises what ``work`` raises, and LostError.
    """
    results: list[T] = []
    watch(lambda tell: tell(work()), results.append, limits=limits)
    return results[0]


def watch(
    work: Callable[[Tell], object],
    told: Callable[[Any], object],
    *,
    limits: Limits | None = None,
    heart: Heart | None = None,
    tail: Tail | None = None,
) -> None:
    """Run ``work(tell)`` in a child process; ``told`` gets here what is told there, as soon as it is.

    With ``tail``, what the child prints goes there. Raises what ``work`` raises, and LostError. An interrupt
    ends the child; what was told stays told.
    """
    limits = limits or Limits()
    heart = heart or Heart()
    ours, theirs = Pipe(duplex=False)
    printed, prints = os.pipe() if tail else (-1, -1)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ours.close()
        live(work, theirs, limits, parent, prints)
    theirs.close()
    if tail:
        os.close(prints)
        os.set_blocking(printed, False)
    pidfd = os.pidfd_open(child)
    try:
        listen(Watched(child, pidfd, ours, heart, printed, tail, limits), told)
    finally:
        ours.close()
        for descriptor in (printed, pidfd) if tail else (pidfd,):
            os.close(descriptor)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def live(
    work: Callable[[Tell], object], pipe: Connection, limits: Limits, parent: int, prints: int
) -> None:
    """The child's life; does not return."""
    status = 1
    try:
        die_with_parent()
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # the parent's business, which then ends this process
        faulthandler.disable()
        if prints >= 0:
            os.dup2(prints, 1)
            os.dup2(prints, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limits.address_space is not None:
            most = address_space() + limits.address_space
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if os.getppid() == parent:
            try:
                work(lambda result: pipe.send((TOLD, result)))
                pipe.send((DONE, None))
            except Exception as error:
                pipe.send((RAISED, portable(error)))
            status = 0
    finally:
        os._exit(status)  # the parent's buffers and exit handlers are not this process's


def die_with_parent() -> None:
    """From now on the end of the thread that made this process is its end, too.

    Look after it whether the parent is still the one that it was.
    """
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def portable(error: Exception) -> Exception:
    """``error`` if it survives pickling, or a RuntimeError that says what it was."""
    try:
        return (
            error
            if type(pickle.loads(pickle.dumps(error))) is type(error)
            else RuntimeError(repr(error))
        )
    except Exception:
        return RuntimeError(repr(error))


@dataclass(frozen=True, slots=True)
class Watched:
    """A child, and what its parent has of it."""

    child: int
    pidfd: int
    pipe: Connection
    heart: Heart
    printed: int
    tail: Tail | None
    limits: Limits


def listen(watched: Watched, told: Callable[[Any], object]) -> None:
    """Until the child says that it is done. Raises what it says that was raised, and LostError."""
    sources: list[Any] = [watched.pipe, watched.pidfd]
    if watched.tail:
        sources.append(watched.printed)
    patience = Patience(watched)
    while True:
        ready = wait(sources, LOOK_SECONDS)
        if watched.printed in ready and not read_tail(watched):
            sources.remove(watched.printed)
        if watched.pipe in ready:
            try:
                kind, content = watched.pipe.recv()
            except Exception:  # the end, or what a child with broken memory wrote
                raise ended(watched) from None
            if kind == DONE:
                return
            if kind == RAISED:
                raise of_raised(content, watched)
            told(content)
            patience.refresh()
        elif watched.pidfd in ready:
            raise ended(watched)
        patience.look()


class Patience:
    """Compares a child with its limits, now and then."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._process: psutil.Process | None = None
        self._words: tuple[int, ...] = ()
        self._since = self._next = time.monotonic()
        self._busy = 0.0

    def refresh(self) -> None:
        """A result is as good as an execution."""
        self._words = ()

    def look(self) -> None:
        """LostError when the child is beyond a limit."""
        now = time.monotonic()
        if now < self._next + LOOK_SECONDS:
            return
        self._next = now
        if self._process is None:
            self._process = psutil.Process(self._watched.child)
        heart, limits = self._watched.heart, self._watched.limits
        if limits.memory is not None and resident(self._process) > limits.memory:
            raise LostError(MEMORY, f"more than {limits.memory >> 20} MiB in memory", heart)
        if heart.words() != self._words:
            self._words = heart.words()
            self._since, self._busy = now, cpu_seconds(self._process)
        elif now - self._since > limits.wall:
            text = f"no execution ended within {limits.wall:g} s: the code under test blocks its process"
            raise LostError(STUCK, text, heart)
        elif limits.cpu is not None and cpu_seconds(self._process) - self._busy > limits.cpu:
            text = f"no execution ended within {limits.cpu:g} s of the processor: endless, out of control"
            raise LostError(STUCK, text, heart)


def of_raised(error: Exception, watched: Watched) -> Exception:
    """What the child raised, or LostError when that was for the limit of its address space."""
    most = watched.limits.address_space
    refused = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    )
    if most is None or not refused:
        return error
    return LostError(
        MEMORY, f"no memory within {most >> 20} MiB of address space: {error}", watched.heart
    )


def read_tail(watched: Watched) -> bool:
    """Takes what the child printed; whether there may be more, now or later."""
    assert watched.tail is not None
    try:
        data = os.read(watched.printed, 1 << 16)
    except BlockingIOError:
        return True
    watched.tail.add(data)
    return bool(data)


def cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # gone: the pipe will tell
        return 0.0
    return float(times.user + times.system)


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def address_space() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE


def ended(watched: Watched) -> LostError:
    """How the child ended on its own."""
    os.kill(
        watched.child, signal.SIGKILL
    )  # it may have closed the pipe and go on; no harm once it has ended
    how = os.waitid(os.P_PID, watched.child, os.WEXITED | os.WNOWAIT)  # who started it reaps it
    while watched.tail and wait([watched.printed], 0) and read_tail(watched):
        pass
    if how is not None and how.si_code == os.CLD_EXITED:
        name = f"exit status {how.si_status}"
        text = f"the code under test ended its process with {name}"
    else:
        name = "a signal" if how is None else signal.Signals(how.si_status).name
        text = f"{name} ended the process of the code under test"
    return LostError(ENDED, text, watched.heart, name)
