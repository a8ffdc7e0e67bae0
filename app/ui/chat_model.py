"""The list of chats as a Qt model: only the rows that differ change.

A selection, a scroll position and an open editor survive a chat that moves or a dot that lights up,
and one chat costs the same among ten and among thousands.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtCore import Signal as QtSignal

from app.store.records import SearchHit
from app.ui.chat_list import (
    ChatRow,
    FolderRow,
    Heading,
    HitRow,
    Key,
    Order,
    Place,
    Row,
    first_key,
    heading_key,
    hit_rows,
    place_of_key,
    rows_of,
    spoken,
)

NO_PARENT = QModelIndex()
Index = QModelIndex | QPersistentModelIndex
CHATS_FORMAT, FOLDER_FORMAT = "application/x-inglenook-chats", "application/x-inglenook-folder"


class ChatListModel(QAbstractListModel):
    """`renamed` asks for a new name; the model itself changes when the caller puts the row."""

    ROW = Qt.ItemDataRole.UserRole + 1
    renamed = QtSignal(int, str)
    folder_renamed = QtSignal(int, str)

    def __init__(self) -> None:
        super().__init__()
        self._chats: dict[int, ChatRow] = {}
        self._folders: list[FolderRow] = []
        self._counts: Counter[int] = Counter()
        self._order = Order(datetime.now().date(), ())
        self._keys: list[Key] = []
        self._rows: list[Row] = []
        self._hits: list[HitRow] | None = None  # shown in place of the rows

    # ---- all of them
    def set_chats(self, chats: Iterable[ChatRow], folders: Sequence[FolderRow]) -> None:
        self.beginResetModel()
        self._chats = {chat.id: chat for chat in chats}
        self._folders = list(folders)
        self._hits = None
        self._lay_out()
        self.endResetModel()

    def _lay_out(self) -> None:
        pairs = self._wanted()
        self._keys, self._rows = [key for key, _ in pairs], [row for _, row in pairs]

    def _wanted(self) -> list[tuple[Key, Row]]:
        """The rows as they ought to be now."""
        self._order = order = Order(datetime.now().date(), self._folders)
        self._counts = Counter(
            folder for folder in map(order.folder_of, self._chats.values()) if folder is not None
        )
        self._folders = [replace(each, count=self._counts[each.id]) for each in self._folders]
        return rows_of(list(self._chats.values()), self._folders, order)

    def set_folders(self, folders: Sequence[FolderRow]) -> None:
        self._folders = list(folders)
        self.refresh()

    def refresh(self) -> None:
        """The day may have changed, or the folders: what stays in its place is left alone."""
        if self._hits is not None:
            self._lay_out()
            return
        pairs = self._wanted()
        keys, rows = [key for key, _ in pairs], [row for _, row in pairs]
        first = _shared(map(_name_of, self._rows), map(_name_of, rows))
        last = _shared(map(_name_of, reversed(self._rows)), map(_name_of, reversed(rows)))
        last = min(last, len(rows) - first, len(self._rows) - first)
        old_end, new_end = len(self._rows) - last, len(rows) - last
        if old_end > first:
            self.beginRemoveRows(NO_PARENT, first, old_end - 1)
            del self._rows[first:old_end], self._keys[first:old_end]
            self.endRemoveRows()
        if new_end > first:
            self.beginInsertRows(NO_PARENT, first, new_end - 1)
            self._rows[first:first], self._keys[first:first] = (
                rows[first:new_end],
                keys[first:new_end],
            )
            self.endInsertRows()
        self._keys = keys
        for place, row in enumerate(rows):
            self._replace(place, row)

    # ---- one of them
    def put(self, chat: ChatRow) -> None:
        """A new one, or one that is other than before."""
        old, self._chats[chat.id] = self._chats.get(chat.id), chat
        if self._hits is not None:
            self._put_hit(chat)
            return
        if self._order.today != datetime.now().date():
            self.refresh()
            return
        self._move(old, chat)
        self._count(old, chat)

    def take(self, chat_id: int) -> None:
        old = self._chats.pop(chat_id, None)
        if self._hits is not None:
            for place, hit in enumerate(self._hits):
                if hit.chat.id == chat_id:
                    self.beginRemoveRows(NO_PARENT, place, place)
                    del self._hits[place]
                    self.endRemoveRows()
                    return
        elif old is not None:
            self._move(old, None)
            self._count(old, None)

    def _move(self, old: ChatRow | None, new: ChatRow | None) -> None:
        """From where the old one stands, if anywhere, to where the new one belongs."""
        order = self._order
        from_key = order.key_of(old) if old is not None and order.is_shown(old) else None
        to_key = order.key_of(new) if new is not None and order.is_shown(new) else None
        if to_key is not None and new is not None:
            heading = order.heading_of(new)
            if heading is not None and self._place(heading_key(to_key)) is None:
                self._insert(heading_key(to_key), heading)
        start = self._place(from_key) if from_key is not None else None
        if start is not None and to_key is not None and new is not None:
            self._carry(start, to_key, new)
        elif start is not None:
            self._remove(start)
        elif to_key is not None and new is not None:
            self._insert(to_key, new)
        if from_key is not None and old is not None and order.heading_of(old) is not None:
            self._remove_heading_of_none(heading_key(from_key))

    def _carry(self, start: int, key: Key, row: ChatRow) -> None:
        """To its new place, with its selection and its editor."""
        end = bisect_left(self._keys, key)
        if end not in (start, start + 1):
            self.beginMoveRows(NO_PARENT, start, start, NO_PARENT, end)
            del self._keys[start], self._rows[start]
            end -= end > start
            self._keys.insert(end, key)
            self._rows.insert(end, row)
            self.endMoveRows()
        else:
            end = start
        self._keys[end] = key
        self._rows[end] = row
        self.dataChanged.emit(self.index(end), self.index(end))

    def _remove_heading_of_none(self, key: Key) -> None:
        place = self._place(key)
        if place is None:
            return
        after = self._keys[place + 1] if place + 1 < len(self._keys) else None
        if after is None or after[:3] != key[:3]:
            self._remove(place)

    def _count(self, old: ChatRow | None, new: ChatRow | None) -> None:
        before = self._order.folder_of(old) if old is not None else None
        after = self._order.folder_of(new) if new is not None else None
        if before == after:
            return
        for folder_id, step in ((before, -1), (after, 1)):
            if folder_id is not None:
                self._counts[folder_id] += step
                self._recount(folder_id)

    def _recount(self, folder_id: int) -> None:
        for at, folder in enumerate(self._folders):
            if folder.id == folder_id:
                self._folders[at] = replace(folder, count=self._counts[folder_id])
                place = self._place(self._order.key_of_folder(folder_id))
                if place is not None:
                    self._replace(place, self._folders[at])

    def _place(self, key: Key) -> int | None:
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else None

    def _insert(self, key: Key, row: Row) -> None:
        place = bisect_left(self._keys, key)
        self.beginInsertRows(NO_PARENT, place, place)
        self._keys.insert(place, key)
        self._rows.insert(place, row)
        self.endInsertRows()

    def _remove(self, place: int) -> None:
        self.beginRemoveRows(NO_PARENT, place, place)
        del self._keys[place], self._rows[place]
        self.endRemoveRows()

    def _replace(self, place: int, row: Row) -> None:
        if self._rows[place] != row:
            self._rows[place] = row
            self.dataChanged.emit(self.index(place), self.index(place))

    # ---- finds
    def set_hits(self, hits: Sequence[SearchHit] | None) -> None:
        """None: all chats again."""
        if hits is None and self._hits is None:
            return
        self.beginResetModel()
        if hits is None:
            self._hits = None
            self._lay_out()
        else:
            self._hits = hit_rows(hits, self._chats, self._folders, self._order)
        self.endResetModel()

    def _put_hit(self, chat: ChatRow) -> None:
        for place, hit in enumerate(self._hits or ()):
            if hit.chat.id == chat.id and self._hits is not None:
                is_renamed = hit.chat.title != chat.title
                changed = replace(hit, chat=chat)
                self._hits[place] = replace(changed, title_places=()) if is_renamed else changed
                self.dataChanged.emit(self.index(place), self.index(place))

    @property
    def is_searching(self) -> bool:
        return self._hits is not None

    # ---- questions
    def _shown(self) -> Sequence[Row]:
        return self._rows if self._hits is None else self._hits

    def chats(self) -> list[ChatRow]:
        """Those that are shown, in their order."""
        found = (chat_of(row) for row in self._shown())
        return [chat for chat in found if chat is not None]

    def folders(self) -> list[FolderRow]:
        return list(self._folders)

    def chat(self, chat_id: int | None) -> ChatRow | None:
        """Also one that a closed folder or a search hides."""
        return self._chats.get(chat_id) if chat_id is not None else None

    def has_chats(self) -> bool:
        return bool(self._chats)

    def index_of(self, chat_id: int | None) -> QModelIndex:
        chat = self.chat(chat_id)
        if chat is None:
            return QModelIndex()
        if self._hits is not None:
            places = (at for at, hit in enumerate(self._hits) if hit.chat.id == chat_id)
            place = next(places, None)
        else:
            place = self._place(self._order.key_of(chat))
        return QModelIndex() if place is None else self.index(place)

    def index_of_folder(self, folder_id: int | None) -> QModelIndex:
        if self._hits is None and any(folder.id == folder_id for folder in self._folders):
            assert folder_id is not None
            place = self._place(self._order.key_of_folder(folder_id))
            return QModelIndex() if place is None else self.index(place)
        return QModelIndex()

    def row_at(self, index: Index) -> Row | None:
        shown = self._shown()
        return shown[index.row()] if index.isValid() and index.row() < len(shown) else None

    def chat_at(self, index: Index) -> ChatRow | None:
        return chat_of(self.row_at(index))

    def folder_at(self, index: Index) -> FolderRow | None:
        row = self.row_at(index)
        return row if isinstance(row, FolderRow) else None

    def folder_of(self, chat: ChatRow) -> int | None:
        """The folder that it is shown in."""
        return self._order.folder_of(chat)

    def place_of(self, chat: ChatRow) -> Place:
        return "pinned" if chat.is_pinned else self._order.folder_of(chat)

    def place_at(self, index: Index) -> Place | Literal["folders"]:
        """What a chat that is dropped on this row would be put into."""
        return place_of_key(self._keys[index.row()]) if index.isValid() else None

    def rows_of_place(self, place: Place) -> range:
        """What stands there now, with its heading or folder."""
        first = bisect_left(self._keys, first_key(place, self._order))
        ends = (
            row for row in range(first, len(self._keys)) if place_of_key(self._keys[row]) != place
        )
        return range(first, next(ends, len(self._keys)))

    def has_pinned(self) -> bool:
        return bool(self._rows) and self._rows[0] == Heading("Pinned")

    # ---- Qt
    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._shown())

    def flags(self, index: Index) -> Qt.ItemFlag:
        flag = Qt.ItemFlag
        if isinstance(self.row_at(index), Heading | None):
            return flag.NoItemFlags
        return (
            flag.ItemIsEnabled
            | flag.ItemIsSelectable
            | flag.ItemIsEditable
            | flag.ItemIsDragEnabled
        )

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.row_at(index)
        if row is None:
            return None
        if role == self.ROW:
            return row
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(row)
        if role in (
            Qt.ItemDataRole.DisplayRole,
            Qt.ItemDataRole.EditRole,
            Qt.ItemDataRole.ToolTipRole,
        ):
            return name_of(row)
        return None

    def _spoken(self, row: Row) -> str:
        chat = chat_of(row)
        folder_id = chat.folder_id if chat is not None else None
        names = (folder.name for folder in self._folders if folder.id == folder_id)
        return spoken(row, datetime.now(), next(names, ""))

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row, name = self.row_at(index), " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or row is None or not name or name == name_of(row):
            return False
        chat = chat_of(row)
        if chat is not None:
            self.renamed.emit(chat.id, name)
        elif isinstance(row, FolderRow):
            self.folder_renamed.emit(row.id, name)
        return True

    def mimeTypes(self) -> list[str]:
        return [CHATS_FORMAT, FOLDER_FORMAT]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """Chats, or one folder: numbers that mean something to this list alone."""
        data = QMimeData()
        chats = [chat.id for chat in map(self.chat_at, indexes) if chat is not None]
        folders = [folder.id for folder in map(self.folder_at, indexes) if folder is not None]
        if chats:
            data.setData(CHATS_FORMAT, " ".join(map(str, chats)).encode())
        elif folders:
            data.setData(FOLDER_FORMAT, str(folders[0]).encode())
        return data


def chat_of(row: Row | None) -> ChatRow | None:
    if isinstance(row, HitRow):
        return row.chat
    return row if isinstance(row, ChatRow) else None


def name_of(row: Row) -> str:
    if isinstance(row, FolderRow):
        return row.name
    chat = chat_of(row)
    return chat.title if chat is not None else row.title if isinstance(row, Heading) else ""


def _name_of(row: Row) -> tuple[str, object]:
    """What makes a row the same although it changed. Folders and chats have the same numbers."""
    if isinstance(row, FolderRow):
        return "folder", row.id
    chat = chat_of(row)
    return ("heading", name_of(row)) if chat is None else ("chat", chat.id)


def _shared(one: Iterable[object], other: Iterable[object]) -> int:
    """How many are the same from the beginning on."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            return count
        count += 1
    return count
