"""Models: the menu of those that are there, opening and dropping others, the device that runs."""

import os
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.chat_controller import ChatController
from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController
from app.ui.model_menu import ModelMenu

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ModelJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        window.page.composer.model_menu_requested.connect(self._show_models)
        window.page.first_run.open_requested.connect(window.actions_["open_model"].trigger)
        window.drops.dropped.connect(self.open_model)
        window.actions_["choose_model"].triggered.connect(self._show_models)
        window.actions_["open_model"].triggered.connect(self._ask_for_model)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        models.announced.connect(self.window.announce)
        models.state_changed.connect(chat.set_model_state)
        models.notice_raised.connect(chat.show_notice)
        models.about_to_load.connect(chat.stop)
        self.window.page.first_run.cancel_requested.connect(models.cancel_import)
        self.window.page.composer.cancel_requested.connect(models.cancel_import)
        chat.set_model_state(models.state)

    def follow(self, old: ChatState, new: ChatState) -> None:
        window = self.window
        window.drops.is_open = new.is_store_open
        if new.model.defaults != old.model.defaults:
            window.inspector.set_defaults(new.model.defaults)
        window.sidebar.set_device(_device_words(new.model.device or "CPU"))
        window.actions_.enable({"choose_model": new.is_store_open, "open_model": new.is_store_open})
        if self.models is not None and new.model.phase != old.model.phase:
            window.sidebar.set_model_count(len(self.models.folders()))

    def act(self, name: str) -> bool:
        slot = {"choose-model": self._show_models, "open-model": self._ask_for_model}.get(name)
        if slot is None and name == "reload-model" and self.models is not None:
            slot = self.models.reload
        if slot is not None:
            slot()
        return slot is not None

    @Slot()
    def _show_models(self) -> None:
        self._open_menu(self.window.page.composer.model_chip)

    def _open_menu(self, opener: QWidget) -> None:
        if self.models is None:
            return
        entries = self.models.entries()
        self.window.sidebar.set_model_count(len(entries))
        menu = ModelMenu(entries)
        menu.chosen.connect(self.models.load)
        menu.open_requested.connect(self._ask_for_model)
        menu.closed.connect(menu.deleteLater)
        menu.open_from(opener, above=True)

    @Slot()
    def _ask_for_model(self) -> None:
        dialog = QFileDialog(self.window, "Open a model")
        dialog.setObjectName("open-model-dialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["Models (*.gguf genai_config.json *.onnx)", "All files (*)"])
        dialog.fileSelected.connect(self.open_model)
        dialog.open()

    @Slot(str)
    def open_model(self, path: str) -> None:
        if self.models is not None:
            self.models.open(path)


def _device_words(device: str) -> str:
    count = os.cpu_count() or 1
    return f"CPU, {count} core{'s' * (count != 1)}" if device.upper() == "CPU" else device
