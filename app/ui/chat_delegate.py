"""How a row of the list of chats is painted and edited. All rows are of one height at a time: then
Qt asks for it once, not once a row."""

from datetime import datetime
from typing import Any, cast

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.ui import icons
from app.ui.chat_list import ChatRow, FolderRow, HitRow, Row, trail_of
from app.ui.chat_model import ChatListModel, chat_of
from app.ui.controls import fill_round, text_width
from app.ui.theme import BODY, CAPTION, H_ROW, R_CONTROL, SMALL, color, font

Index = QModelIndex | QPersistentModelIndex
H_HIT = 52
INDENT = 38  # of a folder's name and its chats
MIDDLE = Qt.AlignmentFlag.AlignVCenter
UNTITLED = "New chat"


class ChatDelegate(QStyledItemDelegate):
    shown: int | None = None  # the chat on the page

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        model = cast(ChatListModel, index.model())
        return QSize(100, H_HIT if model.is_searching else H_ROW)

    def paint(self, draw: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: Row = index.data(ChatListModel.ROW)
        area = QRectF(option.rect).adjusted(8, 1, -8, -1)
        draw.save()
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw.setLayoutDirection(option.direction)
        chat = chat_of(row)
        is_shown = chat is not None and chat.id == self.shown
        self._paint_ground(draw, area, option.state, is_shown=is_shown)
        if isinstance(row, HitRow):
            self._paint_hit(draw, area, row, is_shown=is_shown)
        elif isinstance(row, ChatRow):
            model = cast(ChatListModel, index.model())
            indent = 8 if model.folder_of(row) is None else INDENT + 8
            self._paint_chat(draw, area.adjusted(indent, 0, 0, 0), row, is_shown=is_shown)
        elif isinstance(row, FolderRow):
            self._paint_folder(draw, area, row)
        else:
            draw.setFont(font(SMALL, 600))
            draw.setPen(color("faint"))
            draw.drawText(area.adjusted(8, 0, 0, -5), Qt.AlignmentFlag.AlignBottom, row.title)
        draw.restore()

    @staticmethod
    def _paint_ground(
        draw: QPainter, area: QRectF, state: QStyle.StateFlag, *, is_shown: bool
    ) -> None:
        flag = QStyle.StateFlag
        if is_shown or state & flag.State_Selected:
            fill_round(draw, area, R_CONTROL, color("selected"))
        elif state & flag.State_MouseOver and state & flag.State_Enabled:
            fill_round(draw, area, R_CONTROL, color("hover"))
        if state & flag.State_HasFocus:
            fill_round(draw, area, R_CONTROL, None, color("accent"), 2)

    def _paint_chat(self, draw: QPainter, area: QRectF, row: ChatRow, *, is_shown: bool) -> None:
        right = self._paint_trail(draw, area, row, "muted" if is_shown else "faint")
        draw.setFont(font(BODY, 600 if is_shown else 400))
        draw.setPen(color("text"))
        _paint_text(draw, QRectF(area.topLeft(), QPointF(right, area.bottom())), _title(row))

    def _paint_folder(self, draw: QPainter, area: QRectF, row: FolderRow) -> None:
        middle, left = area.center().y(), area.left() + 8
        arrow = "chevron-down" if row.is_open else "chevron-right"
        icons.paint(draw, arrow, QRectF(left - 3, middle - 7, 14, 14))
        name = "folder-open" if row.is_open else "folder"
        icons.paint(draw, name, QRectF(left + 14, middle - 8.5, 17, 17))
        right = _paint_at_end(draw, area, str(row.count), font(CAPTION), "faint")
        draw.setFont(font(BODY, 500))
        draw.setPen(color("text"))
        place = QRectF(QPointF(left + INDENT, area.top()), QPointF(right, area.bottom()))
        _paint_text(draw, place, row.name)

    def _paint_hit(self, draw: QPainter, area: QRectF, row: HitRow, *, is_shown: bool) -> None:
        upper = QRectF(area.left() + 8, area.top() + 3, area.width() - 8, area.height() / 2 - 2)
        right = self._paint_trail(draw, upper, row.chat, "muted")
        line = QRectF(upper.topLeft(), QPointF(right, upper.bottom()))
        weight = 600 if is_shown else 500
        _paint_marked(draw, line, _title(row.chat), row.title_places, font(BODY, weight), "text")
        lower = QRectF(upper.left(), upper.bottom() - 1, area.right() - 16 - area.left(), 20)
        text, places = (row.excerpt, row.places) if row.excerpt else (row.where, ())
        _paint_marked(draw, lower, text, places, font(SMALL), "muted")

    def _paint_trail(self, draw: QPainter, area: QRectF, row: ChatRow, role: str) -> float:
        """What stands at the end of a row: a dot while an answer is written, New, Draft, or the
        date; before it the lock of a temporary chat. Gives where it begins."""
        if row.is_live:
            draw.setPen(Qt.PenStyle.NoPen)
            draw.setBrush(color("accent"))
            draw.drawEllipse(QPointF(area.right() - 12, area.center().y()), 3.5, 3.5)
            right = area.right() - 24
        elif row.is_unread:
            right = _paint_at_end(draw, area, "New", font(CAPTION, 600), "accent")
        elif row.has_draft:
            right = _paint_at_end(draw, area, "Draft", font(CAPTION, 600), "warning")
        else:
            when = trail_of(datetime.fromtimestamp(row.updated_at), datetime.now())
            right = _paint_at_end(draw, area, when, font(CAPTION), role)
        if row.is_temporary:
            icons.paint(draw, "lock", QRectF(right - 13, area.center().y() - 6.5, 13, 13), role)
            right -= 19
        return right

    # ---- editing
    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = QLineEdit(parent)
        is_folder = isinstance(index.data(ChatListModel.ROW), FolderRow)
        editor.setObjectName("rename")
        editor.setAccessibleName("Name of the folder" if is_folder else "New title of the chat")
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """A row may change while its name is typed: what was typed stays."""
        if isinstance(editor, QLineEdit) and not editor.isModified():
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))
            editor.selectAll()

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        area = cast(Any, option).rect
        row = index.data(ChatListModel.ROW)
        model = cast(ChatListModel, index.model())
        is_inside = isinstance(row, ChatRow) and model.folder_of(row) is not None
        left = INDENT + 4 if isinstance(row, FolderRow) or is_inside else 8
        height = min(area.height(), H_ROW)
        editor.setGeometry(area.left() + left, area.top(), area.width() - left - 8, height)


