"""What stands in the window when there are no chats to show: the notice, with its ways out."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.ui.controls import box, painter
from app.ui.items import Notice
from app.ui.notice import NoticeCard
from app.ui.theme import READING_WIDTH, color


class ProblemPage(QWidget):
    action = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("problem")
        self._card: NoticeCard | None = None
        self._notice: Notice | None = None
        column = QWidget()
        column.setMaximumWidth(READING_WIDTH)
        self._slot = QVBoxLayout()
        box("v", "stretch", self._slot, "stretch", into=column)
        row = box("h", margins=(24, 0, 24, 0), into=self)
        row.addStretch(1)
        row.addWidget(column, 1000)
        row.addStretch(1)

    def set_notice(self, notice: Notice) -> None:
        self._notice = notice
        if self._card is not None:
            self._slot.removeWidget(self._card)
            self._card.hide()
            self._card.deleteLater()
        self._card = NoticeCard(notice)
        self._card.action.connect(self.action)
        self._slot.addWidget(self._card)

    def notice(self) -> Notice | None:
        return self._notice

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("canvas"))
