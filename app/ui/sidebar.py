"""The list of chats, its search, and what stands under it."""

from datetime import datetime

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListView,
    QMenu,
    QStackedLayout,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from app.ui import icons
from app.ui.chat_list import ChatListModel, ChatRow, Heading, rows_of, trail_of
from app.ui.controls import (
    ElidedLabel,
    HLine,
    IconButton,
    IconLabel,
    Label,
    box,
    fill_round,
    focus_ring,
    painter,
    text_width,
)
from app.ui.theme import BODY, CAPTION, H_BAR, H_ROW, R_CONTROL, S3, SMALL, color, font

APP_NAME = "Inglenook"
SEARCH_DELAY_MS = 150
Index = QModelIndex | QPersistentModelIndex


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        is_heading = isinstance(index.data(ChatListModel.ROW), Heading)
        return QSize(100, 30 if is_heading else H_ROW)

    def paint(self, draw: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(ChatListModel.ROW)
        area = QRectF(option.rect).adjusted(8, 1, -8, -1)
        draw.save()
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        if isinstance(row, ChatRow):
            self._paint_chat(draw, area, row, option.state)
        else:
            draw.setFont(font(SMALL, 600))
            draw.setPen(color("faint"))
            place = area.adjusted(8, 0, 0, -4)
            draw.drawText(place, Qt.AlignmentFlag.AlignBottom, row.title)
        draw.restore()

    def _paint_chat(
        self, draw: QPainter, area: QRectF, row: ChatRow, state: QStyle.StateFlag
    ) -> None:
        flag = QStyle.StateFlag
        is_selected = bool(state & flag.State_Selected)
        if is_selected:
            fill_round(draw, area, R_CONTROL, color("selected"))
        elif state & flag.State_MouseOver:
            fill_round(draw, area, R_CONTROL, color("hover"))
        if state & flag.State_HasFocus:
            fill_round(draw, area, R_CONTROL, None, color("accent"), 2)
        left = area.left() + 8
        right = self._paint_trail(draw, area, row, "muted" if is_selected else "faint")
        draw.setFont(font(BODY, 600 if is_selected else 400))
        draw.setPen(color("text"))
        shown = QFontMetrics(draw.font()).elidedText(
            row.title, Qt.TextElideMode.ElideRight, int(right - left)
        )
        place = QRectF(left, area.top(), right - left, area.height())
        draw.drawText(place, Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_trail(self, draw: QPainter, area: QRectF, row: ChatRow, role: str) -> float:
        """The dot of a chat that is written in, the word Draft, or the date; where it begins."""
        right, middle = area.right() - 8, area.center().y()
        if row.is_live:
            draw.setPen(Qt.PenStyle.NoPen)
            draw.setBrush(color("accent"))
            draw.drawEllipse(QPointF(right - 4, middle), 3.5, 3.5)
            return right - 16
        text = trail_of(datetime.fromtimestamp(row.updated_at), datetime.now())
        weight = 400
        if row.has_draft:
            text, role, weight = "Draft", "warning", 600
        draw.setFont(font(CAPTION, weight))
        draw.setPen(color(role))
        width = text_width(text, draw.font())
        place = QRectF(right - width - 1, area.top(), width + 2, area.height())
        draw.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
        return right - width - 8

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName("New title of the chat")
        return editor

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        editor.setGeometry(option.rect.adjusted(8, 0, -8, 0))


class ChatListView(QListView):
    """Keys of the list: Enter opens, F2 renames, Del deletes (it can be undone)."""

    opened = Signal(int)
    delete_requested = Signal(int)

    def __init__(self, model: ChatListModel) -> None:
        super().__init__()
        self._chats = model
        self.setObjectName("chats")
        self.setAccessibleName("Chats")
        self.setModel(model)
        self.setItemDelegate(_Delegate(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.viewport().setAutoFillBackground(False)
        self.setMouseTracking(True)
        self.setUniformItemSizes(False)
        self.clicked.connect(self._open)

    @Slot(QModelIndex)
    def _open(self, index: QModelIndex) -> None:
        chat = self._chats.chat_at(index)
        if chat is not None:
            self.opened.emit(chat.id)

    def current_chat(self) -> ChatRow | None:
        return self._chats.chat_at(self.currentIndex())

    def is_renaming(self) -> bool:
        return self.state() == QAbstractItemView.State.EditingState

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = self.indexAt(event.pos())
        chat = self._chats.chat_at(index)
        if chat is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Open", lambda: self.opened.emit(chat.id))
        menu.addAction("Rename", lambda: self.edit(self._chats.index_of(chat.id)))
        menu.addSeparator()
        menu.addAction("Delete", lambda: self.delete_requested.emit(chat.id))
        menu.popup(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        chat = self.current_chat()
        if event.key() == Qt.Key.Key_Delete and chat is not None:
            self.delete_requested.emit(chat.id)
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not self.is_renaming():
            self._open(self.currentIndex())
            return
        super().keyPressEvent(event)


class NavRow(QAbstractButton):
    def __init__(self, icon: str, text: str, trail: str = "") -> None:
        super().__init__()
        self._icon, self._trail = icon, trail
        self.setText(text)
        self.setAccessibleName(text)
        self.setFixedHeight(H_ROW)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_trail(self, trail: str) -> None:
        self._trail = trail
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, H_ROW)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect()).adjusted(8, 1, -8, -1)
        if self.isDown() or self.underMouse():
            fill_round(draw, area, R_CONTROL, color("pressed" if self.isDown() else "hover"))
        place = QRectF(area.left() + 8, area.center().y() - 9, 18, 18)
        icons.paint(draw, self._icon, place, "muted")
        middle = Qt.AlignmentFlag.AlignVCenter
        draw.setFont(font(BODY, 500))
        draw.setPen(color("text"))
        draw.drawText(area.adjusted(36, 0, 0, 0), middle, self.text())
        draw.setFont(font(SMALL))
        draw.setPen(color("muted"))
        draw.drawText(area.adjusted(0, 0, -8, 0), middle | Qt.AlignmentFlag.AlignRight, self._trail)
        focus_ring(draw, self, area, R_CONTROL)


class Brand(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(26 + text_width(APP_NAME, font(2, 650)) + 6, 28)
        self.setAccessibleName(APP_NAME)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        icons.paint(draw, "mark", QRectF(0, 3, 22, 22), "accent")
        draw.setFont(font(2, 650))
        draw.setPen(color("text"))
        draw.drawText(QRectF(26, 0, 200, 28), Qt.AlignmentFlag.AlignVCenter, APP_NAME)


class Sidebar(QWidget):
    chat_opened = Signal(int)
    chat_renamed = Signal(int, str)
    delete_requested = Signal(int)
    new_requested = Signal()
    searched = Signal(str)
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
        self.search = QLineEdit()
        self.menu_button = IconButton("menu", menu_tip, 30)
        self.new_button = IconButton("new-chat", "New chat (Ctrl+N)", 30, 19, "accent")
        self.hide_button = IconButton("panel-left", "Hide sidebar (Ctrl+B)", 30)
        self.models_row = NavRow("model", "Models")
        self.settings_row = NavRow("settings", "Settings")
        self.server_row = NavRow("gauge", "Server")
        self._device = ElidedLabel("", SMALL, "text", 500)
        self._empty_title = Label("No chats yet", BODY, "text", 600, wrap=True)
        self._empty_text = Label("", SMALL, "muted", wrap=True)
        self._search_timer = QTimer(self, singleShot=True, interval=SEARCH_DELAY_MS)
        self._build()
        self._connect()
        self.set_chats([], None)
        self.set_device("")
        self.set_server("", is_used=False, total=0)

    def _build(self) -> None:
        self.search.setObjectName("search")
        self.search.setPlaceholderText("Search chats")
        self.search.setAccessibleName("Search chats")
        self.search.setClearButtonEnabled(True)
        self.search.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        for inner in self.search.findChildren(QToolButton):
            inner.setAccessibleName("Clear the search")
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
        self.list.delete_requested.connect(self.delete_requested)
        self._model.renamed.connect(self.chat_renamed)
        self.search.textChanged.connect(self._search_timer.start)
        self._search_timer.timeout.connect(self._search)
        self.menu_button.clicked.connect(self.menu_requested)
        self.new_button.clicked.connect(self.new_requested)
        self.hide_button.clicked.connect(self.hide_requested)
        self.models_row.clicked.connect(self.models_requested)
        self.settings_row.clicked.connect(self.settings_requested)
        self.server_row.clicked.connect(self.server_requested)

    # ---- values in
    @Slot(list, object)
    def set_chats(self, chats: list[ChatRow], shown: int | None) -> None:
        if self.list.is_renaming():
            return  # the next change brings the rows again; an open editor must not vanish
        self._model.set_rows(rows_of(chats, datetime.now()))
        index = self._model.index_of(shown)
        self.list.setCurrentIndex(index)
        if not index.isValid():
            self.list.clearSelection()
        query = self.search.text().strip()
        self._empty_title.setText(f"No chat contains “{query}”" if query else "No chats yet")
        self._empty_text.setText(
            "Search looks at titles and messages."
            if query
            else "Chats you start appear here. They are kept on this computer only."
        )
        self._stack.setCurrentIndex(0 if chats else 1)

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

    def chats(self) -> list[ChatRow]:
        """What is listed now, in its order."""
        return self._model.chats()

    def empty_words(self) -> str:
        """What stands in place of an empty list."""
        return f"{self._empty_title.text()}. {self._empty_text.text()}"

    def rename_current(self) -> None:
        index = self.list.currentIndex()
        if index.isValid():
            self.list.setFocus()
            self.list.edit(index)

    @Slot()
    def _search(self) -> None:
        self.searched.emit(self.search.text())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.list.viewport().update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("chrome"))
