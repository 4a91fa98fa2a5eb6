"""Ledgers in one SQLite file.

SQLite is in Python's standard library, so the product gains no dependency. Its primary key of (ledger, entry)
keeps entries in the order in which they are read, an append is a transaction, and one file is easy to
copy and to look at. LMDB would be faster for many small reads and is not needed for what it shows here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pulsar_ml.errors import StorageError
from pulsar_ml.managed_ledger.storage import LedgerProperties, StoredEntry

Result = TypeVar("Result")

VERSION = 1  # of the tables; 0 is a file that is new, or of before there were versions
TABLES = {"ledgers", "entries", "texts"}
MAGIC = b"SQLite format 3\0"
OWN = TABLES | {"sqlite_sequence"}

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledgers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    ledger INTEGER NOT NULL, entry INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (ledger, entry)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (
    name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, key)
) WITHOUT ROWID;
"""


class DiskStorage:
    """LedgerStorage in the file ``path``, made when there is none.

    All work is done by one thread of its own, which completes the futures. ``durable=False`` does not wait
    for the disk: faster, and a crash of the machine may lose the last entries. Raises StorageError for a file
    that is none of ours.
    """

    def __init__(self, path: Path | str, *, durable: bool = True) -> None:
        self.path = Path(path)
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="ledger-storage")
        try:
            self.connection = self.ask(self.open, durable)
        except BaseException:
            self.worker.shutdown()
            raise

    def open(self, durable: bool) -> sqlite3.Connection:
        if self.path.exists() and not self.path.is_file():
            raise StorageError(f"{self.path}: it is no plain file")
        if (
            self.path.exists() and self.path.stat().st_size
        ):  # SQLite takes a file of a byte for a new one
            with self.path.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise StorageError(f"{self.path}: file is not a database")
        connection = sqlite3.connect(self.path)
        try:
            return self.prepared(connection, durable)
        except BaseException:
            connection.close()
            raise

    def prepared(self, connection: sqlite3.Connection, durable: bool) -> sqlite3.Connection:
        """Nothing is written to a file of another program or of a newer version."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StorageError(
                f"{self.path}: it has version {version}, this release reads up to {VERSION}"
            )
        found = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if found - OWN and not found >= TABLES:
            raise StorageError(f"{self.path}: it is a database of another program")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.executescript(SCHEMA)
        if version != VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")
        return connection

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """In the worker: errors of SQLite become ours."""
        try:
            return work(*arguments)
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}") from error

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        return self.worker.submit(self.run, work, *arguments)

    def ask(self, work: Callable[..., Result], *arguments: object) -> Result:
        return self.submit(work, *arguments).result()

    def create_ledger(self, name: str) -> int:
        def work() -> int:
            with self.connection:
                made = self.connection.execute(
                    "INSERT INTO ledgers (name) VALUES (?)", (name,)
                ).lastrowid
            assert made is not None
            return made

        return self.ask(work)

    def ledgers(self, name: str) -> list[LedgerProperties]:
        def work() -> list[LedgerProperties]:
            rows = self.connection.execute(
                "SELECT id, count(entry), coalesce(sum(length(data)), 0) FROM ledgers "
                "LEFT JOIN entries ON ledger = id WHERE name = ? GROUP BY id ORDER BY id",
                (name,),
            )
            return [LedgerProperties(*row) for row in rows]

        return self.ask(work)

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        def work() -> None:
            with self.connection:
                self.connection.execute(
                    "INSERT INTO entries VALUES (?, ?, ?)", (ledger_id, entry_id, bytes(data))
                )

        return self.submit(work)

    def read(self, ledger_id: int, first: int, last: int) -> Future[list[StoredEntry]]:
        def work() -> list[StoredEntry]:
            rows = self.connection.execute(
                "SELECT ledger, entry, data FROM entries WHERE ledger = ? AND entry BETWEEN ? AND ?",
                (ledger_id, first, last),
            ).fetchall()
            if len(rows) != last - first + 1:
                raise StorageError(f"ledger {ledger_id} has no entries {first}..{last}")
            return [StoredEntry(*row) for row in rows]

        return self.submit(work)

    def delete_ledger(self, ledger_id: int) -> Future[None]:
        def work() -> None:
            with self.connection:
                self.connection.execute("DELETE FROM entries WHERE ledger = ?", (ledger_id,))
                self.connection.execute("DELETE FROM ledgers WHERE id = ?", (ledger_id,))

        return self.submit(work)

    def properties(self, name: str) -> dict[str, str]:
        def work() -> dict[str, str]:
            return dict(
                self.connection.execute("SELECT key, value FROM texts WHERE name = ?", (name,))
            )

        return self.ask(work)

    def set_property(self, name: str, key: str, value: str | None) -> None:
        def work() -> None:
            with self.connection:
                if value is None:
                    self.connection.execute(
                        "DELETE FROM texts WHERE name = ? AND key = ?", (name, key)
                    )
                else:
                    self.connection.execute(
                        "INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", (name, key, value)
                    )

        self.ask(work)

    def close(self) -> None:
        """Finish what was asked for, and close the file."""
        self.submit(lambda: self.connection.close())
        self.worker.shutdown()
