"""Messages as rows: a tree of versions, answers in the making, attachments."""

import hashlib
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from app.store.file import StoreFile
from app.store.places import Places
from app.store.records import ConversationRecord, MessageRecord, PartRecord, State
from app.store.rows import (
    inserted,
    json_of,
    message_of,
    object_of,
    pack,
    put_parts,
    show,
    writable,
)


class Messages(Places):
    def messages(self, conversation_id: int) -> list[MessageRecord]:
        """All branches, parents before their children, without what was deleted and follows it."""
        file = self._of(conversation_id)
        with file.one_moment():
            rows = file.read(
                "SELECT * FROM message WHERE conversation_id = ? ORDER BY id", conversation_id
            )
            parts = _parts_of(file, conversation_id)
        kept: dict[int, MessageRecord] = {}
        for row in rows:
            if row["deleted_at"] is None and (row["parent_id"] is None or row["parent_id"] in kept):
                kept[row["id"]] = message_of(row, tuple(parts.get(row["id"], ())))
        return list(kept.values())

    def add_user_message(
        self, conversation_id: int, parent_id: int | None, parts: Sequence[PartRecord]
    ) -> int:
        """On the disk when this returns, and the shown branch ends in it."""
        with self._of(conversation_id).write(durable=True) as writer:
            message_id = _new_message(writer, conversation_id, parent_id, "user", State.DONE)
            put_parts(writer, message_id, parts, is_searchable=True)
            show(writer, conversation_id, message_id)
            return message_id

    def start_answer(self, conversation_id: int, parent_id: int | None, model: str) -> int:
        """The answer's row, empty and WRITING; the shown branch ends in it."""
        file = self._of(conversation_id)
        with file.write() as writer:
            message_id = _new_message(
                writer,
                conversation_id,
                parent_id,
                "assistant",
                State.WRITING,
                model=writable(model),
                number=file.number,
            )
            show(writer, conversation_id, message_id)
            return message_id

    def add_answer(
        self,
        conversation_id: int,
        parent_id: int | None,
        parts: Sequence[PartRecord],
        *,
        model: str = "",
        state: State = State.DONE,
        token_ids: Sequence[int] = (),
        details: Mapping[str, Any] = {},
    ) -> int:
        """An answer that is whole: one that a person changed, or that was written elsewhere."""
        with self._of(conversation_id).write(durable=True) as writer:
            message_id = _new_message(
                writer, conversation_id, parent_id, "assistant", state, model=writable(model)
            )
            writer.execute(
                "UPDATE message SET token_ids = ?, details = ? WHERE id = ?",
                (pack(token_ids), json_of(details), message_id),
            )
            put_parts(writer, message_id, parts, is_searchable=True)
            show(writer, conversation_id, message_id)
            return message_id

    def reopen_answer(self, message_id: int) -> None:
        """It goes on: WRITING again, with all that stands so far, which no crash takes away."""
        file = self._of(message_id)
        file.change(
            "UPDATE message SET state = ?, writer = ? WHERE id = ?",
            State.WRITING,
            file.number,
            message_id,
        )

    def update_answer(
        self, message_id: int, parts: Sequence[PartRecord], token_ids: Sequence[int]
    ) -> None:
        """The whole answer so far. Cheap: no wait for the disk, no search index."""
        with self._of(message_id).write() as writer:
            writer.execute(
                "UPDATE message SET token_ids = ? WHERE id = ?", (pack(token_ids), message_id)
            )
            put_parts(writer, message_id, parts, is_searchable=False)

    def finish_answer(
        self,
        message_id: int,
        parts: Sequence[PartRecord],
        token_ids: Sequence[int],
        state: State,
        details: Mapping[str, Any] = {},
    ) -> None:
        """The answer as it stays; on the disk when this returns."""
        with self._of(message_id).write(durable=True) as writer:
            writer.execute(
                "UPDATE message SET token_ids = ?, state = ?, writer = NULL, details = ?"
                " WHERE id = ?",
                (pack(token_ids), state, json_of(details), message_id),
            )
            put_parts(writer, message_id, parts, is_searchable=True)
            writer.execute(
                "UPDATE conversation SET updated_at = ? WHERE id ="
                " (SELECT conversation_id FROM message WHERE id = ?)",
                (time.time(), message_id),
            )

    def pin_message(self, message_id: int, is_pinned: bool) -> None:
        """A pinned turn stays in the model's memory when older ones are forgotten."""
        self._of(message_id).change(
            "UPDATE message SET is_pinned = ? WHERE id = ?", int(is_pinned), message_id
        )

    def delete_message(self, message_id: int) -> None:
        """Hide this version and what follows it; its siblings stay. `restore_message` undoes it.

        When the shown branch ran through it, that branch now ends in its parent.
        """
        with self._of(message_id).write() as writer:
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
        self._of(message_id).change("UPDATE message SET deleted_at = NULL WHERE id = ?", message_id)

    def copy_branch(self, conversation_id: int, leaf_id: int, title: str) -> int:
        """A chat of its own from the messages up to `leaf_id`; the old one stays as it is."""
        file = self._of(conversation_id)
        by_id = {record.id: record for record in self.messages(conversation_id)}
        chain: list[MessageRecord] = []
        at = by_id.get(leaf_id)
        while at is not None:
            chain.append(at)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        with file.write(durable=True) as writer:
            now = time.time()
            copy_id = inserted(
                writer.execute(
                    "INSERT INTO conversation(title, created_at, updated_at, options, folder_id)"
                    " SELECT ?, ?, ?, options, folder_id FROM conversation WHERE id = ?",
                    (writable(title), now, now, conversation_id),
                )
            )
            parent: int | None = None
            begin = self._memory_start_of(conversation_id)
            for record in reversed(chain):
                parent = _copy_of(writer, record, copy_id, parent)
                if record.id == begin:
                    writer.execute(
                        "UPDATE conversation SET memory_start = ? WHERE id = ?", (parent, copy_id)
                    )
            if parent is not None:
                show(writer, copy_id, parent)
            return copy_id

    def add_conversation(
        self,
        chat: ConversationRecord,
        messages: Sequence[MessageRecord],
        files: Mapping[str, tuple[str, bytes]] = {},
    ) -> int:
        """A whole chat from elsewhere, in one moment: its times and branches stay, ids are new.

        Parents stand before their children; `files` are what parts refer to, by sha256.
        """
        with self._disk.write(durable=True) as writer:
            for digest, (media_type, data) in files.items():
                writer.execute(
                    "INSERT OR IGNORE INTO attachment VALUES (?, ?, ?)", (digest, media_type, data)
                )
            chat_id = inserted(
                writer.execute(
                    "INSERT INTO conversation(title, created_at, updated_at, options, folder_id,"
                    " is_pinned) VALUES (?, ?, ?, ?, ?, ?)",
                    (writable(chat.title), chat.created_at, chat.updated_at, json_of(chat.options),
                     chat.folder_id, int(chat.is_pinned)),
                )
            )  # fmt: skip
            numbers: dict[int | None, int] = {}
            for record in messages:
                numbers[record.id] = _copy_of(
                    writer, record, chat_id, numbers.get(record.parent_id)
                )
            writer.execute(
                "UPDATE conversation SET leaf_id = ?, memory_start = ? WHERE id = ?",
                (numbers.get(chat.leaf_id), numbers.get(chat.memory_start), chat_id),
            )
            return chat_id

    def conversations_begun(self, created_at: float) -> list[int]:
        """Those on the disk that began at this moment and are not deleted."""
        rows = self._disk.read(
            "SELECT id FROM conversation WHERE created_at = ? AND deleted_at IS NULL", created_at
        )
        return [row["id"] for row in rows]

    def _memory_start_of(self, conversation_id: int) -> int | None:
        file = self._of(conversation_id)
        rows = file.read("SELECT memory_start FROM conversation WHERE id = ?", conversation_id)
        return rows[0][0] if rows else None

    # ---- attachments

    def add_attachment(self, data: bytes, media_type: str, *, beside: int | None = None) -> str:
        """Keep the bytes once, however often they are attached; returns their sha256.

        A part refers to them by `details["attachment"]`. `beside` is the chat that they are for:
        those of a temporary one stay in memory.
        """
        digest = hashlib.sha256(data).hexdigest()
        with self._of(beside).write(durable=True) as writer:
            writer.execute(
                "INSERT OR IGNORE INTO attachment VALUES (?, ?, ?)", (digest, media_type, data)
            )
        return digest

    def attachment(self, sha256: str) -> bytes | None:
        for file in self._files():
            rows = file.read("SELECT data FROM attachment WHERE sha256 = ?", sha256)
            if rows:
                return bytes(rows[0][0])
        return None


