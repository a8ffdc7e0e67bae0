"""Rows of the file <-> records. Half a character, a byte that a disk got wrong: what can be read is
shown, never an error."""

import json
import logging
import sqlite3
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from app.store.records import (
    ConversationRecord,
    FolderRecord,
    ListedChat,
    MessageRecord,
    PartRecord,
    State,
)

log = logging.getLogger(__name__)

UNREAD = "is_unread"  # in the view of a conversation


def inserted(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def show(writer: sqlite3.Connection, conversation_id: int, message_id: int) -> None:
    writer.execute(
        "UPDATE conversation SET leaf_id = ?, updated_at = ? WHERE id = ?",
        (message_id, time.time(), conversation_id),
    )


def put_parts(
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
                writable(part.text),
                json_of(part.details),
                part.details.get("attachment"),
                is_searchable and part.kind == "text",
            ),
        )
    writer.execute(
        "DELETE FROM part WHERE message_id = ? AND position >= ?", (message_id, len(parts))
    )


def conversation_of(row: sqlite3.Row) -> ConversationRecord:
    return ConversationRecord(
        id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        draft=row["draft"],
        options=object_of(row["options"]),
        leaf_id=row["leaf_id"],
        deleted_at=row["deleted_at"],
        folder_id=row["folder_id"],
        is_pinned=bool(row["is_pinned"]),
        memory_start=row["memory_start"],
        view=object_of(row["view"]),
    )


def listed_of(row: sqlite3.Row) -> ListedChat:
    chat_id, title, updated_at, has_draft, folder_id, is_pinned, view = row
    is_unread = view != "{}" and bool(object_of(view).get(UNREAD))
    return ListedChat(
        chat_id, title, updated_at, bool(has_draft), folder_id, bool(is_pinned), is_unread
    )


def folder_of(row: sqlite3.Row, *, is_open: bool) -> FolderRecord:
    return FolderRecord(row["id"], row["name"], row["position"], is_open, row["deleted_at"])


def message_of(row: sqlite3.Row, parts: tuple[PartRecord, ...]) -> MessageRecord:
    return MessageRecord(
        id=row["id"],
        conversation_id=row["conversation_id"],
        parent_id=row["parent_id"],
        role=row["role"],
        parts=parts,
        state=state_of(row["state"]),
        created_at=row["created_at"],
        model=row["model"],
        token_ids=unpack(row["token_ids"]),
        details=object_of(row["details"]),
        is_pinned=bool(row["is_pinned"]),
    )


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def object_of(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        log.warning("damaged details are left out: %s", error)
        return {}
    return found if isinstance(found, dict) else {}


def state_of(word: str) -> State:
    return State(word) if word in list(State) else State.INTERRUPTED


def json_of(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value))


def pack(token_ids: Sequence[int]) -> bytes:
    packed = array("i", token_ids)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack(data: bytes) -> tuple[int, ...]:
    packed = array("i")
    packed.frombytes(data[: len(data) // packed.itemsize * packed.itemsize])
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def writable(text: str) -> str:
    """Half of a surrogate pair has no place in UTF-8: shown as a question mark, never an error."""
    return text.encode("utf-8", "replace").decode("utf-8")


def escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
