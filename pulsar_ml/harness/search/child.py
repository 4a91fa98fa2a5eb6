"""Runs work in a forked child process under a watchdog, so that a crash cannot hurt the caller.

Code under test may end its process, block it, use up the machine's memory, fork, or write anywhere.
Then the child ends with all its descendants, and the parent reports how. A fork has nothing to load
or compile. The child has a process group of its own and no descriptor of the parent but its pipes.
Parent and child share a page in which the child notes its progress; the page outlives the child.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import fcntl
import mmap
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pulsar_ml.harness.search.descendants import (
    MOST_PROCESSES,
    Processes,
    begin_group,
    bound_processes,
    die_with_parent,
    end,
    end_group,
)
from pulsar_ml.harness.search.frames import GarbageError, Messages, new_key, write_message

T = TypeVar("T")
Send = Callable[[Any], None]

# The ways in which a child can end before its work is done.
STACK_EXHAUSTED = 87  # exit status, as in pythreads/fibers.h
ENDED = "process ended"
STUCK = "process stuck"
MEMORY = "out of memory"
PROCESSES = "too many processes"

RESULT, DONE, RAISED = range(3)  # kinds of messages from the child
LOOK_SECONDS = 0.1
JUDGING_SECONDS = 600.0  # of one judge of answers, which has a bound of steps
MOST_BETWEEN = 1.0  # seconds between two looks that count as time without progress
TAIL_BYTES = 8192
MOST_DESCRIPTORS = 1 << 30
TICKS = os.sysconf("SC_CLK_TCK")  # of processor time, a second


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of a child process; None: no limit.

    Attributes:
        wall: seconds of the clock without progress, after which the child counts as stuck. Time
            in which this process did not run, or the child waited for a processor, is not counted.
        cpu: the same in seconds of its processor time.
        memory: bytes resident in memory beyond those of its parent, with which it begins.
        address_space: bytes that the child may reserve beyond those that it begins with.
    """

    wall: float = 30.0
    cpu: float | None = 10.0
    memory: int | None = None
    address_space: int | None = None


