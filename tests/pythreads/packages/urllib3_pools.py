"""Tests of urllib3's pools in the part that needs no network: connections that open nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.pythreads.packages.running import together

urllib3: Any = import_module("urllib3")


class Connection:
    """Stands for an HTTP connection that is open from the beginning."""

    def __init__(self, **options: Any) -> None:
        self.closed = False
        self.used = False
        self.sock = None
        self.is_connected = True
        connections.append(self)

    def close(self) -> None:
        self.closed = True


connections: list[Connection] = []  # in this execution


def new_pool(**options: Any) -> Any:
    connections.clear()
    pool: Any = urllib3.HTTPConnectionPool("localhost", **options)
    pool.ConnectionCls = Connection
    return pool


def evicted() -> None:
    manager = urllib3.PoolManager(num_pools=1)

    def use(host: str) -> None:
        pool: Any = manager.connection_from_host(host)
        pool.ConnectionCls = Connection
        pool._put_conn(pool._get_conn())

    together(lambda: use("first"), lambda: use("second"))


def closed_while_full() -> None:
    pool = new_pool(maxsize=1)
    spare = pool._new_conn()
    together(lambda: pool._put_conn(spare), pool.close)


def put_back_while_closed() -> None:
    pool = new_pool(maxsize=1)
    connection = pool._get_conn()
    together(lambda: pool._put_conn(connection), pool.close)
    assert connection.closed, "the pool is closed, and the connection is open"


def waiting_while_closed() -> None:
    pool = new_pool(maxsize=1, block=True)
    connection = pool._get_conn()

    def wait() -> None:
        try:
            pool._put_conn(pool._get_conn())
        except urllib3.exceptions.ClosedPoolError:
            return

    def close() -> None:
        pool.close()
        pool._put_conn(connection)

    together(wait, close)


def counted() -> None:
    pool = new_pool(maxsize=2)
    together(pool._get_conn, pool._get_conn)
    assert pool.num_connections == len(connections) == 2


def shared() -> None:
    pool = new_pool(maxsize=1, block=True)

    def use() -> None:
        connection = pool._get_conn()
        assert not connection.used, "two threads have one connection"
        connection.used = True
        connection.used = False
        pool._put_conn(connection)

    together(use, use)
    assert len(connections) == 1
