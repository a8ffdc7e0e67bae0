"""Conversations in one SQLite file. Knows rows and records; nothing of models, tokens or windows.

Write first, then show: every method that changes something returns after its commit. The user's
turn and a finished answer are also on the disk by then (`synchronous = FULL`); an answer in the
making and drafts survive a killed process, and at worst a power cut takes their last moment.

Two connections to the same file: reads never wait for a write. Each has a lock, so any thread may
call any method; the window uses one thread for all writes so that none happens in a click.
"""

import hashlib
import json
import logging
import shutil
import sqlite3
import sys
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.store import schema
from app.store.locks import WriterLock
from app.store.records import ConversationRecord, MessageRecord, PartRecord, State

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 5.0
LEAST_FREE_BYTES = 1 << 20
NEW_CHAT_DRAFT = "draft of the new chat"


class StoreError(Exception):
    """A sentence for a person. kind: "full", "busy", "read-only", "damaged", "newer", "disk"."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Store:
    """The open file. Opening it brings an older file up to date and marks what a crash cut off."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._reading, self._writing = threading.RLock(), threading.RLock()
        with _plain_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = WriterLock(self.path)
            try:
                self._writer = _connect(self.path)
                schema.migrate(self._writer, self.path)
                self._reader = _connect(self.path)
                self._reader.execute("PRAGMA query_only = ON")
                self._mark_interrupted()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the file; harmless when done twice."""
        for name in ("_reader", "_writer", "_lock"):
            if opened := getattr(self, name, None):
                opened.close()

    # ---- conversations

    def conversations(self) -> list[ConversationRecord]:
        """Those that are not deleted, the one used last first."""
        rows = self._read(
            "SELECT * FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id DESC"
        )
        return [_conversation(row) for row in rows]

    def conversation(self, conversation_id: int) -> ConversationRecord | None:
        """One conversation, deleted or not; None when there is none of that number."""
        rows = self._read("SELECT * FROM conversation WHERE id = ?", conversation_id)
        return _conversation(rows[0]) if rows else None

    def create_conversation(self, title: str = "", options: Mapping[str, Any] = {}) -> int:
        now = time.time()
        with self._write() as writer:
            return _inserted(
                writer.execute(
                    "INSERT INTO conversation(title, created_at, updated_at, options)"
                    " VALUES (?, ?, ?, ?)",
                    (_writable(title), now, now, _json(options)),
                )
            )

    def rename(self, conversation_id: int, title: str) -> None:
        self._change(
            "UPDATE conversation SET title = ? WHERE id = ?", _writable(title), conversation_id
        )

    def set_options(self, conversation_id: int, options: Mapping[str, Any]) -> None:
        self._change(
            "UPDATE conversation SET options = ? WHERE id = ?", _json(options), conversation_id
        )

    def set_leaf(self, conversation_id: int, message_id: int | None) -> None:
        """Choose the branch that is shown, by its last message."""
        self._change(
            "UPDATE conversation SET leaf_id = ? WHERE id = ?", message_id, conversation_id
        )

    def delete(self, conversation_id: int) -> None:
        """Into the bin: gone from the lists, nothing lost until `purge`."""
        self._change(
            "UPDATE conversation SET deleted_at = ? WHERE id = ?", time.time(), conversation_id
        )

    def restore(self, conversation_id: int) -> None:
        self._change("UPDATE conversation SET deleted_at = NULL WHERE id = ?", conversation_id)

    def purge(self, older_than_s: float) -> int:
        """Really remove what was deleted longer ago; returns the number of conversations."""
        before = time.time() - older_than_s
        with self._write() as writer:
            gone = writer.execute("DELETE FROM conversation WHERE deleted_at <= ?", (before,))
            writer.execute("DELETE FROM message WHERE deleted_at <= ?", (before,))
            writer.execute(
                "DELETE FROM attachment WHERE NOT EXISTS"
                " (SELECT 1 FROM part WHERE attachment_sha256 = sha256)"
            )
            return gone.rowcount

    # ---- drafts

    def save_draft(self, conversation_id: int | None, text: str) -> None:
        """What stands in the composer; None is the new chat that has no conversation yet."""
        if conversation_id is None:
            self._change(
                "INSERT OR REPLACE INTO note VALUES (?, ?)", NEW_CHAT_DRAFT, _writable(text)
            )
        else:
            self._change(
                "UPDATE conversation SET draft = ? WHERE id = ?", _writable(text), conversation_id
            )

    def draft(self, conversation_id: int | None) -> str:
        if conversation_id is None:
            rows = self._read("SELECT text FROM note WHERE key = ?", NEW_CHAT_DRAFT)
        else:
            rows = self._read("SELECT draft FROM conversation WHERE id = ?", conversation_id)
        return str(rows[0][0]) if rows else ""

    # ---- messages

    def messages(self, conversation_id: int) -> list[MessageRecord]:
        """All branches, parents before their children, without what was deleted and follows it."""
        with self._reading, _plain_errors(self.path):
            # One transaction, so that no part of a newer moment joins an older message.
            self._reader.execute("BEGIN")
            try:
                rows = self._read(
                    "SELECT * FROM message WHERE conversation_id = ? ORDER BY id", conversation_id
                )
                parts = self._parts_of(conversation_id)
            finally:
                schema.end_reading(self._reader)
        kept: dict[int, MessageRecord] = {}
        for row in rows:
            if row["deleted_at"] is None and (row["parent_id"] is None or row["parent_id"] in kept):
                kept[row["id"]] = _message(row, tuple(parts.get(row["id"], ())))
        return list(kept.values())

    def add_user_message(
        self, conversation_id: int, parent_id: int | None, parts: Sequence[PartRecord]
    ) -> int:
        """On the disk when this returns, and the shown branch ends in it."""
        with self._write(durable=True) as writer:
            message_id = _inserted(
                writer.execute(
                    "INSERT INTO message(conversation_id, parent_id, role, state, created_at)"
                    " VALUES (?, ?, 'user', ?, ?)",
                    (conversation_id, parent_id, State.DONE, time.time()),
                )
            )
            _put_parts(writer, message_id, parts, is_searchable=True)
            _show(writer, conversation_id, message_id)
            return message_id

    def start_answer(self, conversation_id: int, parent_id: int | None, model: str) -> int:
        """The answer's row, empty and WRITING; the shown branch ends in it."""
        with self._write() as writer:
            message_id = _inserted(
                writer.execute(
                    "INSERT INTO message(conversation_id, parent_id, role, state, writer,"
                    " created_at, model) VALUES (?, ?, 'assistant', ?, ?, ?, ?)",
                    (
                        conversation_id,
                        parent_id,
                        State.WRITING,
                        self._lock.number,
                        time.time(),
                        _writable(model),
                    ),
                )
            )
            _show(writer, conversation_id, message_id)
            return message_id

    def update_answer(
        self, message_id: int, parts: Sequence[PartRecord], token_ids: Sequence[int]
    ) -> None:
        """The whole answer so far. Cheap: no wait for the disk, no search index."""
        with self._write() as writer:
            writer.execute(
                "UPDATE message SET token_ids = ? WHERE id = ?", (_pack(token_ids), message_id)
            )
            _put_parts(writer, message_id, parts, is_searchable=False)

    def finish_answer(
        self,
        message_id: int,
        parts: Sequence[PartRecord],
        token_ids: Sequence[int],
        state: State,
        details: Mapping[str, Any] = {},
    ) -> None:
        """The answer as it stays; on the disk when this returns."""
        with self._write(durable=True) as writer:
            writer.execute(
                "UPDATE message SET token_ids = ?, state = ?, writer = NULL, details = ?"
                " WHERE id = ?",
                (_pack(token_ids), state, _json(details), message_id),
            )
            _put_parts(writer, message_id, parts, is_searchable=True)
            writer.execute(
                "UPDATE conversation SET updated_at = ? WHERE id ="
                " (SELECT conversation_id FROM message WHERE id = ?)",
                (time.time(), message_id),
            )

    def delete_message(self, message_id: int) -> None:
        """Hide this version and what follows it; its siblings stay. `restore_message` undoes it.

        When the shown branch ran through it, that branch now ends in its parent.
        """
        with self._write() as writer:
            writer.execute(
                "UPDATE message SET deleted_at = ? WHERE id = ?", (time.time(), message_id)
            )
            writer.execute(
                """WITH RECURSIVE below(id) AS (
                    VALUES (?) UNION SELECT message.id FROM message, below
                    WHERE message.parent_id = below.id)
                UPDATE conversation
                SET leaf_id = (SELECT parent_id FROM message WHERE id = ?)
                WHERE leaf_id IN below""",
                (message_id, message_id),
            )

    def restore_message(self, message_id: int) -> None:
        self._change("UPDATE message SET deleted_at = NULL WHERE id = ?", message_id)

    # ---- attachments

    def add_attachment(self, data: bytes, media_type: str) -> str:
        """Keep the bytes once, however often they are attached; returns their sha256.

        A part refers to them by `details["attachment"]`.
        """
        digest = hashlib.sha256(data).hexdigest()
        with self._write(durable=True) as writer:
            writer.execute(
                "INSERT OR IGNORE INTO attachment VALUES (?, ?, ?)", (digest, media_type, data)
            )
        return digest

    def attachment(self, sha256: str) -> bytes | None:
        rows = self._read("SELECT data FROM attachment WHERE sha256 = ?", sha256)
        return bytes(rows[0][0]) if rows else None

    # ---- search

    def search(self, text: str, *, limit: int = 100) -> list[tuple[int, int, str]]:
        """(conversation, message, excerpt) for messages with all words of the text, best first.

        The last letters of each word may be missing. When no word begins so, any message that
        contains the text as it stands is taken: scripts without spaces have no words to index.
        """
        text = _writable(text).replace("\0", " ").strip()
        if not text:
            return []
        words = " ".join('"' + word.replace('"', '""') + '"*' for word in text.split())
        rows = self._read(_WITH_WORDS, words, limit)
        if not rows:
            rows = self._read(_WITH_TEXT, text, "%" + _escape_like(text) + "%", limit)
        return [(row[0], row[1], row[2]) for row in rows]

    # ---- inside

    def _parts_of(self, conversation_id: int) -> dict[int, list[PartRecord]]:
        found: dict[int, list[PartRecord]] = {}
        for row in self._read(
            "SELECT part.message_id, part.kind, part.text, part.details FROM part"
            " JOIN message ON message.id = part.message_id"
            " WHERE message.conversation_id = ? ORDER BY part.message_id, part.position",
            conversation_id,
        ):
            part = PartRecord(row["kind"], row["text"], _object(row["details"]))
            found.setdefault(row["message_id"], []).append(part)
        return found

    def _read(self, statement: str, *values: object) -> list[sqlite3.Row]:
        with self._reading, _plain_errors(self.path):
            return self._reader.execute(statement, values).fetchall()

    def _change(self, statement: str, *values: object) -> None:
        with self._write() as writer:
            writer.execute(statement, values)

    @contextmanager
    def _write(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing. `durable` waits for the disk at the commit."""
        with self._writing, _plain_errors(self.path):
            self._writer.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _mark_interrupted(self) -> None:
        """Answers whose writer no longer runs; one that another program writes is left alone."""
        with self._write() as writer:
            rows = writer.execute(
                "SELECT id, writer FROM message WHERE state = ?", (State.WRITING,)
            )
            for message_id, number in rows.fetchall():
                # Our own number was free a moment ago: whoever wrote under it before is gone.
                if number not in (None, self._lock.number) and self._lock.is_alive(number):
                    continue
                writer.execute(
                    "UPDATE message SET state = ?, writer = NULL WHERE id = ?",
                    (State.INTERRUPTED, message_id),
                )
                writer.execute(
                    "UPDATE part SET is_searchable = 1 WHERE message_id = ? AND kind = 'text'",
                    (message_id,),
                )


_WHERE_FOUND = """
JOIN message ON message.id = part.message_id
JOIN conversation ON conversation.id = message.conversation_id
WHERE message.deleted_at IS NULL AND conversation.deleted_at IS NULL
"""
_WITH_WORDS = f"""
SELECT message.conversation_id, message.id, snippet(word, 0, '', '', '…', 16)
FROM word JOIN part ON part.id = word.rowid {_WHERE_FOUND} AND word MATCH ? ORDER BY rank LIMIT ?
"""
_WITH_TEXT = f"""
SELECT message.conversation_id, message.id,
substr(part.text, max(1, instr(lower(part.text), lower(?)) - 40), 120)
FROM part {_WHERE_FOUND} AND part.is_searchable AND part.text LIKE ? ESCAPE '\\'
ORDER BY message.id DESC LIMIT ?
"""


def set_aside(path: Path) -> Path:
    """Move a chats file that cannot be opened out of the way; returns its new path."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    destination = path.with_name(f"{path.stem}-set-aside-{stamp}{path.suffix}")
    number = 2
    while destination.exists():  # twice in a second, or the clock was put back
        destination = path.with_name(f"{path.stem}-set-aside-{stamp}-{number}{path.suffix}")
        number += 1
    with _plain_errors(path):
        for ending in ("-wal", "-shm", ""):
            source = path.with_name(path.name + ending)
            if source.exists():
                source.rename(destination.with_name(destination.name + ending))
    return destination


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _inserted(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _show(writer: sqlite3.Connection, conversation_id: int, message_id: int) -> None:
    writer.execute(
        "UPDATE conversation SET leaf_id = ?, updated_at = ? WHERE id = ?",
        (message_id, time.time(), conversation_id),
    )


def _put_parts(
    writer: sqlite3.Connection,
    message_id: int,
    parts: Sequence[PartRecord],
    *,
    is_searchable: bool,
) -> None:
    for position, part in enumerate(parts):
        writer.execute(
            "INSERT INTO part(message_id, position, kind, text, details, attachment_sha256,"
            " is_searchable) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(message_id, position)"
            " DO UPDATE SET kind = excluded.kind, text = excluded.text, details = excluded.details,"
            " attachment_sha256 = excluded.attachment_sha256,"
            " is_searchable = excluded.is_searchable",
            (
                message_id,
                position,
                part.kind,
                _writable(part.text),
                _json(part.details),
                part.details.get("attachment"),
                is_searchable and part.kind == "text",
            ),
        )
    writer.execute(
        "DELETE FROM part WHERE message_id = ? AND position >= ?", (message_id, len(parts))
    )


def _conversation(row: sqlite3.Row) -> ConversationRecord:
    return ConversationRecord(
        id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        draft=row["draft"],
        options=_object(row["options"]),
        leaf_id=row["leaf_id"],
        deleted_at=row["deleted_at"],
    )


def _message(row: sqlite3.Row, parts: tuple[PartRecord, ...]) -> MessageRecord:
    return MessageRecord(
        id=row["id"],
        conversation_id=row["conversation_id"],
        parent_id=row["parent_id"],
        role=row["role"],
        parts=parts,
        state=_state(row["state"]),
        created_at=row["created_at"],
        model=row["model"],
        token_ids=_unpack(row["token_ids"]),
        details=_object(row["details"]),
    )


# A byte that a disk got wrong must not hide a chat: what can be read is shown.


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        log.warning("damaged details are left out: %s", error)
        return {}
    return found if isinstance(found, dict) else {}


def _state(word: str) -> State:
    return State(word) if word in list(State) else State.INTERRUPTED


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value))


