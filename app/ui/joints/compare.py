"""The page that compares two answers: opened, run, stopped, kept, closed."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.chat_controller import ChatController
from app.ui.chat_state import ChatState
from app.ui.compare_page import ComparePage
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class CompareJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.page = ComparePage()
        window.center.addWidget(self.page)
        window.actions_["compare"].triggered.connect(self.show)
        window.page.head.compare.clicked.connect(window.actions_["compare"].trigger)
        self.page.run_requested.connect(self._run)
        self.page.stop_requested.connect(self._stop)
        self.page.closed.connect(self.close)
        self.page.keep_requested.connect(self._keep)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        chat.compare.begun.connect(self._show_all)
        chat.compare.changed.connect(self._show_side)
        chat.compare.done.connect(self._on_done)
        chat.compare.kept.connect(self._on_kept)

    def follow(self, old: ChatState, new: ChatState) -> None:
        can_begin = new.has_messages and new.can_send
        self.window.actions_.enable({"compare": can_begin or self.is_shown})
        self.window.page.head.compare.setEnabled(can_begin)
        if self.is_shown and new.conversation_id != old.conversation_id:
            self.close()
        elif self.is_shown and self.chat is not None:
            self.page.run.setEnabled(new.can_send)

    @property
    def is_shown(self) -> bool:
        return self.window.center.currentWidget() is self.page

    @Slot()
    def show(self) -> None:
        if self.is_shown:
            self.close()
            return
        if self.chat is None or not self.chat.compare.take_question():
            return
        defaults = self.window.state.model.defaults
        self.page.begin(self.chat.compare, self.chat.options, defaults)
        self.window.center.setCurrentWidget(self.page)
        self.page.run.setFocus()

    @Slot()
    def close(self) -> None:
        self._stop()
        self.window.center.setCurrentWidget(self.window.page)
        self.window.page.composer.field.setFocus()

    @Slot()
    def _run(self) -> None:
        if self.chat is not None:
            self.chat.compare.run(self.page.options(), self.page.seed.value())

    @Slot()
    def _stop(self) -> None:
        if self.chat is not None:
            self.chat.compare.stop()

    @Slot(int)
    def _keep(self, side: int) -> None:
        if self.chat is not None:
            self.chat.compare.keep(side)

    @Slot()
    def _show_all(self) -> None:
        if self.chat is not None:
            self.page.show_all(self.chat.compare)

    @Slot(int)
    def _show_side(self, side: int) -> None:
        if self.chat is not None:
            self.page.show_side(self.chat.compare, side)

    @Slot()
    def _on_done(self) -> None:
        self._show_all()
        self.window.announce(self.page.summary.text() or "Comparing has ended.")

    @Slot(int)
    def _on_kept(self, conversation_id: int) -> None:
        if self.chat is not None:
            self.chat.show_chat_again(conversation_id)
        self.close()
        self.window.announce("Kept as a version in the chat.")

    def restyle(self) -> None:
        self.page.restyle()
