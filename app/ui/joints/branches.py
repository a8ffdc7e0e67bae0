"""Versions and single messages in the menus: continue, edit, pin, branch, delete."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow
    from app.ui.message_actions import MessageActions


class BranchesJoint(Joint):
    """The deeds of the message rows, done to the last message."""

    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        for name, slot in {
            "continue": self._continue,
            "edit_answer": self._edit_answer,
            "pin_last": self._pin,
            "remember_all": self._remember_all,
            "branch_last": self._branch,
            "delete_last": self._delete,
            "explain_last": self._explain,
        }.items():
            window.actions_[name].triggered.connect(slot)

    def follow(self, old: ChatState, new: ChatState) -> None:
        is_free = new.has_messages and new.writing != "here"
        has_answer = is_free and new.last_role == "assistant"
        self.window.actions_.enable(
            {
                "continue": new.can_continue and new.can_send,
                "edit_answer": has_answer and not new.is_writing,
                "pin_last": is_free,
                "remember_all": is_free and new.forgets,
                "branch_last": is_free,
                "delete_last": is_free,
                "explain_last": has_answer,
            }
        )

    @property
    def _messages(self) -> "MessageActions | None":
        return self.window.chats.messages

    @Slot()
    def _continue(self) -> None:
        if self.chat is not None:
            self.chat.continue_last()

    @Slot()
    def _remember_all(self) -> None:
        if self.chat is not None:
            self.chat.branches.remember_all()

    @Slot()
    def _edit_answer(self) -> None:
        if self._messages is not None:
            self._messages.edit_answer()

    @Slot()
    def _pin(self) -> None:
        if self._messages is not None:
            self._messages.pin_last()

    @Slot()
    def _branch(self) -> None:
        if self._messages is not None:
            self._messages.branch_last()

    @Slot()
    def _delete(self) -> None:
        if self._messages is not None:
            self._messages.delete_last()

    @Slot()
    def _explain(self) -> None:
        if self._messages is not None:
            self._messages.explain_last()
