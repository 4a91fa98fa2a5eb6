"""Ends the processes that code under test starts: children, their children, and orphans.

A child process and its descendants form a process group of their own, which one signal ends. A
process that left the group is found below the child while the child lives. Orphans come back to a
process that adopts them (:func:`adopt`), as the supervisor of a sweep's trials does.

The processes below a child are counted, and too many of them end it. Between two looks the kernel
bounds them (:func:`bound_processes`), except for root.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
LIBC = ctypes.CDLL(None)
MOST_PROCESSES = 64  # that a child may have below it at once
LOOKS_FOR_COUNT = 10  # of a watch, until it counts the machine's processes in any case
MOST_TASKS = 2048  # processes and threads above those of the machine, for which the kernel cares
END_SECONDS = 10.0  # for processes that were killed to be gone


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that forked it ends.

    The parent may have ended before the call: compare ``os.getppid()`` afterwards.
    """
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt() -> None:
    """Make this process the parent of its orphaned descendants."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def adopts() -> bool:
    """Return True when orphaned descendants come back to this process."""
    answer = ctypes.c_int(0)
    LIBC.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value)


def begin_group() -> None:
    """Put this process, a new child, into a group of its own that adopts its orphans."""
    os.setpgid(0, 0)
    adopt()


def bound_processes() -> None:
    """Bound how many processes and threads this process may find of its user; not for root.

    The kernel counts all of the user's. The bound is so far above those of the whole machine that
    it stops a process that forks without end, and no other.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = tasks_here() + MOST_TASKS
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))


def threads_here() -> int:
    """Return the number of threads of this process, also of those that Python does not know."""
    return len(os.listdir("/proc/self/task"))


def left_behind() -> bool:
    """Reap ended children of this process; return True when others still run."""
    with suppress(ChildProcessError):
        while True:
            child, _ = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                return True
    return False


def below(process: int) -> list[psutil.Process]:
    """Return the running descendants of a process."""
    try:
        found = psutil.Process(process).children(recursive=True)
        return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]
    except psutil.Error:
        return []


def tasks_here() -> int:
    """Return the number of processes and threads on this machine, which the kernel counts."""
    with open("/proc/loadavg", "rb", 0) as file:
        tasks: bytes = file.read().split()[3]
    return int(tasks.partition(b"/")[2])


def processes_here() -> int:
    """Return the number of processes on this machine."""
    return sum(name.isdecimal() for name in os.listdir("/proc"))


class Processes:
    """Counts the processes below a child, as soon as the machine has some more than before.

    Those of the machine are counted as soon as it has more tasks, and from time to time, because
    threads that end elsewhere may hide some.
    """

    def __init__(self, child: int) -> None:
        self._child = child
        self._tasks, self._processes = tasks_here(), processes_here()
        self._looks = 0

    def too_many(self) -> int:
        """Return their number when it is above MOST_PROCESSES, else 0."""
        self._looks += 1
        if tasks_here() - self._tasks <= MOST_PROCESSES // 2 and self._looks % LOOKS_FOR_COUNT:
            return 0
        if processes_here() - self._processes <= MOST_PROCESSES // 2:
            return 0
        count = len(below(self._child))
        return count if count > MOST_PROCESSES else 0


def end(child: int) -> None:
    """End a child with all its descendants and reap it; harmless when it is gone.

    Where this process adopts orphans, every other child of this process ends as well.
    """
    adopting = adopts()
    family = [] if adopting else below(child)  # which takes a look at each process of the machine
    end_group(child)
    kill(family)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    if adopting:
        end_adopted()


def end_group(child: int) -> None:
    """Kill a child and its process group; the kernel lets none of them fork meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def end_adopted() -> None:
    """Kill and reap every child of this process, and what comes back of their children."""
    deadline = time.monotonic() + END_SECONDS
    while left_behind() and time.monotonic() < deadline:
        family = below(os.getpid())
        for process in family:  # none of them may fork while the others are killed
            with suppress(psutil.Error):
                process.suspend()
        kill(family)
        psutil.wait_procs(family, timeout=1)


def end_session(session: int) -> None:
    """Kill the processes of a session; their leader has ended."""
    for process in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process) == session:
                os.kill(process, signal.SIGKILL)


def kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
