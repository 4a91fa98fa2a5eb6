"""Double-checked locking: the object is published before it is complete, or behind that."""

from __future__ import annotations

import threading


class Table:
    def __init__(self) -> None:
        self.rows: list[int] | None = None

    def load(self) -> None:
        self.rows = [1, 2, 3]


class Holder:
    def __init__(self) -> None:
        self.table: Table | None = None
        self.lock = threading.Lock()

    def get_too_early(self) -> Table:
        if self.table is None:
            with self.lock:
                if self.table is None:
                    self.table = Table()
                    self.table.load()
        return self.table

    def get(self) -> Table:
        if self.table is None:
            with self.lock:
                if self.table is None:
                    table = Table()
                    table.load()
                    self.table = table
        return self.table


def run(safe: bool) -> None:
    holder = Holder()

    def use() -> None:
        table = holder.get() if safe else holder.get_too_early()
        assert table.rows is not None, "the table is used before it was loaded"

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
