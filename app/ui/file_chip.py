"""A file that went along with a message: its name, size and what it cost."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui import icons
from app.ui.controls import fill_round, painter, text_width
from app.ui.items import Attachment
from app.ui.theme import R_CONTROL, SMALL, color, font

VCENTER = Qt.AlignmentFlag.AlignVCenter


class FileChip(QWidget):
    HEIGHT = 32

    def __init__(self, attachment: Attachment) -> None:
        super().__init__()
        self.attachment = attachment
        facts = filter(None, (attachment.size, attachment.note))
        self._facts = ", ".join(facts)
        words = ", ".join(filter(None, (attachment.name, self._facts)))
        self.setAccessibleName(f"File {words}")
        self.setToolTip(words)

    def sizeHint(self) -> QSize:
        name = text_width(self.attachment.name, font(SMALL, 500))
        return QSize(30 + name + 8 + text_width(self._facts, font(SMALL)) + 12, self.HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """In a narrow column the name is cut, the facts never are."""
        draw = painter(self)
        fill_round(draw, QRectF(self.rect()), R_CONTROL, color("raised"), color("line"))
        icons.paint(draw, "file", QRectF(8, (self.height() - 16) / 2, 16, 16), "muted")
        facts = text_width(self._facts, font(SMALL))
        room = max(0, self.width() - 30 - 8 - facts - 12)
        draw.setFont(font(SMALL, 500))
        draw.setPen(color("text"))
        metrics = QFontMetrics(draw.font())
        name = metrics.elidedText(self.attachment.name, Qt.TextElideMode.ElideMiddle, room)
        draw.drawText(QRectF(30, 0, room + 1, self.height()), VCENTER, name)
        draw.setFont(font(SMALL))
        draw.setPen(color("muted"))
        place = QRectF(self.width() - 12 - facts, 0, facts + 1, self.height())
        draw.drawText(place, VCENTER, self._facts)
