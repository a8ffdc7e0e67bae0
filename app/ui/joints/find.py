"""Find in chat: its bar on the page, and its keys."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class FindJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        bar = window.page.find_bar
        window.actions_["find"].triggered.connect(bar.open_bar)
        window.actions_["find_next"].triggered.connect(bar.go_on)
        window.actions_["find_previous"].triggered.connect(bar.go_back)
        bar.closed.connect(self._closed)

    def follow(self, old: ChatState, new: ChatState) -> None:
        names = ("find", "find_next", "find_previous")
        self.window.actions_.enable(dict.fromkeys(names, new.has_messages))
        if not new.has_messages:
            self.window.page.find_bar.close_bar()

    @Slot()
    def _closed(self) -> None:
        self.window.page.composer.field.setFocus()
