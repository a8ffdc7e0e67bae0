"""Chats as files: where they go to, where they come from."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, Qt, Slot
from PySide6.QtWidgets import QFileDialog

from app.ui.chat_controller import ChatController
from app.ui.chat_state import ChatState
from app.ui.items import Notice
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController

if TYPE_CHECKING:
    from app.chat.exchange import Shown
    from app.ui.main_window import MainWindow


class ExchangeJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._folder = ""  # where the last file went to, or came from
        actions = window.actions_
        actions["export_chat"].triggered.connect(self._ask_where_to)
        actions["export_all"].triggered.connect(self._ask_where_all_go)
        actions["import_chats"].triggered.connect(self._ask_where_from)
        window.drops.chats_dropped.connect(self.import_from)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        chat.exchanging.saved.connect(self._on_saved)
        chat.exchanging.page_wanted.connect(self._print)

    def follow(self, old: ChatState, new: ChatState) -> None:
        is_open = new.is_store_open
        has_chat = is_open and new.conversation_id is not None
        self.window.actions_.enable(
            {"export_chat": has_chat, "export_all": is_open, "import_chats": is_open}
        )

    def act(self, name: str) -> bool:
        if name != "cancel-exchange" or self.chat is None:
            return False
        self.chat.exchanging.cancel()
        return True

    @Slot()
    def _ask_where_to(self) -> None:
        from app.chat.exchange import FORMATS, file_name

        if self.chat is None or self.chat.shown is None:
            return
        filters = [f"{words} (*.{ending})" for ending, words in FORMATS.items()]
        dialog = self._dialog("Export this chat", "export-dialog", filters)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("md")
        dialog.filterSelected.connect(
            lambda chosen: dialog.setDefaultSuffix(chosen.rsplit("*.", 1)[-1].rstrip(")"))
        )
        dialog.selectFile(file_name(self.chat.title, "md"))
        number = self.chat.shown
        dialog.fileSelected.connect(lambda path: self.export(number, path))
        dialog.open()

    @Slot()
    def _ask_where_all_go(self) -> None:
        dialog = self._dialog("Export all chats", "export-all-dialog", ["Chats (*.json)"])
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.selectFile("Inglenook chats.json")
        dialog.fileSelected.connect(self.export_all)
        dialog.open()

    @Slot()
    def _ask_where_from(self) -> None:
        filters = ["Chats (*.json *.zip)", "All files (*)"]
        dialog = self._dialog("Import chats", "import-dialog", filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.import_from)
        dialog.open()

    def _dialog(self, title: str, name: str, filters: list[str]) -> QFileDialog:
        documents = QStandardPaths.StandardLocation.DocumentsLocation
        folder = self._folder or QStandardPaths.writableLocation(documents)
        dialog = QFileDialog(self.window, title, folder)
        dialog.setObjectName(name)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setNameFilters(filters)
        return dialog

    def export(self, conversation_id: int, path: str) -> None:
        self._folder = str(Path(path).parent)
        if self.chat is not None:
            self.chat.exchanging.export(conversation_id, path)

    @Slot(str)
    def export_all(self, path: str) -> None:
        self._folder = str(Path(path).parent)
        if self.chat is not None:
            self.chat.exchanging.export_all(path)

    @Slot(str)
    def import_from(self, path: str) -> None:
        self._folder = str(Path(path).parent)
        if self.chat is not None:
            self.chat.exchanging.import_from(path)

    @Slot(str)
    def _on_saved(self, path: str) -> None:
        if self.chat is not None:
            words = f"“{Path(path).name}” is in {Path(path).parent}."
            self.chat.show_notice(Notice("info", "Exported", words))

    @Slot(object, str)
    def _print(self, chat: "Shown", path: str) -> None:
        from app.ui.paper import print_chat

        try:
            print_chat(chat, path)
        except OSError as error:
            if self.chat is not None:
                self.chat.show_notice(
                    Notice("danger", "The chat was not exported", f"{error.strerror or error}.")
                )
            return
        self._on_saved(path)
