"""One SQLite database with its connections. Knows SQL and the disk, no records.

Reads never wait for a write nor for a search: each connection has a lock of its own. A database in
memory has one connection, and nothing of it ever touches a disk.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.store import schema
from app.store.errors import StoreError, plain_errors
from app.store.locks import WriterLock
from app.store.rows import text_of

BUSY_TIMEOUT_S = 5.0
IN_MEMORY = Path(":memory:")


class StoreFile:
    """Opening it brings an older file up to date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reading, self.writing = threading.RLock(), threading.RLock()
        self.searching = threading.RLock()
        self.searcher: sqlite3.Connection | None = None  # opened by the first search
        with plain_errors(path):
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        if self.path == IN_MEMORY:
            self.writer = self.reader = connect(self.path)
            self.reading = self.writing
            self.writer.execute("PRAGMA temp_store = MEMORY")
            schema.migrate(self.writer, self.path)
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lock = WriterLock(self.path)
        make_private(self.path)
        self.writer = connect(self.path)
        self.writer.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        self._identity = _identity_of(self.path)
        schema.migrate(self.writer, self.path)
        self.reader = connect(self.path)
        self.reader.execute("PRAGMA query_only = ON")

    def close(self) -> None:
        """Let go of the file; harmless when done twice."""
        self.stop_search()
        with self.searching:
            for name in ("searcher", "reader", "writer", "lock"):
                if opened := getattr(self, name, None):
                    opened.close()
            self.searcher = None

    @property
    def number(self) -> int | None:
        """Of our lock: marks what we write. None in memory, which nobody shares."""
        return None if self.path == IN_MEMORY else self.lock.number

    def check_place(self) -> None:
        """A system may let a file be deleted while it is open: what is then written is lost."""
        if self.path == IN_MEMORY:
            return
        try:
            is_there = _identity_of(self.path) == self._identity
        except OSError:
            is_there = False
        if not is_there:
            raise StoreError(
                f"The file of your chats, {self.path}, was moved or deleted while Inglenook was"
                " running. Put it back, then start Inglenook again.",
                kind="gone",
            )

    def read(self, statement: str, *values: object) -> list[sqlite3.Row]:
        with self.reading, plain_errors(self.path):
            return self.reader.execute(statement, values).fetchall()

    def search(self, statement: str, *values: object) -> list[sqlite3.Row]:
        """As `read`, by a connection of its own: a long search holds nobody up."""
        if self.path == IN_MEMORY:
            return self.read(statement, *values)
        with self.searching, plain_errors(self.path):
            if self.searcher is None:
                self.searcher = connect(self.path)
                self.searcher.execute("PRAGMA query_only = ON")
            return self.searcher.execute(statement, values).fetchall()

    def stop_search(self) -> None:
        """The search that runs now ends with an error; one that begins later does not."""
        if self.searcher is not None:
            self.searcher.interrupt()

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Several reads of the same moment: no part of a newer one joins an older message."""
        with self.reading, plain_errors(self.path):
            self.reader.execute("BEGIN")
            try:
                yield
            finally:
                schema.end_reading(self.reader)

    def change(self, statement: str, *values: object) -> None:
        with self.write() as writer:
            writer.execute(statement, values)

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. `durable` waits for the disk at the commit."""
        with self.writing, plain_errors(self.path):
            self.check_place()
            self.writer.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            except BaseException:
                if self.writer.in_transaction:
                    self.writer.execute("ROLLBACK")
                raise

    @contextmanager
    def erase(self) -> Iterator[sqlite3.Connection]:
        """As `write`, for what is deleted for good: nothing of it stays in the file.

        `secure_delete` overwrites rows; the index keeps words of rows that are gone until it is
        merged, and the write-ahead log keeps old pages until it is cut.
        """
        with self.write(durable=True) as writer:
            before = writer.total_changes
            yield writer
            has_changed = writer.total_changes > before
            if has_changed:
                writer.execute("INSERT INTO word(word) VALUES ('optimize')")
        if has_changed and self.path != IN_MEMORY:
            with self.writing, plain_errors(self.path):
                self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def make_private(path: Path) -> None:
    """Makes the file if it is not there, for its owner only; SQLite's small files follow it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _identity_of(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = text_of
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection
