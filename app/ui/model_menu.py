"""The list of models that opens at the chip of the composer."""

from dataclasses import dataclass

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QKeyEvent, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from app.ui import icons, theme
from app.ui.controls import HLine, Label, Popover, box, button, fill_round
from app.ui.theme import BODY, R_CONTROL, SMALL, color, font

ROW_HEIGHT = 46
MOST_ROWS = 6
ENTRY = Qt.ItemDataRole.UserRole + 1


@dataclass(frozen=True)
class ModelEntry:
    path: str
    name: str
    facts: str  # "Text, 8k context, 145 MB"
    is_current: bool = False


class _Delegate(QStyledItemDelegate):
    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(100, ROW_HEIGHT)

    def paint(
        self,
        draw: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        entry: ModelEntry = index.data(ENTRY)
        area = QRectF(option.rect).adjusted(0, 1, 0, -1)
        state = option.state
        flag = QStyle.StateFlag
        draw.save()
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & (flag.State_Selected | flag.State_MouseOver):
            fill_round(draw, area, R_CONTROL, color("selected"))
        middle = area.center().y()
        if entry.is_current:
            icons.paint(draw, "check", QRectF(area.left() + 8, middle - 8, 16, 16), "accent")
        role = "accent" if entry.is_current else "muted"
        icons.paint(draw, "model", QRectF(area.left() + 32, middle - 9, 18, 18), role)
        text = area.adjusted(60, 4, -8, -4)
        for words, used, tone, place in (
            (entry.name, font(BODY, 600 if entry.is_current else 500), "text", "AlignTop"),
            (entry.facts, font(SMALL), "muted", "AlignBottom"),
        ):
            draw.setFont(used)
            draw.setPen(color(tone))
            shown = draw.fontMetrics().elidedText(
                words, Qt.TextElideMode.ElideRight, int(text.width())
            )
            draw.drawText(text, getattr(Qt.AlignmentFlag, place), shown)
        draw.restore()


class ModelMenu(Popover):
    """`chosen` brings a path, `open_requested` asks for a file or folder from elsewhere."""

    chosen = Signal(str)
    open_requested = Signal()

    def __init__(self, entries: list[ModelEntry]) -> None:
        super().__init__(theme.u(372))
        self.setObjectName("models")
        self.setAccessibleName("Models")
        self._source = QStandardItemModel(self)
        for entry in entries:
            item = QStandardItem(entry.name)
            item.setData(entry, ENTRY)
            item.setData(_spoken(entry), Qt.ItemDataRole.AccessibleTextRole)
            item.setEditable(False)
            self._source.appendRow(item)
        self._filtered = QSortFilterProxyModel(self)
        self._filtered.setSourceModel(self._source)
        self._filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.finder = self._make_find()
        self.list = self._make_list(len(entries))
        self._build(has_entries=bool(entries))

    def _make_find(self) -> QLineEdit:
        find = QLineEdit()
        find.setObjectName("search")
        find.setPlaceholderText("Find a model")
        find.setAccessibleName("Find a model")
        find.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        find.textChanged.connect(self._filter)
        find.installEventFilter(self)
        return find

    def _make_list(self, count: int) -> QListView:
        rows = QListView()
        rows.setAccessibleName("Models")
        rows.setModel(self._filtered)
        rows.setItemDelegate(_Delegate(rows))
        rows.setFrameShape(QFrame.Shape.NoFrame)
        rows.viewport().setAutoFillBackground(False)
        rows.setMouseTracking(True)
        rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        rows.setFixedHeight(ROW_HEIGHT * max(1, min(count, MOST_ROWS)))
        rows.clicked.connect(self._choose)
        rows.activated.connect(self._choose)
        return rows

    def _build(self, *, has_entries: bool) -> None:
        self.body.setSpacing(4)
        other = button("Open a model file or folder…", "flat", "folder-open")
        other.setObjectName("open-model")
        other.clicked.connect(self._open_other)
        if has_entries:
            self.body.addWidget(self.finder)
            self.body.addWidget(self.list)
            self.body.addWidget(HLine())
            words = "Switching keeps this chat and reads it again."
        else:
            self.finder.setParent(self)
            self.finder.hide()
            self.list.setParent(self)
            self.list.hide()
            self.body.addWidget(Label("No models yet", BODY, "text", 600))
            words = "Take a GGUF file, or a folder with a genai_config.json."
        self.body.addWidget(Label(words, SMALL, "muted", wrap=True))
        self.body.addLayout(box("h", other, "stretch"))
        self._select(0)

    @Slot(str)
    def _filter(self, text: str) -> None:
        self._filtered.setFilterFixedString(text)
        self._select(0)

    def _select(self, row: int) -> None:
        if 0 <= row < self._filtered.rowCount():
            self.list.setCurrentIndex(self._filtered.index(row, 0))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys and Enter in the find field act on the list."""
        if watched is not self.finder:
            return super().eventFilter(watched, event)
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                self._select(self.list.currentIndex().row() + step)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose(self.list.currentIndex())
                return True
        return False

    @Slot(QModelIndex)
    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            entry: ModelEntry = index.data(ENTRY)
            self.close()
            self.chosen.emit(entry.path)

    @Slot()
    def _open_other(self) -> None:
        self.close()
        self.open_requested.emit()


def _spoken(entry: ModelEntry) -> str:
    return f"{entry.name}, {entry.facts}" + (", in use" if entry.is_current else "")
