"""Locks of Python code over ``os.fork``: a child never inherits one that another thread held.

The core does the same for its native locks (``binding/fork.pxi``), whose gate shuts after the locks
here are held.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable

_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()
_states: weakref.WeakSet[AfterFork] = weakref.WeakSet()
_naming = threading.Lock()  # guards the two sets
_held: list[ForkLock] = []


class ForkLock:
    """A lock that is free in a forked child, unless the thread that forked held it.

    ``waits=False``: its sections are short. A fork waits for their end, so that the child finds
    what the lock guards complete. ``waits=True``: its sections may wait for a storage. A fork waits
    for none of them: the child gets a new lock, and ``on_torn`` is called there when another thread
    held the old one. ``on_torn`` is a method, whose object may go away.

    No lock is created within a section of a short lock: a fork under way waits for the section, and
    the new lock waits for the fork.
    """

    def __init__(self, *, waits: bool = False, on_torn: Callable[[], object] | None = None) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._waits = waits
        self._on_torn = None if on_torn is None else weakref.WeakMethod(on_torn)
        with _naming:
            _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *exception: object) -> None:
        self._owner = 0
        self._lock.release()

    def locked(self) -> bool:
        """Returns True while a thread holds the lock."""
        return self._lock.locked()

    def _is_mine(self) -> bool:
        return self._owner == threading.get_ident()

    def _renew(self) -> None:
        """Give the child a new lock, unless the thread that forked holds the old one.

        An old one that looks free may be taken: a thread that waited gets it without the
        interpreter's lock, and says so only when it goes on. Such a thread began no section.
        """
        if self._is_mine():
            return
        torn = self._lock.locked()
        self._lock, self._owner = threading.Lock(), 0
        on_torn = self._on_torn and self._on_torn()
        if torn and on_torn is not None:
            on_torn()


class AfterFork(ABC):
    """An object with a method ``after_fork`` that is called in every forked child."""

    def watch_forks(self) -> None:
        with _naming:
            _states.add(self)

    @abstractmethod
    def after_fork(self) -> None:
        """Replaces what needs threads of the parent; starts none, and submits no work.

        Locks of the standard library may be held until all such calls are over.
        """


def _hold_for_fork() -> None:
    _naming.acquire()
    wanted = [lock for lock in _locks if not lock._waits and not lock._is_mine()]
    # A section may contain another one: no lock is held while this thread waits for a second one.
    first: ForkLock | None = None
    while True:
        if first is not None:
            first._lock.acquire()
            _held.append(first)
        for lock in wanted:
            if lock is not first and not lock._lock.acquire(blocking=False):
                first = lock
                break
            if lock is not first:
                _held.append(lock)
        else:
            return
        _release()


def _release() -> None:
    for lock in _held:
        lock._lock.release()
    _held.clear()


def _go_on_after_fork() -> None:
    _release()
    _naming.release()


def _begin_in_child() -> None:
    _release()
    _naming.release()
    for lock in list(_locks):
        if lock._waits:
            lock._renew()
    for state in list(_states):
        state.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_for_fork, after_in_parent=_go_on_after_fork, after_in_child=_begin_in_child
    )
