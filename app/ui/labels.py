"""Text, icons and words that are only looked at."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.ui import icons
from app.ui.painting import badge_width, paint_badge, painter
from app.ui.theme import BODY, color, font


class Label(QLabel):
    """Plain text always: what a person or a file is called is never read as markup."""

    def __init__(
        self,
        text: str = "",
        step: int = BODY,
        role: str = "text",
        weight: int = 400,
        wrap: bool = False,
        mono: bool = False,
    ) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setFont(font(step, weight, mono))
        self.set_role(role)
        self.setWordWrap(wrap)
        if wrap:
            policy = self.sizePolicy()
            policy.setHeightForWidth(True)
            self.setSizePolicy(policy)

    def set_role(self, role: str) -> None:
        """The colour comes from the rule QLabel[role=…] of the style sheet: a QPalette on a label
        is lost when the label gets a new parent under a style sheet."""
        self._role = role
        if self.property("role") != role:
            self.setProperty("role", role)
            self.style().unpolish(self)
            self.style().polish(self)
        self.update()


class ElidedLabel(Label):
    """One line, cut at the end with an ellipsis; the tooltip carries all of it when it is cut."""

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setAccessibleName(text)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = QPainter(self)
        draw.setPen(color(self._role))
        draw.setFont(self.font())
        shown = QFontMetrics(self.font()).elidedText(
            self.text().replace("\n", " "), Qt.TextElideMode.ElideRight, self.width()
        )
        tip = "" if shown == self.text() else self.text()
        if self.toolTip() != tip:
            self.setToolTip(tip)
        draw.drawText(
            self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading, shown
        )

    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())


class IconLabel(QWidget):
    def __init__(self, name: str, role: str = "muted", size: int = 16) -> None:
        super().__init__()
        self._name, self._role = name, role
        self.setFixedSize(size, size)

    def set_icon(self, name: str, role: str) -> None:
        self._name, self._role = name, role
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        icons.paint(painter(self), self._name, QRectF(self.rect()), self._role)


class HLine(QWidget):
    def __init__(self, role: str = "line") -> None:
        super().__init__()
        self._role = role
        self.setFixedHeight(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), color(self._role))


class Badge(QWidget):
    """A word in a small pill. Its tone is never the only signal: the word says it."""

    def __init__(self, text: str, tone: str = "muted", icon: str | None = None) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_badge(text, tone, icon)

    def set_badge(self, text: str, tone: str = "muted", icon: str | None = None) -> None:
        self._text, self._tone, self._icon = text, tone, icon
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(badge_width(self._text, self._icon), 18)

    def paintEvent(self, _event: QPaintEvent) -> None:
        paint_badge(painter(self), QRectF(self.rect()), self._text, self._tone, self._icon)
