"""Conversations as rows: titles, options, drafts, pins, the bin."""

import time
from collections.abc import Mapping
from typing import Any

from app.store.places import Places
from app.store.records import ConversationRecord, ListedChat
from app.store.rows import (
    UNREAD,
    conversation_of,
    inserted,
    json_of,
    listed_of,
    object_of,
    writable,
)

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

    def newest_conversation(self) -> ConversationRecord | None:
        """The one used last, of those on the disk."""
        rows = self._disk.read(
            "SELECT * FROM conversation WHERE deleted_at IS NULL"
            " ORDER BY updated_at DESC, id DESC LIMIT 1"
        )
        return conversation_of(rows[0]) if rows else None

    def listed_chats(self) -> list[ListedChat]:
        """What a list shows of all that are not deleted, in no order; temporary ones too."""
        return [listed_of(row) for file in self._files() for row in file.read(_LISTED)]

    def listed_chat(self, conversation_id: int) -> ListedChat | None:
        """One of them; None when it is deleted or there is none of that number."""
        rows = self._of(conversation_id).read(_LISTED + " AND id = ?", conversation_id)
        return listed_of(rows[0]) if rows else None

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

    def move_to_folder(self, conversation_id: int, folder_id: int | None) -> None:
        """None: out of its folder. A temporary chat stays where it is."""
        if self._of(conversation_id) is self._disk:
            self._set(conversation_id, "folder_id", folder_id)

    def set_unread(self, conversation_id: int, is_unread: bool) -> None:
        """Whether its last answer came while another chat was shown."""
        file = self._of(conversation_id)
        with file.write() as writer:
            rows = writer.execute("SELECT view FROM conversation WHERE id = ?", (conversation_id,))
            for (view,) in rows.fetchall():
                facts = {key: value for key, value in object_of(view).items() if key != UNREAD}
                facts |= {UNREAD: True} if is_unread else {}
                writer.execute(
                    "UPDATE conversation SET view = ? WHERE id = ?",
                    (json_of(facts), conversation_id),
                )

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
        """All of it, at once."""
        with self._of(conversation_id).erase() as writer:
            writer.execute("DELETE FROM conversation WHERE id = ?", (conversation_id,))
            writer.execute(_UNUSED_ATTACHMENTS)

    def purge(self, older_than_s: float) -> int:
        """Really remove what was deleted longer ago; returns the number of conversations."""
        before = time.time() - older_than_s
        with self._disk.erase() as writer:
            gone = writer.execute("DELETE FROM conversation WHERE deleted_at <= ?", (before,))
            writer.execute("DELETE FROM message WHERE deleted_at <= ?", (before,))
            writer.execute("DELETE FROM folder WHERE deleted_at <= ?", (before,))
            writer.execute(_UNUSED_ATTACHMENTS)
        return gone.rowcount

    def empty_bin(self) -> None:
        """All deleted chats and folders, at once and for good."""
        with self._disk.erase() as writer:
            writer.execute("DELETE FROM conversation WHERE deleted_at IS NOT NULL")
            writer.execute("DELETE FROM folder WHERE deleted_at IS NOT NULL")
            writer.execute(_UNUSED_ATTACHMENTS)

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


_UNUSED_ATTACHMENTS = (
    "DELETE FROM attachment WHERE NOT EXISTS (SELECT 1 FROM part WHERE attachment_sha256 = sha256)"
)
_LISTED = (
    "SELECT id, title, updated_at, draft != '' AS has_draft, folder_id, is_pinned, view"
    " FROM conversation WHERE deleted_at IS NULL"
)