def _pack(token_ids: Sequence[int]) -> bytes:
    packed = array("i", token_ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _unpack(data: bytes) -> tuple[int, ...]:
    packed = array("i")
    packed.frombytes(data[: len(data) // packed.itemsize * packed.itemsize])
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def _writable(text: str) -> str:
    """Half of a surrogate pair has no place in UTF-8: shown as a question mark, never an error."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """What SQLite and the system say about the file, as a sentence with a way out."""
    try:
        yield
    except schema.NewerSchemaError as error:
        raise StoreError(
            f"Your chats in {path} were saved by a newer Inglenook. Update Inglenook to read them;"
            " nothing was changed.",
            kind="newer",
        ) from error
    except schema.ForeignFileError as error:
        raise StoreError(
            f"{path} is a database of another program. Move it away, then start again.",
            kind="damaged",
        ) from error
    except sqlite3.IntegrityError:
        raise  # a caller's mistake, not the disk's
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or (code & 0xFF) not in _SENTENCES:
            raise
        code = sqlite3.SQLITE_FULL if _is_disk_full(code, path) else code & 0xFF
        kind, sentence = _SENTENCES[code]
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except UnicodeDecodeError as error:  # in SQLite's own message about a name in the file
        kind, sentence = _DAMAGED
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except BlockingIOError as error:
        kind, sentence = _SENTENCES[sqlite3.SQLITE_BUSY]
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except OSError as error:
        raise StoreError(
            f"The folder {path.parent} cannot be used for your chats: {error.strerror}. Check it,"
            " or choose another folder.",
            kind="disk",
        ) from error


def _is_disk_full(code: int, path: Path) -> bool:
    """Without room for its small files SQLite speaks of an error of the disk."""
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return False
    try:
        return shutil.disk_usage(path.parent).free < LEAST_FREE_BYTES
    except OSError:
        return False


_READ_ONLY = (
    "read-only",
    "Your chats in {path} cannot be written. Allow writing to that folder, or choose another one.",
)
_DAMAGED = (
    "damaged",
    "The file of your chats, {path}, is damaged. Put a copy of it in its place, or set it aside"
    " and start with an empty one.",
)
_SENTENCES = {
    sqlite3.SQLITE_FULL: (
        "full",
        "The disk that holds your chats is full, so the last change is not saved. Free some space"
        " and try again.",
    ),
    sqlite3.SQLITE_BUSY: (
        "busy",
        "Another program is using your chats in {path}. Close it and try again.",
    ),
    sqlite3.SQLITE_LOCKED: (
        "busy",
        "Another program is using your chats in {path}. Close it and try again.",
    ),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_IOERR: (
        "disk",
        "The disk that holds your chats, {path}, reported an error. Check the disk and try again.",
    ),
}