class LostError(RuntimeError):
    """The child process ended, or had to be ended, before its work was done.

    Attributes:
        kind: ENDED, STUCK, MEMORY or PROCESSES.
        message: one sentence.
        execution: the execution under way, as the engine noted it.
        item: the item under way, as the work noted it.
        how: the signal's name, the exit status in words, or "".
        stack: the places of the running thread of a stuck child, from the inside out, if known.
    """

    def __init__(
        self, kind: str, message: str, heart: Heart, how: str = "", stack: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.stack = stack
        self.kind = kind
        self.message = message
        self.how = how
        self.execution, _, self.item, _ = heart.words()


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of a stuck child: the end of a sentence, and the stack of its running thread."""

    text: str = ""
    stack: tuple[str, ...] = ()


def nowhere(pid: int, quiet: float) -> Standing:
    """Stand for a child of which no place is known."""
    return Standing()


Places = Callable[[int, float], Standing]


class Heart:
    """A page that parent and child share: which item is under way, and how many were begun.

    The engine writes the first two words (execution, number of executions), the work the next two.
    """

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, mmap.PAGESIZE)

    def begin(self, item: int) -> None:
        """Note that item number ``item`` begins. Called by the child only."""
        _, begun = struct.unpack_from("=QQ", self.page, 16)
        struct.pack_into("=QQ", self.page, 16, item, begun + 1)

    def note_judging(self, judging: bool) -> None:
        """Note whether a judge is at work. Called by the child only."""
        struct.pack_into("=Q", self.page, 32, judging)

    def judging(self) -> bool:
        """Return True while a judge is at work on the answers of an execution."""
        return bool(struct.unpack_from("=Q", self.page, 32)[0])

    def words(self) -> tuple[int, int, int, int]:
        """Return the execution under way, executions begun, the item under way, items begun."""
        execution, beats, item, begun = struct.unpack_from("=QQQQ", self.page)
        return execution, beats, item, begun


class Tail:
    """The last bytes that a child wrote to its standard output and error."""

    def __init__(self) -> None:
        self._bytes = b""

    def add(self, data: bytes) -> None:
        self._bytes = (self._bytes + data)[-TAIL_BYTES:]

    def lines(self, most: int) -> list[str]:
        """Return the last lines that are not empty, at most ``most``."""
        text = self._bytes.decode(errors="replace")
        return [line.rstrip() for line in text.splitlines() if line.strip()][-most:]


def call(
    work: Callable[[], T],
    *,
    limits: Limits | None = None,
    watcher: Callable[..., None] | None = None,
) -> T:
    """Run ``work`` in a child process and return its result, which must be picklable.

    ``watcher`` replaces :func:`watch`. Raises the exceptions of ``work``, and LostError.
    """
    results: list[T] = []
    (watcher or watch)(lambda send: send(work()), results.append, limits=limits)
    return results[0]


def watch(
    work: Callable[[Send], object],
    on_result: Callable[[Any], object],
    *,
    limits: Limits | None = None,
    heart: Heart | None = None,
    tail: Tail | None = None,
    places: Places = nowhere,
    steps: Callable[[int], int] = lambda pid: 0,
) -> None:
    """Run ``work(send)`` in a child process; ``on_result`` gets each value that it sends, at once.

    ``tail`` collects the end of the child's output. ``places`` describes where a stuck child
    stands, from its process and the time without a step; the text goes behind the message. The
    number that ``steps`` returns changes with each step of the child. Raises the exceptions of
    ``work``, and LostError. An interrupt ends the child.
    """
    limits = limits or Limits()
    heart = heart or Heart()
    key = new_key()
    ours, theirs = map(above_standard, os.pipe())
    printed, prints = os.pipe() if tail else (-1, -1)
    parent = os.getpid()
    inherited = resident(parent)
    child = os.fork()
    if child == 0:
        live(work, theirs, key, limits, parent, prints)
    with contextlib.suppress(OSError):  # the child does it as well, and may have ended
        os.setpgid(child, child)
    os.close(theirs)
    if tail:
        os.close(prints)
        os.set_blocking(printed, False)
    pidfd = os.pidfd_open(child)
    try:
        messages = Messages(ours, key)
        watched = Watched(
            child, pidfd, ours, messages, heart, printed, tail, limits, places, steps, inherited
        )
        listen(watched, on_result)
    finally:
        for descriptor in (ours, pidfd, printed) if tail else (ours, pidfd):
            os.close(descriptor)
        end(child)


def live(
    work: Callable[[Send], object],
    pipe: int,
    key: bytes,
    limits: Limits,
    parent: int,
    prints: int,
) -> None:
    """Run ``work`` in the child, send the result, and end the process; does not return."""
    status = 1
    try:
        die_with_parent()
        begin_group()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends this process
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)  # not the parent's handlers
        faulthandler.disable()
        keep_only(pipe, prints)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        bound_processes()
        if limits.address_space is not None:
            most = address_space() + limits.address_space
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if os.getppid() == parent:
            try:
                work(lambda result: write(pipe, key, (RESULT, result)))
                write(pipe, key, (DONE, None))
            except Exception as error:
                write(pipe, key, (RAISED, portable(error)))
            status = 0
    finally:
        os._exit(status)  # the parent's buffers and exit handlers must not run here


def write(pipe: int, key: bytes, message: tuple[int, Any]) -> None:
    """Write a message; end this process with SIGKILL when its pipe was closed.

    The parent ends the child in the same way when it notices first: the report does not differ.
    """
    try:
        write_message(pipe, key, message)
    except OSError:
        os.kill(os.getpid(), signal.SIGKILL)


def above_standard(descriptor: int) -> int:
    """Return the descriptor, or a copy above the standard ones when some of those were closed."""
    if descriptor > 2:
        return descriptor
    copy: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return copy


def keep_only(pipe: int, prints: int) -> None:
    """Close every descriptor of this process but a pipe, and the standard ones.

    Standard input is empty. ``prints``, unless it is -1, becomes standard output and error.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    for standard in (1, 2):
        if prints >= 0:
            os.dup2(prints, standard)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, MOST_DESCRIPTORS)
    # A replaced stream, as of a test runner, may have a descriptor that is closed now.
    sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115


def portable(error: Exception) -> Exception:
    """Return ``error`` if it survives pickling, else a RuntimeError with its text."""
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
    """A child process, with the pipes, limits and shared page through which it is watched."""

    child: int
    pidfd: int
    pipe: int
    messages: Messages
    heart: Heart
    printed: int
    tail: Tail | None
    limits: Limits
    places: Places
    steps: Callable[[int], int]
    inherited: int = 0  # bytes of memory with which the child began


def listen(watched: Watched, on_result: Callable[[Any], object]) -> None:
    """Receive results until the child is done; raises its exception, or LostError."""
    sources = select.poll()
    for descriptor in (watched.pipe, watched.pidfd, watched.printed):
        if descriptor >= 0:
            sources.register(descriptor, select.POLLIN)
    patience = Patience(watched)
    while True:
        ready = {descriptor for descriptor, _ in sources.poll(LOOK_SECONDS * 1000)}
        if watched.printed in ready and not read_tail(watched):
            sources.unregister(watched.printed)
        over = watched.pidfd in ready
        if over:
            end_group(watched.child)  # a descendant may hold the pipe open
        while watched.messages.read() and over:  # all that it sent before its end
            pass
        for kind, content in received(watched):
            if kind == DONE:
                return
            if kind == RAISED:
                raise as_limit_error(content, watched)
            on_result(content)
            patience.refresh()
        if over or watched.messages.ended:
            raise ended(watched)
        patience.look()


def received(watched: Watched) -> Iterator[tuple[int, Any]]:
    """Yield the messages that arrived; LostError for anything else on the pipe."""
    try:
        yield from watched.messages.complete()
    except GarbageError as error:
        text = f"the code under test wrote to the harness's pipe: {error}"
        raise LostError(ENDED, text, watched.heart, "garbage on the pipe") from None