def _title(row: ChatRow) -> str:
    return row.title or UNTITLED


def _paint_text(draw: QPainter, place: QRectF, text: str) -> None:
    shown = QFontMetrics(draw.font()).elidedText(
        text, Qt.TextElideMode.ElideRight, int(place.width())
    )
    draw.drawText(place, MIDDLE, shown)


def _paint_at_end(draw: QPainter, area: QRectF, text: str, used: QFont, role: str) -> float:
    """Right-aligned; gives where what stands before it has to end."""
    draw.setFont(used)
    draw.setPen(color(role))
    width = text_width(text, used)
    right = area.right() - 8
    draw.drawText(QRectF(right - width - 1, area.top(), width + 2, area.height()), MIDDLE, text)
    return right - width - 8


def _paint_marked(
    draw: QPainter,
    place: QRectF,
    text: str,
    places: tuple[tuple[int, int], ...],
    used: QFont,
    role: str,
) -> None:
    """One line with its finds marked: a ground and a heavier weight, so colour is not needed."""
    shown = QFontMetrics(used).elidedText(text, Qt.TextElideMode.ElideRight, int(place.width()))
    layout = QTextLayout(shown, used)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    layout.setTextOption(option)
    layout.setFormats([_mark(text, start, length) for start, length in places])
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(place.width())
    layout.endLayout()
    draw.setPen(color(role))
    layout.draw(draw, QPointF(place.left(), place.center().y() - line.height() / 2))


def _mark(text: str, start: int, length: int) -> QTextLayout.FormatRange:
    """Qt counts in units of UTF-16."""
    made = QTextLayout.FormatRange()
    made.start = _units(text[:start])
    made.length = _units(text[start : start + length])
    look = QTextCharFormat()
    look.setBackground(color("p2"))
    look.setForeground(color("text"))
    look.setFontWeight(QFont.Weight.DemiBold)
    made.format = look
    return made


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