def _new_message(
    writer: sqlite3.Connection,
    conversation_id: int,
    parent_id: int | None,
    role: str,
    state: State,
    *,
    model: str = "",
    number: int | None = None,
) -> int:
    return inserted(
        writer.execute(
            "INSERT INTO message(conversation_id, parent_id, role, state, writer, created_at,"
            " model) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (conversation_id, parent_id, role, state, number, time.time(), model),
        )
    )


def _copy_of(
    writer: sqlite3.Connection, record: MessageRecord, conversation_id: int, parent: int | None
) -> int:
    state = State.STOPPED if record.state is State.WRITING else record.state
    model = writable(record.model)
    copy_id = _new_message(writer, conversation_id, parent, record.role, state, model=model)
    writer.execute(
        "UPDATE message SET created_at = ?, token_ids = ?, details = ?, is_pinned = ? WHERE id = ?",
        (
            record.created_at,
            pack(record.token_ids),
            json_of(record.details),
            int(record.is_pinned),
            copy_id,
        ),
    )
    put_parts(writer, copy_id, record.parts, is_searchable=True)
    return copy_id


def _parts_of(file: StoreFile, conversation_id: int) -> dict[int, list[PartRecord]]:
    found: dict[int, list[PartRecord]] = {}
    for row in file.read(
        "SELECT part.message_id, part.kind, part.text, part.details FROM part"
        " JOIN message ON message.id = part.message_id"
        " WHERE message.conversation_id = ? ORDER BY part.message_id, part.position",
        conversation_id,
    ):
        part = PartRecord(row["kind"], row["text"], object_of(row["details"]))
        found.setdefault(row["message_id"], []).append(part)
    return found
