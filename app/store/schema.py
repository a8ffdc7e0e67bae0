"""The shape of the chats file, and how an older file becomes today's. Knows SQL, no records.

`PRAGMA user_version` is the number of steps that were done. A step is never edited once it was
released: a change is a new step at the end. Each step runs in its own transaction, and a file that
already holds chats is copied before the first of them.
"""

import os
import sqlite3
from pathlib import Path

APPLICATION_ID = 0x1E910C  # marks our files; a foreign SQLite file is never touched

FIRST = """
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL DEFAULT '',
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    draft TEXT NOT NULL DEFAULT '',
    options TEXT NOT NULL DEFAULT '{}',
    leaf_id INTEGER REFERENCES message(id) ON DELETE SET NULL,
    deleted_at REAL
);
CREATE TABLE message (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    parent_id INTEGER REFERENCES message(id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    state TEXT NOT NULL,
    writer INTEGER,  -- the open store that is writing this answer, by its lock file's number
    created_at REAL NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    token_ids BLOB NOT NULL DEFAULT x'',  -- int32, little endian
    details TEXT NOT NULL DEFAULT '{}',
    deleted_at REAL
);
CREATE INDEX message_of_conversation ON message(conversation_id);
CREATE INDEX message_of_parent ON message(parent_id);
CREATE INDEX message_writing ON message(state) WHERE state = 'writing';
CREATE TABLE attachment (
    sha256 TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE part (
    id INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    details TEXT NOT NULL DEFAULT '{}',
    attachment_sha256 TEXT REFERENCES attachment(sha256),
    is_searchable INTEGER NOT NULL DEFAULT 0,  -- an answer joins the index when it is finished
    UNIQUE (message_id, position)
);
CREATE INDEX part_of_attachment ON part(attachment_sha256) WHERE attachment_sha256 IS NOT NULL;
CREATE TABLE note (key TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE word USING fts5(
    text, content = 'part', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TRIGGER part_added AFTER INSERT ON part WHEN new.is_searchable BEGIN
    INSERT INTO word(rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER part_removed AFTER DELETE ON part WHEN old.is_searchable BEGIN
    INSERT INTO word(word, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER part_forgotten BEFORE UPDATE OF text, is_searchable ON part WHEN old.is_searchable
BEGIN
    INSERT INTO word(word, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER part_learned AFTER UPDATE OF text, is_searchable ON part WHEN new.is_searchable
BEGIN
    INSERT INTO word(rowid, text) VALUES (new.id, new.text);
END;
"""

ORDER = """
CREATE TABLE folder (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    deleted_at REAL
);
ALTER TABLE conversation ADD COLUMN folder_id INTEGER REFERENCES folder(id) ON DELETE SET NULL;
ALTER TABLE conversation ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversation ADD COLUMN memory_start INTEGER REFERENCES message(id) ON DELETE SET NULL;
ALTER TABLE conversation ADD COLUMN view TEXT NOT NULL DEFAULT '{}';
ALTER TABLE message ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
"""

STEPS: tuple[str, ...] = (FIRST, ORDER)


class NewerSchemaError(Exception):
    """The file was written by a later version of the app."""


class ForeignFileError(Exception):
    """A database, but not one of ours."""


def migrate(connection: sqlite3.Connection, path: Path, steps: tuple[str, ...] = STEPS) -> None:
    """Do the steps that are missing. Doing it twice, or in two processes at once, changes nothing.

    The connection must be in autocommit mode (isolation_level None).
    """
    done = _check(connection, len(steps))
    connection.execute("PRAGMA journal_mode = WAL")
    if 0 < done < len(steps):
        copy_file(connection, path.with_name(f"{path.name}.before-step-{done + 1}"))
    for number in range(done, len(steps)):
        _do_step(connection, number, steps[number])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check(connection: sqlite3.Connection, latest: int) -> int:
    """The file's version, or an error; a file that is refused is left as it is, byte for byte."""
    connection.execute("BEGIN")  # one moment: another process may be making the file right now
    try:
        done = _version(connection)
        mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
        tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    finally:
        end_reading(connection)
    if mark != APPLICATION_ID and (done or tables):
        raise ForeignFileError
    if done > latest:
        raise NewerSchemaError
    return done


def end_reading(connection: sqlite3.Connection) -> None:
    """An error may have ended the transaction already; saying so would hide the error."""
    if connection.in_transaction:
        connection.execute("COMMIT")


def _do_step(connection: sqlite3.Connection, number: int, statements: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) == number:  # else another process was faster
            for statement in _split(statements):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _split(statements: str) -> list[str]:
    """One statement each: executescript would commit the transaction that protects the step."""
    found, current = [], ""
    for line in statements.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    return found


def copy_file(connection: sqlite3.Connection, destination: Path) -> None:
    """A complete copy, also of what is still in the write-ahead log."""
    destination.unlink(missing_ok=True)
    os.close(os.open(destination, os.O_RDWR | os.O_CREAT, 0o600))
    copy = sqlite3.connect(destination)
    try:
        connection.backup(copy)
    finally:
        copy.close()
