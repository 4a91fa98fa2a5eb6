"""The threads of operations that are Python values: numbers, names, and one operation at a time.

Operations are :class:`history.Operation`, whose module imports this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pulsar_ml.errors import UsageError

MOST_THREADS = 1 << 31  # numbers of threads are below

Shown = Callable[[int], str]  # names the operation of a number in a message


def numbered_threads(operations: Sequence[Any], shown: Shown) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of the thread of each operation, and the names of threads that have one."""
    if all(type(one.thread) is int and 0 <= one.thread < MOST_THREADS for one in operations):
        return [int(one.thread) for one in operations], ()
    numbers: dict[int | str, int] = {}
    for index, one in enumerate(operations):
        if type(one.thread) not in (int, str):
            raise UsageError(
                f"{shown(index)} has the thread {one.thread!r}; a thread is an integer or a name"
            )
        numbers.setdefault(one.thread, len(numbers))
    return [numbers[one.thread] for one in operations], tuple(str(name) for name in numbers)


def follow_one_another(
    operations: Sequence[Any],
    threads: Sequence[int],
    invoked: Sequence[int],
    returned: Sequence[int],
    shown: Shown,
) -> None:
    """Raise UsageError when an operation begins inside another one of its thread that returned.

    An operation that did not return, as after a time-out, may go on beside later ones.
    """
    latest: dict[int, int] = {}  # the operation of each thread that returned last
    for index in sorted(range(len(operations)), key=invoked.__getitem__):
        other = operations[index]
        before = latest.get(threads[index])
        if before is not None and returned[before] > invoked[index]:
            one = operations[before]
            raise UsageError(
                f"{shown(index)} of thread {other.thread} was invoked at {other.invoked}, before "
                f"{shown(before)} of that thread returned at {one.returned}; a thread is "
                "inside one operation at a time: give tasks that overlap threads of their own"
            )
        if other.returned is not None:
            latest[threads[index]] = index
