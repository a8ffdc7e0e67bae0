"""The chats and folders that the sidebar lists: read once, then row by row.

Adds what the store does not know: which chat is on the page and which is being written in. An
answer that comes to its end in a chat that is not on the page makes that one unread.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.store.records import ListedChat
from app.store.store import Store, is_temporary
from app.ui.chat_list import ChatRow, FolderRow

if TYPE_CHECKING:
    from app.ui.chat_screen import ChatScreen


class Shelf(QObject):
    listed = Signal(list, list)  # all ChatRows, all FolderRows in their order
    changed = Signal(object)  # a ChatRow that is new, or other than before
    gone = Signal(int)
    folders_changed = Signal(list)  # all FolderRows
    shown_changed = Signal(object)  # the chat on the page, or None

    def __init__(self, screen: "ChatScreen") -> None:
        super().__init__(screen)
        self._screen = screen
        self._rows: dict[int, ChatRow] = {}
        self._shown: int | None = None
        self._live: int | None = None

    def list_all(self) -> None:
        """Everything anew."""
        self._look()
        rows = map(self._row_of, self._screen.store.listed_chats())
        self._rows = {row.id: row for row in rows}
        self.listed.emit(list(self._rows.values()), self._folders())
        self.shown_changed.emit(self._shown)

    def follow(self, chats: Iterable[int | None] = ()) -> None:
        """These chats may have changed; and what is shown or written in."""
        before = {self._shown, self._live}
        shown = self._shown
        self._look()
        for chat_id in {*chats, *before, self._shown, self._live} - {None}:
            assert chat_id is not None
            self._read(chat_id)
        if self._shown != shown:
            self.shown_changed.emit(self._shown)

    def list_folders(self) -> None:
        self.folders_changed.emit(self._folders())

    def row(self, chat_id: int) -> ChatRow | None:
        return self._rows.get(chat_id)

    def _folders(self) -> list[FolderRow]:
        found = self._screen.store.folders()
        return [FolderRow(folder.id, folder.name, folder.is_open) for folder in found]

    def _look(self) -> None:
        answer, old = self._screen.answer, self._live
        self._live = answer.conversation_id if answer is not None else None
        self._shown = self._screen.shown
        if old is not None and old not in (self._live, self._shown):
            self._mark(old, is_unread=True)
        row = self._rows.get(self._shown) if self._shown is not None else None
        if row is not None and row.is_unread:
            self._mark(row.id, is_unread=False)

    def _mark(self, chat_id: int, *, is_unread: bool) -> None:
        self._screen.job.run(
            partial(Store.set_unread, conversation_id=chat_id, is_unread=is_unread),
            lambda _: self.follow([chat_id]),
        )

    def _read(self, chat_id: int) -> None:
        listed = self._screen.store.listed_chat(chat_id)
        old = self._rows.pop(chat_id, None)
        if listed is None:
            if old is not None:
                self.gone.emit(chat_id)
            return
        row = self._rows[chat_id] = self._row_of(listed)
        if row != old:
            self.changed.emit(row)

    def _row_of(self, chat: ListedChat) -> ChatRow:
        row = ChatRow(
            chat.id,
            chat.title,
            chat.updated_at,
            is_live=chat.id == self._live,
            has_draft=chat.has_draft,
            folder_id=chat.folder_id,
            is_pinned=chat.is_pinned,
            is_unread=chat.is_unread,
            is_temporary=is_temporary(chat.id),
        )
        return replace(row, has_draft=False, is_unread=False) if chat.id == self._shown else row
