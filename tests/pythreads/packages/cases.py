"""The table of tested packages: which version, which semantics, what is expected and known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

BUG, SILENT = "bug", "silent"


@dataclass(frozen=True, slots=True)
class Case:
    """One test of one version.

    Attributes:
        requirement: a package as pip names it; "" for the standard library of this interpreter.
        test: a function, as ``module.function`` of this package.
        expected: BUG or SILENT.
        finding: describes the bug, or what was tested.
        known: where the bug is described; "" when no report was found.
        also: modules of the standard library that are under test.
        before: the first version of Python without the bug; None if all have it.
    """

    requirement: str
    test: str
    expected: str
    finding: str
    known: str = ""
    semantics: str = "gil"
    also: tuple[str, ...] = ()
    before: tuple[int, int] | None = None


CACHETOOLS_LOCK = "documented: a shared cache needs a lock"
SQLALCHEMY = "sqlalchemy/sqlalchemy pull request 13410"
LRU = "documented: the function may be called more than once"

CASES = (
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.without_lock",
        BUG,
        "cached(LRUCache(1)) without a lock: KeyError leaves the call",
        CACHETOOLS_LOCK,
    ),
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.expiring_without_lock",
        BUG,
        "TTLCache without a lock: KeyError leaves the call",
        CACHETOOLS_LOCK,
    ),
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.called_once_with_lock",
        BUG,
        "cached(..., lock=...): the function is called twice for one key",
        "tkem/cachetools issue 294",
    ),
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.called_once_with_condition",
        SILENT,
        "cached(..., condition=...): the function is called once for one key",
    ),
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.failing_with_condition",
        SILENT,
        "cached(..., condition=...): a function that raises leaves no thread waiting",
    ),
    Case(
        "cachetools==6.2.4",
        "cachetools_caches.called_once_with_condition",
        SILENT,
        "cached(..., condition=...): no two accesses race",
        semantics="free",
    ),
    Case(
        "pyee==8.0.1",
        "pyee_events.once",
        BUG,
        "once: KeyError leaves emit when two threads emit the event",
        "jfhbrook/pyee issue 76, mended in 8.1.0",
    ),
    Case(
        "pyee==8.1.0",
        "pyee_events.once",
        SILENT,
        "once: the listener is called by one of two threads",
    ),
    Case(
        "pyee==13.0.0",
        "pyee_events.once",
        SILENT,
        "once: the listener is called by one of two threads",
    ),
    Case(
        "urllib3==1.26.15",
        "urllib3_pools.evicted",
        BUG,
        "PoolManager: a pool is closed between its look-up and its use: ClosedPoolError",
        "urllib3/urllib3 issue 1262, mended in 1.26.16",
    ),
    Case(
        "urllib3==1.26.16",
        "urllib3_pools.evicted",
        SILENT,
        "PoolManager: a pool that another one replaces can still be used",
    ),
    Case(
        "urllib3==2.5.0",
        "urllib3_pools.closed_while_full",
        BUG,
        "_put_conn to a full pool beside close(): AttributeError, None has no qsize",
    ),
    Case(
        "urllib3==2.5.0",
        "urllib3_pools.put_back_while_closed",
        BUG,
        "_put_conn beside close(): the connection is in a queue that nobody empties",
    ),
    Case(
        "urllib3==2.5.0",
        "urllib3_pools.waiting_while_closed",
        BUG,
        "close() beside _get_conn of a pool with block=True: the thread waits for ever",
    ),
    Case(
        "urllib3==2.5.0",
        "urllib3_pools.counted",
        BUG,
        "num_connections loses an increment",
        "its source says: mostly for testing and debugging",
    ),
    Case(
        "urllib3==2.5.0",
        "urllib3_pools.shared",
        SILENT,
        "a pool with block=True never gives one connection to two threads",
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.unlimited_overflow",
        BUG,
        "QueuePool(max_overflow=-1): the count of connections loses an increment",
        SQLALCHEMY,
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.assertion_pool",
        BUG,
        "AssertionPool gives its one connection to two threads",
        SQLALCHEMY,
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.static_pool",
        BUG,
        "StaticPool opens two connections",
        SQLALCHEMY,
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.singleton_thread_pool",
        BUG,
        "SingletonThreadPool closes a connection that another thread uses",
        "documented by a warning",
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.lru_cache_values",
        BUG,
        "util.LRUCache.values() beside an assignment: the dictionary changed size",
    ),
    Case(
        "sqlalchemy==2.0.44",
        "sqlalchemy_pools.limited",
        SILENT,
        "QueuePool(pool_size=1, max_overflow=0): one connection, for one thread at a time",
    ),
    Case(
        "",
        "standard_library.bounded_queue",
        SILENT,
        "queue.Queue(1): two producers and two consumers, each item once",
        also=("queue",),
    ),
    Case(
        "",
        "standard_library.bounded_queue",
        SILENT,
        "queue.Queue(1): no two accesses race",
        semantics="free",
        also=("queue",),
    ),
    Case(
        "",
        "standard_library.joined_queue",
        SILENT,
        "queue.Queue.join returns when each item is done",
        also=("queue",),
    ),
    Case(
        "",
        "standard_library.bounded_lru_cache",
        SILENT,
        "lru_cache(maxsize=1) in Python: results and the list of entries are right",
        also=("functools",),
    ),
    Case(
        "",
        "standard_library.lru_cache_called_once",
        BUG,
        "lru_cache in Python calls the function twice for one key",
        LRU,
        also=("functools",),
    ),
    Case(
        "",
        "standard_library.unbounded_lru_cache_counts",
        BUG,
        "lru_cache(maxsize=None) in Python loses a count of hits and misses",
        also=("functools",),
    ),
    Case(
        "",
        "standard_library.cached_properties_of_two_objects",
        BUG,
        "functools.cached_property: two objects wait for each other's property",
        "python/cpython issue 87634, mended in 3.12",
        also=("functools",),
        before=(3, 12),
    ),
)


def requirements(cases: Iterable[Case] = CASES) -> list[str]:
    """Return the packages of some cases, in their order, each once."""
    return list(dict.fromkeys(case.requirement for case in cases))


Test = Callable[[], object]
