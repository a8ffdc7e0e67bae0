"""A strip below the head of a chat that says what is special about it."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui.controls import ElidedLabel, IconLabel, box, button, painter
from app.ui.theme import BODY, color

WORDS = "Temporary: nothing of this chat is written to the disk"


class TemporaryBanner(QWidget):
    keep_requested = Signal()
    close_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("temporary")
        self.setAccessibleName(WORDS)
        self.setFixedHeight(40)
        words = ElidedLabel(WORDS, BODY, "text", 500)
        words.setToolTip(f"{WORDS}, drafts neither. It is gone when it or the app is closed.")
        self.keep = button("Keep this chat", "flat")
        self.keep.setToolTip("Save it on this computer, as other chats are")
        self.close_chat = button("Close it", "flat")
        self.close_chat.setToolTip("It is gone then, for good")
        self.keep.clicked.connect(self.keep_requested)
        self.close_chat.clicked.connect(self.close_requested)
        box(
            "h",
            IconLabel("lock", "accent", 16),
            (words, 1),
            self.keep,
            self.close_chat,
            margins=(14, 0, 10, 0),
            spacing=8,
            into=self,
        )

    def set_busy(self, is_busy: bool) -> None:
        self.keep.setEnabled(not is_busy)
        self.close_chat.setEnabled(not is_busy)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("accent_soft"))
        draw.fillRect(0, self.height() - 1, self.width(), 1, color("line"))
