"""The list of chats and folders: what the mouse and the keys do there.

Enter opens, F2 renames, Del deletes (it can be undone), Left and Right fold a folder, Alt+Up and
Alt+Down move a chat from place to place or a folder among the others. Several chats are chosen with
Ctrl and Shift, as in any list.
"""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QPoint, Qt, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QDrag,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QPaintEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView

from app.ui.chat_delegate import ChatDelegate
from app.ui.chat_drops import Drop, drag_picture, dragged_chats, dragged_folder, drop_at, paint_drop
from app.ui.chat_list import ChatRow, FolderRow, HitRow, Place
from app.ui.chat_menu import ChatMenu, fill_places
from app.ui.chat_model import ChatListModel, name_of
from app.ui.controls import painter

ALT = Qt.KeyboardModifier.AltModifier
CHOOSING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


class ChatListView(QListView):
    opened = Signal(int)
    hit_opened = Signal(int, int, str)  # chat, message, the words that were found in it
    delete_requested = Signal(list)  # chats
    moved = Signal(list, object)  # chats, Place
    folder_requested = Signal(list)  # a new one, for these chats
    folder_toggled = Signal(int, bool)
    folder_moved = Signal(int, int)  # its position among the others
    folder_delete_requested = Signal(int)
    left_upwards = Signal()  # Up, in the first row

    def __init__(self, model: ChatListModel) -> None:
        super().__init__()
        self._chats = model
        self._delegate = ChatDelegate(self)
        self._drop: Drop | None = None
        self.setObjectName("chats")
        self.setAccessibleName("Chats")
        self.setModel(model)
        self.setItemDelegate(self._delegate)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDropIndicatorShown(False)
        self.viewport().setAutoFillBackground(False)
        self.setMouseTracking(True)
        self.setUniformItemSizes(True)  # else Qt asks for the height of every row
        self.clicked.connect(self._click)

    # ---- what is chosen
    def set_shown(self, chat_id: int | None) -> None:
        """The chat on the page."""
        if chat_id != self._delegate.shown:
            self._delegate.shown = chat_id
            self.go_to(self._chats.index_of(chat_id))
            self.viewport().update()

    @property
    def shown(self) -> int | None:
        return self._delegate.shown

    def go_to(self, index: QModelIndex) -> None:
        self.setCurrentIndex(index)
        if not index.isValid():
            self.clearSelection()

    def current_chat(self) -> ChatRow | None:
        return self._chats.chat_at(self.currentIndex())

    def current_folder(self) -> FolderRow | None:
        return self._chats.folder_at(self.currentIndex())

    def chosen(self) -> list[ChatRow]:
        """The chats that are selected, in the order of the list."""
        rows = sorted(self.selectedIndexes(), key=lambda index: index.row())
        found = (self._chats.chat_at(index) for index in rows)
        return [chat for chat in found if chat is not None]

    def is_renaming(self) -> bool:
        return self.state() == QAbstractItemView.State.EditingState

    def rename(self, index: QModelIndex) -> None:
        if index.isValid():
            self.setFocus()
            self.go_to(index)
            self.edit(index)

    # ---- opening
    @Slot(QModelIndex)
    def _click(self, index: QModelIndex) -> None:
        if not QGuiApplication.keyboardModifiers() & CHOOSING:
            self.open_row(index)

    def open_row(self, index: QModelIndex) -> None:
        row = self._chats.row_at(index)
        if isinstance(row, HitRow) and row.message_id is not None:
            self.hit_opened.emit(row.chat.id, row.message_id, row.words)
        elif isinstance(row, HitRow):
            self.opened.emit(row.chat.id)
        elif isinstance(row, ChatRow):
            self.opened.emit(row.id)
        elif isinstance(row, FolderRow):
            self.folder_toggled.emit(row.id, not row.is_open)

    def first_row(self) -> QModelIndex:
        """The first that can be chosen."""
        for row in range(min(2, self._chats.rowCount())):
            index = self._chats.index(row)
            if self._chats.flags(index):
                return index
        return QModelIndex()

    # ---- keys
    def event(self, event: QEvent) -> bool:
        """Alt+Up and Alt+Down mean something here, whatever they mean elsewhere."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.modifiers() == ALT
            and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.is_renaming() and self._handle_key(event):
            event.accept()
        else:
            super().keyPressEvent(event)

    def _handle_key(self, event: QKeyEvent) -> bool:
        key, is_plain = (
            event.key(),
            event.modifiers()
            in (
                Qt.KeyboardModifier.NoModifier,
                Qt.KeyboardModifier.KeypadModifier,
            ),
        )
        if event.modifiers() == ALT and key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step(-1 if key == Qt.Key.Key_Up else 1)
            return True
        if not is_plain:
            return False
        if key == Qt.Key.Key_Delete:
            self._delete()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open_row(self.currentIndex())
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            return self._fold(is_open=(key == Qt.Key.Key_Right) is not self.isRightToLeft())
        elif key == Qt.Key.Key_Up and self.currentIndex() == self.first_row():
            self.left_upwards.emit()
        else:
            return False
        return True

    def _delete(self) -> None:
        folder, chats = self.current_folder(), self.chosen()
        if chats:
            self.delete_requested.emit([chat.id for chat in chats])
        elif folder is not None:
            self.folder_delete_requested.emit(folder.id)

    def _fold(self, *, is_open: bool) -> bool:
        """Of a chat in a folder, Left goes to the folder."""
        folder, chat = self.current_folder(), self.current_chat()
        if folder is not None:
            if folder.is_open != is_open:
                self.folder_toggled.emit(folder.id, is_open)
            return True
        if chat is not None and not is_open and not self._chats.is_searching:
            index = self._chats.index_of_folder(self._chats.folder_of(chat))
            if index.isValid():
                self.setCurrentIndex(index)
            return True
        return False

    def _step(self, step: int) -> None:
        """A folder among the folders, chats through the places."""
        folder, chats = self.current_folder(), self.chosen()
        order = [each.id for each in self._chats.folders()]
        if folder is not None:
            position = order.index(folder.id) + step
            if 0 <= position < len(order):
                self.folder_moved.emit(folder.id, position)
            return
        places: list[Place] = ["pinned", *order, None]
        movable = [chat for chat in chats if not chat.is_temporary]
        if movable and not self._chats.is_searching:
            at = places.index(self._chats.place_of(movable[0])) + step
            if 0 <= at < len(places):
                self._move(movable, places[at])

    def _move(self, chats: Sequence[ChatRow], place: Place) -> None:
        """A folder that they move into is opened: what was chosen stays in sight."""
        if isinstance(place, int) and not self._chats.is_searching:
            self.folder_toggled.emit(place, True)
        self.moved.emit([chat.id for chat in chats], place)

    # ---- menu
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() == QContextMenuEvent.Reason.Mouse:
            index, at = self.indexAt(event.pos()), event.globalPos()
        else:
            index = self.currentIndex()
            corner = self.visualRect(index).bottomLeft() + QPoint(24, 0)
            at = self.viewport().mapToGlobal(corner)
        if not index.isValid() or not self._chats.flags(index):
            index = QModelIndex()
        self.menu_at(index).popup(at)

    def menu_at(self, index: QModelIndex) -> ChatMenu:
        folder, chat = self._chats.folder_at(index), self._chats.chat_at(index)
        if folder is not None:
            return self._folder_menu(folder)
        if chat is not None:
            chosen = self.chosen()
            return self._chat_menu(chosen if chat in chosen else [chat])
        menu = ChatMenu(self, "Chats")
        menu.add("New folder", "Ctrl+Shift+N", lambda: self.folder_requested.emit([]), "folder")
        return menu

    def _chat_menu(self, chats: list[ChatRow]) -> ChatMenu:
        menu = ChatMenu(self, "Chat")
        numbers = [chat.id for chat in chats]
        many = f" {len(chats)} chats" if len(chats) > 1 else ""
        if len(chats) == 1:
            index = self._chats.index_of(numbers[0])
            menu.add("Open", "Enter", lambda: self.open_row(index))
            menu.add("Rename", "F2", lambda: self.rename(index), "edit")
        if not any(chat.is_temporary for chat in chats):
            is_pinned = all(chat.is_pinned for chat in chats)
            menu.add(
                ("Unpin" if is_pinned else "Pin") + many,
                "Ctrl+Shift+P",
                lambda: self.pin(chats, is_pinned=not is_pinned),
                "pin",
            )
            menu.add_places(
                chats,
                self._chats.folders(),
                lambda place: self.moved.emit(numbers, place),
                lambda _: self.folder_requested.emit(numbers),
            )
        menu.addSeparator()
        menu.add(f"Delete{many}", "Del", lambda: self.delete_requested.emit(numbers), "trash")
        return menu

    def _folder_menu(self, folder: FolderRow) -> ChatMenu:
        menu = ChatMenu(self, "Folder")
        order = [each.id for each in self._chats.folders()]
        at = order.index(folder.id)
        menu.add(
            "Close" if folder.is_open else "Open",
            "Enter",
            lambda: self.folder_toggled.emit(folder.id, not folder.is_open),
        )
        index = self._chats.index_of_folder(folder.id)
        menu.add("Rename", "F2", lambda: self.rename(index), "edit")
        if at > 0:
            menu.add("Move up", "Alt+Up", lambda: self.folder_moved.emit(folder.id, at - 1))
        if at < len(order) - 1:
            menu.add("Move down", "Alt+Down", lambda: self.folder_moved.emit(folder.id, at + 1))
        menu.add("New folder", "Ctrl+Shift+N", lambda: self.folder_requested.emit([]), "folder")
        menu.addSeparator()
        menu.add(
            "Delete the folder, keep its chats",
            "Del",
            lambda: self.folder_delete_requested.emit(folder.id),
            "trash",
        )
        return menu

    def places_menu(self, chats: list[ChatRow]) -> ChatMenu:
        """Where these can be moved, as a menu of its own."""
        menu = ChatMenu(self, "Move to")
        numbers = [chat.id for chat in chats]
        fill_places(
            menu,
            chats,
            self._chats.folders(),
            lambda place: self.moved.emit(numbers, place),
            lambda _: self.folder_requested.emit(numbers),
        )
        return menu

    def pin(self, chats: Sequence[ChatRow], *, is_pinned: bool) -> None:
        """Unpinned, each goes back to the folder that it came from."""
        if is_pinned:
            self.moved.emit([chat.id for chat in chats], "pinned")
            return
        for folder_id in {chat.folder_id for chat in chats}:
            self.moved.emit([c.id for c in chats if c.folder_id == folder_id], folder_id)

    # ---- dragging
    def startDrag(self, actions: Qt.DropAction) -> None:
        indexes = self.selectedIndexes()
        if not indexes or self._chats.is_searching:
            return
        data = self._chats.mimeData(indexes)
        count = len(dragged_chats(data)) or 1
        row = self._chats.row_at(indexes[0])
        drag = QDrag(self)
        drag.setMimeData(data)
        if row is not None:
            drag.setPixmap(drag_picture(name_of(row), count, self.devicePixelRatioF()))
            drag.setHotSpot(QPoint(-12, -8))
        drag.exec(Qt.DropAction.MoveAction)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files go on to the window."""
        data = event.mimeData()
        if dragged_chats(data) or dragged_folder(data) is not None:
            event.accept()
        else:
            event.ignore()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        super().dragMoveEvent(event)  # scrolls at the edges
        self._set_drop(drop_at(self, self._chats, event.mimeData(), event.position().toPoint()))
        if self._drop is not None:
            event.setDropAction(Qt.DropAction.MoveAction)
            event.accept()
        else:
            event.ignore()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._set_drop(None)

    def dropEvent(self, event: QDropEvent) -> None:
        drop = drop_at(self, self._chats, event.mimeData(), event.position().toPoint())
        self._set_drop(None)
        self.stopAutoScroll()
        self.setState(QAbstractItemView.State.NoState)
        if drop is None:
            event.ignore()
            return
        event.setDropAction(Qt.DropAction.MoveAction)
        event.accept()
        if drop.folder is not None:
            self.folder_moved.emit(drop.folder, drop.position)
        else:
            self.moved.emit(list(drop.chats), drop.place)

    def _set_drop(self, drop: Drop | None) -> None:
        if drop != self._drop:
            self._drop = drop
            self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._drop is not None:
            paint_drop(painter(self.viewport()), self, self._chats, self._drop)
