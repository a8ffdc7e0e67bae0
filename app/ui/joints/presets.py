"""Presets of one's own: kept as files, chosen and deleted from the menu in the options."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QInputDialog, QMenu

from app.ui.items import Notice
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.chat.presets import OwnPreset
    from app.ui.main_window import MainWindow


class PresetsJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.options = window.inspector.options
        self.options.own_presets.clicked.connect(self._open)

    @property
    def folder(self) -> Path:
        return self.window.folders.data / "presets"

    @Slot()
    def _open(self) -> None:
        opener = self.options.own_presets
        menu = self.menu()
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(opener.mapToGlobal(QPoint(0, opener.height())))

    def menu(self) -> QMenu:
        from app.chat.presets import own_presets, preset_like

        menu = QMenu(self.window)
        menu.setAccessibleName("Your presets")
        presets, bad = own_presets(self.folder)
        current = preset_like(presets, self.options.options())
        for preset in presets:
            choice = menu.addAction(preset.name.replace("&", "&&"))
            choice.setCheckable(True)
            choice.setChecked(current is not None and preset.path == current.path)
            choice.triggered.connect(partial(self._choose, preset))
        if presets:
            menu.addSeparator()
        menu.addAction("Save these options as a preset…").triggered.connect(self._ask_for_name)
        if presets:
            deleting = menu.addMenu("Delete")
            for preset in presets:
                action = deleting.addAction(preset.name.replace("&", "&&"))
                action.triggered.connect(partial(self._delete, preset))
        if presets or bad:
            menu.addAction("Show their files").triggered.connect(self._show_files)
        if bad:
            note = menu.addAction(f"{len(bad)} of the files could not be read")
            note.setEnabled(False)
        return menu

    def _choose(self, preset: "OwnPreset") -> None:
        self.options.apply(preset.options)
        self.window.announce(f"{preset.name} is set")

    @Slot()
    def _ask_for_name(self) -> None:
        dialog = QInputDialog(self.window)
        dialog.setObjectName("preset-name")
        dialog.setWindowTitle("Save as a preset")
        dialog.setLabelText("Name of the preset")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.textValueSelected.connect(self.save)
        dialog.open()

    @Slot(str)
    def save(self, name: str) -> None:
        from app.chat.presets import PresetError, save_preset

        try:
            made = save_preset(self.folder, name, self.options.options())
        except PresetError as error:
            self._tell("The preset was not saved", str(error))
        else:
            self.window.announce(f"Saved as {made.name}")

    def _delete(self, preset: "OwnPreset") -> None:
        from app.chat.presets import PresetError, delete_preset

        try:
            delete_preset(preset)
        except PresetError as error:
            self._tell("The preset was not deleted", str(error))
        else:
            self.window.announce(f"{preset.name} is deleted")

    @Slot()
    def _show_files(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.folder)))

    def _tell(self, title: str, text: str) -> None:
        if self.chat is not None:
            self.chat.show_notice(Notice("danger", title, text))
