"""Files for the next message: chosen, dropped or pasted; seen, removed, put into the text."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFileDialog

from app.ui.attached_files import AttachedFiles
from app.ui.chat_controller import ChatController
from app.ui.chat_state import ChatState
from app.ui.file_card import FileCard
from app.ui.items import Notice
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class AttachmentJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.files = AttachedFiles(self)
        composer = window.page.composer
        composer.attach_requested.connect(window.actions_["attach"].trigger)
        composer.tray.removed.connect(self.files.remove)
        composer.tray.opened.connect(self._show)
        composer.field.long_pasted.connect(self.files.add_text)
        composer.field.files_pasted.connect(self.files.add)
        window.drops.attached.connect(self.files.add)
        window.actions_["attach"].triggered.connect(self._ask)
        self.files.changed.connect(self._on_changed)
        self.files.refused.connect(self._refuse)
        self._visit = 0

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        self._visit = chat.visit
        chat.attach(self.files)

    def follow(self, old: ChatState, new: ChatState) -> None:
        if self.chat is not None and self.chat.visit != self._visit:
            self._visit = self.chat.visit
            if not self.chat.takes_files_along():
                self.files.go_to(new.conversation_id, leaving=old.conversation_id)
        self.window.actions_.enable({"attach": new.is_store_open})
        self.window.page.composer.attach_button.setEnabled(new.is_store_open)

    @Slot()
    def _on_changed(self) -> None:
        composer = self.window.page.composer
        composer.tray.set_items(self.files.items())
        composer.look_at_files()

    @Slot(str)
    def _refuse(self, sentence: str) -> None:
        if self.chat is not None:
            self.chat.show_notice(Notice("info", "Not every file is attached", sentence))

    @Slot()
    def _ask(self) -> None:
        dialog = QFileDialog(self.window, "Attach files")
        dialog.setObjectName("attach-dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters(
            ["Texts and PDF (*.txt *.md *.pdf *.csv *.json *.py)", "All files (*)"]
        )
        dialog.filesSelected.connect(self.files.add)
        dialog.open()

    @Slot(int)
    def _show(self, key: int) -> None:
        item = next(item for item in self.files.items() if item.key == key)
        card = FileCard(key, item.name, self.files.text(key))
        card.put_in.connect(self._put_in)
        card.closed.connect(card.deleteLater)
        card.open_from(self.window.page.composer.tray, above=True)

    @Slot(int)
    def _put_in(self, key: int) -> None:
        """Its text becomes part of the message itself."""
        self.window.page.composer.insert_text(self.files.text(key))
        self.files.remove(key)
