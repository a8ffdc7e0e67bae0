"""Chats that never touch the disk: started, kept, closed."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class TemporaryJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        banner, actions = window.page.banner, window.actions_
        banner.keep_requested.connect(actions["keep_temporary"].trigger)
        banner.close_requested.connect(actions["close_temporary"].trigger)
        actions["temporary"].triggered.connect(self._start)
        actions["keep_temporary"].triggered.connect(self._keep)
        actions["close_temporary"].triggered.connect(self._close)

    def follow(self, old: ChatState, new: ChatState) -> None:
        is_free = new.is_temporary and new.writing != "here"
        self.window.actions_.enable(
            {
                "temporary": new.is_store_open,
                "keep_temporary": is_free,
                "close_temporary": is_free,
            }
        )

    @Slot()
    def _start(self) -> None:
        if self.chat is not None:
            self.chat.temporary.start()
            self.window.page.composer.field.setFocus()

    @Slot()
    def _keep(self) -> None:
        if self.chat is not None:
            self.chat.temporary.keep()

    @Slot()
    def _close(self) -> None:
        if self.chat is not None:
            self.chat.temporary.close()
            self.window.page.composer.field.setFocus()
