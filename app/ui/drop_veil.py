"""Covers the page while files hover over it, and says what will happen with exactly these."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.ui import icons
from app.ui.painting import painter
from app.ui.theme import BODY, R_PANEL, TITLE, color, font


class DropVeil(QWidget):
    """Takes no events itself: the page below it is the drop target. `is_welcome` False says why
    the files cannot be taken."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self.set_words("", "")

    def set_words(
        self, title: str, text: str, *, icon: str = "import", is_welcome: bool = True
    ) -> None:
        self._title, self._text, self._icon = title, text, icon
        self._tone = "accent" if is_welcome else "danger"
        self.setAccessibleName(f"{title}. {text}")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("canvas", 0.93))
        area = QRectF(self.rect()).adjusted(16, 16, -16, -16)
        pen = QPen(color(self._tone), 2)
        pen.setDashPattern([4, 3])
        draw.setPen(pen)
        draw.setBrush(color(f"{self._tone}_soft", 0.5))
        draw.drawRoundedRect(area, R_PANEL, R_PANEL)
        middle = area.center()
        icons.paint(draw, self._icon, QRectF(middle.x() - 18, middle.y() - 58, 36, 36), self._tone)
        for text, role, used_font, top in (
            (self._title, "text", font(TITLE, 600), -12),
            (self._text, "muted", font(BODY), 16),
        ):
            draw.setPen(color(role))
            draw.setFont(used_font)
            line = QRectF(area.left() + 16, middle.y() + top, area.width() - 32, 28)
            shown = QFontMetrics(used_font).elidedText(
                text, Qt.TextElideMode.ElideMiddle, int(line.width())
            )
            draw.drawText(line, Qt.AlignmentFlag.AlignCenter, shown)
