"""The page of one chat: head, transcript or what stands in an empty chat, notice, composer.

Only joins widgets; what it is told comes as values, what a person does leaves as signals.
"""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedLayout, QWidget

from app.ui.banner import TemporaryBanner
from app.ui.chat_state import ChatState
from app.ui.composer import Composer
from app.ui.controls import ElidedLabel, IconButton, box, painter
from app.ui.find_bar import FindBar
from app.ui.first_run import FirstRun
from app.ui.items import Item, Notice
from app.ui.theme import BODY, H_BAR, color
from app.ui.transcript import TranscriptView

NEW_CHAT = "New chat"
COMPARE_FITS = 520  # px; in a narrower head it is in the menu alone


class Head(QWidget):
    """48 px with a hairline below."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(H_BAR)
        self.sidebar = IconButton("panel-left", "Show sidebar (Ctrl+B)", 30)
        self.new = IconButton("new-chat", "New chat (Ctrl+N)", 30, 18)
        self.compare = IconButton("compare", "Compare two settings (Ctrl+Shift+D)", 30)
        self.inspector = IconButton("panel-right", "Options (Ctrl+I)", 30, checkable=True)
        self.inspector.setObjectName("show-options")
        self.title = ElidedLabel(NEW_CHAT, BODY + 1, "text", 600)
        self.title.setObjectName("title")
        self.title.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        box(
            "h",
            self.sidebar,
            self.new,
            2,
            self.title,
            self.compare,
            self.inspector,
            margins=(12, 0, 10, 0),
            spacing=4,
            into=self,
        )

    def set_panels(self, *, sidebar: bool, inspector: bool) -> None:
        self.sidebar.setVisible(not sidebar)
        self.new.setVisible(not sidebar)
        self.inspector.setChecked(inspector)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.compare.setVisible(self.width() >= COMPARE_FITS)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("canvas"))
        draw.fillRect(0, self.height() - 1, self.width(), 1, color("line"))


class ChatPage(QWidget):
    # of a notice, or of a message: key, name
    message_action = Signal(int, str)
    notice_action = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("page")
        self.head = Head()
        self.first_run = FirstRun()
        self.transcript = TranscriptView()
        self.transcript.setObjectName("transcript")
        self.composer = Composer()
        self._middle = QStackedLayout()
        self._middle.addWidget(self.first_run)
        self._middle.addWidget(self.transcript)
        self.banner = TemporaryBanner()
        self.banner.hide()
        self.find_bar = FindBar(self.transcript)
        rows = self.head, self.banner, self.find_bar, (self._middle, 1), self.composer
        box("v", *rows, spacing=0, into=self)
        self.transcript.action.connect(self._on_action)
        self.composer.notice_action.connect(self.notice_action)
        self.first_run.idea_chosen.connect(self._begin)

    # ---- values in
    @Slot(object)
    def set_state(self, state: ChatState) -> None:
        self.head.title.setText(state.title or NEW_CHAT)
        self.banner.setVisible(state.is_temporary)
        self.banner.set_busy(state.writing == "here")
        self.first_run.set_model(state.model)
        self.composer.set_state(state)

    @Slot(object)
    def set_notice(self, notice: Notice | None) -> None:
        self.composer.set_notice(notice)

    @Slot(list)
    def set_items(self, items: list[Item]) -> None:
        self.transcript.set_items(items)
        self._middle.setCurrentIndex(1 if items else 0)

    @Slot(object)
    def append(self, item: Item) -> None:
        self._middle.setCurrentIndex(1)
        self.transcript.append(item)
        self.transcript.to_end()

    @Slot(object)
    def replace(self, item: Item) -> None:
        self.transcript.replace(item)

    @Slot(int, str, str)
    def stream(self, key: int, text: str, thought: str) -> None:
        self.transcript.stream(key, text, thought)

    @Slot(int)
    def scroll_to(self, key: int) -> None:
        self.transcript.scroll_to(key)

    def is_empty(self) -> bool:
        return self._middle.currentIndex() == 0

    def restyle(self) -> None:
        """After the colours or the text size changed."""
        self.transcript.retheme()
        self.composer.restyle()
        self.update()

    # ---- what a person does
    @Slot(int, str)
    def _on_action(self, key: int, name: str) -> None:
        self.message_action.emit(key, name)

    @Slot(str)
    def _begin(self, starter: str) -> None:
        if not self.composer.text().startswith(starter):
            self.composer.set_text(starter + self.composer.text())
        self.composer.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("canvas"))
