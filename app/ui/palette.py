"""Ctrl+K: one field that finds chats, models and everything that a menu can do.

`ranked` is pure. The palette knows entries, not what they do: the chosen one's key goes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.ui import icons, theme
from app.ui.controls import Label, Popover, fill_round
from app.ui.theme import BODY, R_CONTROL, SMALL, color, font

ROW_HEIGHT = 34
MOST_ROWS = 9
NO_PARENT = QModelIndex()
Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class PaletteEntry:
    """`kind` is the word at the right of a row that has no keys: "Chat", "Model", a menu."""

    key: str
    text: str
    icon: str
    kind: str
    keys: str = ""


def ranked(query: str, entries: Sequence[PaletteEntry]) -> list[PaletteEntry]:
    """Those in which every word of the query begins or stands within a word, best first.

    An entry whose text begins with the query comes first, then words that begin with the query's
    words, then words that contain them; equals keep their order.
    """
    words = query.casefold().split()
    scored = [(_score(" ".join(words), words, entry), entry) for entry in entries]
    return [
        entry
        for score, entry in sorted(scored, key=lambda pair: pair[0] or 0, reverse=True)
        if score is not None
    ]


def _score(query: str, words: Sequence[str], entry: PaletteEntry) -> int | None:
    text = entry.text.casefold()
    parts = [part for part in text.replace("-", " ").split() if part]
    if text.startswith(query):
        return 100
    score = 0
    for word in words:
        if any(part.startswith(word) for part in parts):
            score += 10
        elif word in text:
            score += 5
        elif entry.kind.casefold().startswith(word):
            score += 1
        else:
            return None
    return score


class _Rows(QAbstractListModel):
    ENTRY = Qt.ItemDataRole.UserRole + 1

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._entries: list[PaletteEntry] = []

    def set_entries(self, entries: list[PaletteEntry]) -> None:
        self.beginResetModel()
        self._entries = entries
        self.endResetModel()

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        if role == self.ENTRY:
            return entry
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(filter(None, (entry.text, entry.kind, entry.keys)))
        return entry.text if role == Qt.ItemDataRole.DisplayRole else None


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, theme.u(ROW_HEIGHT))

    def paint(self, draw: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: PaletteEntry = index.data(_Rows.ENTRY)
        area = QRectF(option.rect).adjusted(0, 1, 0, -1)
        flag = QStyle.StateFlag
        draw.save()
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & (flag.State_Selected | flag.State_MouseOver):
            fill_round(draw, area, R_CONTROL, color("selected"))
        icons.paint(draw, entry.icon, QRectF(area.left() + 8, area.center().y() - 8, 16, 16))
        trail = entry.keys or entry.kind
        draw.setFont(font(SMALL))
        draw.setPen(color("muted"))
        text = area.adjusted(34, 0, -10, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        draw.drawText(text, middle | Qt.AlignmentFlag.AlignRight, trail)
        text.setRight(text.right() - draw.fontMetrics().horizontalAdvance(trail) - 12)
        draw.setFont(font(BODY, 500))
        draw.setPen(color("text"))
        shown = draw.fontMetrics().elidedText(
            entry.text, Qt.TextElideMode.ElideRight, int(text.width())
        )
        draw.drawText(text, middle, shown)
        draw.restore()


class Palette(Popover):
    """`chosen` brings the key of an entry."""

    chosen = Signal(str)

    def __init__(self, entries: Sequence[PaletteEntry]) -> None:
        super().__init__(theme.u(520))
        self.setObjectName("palette")
        self.setAccessibleName("Go to a chat or command")
        self._entries = list(entries)
        self._rows = _Rows(self)
        self.finder = self._make_finder()
        self.list = self._make_list()
        self._nothing = Label("Nothing has these words.", SMALL, "muted")
        for widget in (self.finder, self.list, self._nothing):
            self.body.addWidget(widget)
        self._filter("")

    def _make_finder(self) -> QLineEdit:
        finder = QLineEdit()
        finder.setObjectName("find-anything")
        finder.setPlaceholderText("Go to a chat or command")
        finder.setAccessibleName("Go to a chat or command")
        finder.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        finder.textChanged.connect(self._filter)
        finder.installEventFilter(self)
        return finder

    def _make_list(self) -> QListView:
        rows = QListView()
        rows.setAccessibleName("Found")
        rows.setModel(self._rows)
        rows.setItemDelegate(_Delegate(rows))
        rows.setFrameShape(QFrame.Shape.NoFrame)
        rows.viewport().setAutoFillBackground(False)
        rows.setMouseTracking(True)
        rows.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        rows.setFixedHeight(theme.u(ROW_HEIGHT) * MOST_ROWS)
        rows.clicked.connect(self._choose)
        return rows

    def open_over(self, window: QWidget) -> None:
        """In the upper middle of the window; the focus returns to where it was."""
        focused = window.focusWidget() or window
        self.open_from(focused)
        self.finder.setFocus(Qt.FocusReason.PopupFocusReason)

    def _place_at(self, opener: QWidget, window: QWidget, above: bool) -> None:
        self.move((window.width() - self.width()) // 2, max(0, window.height() // 8 - self.M))

    @Slot(str)
    def _filter(self, text: str) -> None:
        found = ranked(text, self._entries)
        self._rows.set_entries(found)
        self._nothing.setVisible(not found)
        self._select(0)

    def _select(self, row: int) -> None:
        if 0 <= row < self._rows.rowCount():
            self.list.setCurrentIndex(self._rows.index(row))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys and Enter in the field act on the list."""
        if watched is not self.finder or event.type() != QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        assert isinstance(event, QKeyEvent)
        row = self.list.currentIndex().row()
        step = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: MOST_ROWS,
            Qt.Key.Key_PageUp: -MOST_ROWS,
        }.get(Qt.Key(event.key()))
        if step is not None:
            self._select(min(max(row + step, 0), self._rows.rowCount() - 1))
            return True
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose(self.list.currentIndex())
            return True
        return False

    @Slot(QModelIndex)
    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            entry: PaletteEntry = index.data(_Rows.ENTRY)
            self.close()
            self.chosen.emit(entry.key)
