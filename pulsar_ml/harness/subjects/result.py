"""What the native runner hands back."""

from __future__ import annotations

from typing import NamedTuple


class ThreadViolation(NamedTuple):
    """The first broken invariant that one thread saw, at its call number ``call``.

    ``thread`` and ``call`` are -1 for what the runner itself noticed.
    """

    thread: int
    call: int
    invariant: str
    message: str


class RunResult(NamedTuple):
    """What a run did.

    Attributes:
        operations: operations finished by all threads.
        completed: operations finished by each thread.
        duration_ns: from the opening of the start barrier to the end of the last thread.
        overlaps: ``overlaps[a][b]``: how often a thread that started operation ``a`` found another
            thread inside operation ``b`` (codes).
        violations: at most one for each thread.
        stuck: no operation finished for ``patience_ns``. The threads are left behind, inside the
            instance, which therefore is never destroyed; best end the process soon.
    """

    operations: int
    completed: tuple[int, ...]
    duration_ns: int
    overlaps: tuple[tuple[int, ...], ...]
    violations: tuple[ThreadViolation, ...]
    stuck: bool
