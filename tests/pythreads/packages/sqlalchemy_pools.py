"""Tests of SQLAlchemy's pools, over connections that open nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.pythreads.packages.running import together

pool: Any = import_module("sqlalchemy.pool")
util: Any = import_module("sqlalchemy.util")


class Connection:
    """Stands for a connection of a database driver."""

    def __init__(self) -> None:
        self.closed = False
        self.used = False

    def close(self) -> None:
        self.closed = True

    def rollback(self) -> None:
        """Do nothing: the pool rolls back what its user left open."""


def new_pool(kind: Any, **options: Any) -> tuple[Any, list[Connection]]:
    drivers: list[Connection] = []

    def connect() -> Connection:
        drivers.append(Connection())
        return drivers[-1]

    return kind(connect, **options), drivers


def close(used: list[Any]) -> None:
    for connection in used:
        try:
            connection.close()
        except AssertionError:  # of AssertionPool, behind its bug
            continue


def unlimited_overflow() -> None:
    connections, drivers = new_pool(pool.QueuePool, pool_size=1, max_overflow=-1)
    used: list[Any] = []
    together(*[lambda: used.append(connections.connect())] * 2)
    count = connections.checkedout()
    close(used)
    assert count == len(drivers) == 2


def assertion_pool() -> None:
    connections, _ = new_pool(pool.AssertionPool, store_traceback=False)
    used: list[Any] = []

    def use() -> None:
        try:
            used.append(connections.connect())
        except AssertionError:
            return

    together(use, use)
    close(used)
    assert len(used) == 1, "two threads have one connection"


def static_pool() -> None:
    connections, drivers = new_pool(pool.StaticPool)
    used: list[Any] = []
    together(*[lambda: used.append(connections.connect())] * 2)
    close(used)
    assert len(drivers) == 1, f"{len(drivers)} connections of a pool of one"


def singleton_thread_pool() -> None:
    connections, _ = new_pool(pool.SingletonThreadPool, pool_size=1)

    def use() -> None:
        connection = connections.connect()
        closed = connection.dbapi_connection.closed
        connection.close()
        assert not closed, "another thread closed it"

    together(use, use)


def lru_cache_values() -> None:
    cache = util.LRUCache(10)
    cache[1] = 1

    def change() -> None:
        cache[2] = 2

    together(change, cache.values)


def limited() -> None:
    connections, drivers = new_pool(pool.QueuePool, pool_size=1, max_overflow=0)

    def use() -> None:
        connection = connections.connect()
        driver = connection.dbapi_connection
        assert not driver.used, "two threads have one connection"
        driver.used = True
        driver.used = False
        connection.close()

    together(use, use)
    assert len(drivers) == 1
    assert connections.checkedout() == 0
