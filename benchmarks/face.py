"""Cost of calls from Python, one thread, with a bare method call of a compiled class as the floor.

Figures are nanoseconds of processor time of one call; of calls for many at once, of one entry. The
floor of a row is a method that does nothing and takes as many arguments. The ratios are of one
repeat.
"""

from __future__ import annotations

import timeit
from array import array
from collections.abc import Callable
from functools import partial
from time import thread_time

from benchmarks.measure import Benchmark, loops, ratio
from pulsar_ml import (
    AckState,
    ActiveManagedCursorContainer,
    EntryCacheManager,
    InflightReadsLimiter,
    InMemoryDelayedDeliveryTrackerFactory,
    ManagedCursorContainer,
    Position,
)

CALLS = 100_000
MANY = 1_000  # entries of a call for many
CURSORS = 10


def call(statement: str, names: dict[str, object], entries: int = 1) -> float:
    """Nanoseconds of a statement, for each of so many entries."""
    calls = CALLS // entries
    timer = timeit.Timer(statement, timer=thread_time, globals=names)
    timer.timeit(calls // 10 + 1)
    return timer.timeit(calls) / calls / entries * 1e9


def bare() -> float:
    return call("bare.one(at)", {"bare": loops().Bare(), "at": Position(7, 5)})


def bare_of_two() -> float:
    return call("bare.two('c5', at)", {"bare": loops().Bare(), "at": Position(7, 5)})


def cursors(kind: type[ActiveManagedCursorContainer] | type[ManagedCursorContainer]) -> object:
    container = kind()
    for number in range(CURSORS):
        container.add(f"c{number}", (7, number))
    return container


def active(statement: str) -> float:
    return call(statement, {"cursors": cursors(ActiveManagedCursorContainer), "at": Position(7, 5)})


def heap(statement: str) -> float:
    return call(statement, {"cursors": cursors(ManagedCursorContainer), "at": Position(7, 5)})


def acquire() -> float:
    """Acquire and the end of the permits, which their collection gives back."""
    limiter = InflightReadsLimiter(max_bytes=1 << 30)
    return call("limiter.acquire(100, callback)", {"limiter": limiter, "callback": print})


def moved(statement: str) -> float:
    """A statement that moves a thousand cursors of an active container."""
    container = ActiveManagedCursorContainer()
    names = [f"c{number}" for number in range(MANY)]
    for number, name in enumerate(names):
        container.add(name, (7, number))
    variables = {"cursors": container, "names": names, "places": places()}
    return call(statement, variables, MANY)


def delayed(statement: str, entries: int = 1) -> float:
    """A statement that keeps a delayed message that is kept already."""
    view = InMemoryDelayedDeliveryTrackerFactory().new_tracker("a")
    times = array("q", [10**6] * MANY)
    names = {"view": view, "at": Position(7, 5), "places": places(), "times": times}
    return call(statement, names, entries)


def places() -> memoryview:
    """The positions of a thousand entries."""
    ids = array("q", [number for i in range(MANY) for number in (7, i)])
    return memoryview(ids.tobytes()).cast("q", (MANY, 2))


def cached(statement: str, entries: int = 1) -> float:
    """A statement over a cache of a thousand entries of 100 bytes."""
    values = [b"x" * 100] * MANY
    with EntryCacheManager(max_size=None) as manager:
        cache = manager.range_cache("a")
        cache.put_all(places(), values)
        names = {"cache": cache, "at": Position(7, 5), "places": places(), "values": values}
        return call(statement, names, entries)


def acknowledged(statement: str, entries: int = 1) -> float:
    names = {"state": AckState((7, -1)), "at": Position(7, 5), "places": places()}
    return call(statement, names, entries)


RANK = "cursors.number_of_cursors_at_same_position_or_before('c5')"
ROWS: dict[str, Callable[[], float]] = {
    "rank of a cursor": partial(active, RANK),
    "update of an active cursor": partial(active, "cursors.update_cursor('c5', at)"),
    "update of a cursor in the heap": partial(heap, "cursors.update_cursor('c5', at)"),
    "update_cursors, a cursor": partial(moved, "cursors.update_cursors(names, places)"),
    "slowest position": partial(heap, "cursors.slowest_cursor_position()"),
    "acquire of permits and their end": acquire,
    "hit and release": partial(cached, "cache.get(at).release()"),
    "get_all and release, an entry": partial(
        cached, "for entry in cache.get_all(places): entry.release()", MANY
    ),
    "put of a duplicate": partial(cached, "cache.put(at, b'x')"),
    "put_all of duplicates, an entry": partial(cached, "cache.put_all(places, values)", MANY),
    "description of an entry": partial(
        cached, "for each in cache.iterate_cached((7, 0), (7, 999)): pass", MANY
    ),
    "put_all and remove_all, an entry": partial(
        cached, "cache.put_all(places, values); cache.remove_all(places)", MANY
    ),
    "add_message": partial(delayed, "view.add_message(at, 1000000, now_ms=0)"),
    "add_messages, a message": partial(delayed, "view.add_messages(places, times, now_ms=0)", MANY),
    "acknowledge": partial(acknowledged, "state.acknowledge(at)"),
    "acknowledge_all, an entry": partial(acknowledged, "state.acknowledge_all(places)", MANY),
}

# Rows whose floor has two arguments.
OF_TWO = {
    "update of an active cursor",
    "update of a cursor in the heap",
    "acquire of permits and their end",
    "put of a duplicate",
}

BENCHMARKS = (
    Benchmark("face: bare method call", bare, about="of a compiled class, with one argument"),
    Benchmark("face: bare method call of two", bare_of_two, about="likewise, with two arguments"),
    *(Benchmark(f"face: {name}", run) for name, run in ROWS.items()),
    *(
        Benchmark(
            f"face: {name}, over a bare call",
            ratio(run, bare_of_two if name in OF_TWO else bare),
            unit="x",
        )
        for name, run in ROWS.items()
    ),
)
