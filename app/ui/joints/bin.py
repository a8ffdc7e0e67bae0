"""The bin of deleted chats."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.bin_card import BinCard
from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class BinJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.card: BinCard | None = None
        window.actions_["bin"].triggered.connect(self.show)

    def follow(self, old: ChatState, new: ChatState) -> None:
        self.window.actions_.enable({"bin": new.is_store_open})

    @Slot()
    def show(self) -> None:
        if self.chat is None or self.card is not None:
            return
        card = self.card = BinCard(self.chat.store.deleted_conversations())
        card.restore_requested.connect(self.chat.restore_chat)
        card.delete_requested.connect(self.chat.delete_chat_for_good)
        card.closed.connect(self._on_closed)
        sidebar = self.window.sidebar
        opener = sidebar.models_row if sidebar.isVisible() else self.window.page.head
        card.open_from(opener, above=sidebar.isVisible())

    @Slot()
    def _on_closed(self) -> None:
        if self.card is not None:
            self.card.deleteLater()
            self.card = None
