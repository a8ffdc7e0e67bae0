"""The panel of chats: their search, their list, and what stands under it.

Takes values and sends signals with values; what the list itself does is in chat_view.py.
"""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QStackedLayout, QWidget

from app.store.records import SearchHit
from app.ui.chat_list import ChatRow, FolderRow
from app.ui.chat_model import ChatListModel
from app.ui.chat_view import ChatListView
from app.ui.controls import ElidedLabel, HLine, IconButton, IconLabel, Label, box, painter
from app.ui.sidebar_parts import APP_NAME, Brand, NavRow, SearchField
from app.ui.theme import BODY, CAPTION, H_BAR, S3, SMALL, color

__all__ = ["APP_NAME", "Sidebar"]

SEARCH_DELAY_MS = 150


class Sidebar(QWidget):
    chat_opened = Signal(int)
    chat_renamed = Signal(int, str)
    folder_renamed = Signal(int, str)
    new_requested = Signal()
    searched = Signal(str)
    found = Signal(str)  # how much, in words
    menu_requested = Signal()
    hide_requested = Signal()
    models_requested = Signal()
    settings_requested = Signal()
    server_requested = Signal()

    def __init__(self, *, menu_tip: str = "Menu (F10)") -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setMinimumWidth(220)
        self._model = ChatListModel()
        self._model.setParent(self)
        self.list = ChatListView(self._model)
        self.search = SearchField()
        self.menu_button = IconButton("menu", menu_tip, 30)
        self.new_button = IconButton("new-chat", "New chat (Ctrl+N)", 30, 19, "accent")
        self.hide_button = IconButton("panel-left", "Hide sidebar (Ctrl+B)", 30)
        self.models_row = NavRow("model", "Models")
        self.settings_row = NavRow("settings", "Settings")
        self.server_row = NavRow("gauge", "Server")
        self._device = ElidedLabel("", SMALL, "text", 500)
        self._empty_title = Label("No chats yet", BODY, "text", 600, wrap=True)
        self._empty_text = Label("", SMALL, "muted", wrap=True)
        self._found = ElidedLabel("", SMALL, "faint")
        self._found.hide()
        self._search_timer = QTimer(self, singleShot=True, interval=SEARCH_DELAY_MS)
        self._opens_first = False  # of what will be found
        self._build()
        self._connect()
        self.set_chats([], [])
        self.set_device("")
        self.set_server("", is_used=False, total=0)

    def _build(self) -> None:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        box(
            "h",
            self.menu_button,
            2,
            Brand(),
            "stretch",
            self.hide_button,
            margins=(8, 0, 8, 0),
            spacing=2,
            into=head,
        )
        empty = QWidget()
        box(
            "v",
            12,
            self._empty_title,
            self._empty_text,
            "stretch",
            margins=(S3 + 4, 0, S3, 0),
            spacing=4,
            into=empty,
        )
        self._stack = QStackedLayout()
        self._stack.addWidget(self.list)
        self._stack.addWidget(empty)
        find = box("h", self.search, self.new_button, margins=(S3, 0, 8, 6), spacing=4)
        box(
            "v",
            head,
            find,
            box("h", (self._found, 1), margins=(S3 + 4, 0, S3, 0)),
            (self._stack, 1),
            HLine(),
            6,
            self.models_row,
            self.settings_row,
            self.server_row,
            self._foot(),
            spacing=0,
            into=self,
        )

    def _foot(self) -> QWidget:
        foot = QWidget()
        device = box("h", IconLabel("cpu", "muted", 17), (self._device, 1), spacing=7)
        promise = ElidedLabel("Offline. Nothing leaves this computer.", CAPTION, "faint")
        lock = box("h", IconLabel("lock", "faint", 13), (promise, 1), spacing=5)
        box("v", device, 2, lock, margins=(S3 + 4, 8, S3 + 4, S3), spacing=4, into=foot)
        return foot

    def _connect(self) -> None:
        self.list.opened.connect(self.chat_opened)
        self.list.left_upwards.connect(self._go_to_field)
        self._model.renamed.connect(self.chat_renamed)
        self._model.folder_renamed.connect(self.folder_renamed)
        self.search.textChanged.connect(self._search_soon)
        self.search.entered.connect(self._open_first)
        self.search.left_downwards.connect(self._go_to_list)
        self._search_timer.timeout.connect(self._search)
        self.menu_button.clicked.connect(self.menu_requested)
        self.new_button.clicked.connect(self.new_requested)
        self.hide_button.clicked.connect(self.hide_requested)
        self.models_row.clicked.connect(self.models_requested)
        self.settings_row.clicked.connect(self.settings_requested)
        self.server_row.clicked.connect(self.server_requested)

    # ---- values in
    @Slot(list, list)
    def set_chats(self, chats: list[ChatRow], folders: list[FolderRow]) -> None:
        """All of them; a search begins anew."""
        self._model.set_chats(chats, folders)
        if self.search.text().strip():
            self._search()
        self.list.go_to(self._model.index_of(self.list.shown))
        self._show_emptiness()

    @Slot(object)
    def put_chat(self, chat: ChatRow) -> None:
        self._model.put(chat)
        self._show_emptiness()

    @Slot(int)
    def take_chat(self, chat_id: int) -> None:
        self._model.take(chat_id)
        self._show_emptiness()

    @Slot(list)
    def set_folders(self, folders: list[FolderRow]) -> None:
        self._model.set_folders(folders)
        self._show_emptiness()

    @Slot(object)
    def set_shown(self, chat_id: int | None) -> None:
        self.list.set_shown(chat_id)

    @Slot(str, list)
    def show_hits(self, query: str, hits: Sequence[SearchHit]) -> None:
        """An empty query: all chats again."""
        was_searching = self._model.is_searching
        self._model.set_hits(hits if query else None)
        count = self._model.rowCount() if query else 0
        most = len({hit.conversation_id for hit in hits})
        words = f"{count} chat{'s' * (count != 1)}" if count else ""
        if most and most == count and count >= 100:
            words = f"The first {count} chats. Another word finds fewer."
        self._found.setText(words)
        self._found.setVisible(bool(words))
        self._show_emptiness()
        if query:
            self.list.scrollToTop()
            self.found.emit(f"{words or 'No chat'} found")
        elif was_searching:
            self.list.go_to(self._model.index_of(self.list.shown))
        if self._opens_first and query:
            self._opens_first = False
            self.list.open_row(self.list.first_row())

    @Slot(str)
    def show_search_failure(self, sentence: str) -> None:
        self._model.set_hits([])
        self._found.hide()
        self._empty_title.setText("The search failed")
        self._empty_text.setText(sentence)
        self._stack.setCurrentIndex(1)

    def _show_emptiness(self) -> None:
        query = self.search.text().strip()
        is_search = self._model.is_searching
        self._empty_title.setText(f"No chat contains “{query}”" if is_search else "No chats yet")
        self._empty_text.setText(
            "Search looks at titles and messages."
            if is_search
            else "Chats you start appear here. They are kept on this computer only."
        )
        self._stack.setCurrentIndex(0 if self._model.rowCount() else 1)

    def set_device(self, text: str) -> None:
        self._device.setText(text)

    def set_server(self, address: str, *, is_used: bool, total: int) -> None:
        """An empty address: nothing listens, and there is nothing to see."""
        self.server_row.setVisible(bool(address))
        place = address.removeprefix("http://").removesuffix("/v1")
        self.server_row.setText(f"Server on {place}")
        used = "in use" if is_used else f"used {total} time{'s' * (total != 1)}" if total else ""
        self.server_row.set_trail(used)
        self.server_row.setAccessibleName(", ".join(filter(None, (f"Server on {place}", used))))

    def set_model_count(self, count: int) -> None:
        self.models_row.set_trail(str(count) if count else "")
        self.models_row.setAccessibleName(f"Models, {count}")

    # ---- questions
    def chats(self) -> list[ChatRow]:
        """What is listed now, in its order."""
        return self._model.chats()

    def folders(self) -> list[FolderRow]:
        return self._model.folders()

    def empty_words(self) -> str:
        """What stands in place of an empty list."""
        return f"{self._empty_title.text()}. {self._empty_text.text()}"

    def targets(self) -> list[ChatRow]:
        """What a command for chats means: those chosen in the list while it has the focus, else
        the one on the page."""
        if self.list.hasFocus() and self.list.chosen():
            return self.list.chosen()
        shown = self._model.chat(self.list.shown)
        return [shown] if shown is not None else []

    def neighbour(self, step: int) -> int | None:
        """The chat listed before (-1) or after (+1) the one on the page; the first without one."""
        order = [chat.id for chat in self._model.chats()]
        if self.list.shown not in order:
            return order[0] if order else None
        at = order.index(self.list.shown) + step
        return order[at] if 0 <= at < len(order) else None

    # ---- commands
    def rename_current(self) -> None:
        """In place: what is chosen in the list while it has the focus, else the chat shown."""
        index = self.list.currentIndex()
        if not self.list.hasFocus() or not index.isValid():
            index = self.reveal(self.list.shown)
        self.list.rename(index)

    def rename_folder(self, folder_id: int) -> None:
        self.clear_search()
        self.list.rename(self._model.index_of_folder(folder_id))

    def reveal(self, chat_id: int | None) -> QModelIndex:
        """Opens the folder or ends the search that hides it."""
        if self._model.is_searching and not self._model.index_of(chat_id).isValid():
            self.clear_search()
        chat = self._model.chat(chat_id)
        folder_id = self._model.folder_of(chat) if chat is not None else None
        if folder_id is not None and not self._model.index_of(chat_id).isValid():
            self.list.folder_toggled.emit(folder_id, True)
            self._model.set_folders(
                [
                    FolderRow(each.id, each.name, each.is_open or each.id == folder_id)
                    for each in self._model.folders()
                ]
            )
        return self._model.index_of(chat_id)

    def clear_search(self) -> None:
        self.search.clear()
        self._model.set_hits(None)
        self._show_emptiness()

    def pin_targets(self) -> None:
        chats = [chat for chat in self.targets() if not chat.is_temporary]
        if chats:
            self.list.pin(chats, is_pinned=not all(chat.is_pinned for chat in chats))

    def show_places(self) -> None:
        """The menu of where the chats can be moved, at the first of them."""
        chats = [chat for chat in self.targets() if not chat.is_temporary]
        if chats:
            place = self.list.visualRect(self._model.index_of(chats[0].id))
            corner = place.bottomLeft() if place.isValid() else self.list.rect().topLeft()
            self.list.places_menu(chats).popup(self.list.viewport().mapToGlobal(corner))

    # ---- searching
    @Slot()
    def _search_soon(self) -> None:
        self._opens_first = False
        if self.search.text().strip():
            self._search_timer.start()
        else:
            self._search()

    @Slot()
    def _search(self) -> None:
        self._search_timer.stop()
        self.searched.emit(self.search.text())

    @Slot()
    def _open_first(self) -> None:
        """What is typed counts, not what was found before it."""
        if self.search.text().strip():
            self._opens_first = True
            self._search()

    @Slot()
    def _go_to_list(self) -> None:
        index = self.list.first_row()
        if index.isValid():
            self.list.setFocus(Qt.FocusReason.TabFocusReason)
            self.list.go_to(index)

    @Slot()
    def _go_to_field(self) -> None:
        self.search.setFocus(Qt.FocusReason.BacktabFocusReason)

    # ---- events
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc in the list ends a search first."""
        if event.key() == Qt.Key.Key_Escape and self._model.is_searching:
            self.search.clear()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.list.viewport().update()
        elif event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self._model.refresh()  # the day may have changed meanwhile

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("chrome"))
