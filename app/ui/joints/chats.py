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
        sidebar.list.hit_opened.connect(self._open_hit)
        sidebar.found.connect(window.announce)
        page.head.new.clicked.connect(actions["new"].trigger)
        page.composer.edit_last_requested.connect(actions["edit_last"].trigger)
        window.undo.undone.connect(self._undo)
        for name, slot in {
            "new": self._new_chat,
            "rename": self._rename,
            "delete": self._delete,
            "undo": self._undo,
            "pin": sidebar.pin_targets,
            "move_to": self._move_to,
            "new_folder": self._new_folder,
            "next_chat": self._next_chat,
            "previous_chat": self._previous_chat,
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
        chat.searching.found.connect(sidebar.show_hits)
        chat.searching.failed.connect(sidebar.show_search_failure)
        chat.state_changed.connect(window.set_state)
        chat.undoable_done.connect(self._on_undoable)
        chat.announced.connect(window.announce)
        self._join_messages(chat)
        self._join_list(chat)
        page.composer.sent.connect(chat.send)
        page.composer.draft_changed.connect(chat.change_draft)
        page.composer.stop_requested.connect(chat.stop)
        page.transcript.edited.connect(chat.edit)
        sidebar.chat_renamed.connect(chat.rename_chat)
        sidebar.searched.connect(chat.searching.search)
        window.inspector.options_changed.connect(chat.change_options)

    def _join_list(self, chat: ChatController) -> None:
        sidebar, shelf, folders = self.window.sidebar, chat.shelf, chat.folders
        shelf.listed.connect(sidebar.set_chats)
        shelf.changed.connect(sidebar.put_chat)
        shelf.gone.connect(sidebar.take_chat)
        shelf.folders_changed.connect(sidebar.set_folders)
        shelf.shown_changed.connect(sidebar.set_shown)
        folders.created.connect(sidebar.rename_folder)
        sidebar.folder_renamed.connect(folders.rename)
        sidebar.list.delete_requested.connect(chat.delete_chats)
        sidebar.list.moved.connect(folders.put)
        sidebar.list.folder_requested.connect(folders.create)
        sidebar.list.folder_toggled.connect(folders.set_open)
        sidebar.list.folder_moved.connect(folders.move)
        sidebar.list.folder_delete_requested.connect(folders.delete)

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
            "copy_code": messages.copy_code,
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
                "pin": has_chat and not new.is_temporary,
                "move_to": has_chat and not new.is_temporary,
                "new_folder": new.is_store_open,
                "next_chat": new.is_store_open,
                "previous_chat": new.is_store_open,
                "search": new.is_store_open,
                "undo": new.can_undo,
                "stop": new.is_writing and not new.is_stopping,
                "write_again": new.can_write_again,
                "edit_last": new.has_messages and is_free,
                "previous": new.has_messages and is_free,
                "next": new.has_messages and is_free,
                "copy": new.has_answer,
                "copy_code": new.has_answer,
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

    @Slot(int, int, str)
    def _open_hit(self, chat_id: int, message_id: int, words: str) -> None:
        """At the message that was found, with the words marked."""
        if self.chat is not None:
            self.chat.open_chat_at(chat_id, message_id)
            self._after_opening()
            self.window.page.find_bar.show_at(words, message_id)

    @Slot()
    def _next_chat(self) -> None:
        self._open_neighbour(1)

    @Slot()
    def _previous_chat(self) -> None:
        self._open_neighbour(-1)

    def _open_neighbour(self, step: int) -> None:
        """The focus stays in the list while one goes through it."""
        sidebar = self.window.sidebar
        found, had_focus = sidebar.neighbour(step), sidebar.list.hasFocus()
        if found is not None:
            self._open_chat(found)
            if had_focus:
                sidebar.list.setFocus()

    @Slot()
    def _new_folder(self) -> None:
        if self.chat is not None:
            self.window.panels.set_shown("sidebar", True)
            self.chat.folders.create([])

    @Slot()
    def _move_to(self) -> None:
        self.window.panels.set_shown("sidebar", True)
        self.window.sidebar.show_places()

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
        sidebar = self.window.sidebar
        chats = [chat.id for chat in sidebar.targets()]
        if self.chat is not None and chats:
            self.chat.delete_chats(chats)
            if not sidebar.list.hasFocus():
                self.window.page.composer.field.setFocus()

    @Slot()
    def _undo(self) -> None:
        self.window.undo.dismiss()
        if self.chat is not None:
            self.chat.undo_delete()

    @Slot(str)
    def _on_undoable(self, words: str) -> None:
        is_of_list = words.startswith(("Chat", "Folder")) or "chats" in words
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
