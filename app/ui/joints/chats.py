"""Chats in the sidebar and their messages on the page."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot

from app.ui.chat_controller import ChatController
from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint
from app.ui.message_actions import MessageActions
from app.ui.model_controller import ModelController

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ChatJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.messages: MessageActions | None = None
        actions, page, sidebar = window.actions_, window.page, window.sidebar
        sidebar.new_requested.connect(actions["new"].trigger)
        sidebar.chat_opened.connect(self._open_chat)
        page.head.new.clicked.connect(actions["new"].trigger)
        page.composer.edit_last_requested.connect(actions["edit_last"].trigger)
        window.undo.undone.connect(self._undo)
        for name, slot in {
            "new": self._new_chat,
            "rename": self._rename,
            "delete": self._delete,
            "undo": self._undo,
            "search": self._go_to_search,
            "stop": self.stop,
        }.items():
            actions[name].triggered.connect(slot)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        window, page, sidebar = self.window, self.window.page, self.window.sidebar
        chat.items_reset.connect(page.set_items)
        chat.item_appended.connect(page.append)
        chat.item_replaced.connect(page.replace)
        chat.item_streamed.connect(page.stream)
        chat.scrolled_to.connect(page.scroll_to)
        chat.notice_changed.connect(page.set_notice)
        chat.composer_filled.connect(page.composer.set_text)
        chat.options_changed.connect(window.inspector.set_options)
        chat.chats_changed.connect(sidebar.set_chats)
        chat.state_changed.connect(window.set_state)
        chat.undoable_done.connect(self._on_undoable)
        chat.announced.connect(window.announce)
        self._join_messages(chat)
        page.composer.sent.connect(chat.send)
        page.composer.draft_changed.connect(chat.change_draft)
        page.composer.stop_requested.connect(chat.stop)
        page.transcript.edited.connect(chat.edit)
        sidebar.chat_renamed.connect(chat.rename_chat)
        sidebar.delete_requested.connect(chat.delete_chat)
        sidebar.searched.connect(chat.search)
        window.inspector.options_changed.connect(chat.change_options)

    def _join_messages(self, chat: ChatController) -> None:
        """Chats may be opened anew, after an error: the actions belong to the newest."""
        window = self.window
        old, self.messages = self.messages, MessageActions(chat, window.page.transcript, self)
        if old is not None:
            old.deleteLater()
        messages = self.messages
        window.page.message_action.connect(messages.act)
        messages.elsewhere.connect(window.act)
        messages.announced.connect(window.announce)
        for name, slot in {
            "write_again": chat.write_last_again,
            "edit_last": messages.edit_last,
            "previous": messages.previous_version,
            "next": messages.next_version,
            "copy": messages.copy_answer,
        }.items():
            window.actions_[name].triggered.connect(slot)

    def follow(self, old: ChatState, new: ChatState) -> None:
        has_chat = new.conversation_id is not None
        is_free = not new.is_writing
        self.window.actions_.enable(
            {
                "new": new.is_store_open,
                "rename": has_chat,
                "delete": has_chat,
                "undo": new.can_undo,
                "stop": new.is_writing and not new.is_stopping,
                "write_again": new.can_write_again,
                "edit_last": new.has_messages and is_free,
                "previous": new.has_messages and is_free,
                "next": new.has_messages and is_free,
                "copy": new.has_answer,
            }
        )

    def act(self, name: str) -> bool:
        if name == "send-again":
            self.window.page.composer.submit()
            return True
        if self.chat is None:
            return False
        slot = {
            "retry-save": self.chat.retry_save,
            "write-again": self._resend,
            "continue-in-new-chat": self.chat.continue_in_new_chat,
        }.get(name)
        if slot is not None:
            slot()
        return slot is not None

    @Slot()
    def stop(self) -> None:
        if self.chat is not None:
            self.chat.stop()

    @Slot()
    def _new_chat(self) -> None:
        if self.chat is not None:
            self.chat.new_chat()
            self._after_opening()

    @Slot(int)
    def _open_chat(self, chat_id: int) -> None:
        if self.chat is not None:
            self.chat.open_chat(chat_id)
            self._after_opening()

    def _after_opening(self) -> None:
        if self.window.panels.is_over():
            self.window.panels.close_over()
        self.window.page.composer.field.setFocus()

    @Slot()
    def _rename(self) -> None:
        if not self.window.panels.is_shown("sidebar"):
            self.window.panels.set_shown("sidebar", True)
        self.window.sidebar.rename_current()

    @Slot()
    def _delete(self) -> None:
        shown = self.window.state.conversation_id
        if self.chat is not None and shown is not None:
            self.chat.delete_chat(shown)
            self.window.page.composer.field.setFocus()

    @Slot()
    def _undo(self) -> None:
        self.window.undo.dismiss()
        if self.chat is not None:
            self.chat.undo_delete()

    @Slot(str)
    def _on_undoable(self, words: str) -> None:
        is_of_list = words.startswith(("Chat", "Folder"))
        self.window.undo.show(words, None if is_of_list else self.window.page.composer)
        self.window.announce(f"{words}. Control Z brings it back.")

    @Slot()
    def _go_to_search(self) -> None:
        self.window.panels.set_shown("sidebar", True)
        self.window.sidebar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.window.sidebar.search.selectAll()

    def _resend(self) -> None:
        """A message that came back is sent again, else the last answer is written again."""
        if self.window.page.composer.text().strip():
            self.window.page.composer.submit()
        elif self.chat is not None:
            self.chat.write_last_again()
