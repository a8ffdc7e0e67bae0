"""Conversations as rows: titles, options, drafts, folders, pins, the bin."""

import time
from collections.abc import Mapping
from typing import Any

from app.store.places import Places
from app.store.records import ConversationRecord, FolderRecord
from app.store.rows import conversation_of, folder_of, inserted, json_of, writable

NEW_CHAT_DRAFT = "draft of the new chat"


class Conversations(Places):
    def conversations(self) -> list[ConversationRecord]:
        """Those that are not deleted, the one used last first; temporary ones too."""
        found = self._all(
            "SELECT * FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id DESC"
        )
        return sorted(found, key=lambda record: record.updated_at, reverse=True)

    def deleted_conversations(self) -> list[ConversationRecord]:
        """The bin, what was deleted last first."""
        return self._all(
            "SELECT * FROM conversation WHERE deleted_at IS NOT NULL"
            " ORDER BY deleted_at DESC, id DESC"
        )

    def _all(self, statement: str) -> list[ConversationRecord]:
        return [conversation_of(row) for file in self._files() for row in file.read(statement)]

    def conversation(self, conversation_id: int) -> ConversationRecord | None:
        """One conversation, deleted or not; None when there is none of that number."""
        file = self._of(conversation_id)
        rows = file.read("SELECT * FROM conversation WHERE id = ?", conversation_id)
        return conversation_of(rows[0]) if rows else None

    def create_conversation(
        self,
        title: str = "",
        options: Mapping[str, Any] = {},
        *,
        folder_id: int | None = None,
        is_temporary: bool = False,
        created_at: float | None = None,
    ) -> int:
        """A temporary one is kept in memory only, and is gone with the store."""
        now = time.time() if created_at is None else created_at
        file = self._in_memory() if is_temporary else self._disk
        with file.write() as writer:
            return inserted(
                writer.execute(
                    "INSERT INTO conversation(title, created_at, updated_at, options, folder_id)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (
                        writable(title),
                        now,
                        now,
                        json_of(options),
                        None if is_temporary else folder_id,
                    ),
                )
            )

    def rename(self, conversation_id: int, title: str) -> None:
        self._set(conversation_id, "title", writable(title))

    def set_options(self, conversation_id: int, options: Mapping[str, Any]) -> None:
        self._set(conversation_id, "options", json_of(options))

    def set_leaf(self, conversation_id: int, message_id: int | None) -> None:
        """Choose the branch that is shown, by its last message."""
        self._set(conversation_id, "leaf_id", message_id)

    def set_pinned(self, conversation_id: int, is_pinned: bool) -> None:
        self._set(conversation_id, "is_pinned", int(is_pinned))

    def set_memory_start(self, conversation_id: int, message_id: int | None) -> None:
        """The message where the model's memory begins; None: at the first one."""
        self._set(conversation_id, "memory_start", message_id)

    def set_view(self, conversation_id: int, view: Mapping[str, Any]) -> None:
        """How the chat is looked at: small facts that the window wants again."""
        self._set(conversation_id, "view", json_of(view))

    def _set(self, conversation_id: int, column: str, value: object) -> None:
        self._of(conversation_id).change(
            f"UPDATE conversation SET {column} = ? WHERE id = ?", value, conversation_id
        )

    # ---- the bin

    def delete(self, conversation_id: int) -> None:
        """Into the bin: gone from the lists, nothing lost until `purge`."""
        self._set(conversation_id, "deleted_at", time.time())

    def restore(self, conversation_id: int) -> None:
        self._set(conversation_id, "deleted_at", None)

    def delete_for_good(self, conversation_id: int) -> None:
        """All of it, at once; `secure_delete` overwrites what SQLite would leave in the file."""
        file = self._of(conversation_id)
        with file.write(durable=True) as writer:
            writer.execute("PRAGMA secure_delete = ON")
            writer.execute("DELETE FROM conversation WHERE id = ?", (conversation_id,))
            writer.execute(_UNUSED_ATTACHMENTS)

    def purge(self, older_than_s: float) -> int:
        """Really remove what was deleted longer ago; returns the number of conversations."""
        before = time.time() - older_than_s
        with self._disk.write() as writer:
            gone = writer.execute("DELETE FROM conversation WHERE deleted_at <= ?", (before,))
            writer.execute("DELETE FROM message WHERE deleted_at <= ?", (before,))
            writer.execute("DELETE FROM folder WHERE deleted_at <= ?", (before,))
            writer.execute(_UNUSED_ATTACHMENTS)
            return gone.rowcount

    # ---- drafts

    def save_draft(self, conversation_id: int | None, text: str) -> None:
        """What stands in the composer; None is the new chat that has no conversation yet."""
        if conversation_id is None:
            self._disk.change(
                "INSERT OR REPLACE INTO note VALUES (?, ?)", NEW_CHAT_DRAFT, writable(text)
            )
        else:
            self._set(conversation_id, "draft", writable(text))

    def draft(self, conversation_id: int | None) -> str:
        if conversation_id is None:
            rows = self._disk.read("SELECT text FROM note WHERE key = ?", NEW_CHAT_DRAFT)
        else:
            file = self._of(conversation_id)
            rows = file.read("SELECT draft FROM conversation WHERE id = ?", conversation_id)
        return str(rows[0][0]) if rows else ""

    # ---- folders

    def folders(self) -> list[FolderRecord]:
        rows = self._disk.read(
            "SELECT * FROM folder WHERE deleted_at IS NULL ORDER BY position, id"
        )
        return [folder_of(row) for row in rows]

    def create_folder(self, name: str) -> int:
        """At the end of the list."""
        with self._disk.write() as writer:
            return inserted(
                writer.execute(
                    "INSERT INTO folder(name, position)"
                    " VALUES (?, (SELECT coalesce(max(position), 0) + 1 FROM folder))",
                    (writable(name),),
                )
            )

    def rename_folder(self, folder_id: int, name: str) -> None:
        self._disk.change("UPDATE folder SET name = ? WHERE id = ?", writable(name), folder_id)

    def move_folder(self, folder_id: int, position: int) -> None:
        """To a place in the list, counted from 0."""
        order = [folder.id for folder in self.folders() if folder.id != folder_id]
        order.insert(position, folder_id)
        with self._disk.write() as writer:
            for place, each in enumerate(order):
                writer.execute("UPDATE folder SET position = ? WHERE id = ?", (place, each))

    def delete_folder(self, folder_id: int) -> None:
        """Its chats stay, and stand in no folder while it is gone; `restore_folder` undoes it."""
        self._disk.change("UPDATE folder SET deleted_at = ? WHERE id = ?", time.time(), folder_id)

    def restore_folder(self, folder_id: int) -> None:
        self._disk.change("UPDATE folder SET deleted_at = NULL WHERE id = ?", folder_id)

    def move_to_folder(self, conversation_id: int, folder_id: int | None) -> None:
        if self._of(conversation_id) is self._disk:
            self._set(conversation_id, "folder_id", folder_id)


_UNUSED_ATTACHMENTS = (
    "DELETE FROM attachment WHERE NOT EXISTS (SELECT 1 FROM part WHERE attachment_sha256 = sha256)"
)
