"""Ledgers in one SQLite file.

SQLite is in Python's standard library, so it adds no dependency. The primary key (ledger, entry)
keeps entries in the order in which they are read, an append is a transaction, and a single file is
easy to copy and inspect. LMDB would be faster for many small reads, which do not matter here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pulsar_ml.errors import StorageError
from pulsar_ml.managed_ledger.checks import check_bytes
from pulsar_ml.managed_ledger.fork_lock import AfterFork, ForkLock
from pulsar_ml.managed_ledger.storage.interface import LedgerProperties, StoredEntry

Result = TypeVar("Result")

BUSY_SECONDS = 60.0  # for another process, perhaps a forked child, to end its transaction
VERSION = 1  # of the tables; a new file has 0, and so have files written before versions existed
TABLES = {"ledgers", "entries", "texts"}
MAGIC = b"SQLite format 3\0"
OWN = TABLES | {"sqlite_sequence"}

_PARENTS: list[sqlite3.Connection] = []  # of this process's parents; never closed

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledgers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    ledger INTEGER NOT NULL, entry INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (ledger, entry)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS texts (
    name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, key)
) WITHOUT ROWID;
"""


class DiskStorage(AfterFork):
    """A LedgerStorage in the SQLite file ``path``, created when missing.

    A worker thread does all the work and completes the futures. ``durable=False`` does not wait for
    the disk, which is faster; a crash of the machine may then lose the last entries. Raises
    StorageError for a file of another program.
    """

    def __init__(self, path: Path | str, *, durable: bool = True) -> None:
        self.path = Path(path)
        self.durable = durable
        self.closed = self.forked = False
        self.working = ForkLock()  # no fork while SQLite holds locks of its own
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="ledger-storage")
        try:
            self.connection = self.call(self.open, durable)
        except BaseException:
            self.worker.shutdown()
            raise
        self.watch_forks()

    def after_fork(self) -> None:
        """Gives a forked child a worker and a connection of its own.

        SQLite allows no use of the parent's connection there, so it is not even closed.
        """
        if not self.closed:
            self.worker = ThreadPoolExecutor(1, thread_name_prefix="ledger-storage")
            self.forked = True  # the new worker opens the file with its first work

    def open(self, durable: bool) -> sqlite3.Connection:
        if self.path.exists() and not self.path.is_file():
            raise StorageError(f"{self.path}: not a regular file; choose another path")
        # SQLite would take a file of a single byte for a new database.
        if self.path.exists() and self.path.stat().st_size:
            with self.path.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise StorageError(f"{self.path}: not an SQLite database; choose another path")
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
        try:
            self.prepare(connection, durable)
            return connection
        except BaseException:
            connection.close()
            raise

    def prepare(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Creates the tables; refuses a file of another program or a newer version unchanged."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StorageError(
                f"{self.path} has version {version}, but this release reads versions up to "
                f"{VERSION}; open it with a newer release"
            )
        found = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if found - OWN and not found >= TABLES:
            raise StorageError(f"{self.path} is a database of another program; choose another path")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.executescript(SCHEMA)
        if version != VERSION:
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Runs in the worker thread; turns errors of SQLite into StorageError."""
        try:
            with self.working:
                if self.forked:
                    _PARENTS.append(self.connection)
                    self.connection = self.open(self.durable)
                    self.forked = False
                return work(*arguments)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite repeats damaged text
            text = "".join(each if each.isprintable() else "?" for each in f"{error}"[:200])
            raise StorageError(f"{self.path}: {text}") from error

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        return self.worker.submit(self.run, work, *arguments)

    def call(self, work: Callable[..., Result], *arguments: object) -> Result:
        return self.submit(work, *arguments).result()

    def create_ledger(self, name: str) -> int:
        def work() -> int:
            with self.connection:
                ledger_id = self.connection.execute(
                    "INSERT INTO ledgers (name) VALUES (?)", (name,)
                ).lastrowid
            assert ledger_id is not None
            return ledger_id

        return self.call(work)

    def ledgers(self, name: str) -> list[LedgerProperties]:
        def work() -> list[LedgerProperties]:
            rows = self.connection.execute(
                "SELECT id, count(entry), coalesce(sum(length(data)), 0) FROM ledgers "
                "LEFT JOIN entries ON ledger = id WHERE name = ? GROUP BY id ORDER BY id",
                (name,),
            )
            return [LedgerProperties(*row) for row in rows]

        return self.call(work)

    def append(self, ledger_id: int, entry_id: int, data: bytes) -> Future[None]:
        stored = check_bytes(data)

        def work() -> None:
            with self.connection:
                self.connection.execute(
                    "INSERT INTO entries VALUES (?, ?, ?)", (ledger_id, entry_id, stored)
                )

        return self.submit(work)

    def read(self, ledger_id: int, first: int, last: int) -> Future[list[StoredEntry]]:
        def work() -> list[StoredEntry]:
            rows = self.connection.execute(
                "SELECT ledger, entry, data FROM entries "
                "WHERE ledger = ? AND entry BETWEEN ? AND ?",
                (ledger_id, first, last),
            ).fetchall()
            if len(rows) != last - first + 1:
                raise StorageError(f"ledger {ledger_id} has no entries {first}..{last}")
            return [StoredEntry(*row) for row in rows]

        return self.submit(work)

    def reopen_ledger(self, ledger_id: int) -> None:
        """No effect: there are no handles."""

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

        return self.call(work)

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

        self.call(work)

    def close(self) -> None:
        """Finishes submitted work and closes the file."""
        self.closed = True
        self.submit(lambda: self.connection.close())
        self.worker.shutdown()
