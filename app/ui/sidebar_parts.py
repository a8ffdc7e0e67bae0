"""What stands around the list of chats: the name of the app, rows that lead elsewhere, search."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QToolButton, QWidget

from app.ui import icons
from app.ui.controls import fill_round, focus_ring, painter, text_width
from app.ui.theme import BODY, H_ROW, R_CONTROL, SMALL, color, font

APP_NAME = "Inglenook"


class SearchField(QLineEdit):
    """Down goes to what was found, Enter opens the first of it, Esc clears."""

    entered = Signal()
    left_downwards = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("search")
        self.setPlaceholderText("Search chats")
        self.setAccessibleName("Search chats")
        self.setMaxLength(1_000)
        self.setClearButtonEnabled(True)
        self.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        for inner in self.findChildren(QToolButton):
            inner.setAccessibleName("Clear the search")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.left_downwards.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
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
