"""The list of chats as one flat model: date headings and chats in the order they are shown.

`section_of` and `rows_of` are pure; the model changes only what differs, so that a selection, a
scroll position and an open editor survive a chat that moves or a dot that lights up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from PySide6.QtCore import QAbstractListModel, QLocale, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtCore import Signal as QtSignal

NO_PARENT = QModelIndex()
Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class ChatRow:
    id: int
    title: str
    updated_at: float  # seconds since the epoch
    is_live: bool = False
    has_draft: bool = False


@dataclass(frozen=True)
class Heading:
    title: str


Row = ChatRow | Heading


def section_of(when: date, today: date) -> str:
    days = (today - when).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days <= 7:
        return "Previous 7 days"
    if days <= 30:
        return "Previous 30 days"
    month = QLocale.c().standaloneMonthName(when.month)
    return month if when.year == today.year else f"{month} {when.year}"


def trail_of(when: datetime, now: datetime) -> str:
    """The short date at the right of a row."""
    days = (now.date() - when.date()).days
    if days <= 0:
        return f"{when:%H:%M}"
    if days < 7:
        return QLocale.c().standaloneDayName(when.isoweekday(), QLocale.FormatType.ShortFormat)
    month = QLocale.c().standaloneMonthName(when.month, QLocale.FormatType.ShortFormat)
    return f"{when.day} {month}" if when.year == now.year else f"{month} {when.year}"


def rows_of(chats: Sequence[ChatRow], now: datetime) -> list[Row]:
    """Newest first, a heading before each group."""
    rows: list[Row] = []
    last = ""
    for chat in sorted(chats, key=lambda chat: -chat.updated_at):
        section = section_of(datetime.fromtimestamp(chat.updated_at).date(), now.date())
        if section != last:
            rows.append(Heading(section))
            last = section
        rows.append(chat)
    return rows


class ChatListModel(QAbstractListModel):
    """`renamed` asks for a new title; the model itself changes when the caller sets new rows."""

    ROW = Qt.ItemDataRole.UserRole + 1
    renamed = QtSignal(int, str)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        if rows == self._rows:
            return
        if self._keys(rows) == self._keys(self._rows):
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    @staticmethod
    def _keys(rows: list[Row]) -> list[object]:
        return [row.id if isinstance(row, ChatRow) else row.title for row in rows]

    def chats(self) -> list[ChatRow]:
        return [row for row in self._rows if isinstance(row, ChatRow)]

    def index_of(self, chat_id: int | None) -> QModelIndex:
        for number, row in enumerate(self._rows):
            if isinstance(row, ChatRow) and row.id == chat_id:
                return self.index(number)
        return QModelIndex()

    def chat_at(self, index: Index) -> ChatRow | None:
        row = self._rows[index.row()] if index.isValid() else None
        return row if isinstance(row, ChatRow) else None

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        if self.chat_at(index) is None:
            return Qt.ItemFlag.NoItemFlags
        flag = Qt.ItemFlag
        return flag.ItemIsEnabled | flag.ItemIsSelectable | flag.ItemIsEditable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role == self.ROW:
            return row
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return _spoken(row)
        if role in (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.EditRole,
            Qt.ItemDataRole.ToolTipRole,
        ):
            return row.title
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        chat = self.chat_at(index)
        title = " ".join(str(value).split())
        if chat is None or role != Qt.ItemDataRole.EditRole or not title or title == chat.title:
            return False
        self.renamed.emit(chat.id, title)
        return True


def _spoken(row: Row) -> str:
    if isinstance(row, Heading):
        return f"{row.title}, heading"
    parts = [row.title]
    if row.is_live:
        parts.append("being written")
    if row.has_draft:
        parts.append("has a draft")
    return ", ".join(parts)
