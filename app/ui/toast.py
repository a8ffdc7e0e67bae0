"""A line that says what was done and takes it back, for ten seconds."""

from PySide6.QtCore import QEvent, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.ui import theme
from app.ui.controls import (
    IconButton,
    IconLabel,
    Label,
    box,
    button,
    fill_round,
    painter,
    soft_shadow,
)
from app.ui.theme import BODY, R_CARD, S3, color

SHOWN_MS = 10_000


class Toast(QWidget):
    """Waits while the pointer or the focus is on it. `acted` and `closed` come at most once each;
    the owner deletes it on `closed`."""

    M = 14  # room around the card for its shadow

    acted = Signal()
    closed = Signal()

    def __init__(
        self, text: str, action: str = "", icon: str = "trash", action_icon: str | None = "undo"
    ) -> None:
        super().__init__()
        self._timer = QTimer(self, singleShot=True, interval=SHOWN_MS)
        self._timer.timeout.connect(self.dismiss)
        self._is_over = False
        act = button(action, "flat", action_icon) if action else None
        close = IconButton("close", "Dismiss", 26, 14)
        margin = self.M + 6
        box(
            "h",
            IconLabel(icon, "muted", 17),
            Label(text, BODY, "text"),
            6,
            act,
            close,
            margins=(self.M + S3, margin, margin, margin),
            spacing=8,
            into=self,
        )
        self.setAccessibleName(f"{text} {action}".strip())
        close.clicked.connect(self.dismiss)
        if act is not None:
            act.clicked.connect(self._act)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._focus_moved)
        self._timer.start()

    def dismiss(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._timer.stop()
            self.closed.emit()

    def _act(self) -> None:
        if not self._is_over:
            self.acted.emit()
            self.dismiss()

    def _is_held(self) -> bool:
        focused = QApplication.focusWidget()
        return self.underMouse() or (focused is not None and self.isAncestorOf(focused))

    def _focus_moved(self, _old: QWidget | None, _new: QWidget | None) -> None:
        self._hold_or_go_on()

    def _hold_or_go_on(self) -> None:
        if self._is_over:
            return
        if self._is_held():
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._timer.stop()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hold_or_go_on()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        card = QRectF(self.rect()).adjusted(self.M, self.M, -self.M, -self.M)
        soft_shadow(draw, card, R_CARD, self.M - 2, 0.5 if theme.is_dark() else 0.16)
        fill_round(draw, card, R_CARD, color("raised"), color("control", 0.6))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()
            return
        super().keyPressEvent(event)