class Patience:
    """Compares a child with its limits, at most every LOOK_SECONDS."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._processes = Processes(watched.child)
        self._words: tuple[int, ...] = ()
        self._since = self._next = time.monotonic()
        self._idle = self._busy = self._judged = 0.0
        self._steps, self._stepped = 0, self._since

    def refresh(self) -> None:
        """Count a result as progress."""
        self._words = ()

    def look(self) -> None:
        """Raise LostError when the child is beyond a limit."""
        now = time.monotonic()
        if now < self._next + LOOK_SECONDS:
            return
        between, self._next = min(now - self._next, MOST_BETWEEN), now
        heart, limits = self._watched.heart, self._watched.limits
        if (steps := self._watched.steps(self._watched.child)) != self._steps:
            self._steps, self._stepped = steps, now
        added = resident(self._watched.child) - self._watched.inherited
        if limits.memory is not None and added > limits.memory:
            raise LostError(MEMORY, f"more than {limits.memory >> 20} MiB in memory", heart)
        if self._processes.too_many():
            text = f"the code under test has more than {MOST_PROCESSES} processes at once"
            raise LostError(PROCESSES, text, heart)
        if heart.words() != self._words:
            self._words = heart.words()
            self._judged = 0.0
            self._begin_again(now)
            return
        if heart.judging():
            self._begin_again(now)  # the limits are about executions
            self._judged += between
            if self._judged > JUDGING_SECONDS:
                text = f"the model gave no answer within {JUDGING_SECONDS:g} s"
                raise LostError(STUCK, text, heart)
            return
        if limits.cpu is None or not runnable(self._watched.child):
            self._idle += between
        if self._idle > limits.wall:
            text = f"no execution ended within {limits.wall:g} s"
            raise self._stuck(text, ": the code under test blocks its process", now)
        elif limits.cpu is not None and cpu_seconds(self._watched.child) - self._busy > limits.cpu:
            text = f"no execution ended within {limits.cpu:g} s of processor time"
            loops = ": the code under test loops without a step that the engine sees"
            raise self._stuck(text, loops, now)

    def _begin_again(self, now: float) -> None:
        """Count the time without progress from now on."""
        self._since, self._idle, self._busy = now, 0.0, cpu_seconds(self._watched.child)

    def _stuck(self, text: str, reason: str, now: float) -> LostError:
        """Return the error of a stuck child: a place of Python code replaces the reason."""
        watched = self._watched
        quiet = now - max(self._stepped, self._since)
        found = watched.places(watched.child, quiet if quiet > 2 * LOOK_SECONDS else 0.0)
        message = text + ("" if found.stack else reason) + found.text
        return LostError(STUCK, message, watched.heart, stack=found.stack)


def as_limit_error(error: Exception, watched: Watched) -> Exception:
    """Return LostError for an error caused by the limit of address space, else ``error``."""
    most = watched.limits.address_space
    refused = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    )
    if most is None or not refused:
        return error
    return LostError(
        MEMORY, f"no memory within {most >> 20} MiB of address space: {error}", watched.heart
    )


def readable(descriptor: int) -> bool:
    source = select.poll()
    source.register(descriptor, select.POLLIN)
    return bool(source.poll(0))


def read_tail(watched: Watched) -> bool:
    """Read the child's output; False when there will be no more."""
    assert watched.tail is not None
    try:
        data = os.read(watched.printed, 1 << 16)
    except BlockingIOError:
        return True
    watched.tail.add(data)
    return bool(data)


def of_kernel(process: int, name: str) -> list[bytes]:
    """Return the fields of ``/proc/PID/name``, of ``stat`` those after the command.

    There are none when the process is gone, which the pipe reports.
    """
    try:
        with open(f"/proc/{process}/{name}", "rb", 0) as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def cpu_seconds(process: int) -> float:
    fields = of_kernel(process, "stat")
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def runnable(process: int) -> bool:
    """Return True if the process runs or waits for a processor, and not for anything else."""
    return of_kernel(process, "stat")[:1] == [b"R"]


def resident(process: int) -> int:
    fields = of_kernel(process, "statm")
    return int(fields[1]) * mmap.PAGESIZE if fields else 0


def address_space() -> int:
    """Return the bytes of address space of this process."""
    return int(of_kernel(os.getpid(), "statm")[0]) * mmap.PAGESIZE


def ended(watched: Watched) -> LostError:
    """Return the LostError of a child that ended on its own."""
    # The child may have closed its pipe and still run; killing a process that ended does no harm.
    os.kill(watched.child, signal.SIGKILL)
    how = os.waitid(os.P_PID, watched.child, os.WEXITED | os.WNOWAIT)  # watch() reaps the child
    while watched.tail and readable(watched.printed) and read_tail(watched):
        pass
    if how is not None and how.si_code == os.CLD_EXITED and how.si_status == STACK_EXHAUSTED:
        name = "a stack overflow"
        text = "native code used up the stack of a Python thread: deep recursion outside Python"
    elif how is not None and how.si_code == os.CLD_EXITED:
        name = f"exit status {how.si_status}"
        text = f"the code under test ended its process with {name}"
    else:
        name = "a signal" if how is None else signal.Signals(how.si_status).name
        text = f"{name} ended the process of the code under test"
    return LostError(ENDED, text, watched.heart, name)
