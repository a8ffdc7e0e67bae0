"""The settings, one row for each field of app.settings.Settings that has a label.

A change acts at once and is saved by who listens; there is nothing to confirm.
"""

from collections.abc import Mapping
from dataclasses import Field, fields, replace
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QDialog, QLineEdit, QSpinBox, QWidget

from app.settings import Settings
from app.ui import theme
from app.ui.controls import HLine, Label, Segmented, Switch, box, button
from app.ui.theme import BODY, S2, S4, S5, SMALL, TITLE


class ChoiceEdit(Segmented):
    """One of a few, all of them to be seen."""

    def __init__(self, choices: Mapping[str, str], value: str) -> None:
        self._values = list(choices)
        super().__init__([(words, None) for words in choices.values()], self._values.index(value))

    def value(self) -> str:
        return self._values[self.current()]

    def choose(self, value: str) -> None:
        self.group.button(self._values.index(value)).click()


class SettingsDialog(QDialog):
    changed = Signal(object)  # Settings

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("settings")
        self.setWindowTitle("Settings")
        self.setMinimumWidth(theme.u(460))
        self._settings = settings
        self._editors: dict[str, QWidget] = {}
        lines: list[object] = [Label("Settings", TITLE, "text", 600), 4]
        for setting in fields(Settings):
            if setting.metadata.get("label"):
                lines += [HLine(), self._row(setting)]
        close = button("Close", "primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        bottom = box("h", "stretch", close)
        box("v", *lines, HLine(), 4, bottom, margins=(S5, S5, S5, S4), spacing=S2 + 2, into=self)

    def settings(self) -> Settings:
        return self._settings

    @staticmethod
    def offered(settings: Settings) -> dict[str, Any]:
        """The values of the fields that the dialog shows."""
        shown = [field.name for field in fields(Settings) if field.metadata.get("label")]
        return {name: getattr(settings, name) for name in shown}

    def _row(self, setting: "Field[Any]") -> QWidget:
        label, help_text = setting.metadata["label"], setting.metadata.get("help", "")
        editor = self._editor(setting)
        editor.setObjectName(setting.name)
        editor.setAccessibleName(label)
        editor.setAccessibleDescription(help_text)
        self._editors[setting.name] = editor
        words = box(
            "v",
            Label(label, BODY, "text", 500),
            Label(help_text, SMALL, "muted", wrap=True) if help_text else None,
            spacing=2,
        )
        row = QWidget()
        line = box("h", (words, 1), editor, spacing=S4, into=row)
        line.setAlignment(editor, Qt.AlignmentFlag.AlignVCenter)
        return row

    def _editor(self, setting: "Field[Any]") -> QWidget:
        """By what the field is: one of a few, yes or no, a number, a text."""
        value = getattr(self._settings, setting.name)
        if choices := setting.metadata.get("choices"):
            choice = ChoiceEdit(choices, value)
            choice.changed.connect(self._on_changed)
            return choice
        if isinstance(value, bool):
            switch = Switch(value, setting.metadata["label"])
            switch.toggled.connect(self._on_changed)
            return switch
        if isinstance(value, int):
            spin = QSpinBox()
            spin.setRange(*setting.metadata.get("between", (0, 2**31 - 1)))
            spin.setValue(value)
            spin.setFixedSize(theme.u(84), theme.H_CONTROL)
            spin.lineEdit().setTextMargins(0, 0, 5, 0)
            spin.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            spin.setKeyboardTracking(False)
            spin.valueChanged.connect(self._on_changed)
            return spin
        line = QLineEdit(value)
        line.editingFinished.connect(self._on_changed)
        return line

    @Slot()
    def _on_changed(self) -> None:
        values = {name: _value_of(editor) for name, editor in self._editors.items()}
        settings = replace(self._settings, **values)
        if settings != self._settings:
            self._settings = settings
            self.changed.emit(settings)


def _value_of(editor: QWidget) -> Any:
    if isinstance(editor, ChoiceEdit):
        return editor.value()
    if isinstance(editor, Switch):
        return editor.isChecked()
    if isinstance(editor, QSpinBox):
        return editor.value()
    assert isinstance(editor, QLineEdit)
    return editor.text()
