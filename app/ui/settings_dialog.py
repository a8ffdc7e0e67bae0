"""The settings, one row for each field of app.settings.Settings that has a label.

A change acts at once and is saved by who listens; there is nothing to confirm.
"""

from collections.abc import Mapping
from dataclasses import Field, fields, replace
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QFrame, QLineEdit, QScrollArea, QSpinBox, QWidget

from app.settings import Settings
from app.ui import theme
from app.ui.controls import HLine, IconButton, Label, Segmented, Switch, box, button
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
        self.setMinimumWidth(theme.u(540))
        self._settings = settings
        self._editors: dict[str, QWidget] = {}
        self._resets: dict[str, IconButton] = {}
        self.rows: dict[str, QWidget] = {}
        self.headings: dict[str, Label] = {}
        self.finder = QLineEdit()
        self.finder.setPlaceholderText("Find a setting")
        self.finder.setAccessibleName("Find a setting")
        self.finder.setClearButtonEnabled(True)
        self.finder.textChanged.connect(self._filter)
        self.nothing = Label("", BODY, "muted", wrap=True)
        self.nothing.hide()
        self.reset_all = button("Reset all")
        self.reset_all.clicked.connect(self._reset_all)
        self._build()
        self._look_at_changes()

    def _build(self) -> None:
        lines: list[object] = []
        for setting in fields(Settings):
            if not setting.metadata.get("label"):
                continue
            group = setting.metadata.get("group", "")
            if group not in self.headings:
                self.headings[group] = Label(group, SMALL, "muted", 600)
                lines += [self.headings[group]]
            self.rows[setting.name] = self._row(setting)
            lines.append(self.rows[setting.name])
        inside = QWidget()
        box("v", *lines, self.nothing, "stretch", margins=(0, 0, S4, 0), spacing=S2 + 4,
            into=inside)  # fmt: skip
        area = QScrollArea()
        area.setAccessibleName("Settings")
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(inside)
        inside.setAutoFillBackground(False)
        area.setMinimumHeight(min(theme.u(420), inside.sizeHint().height() + 4))
        close = button("Close", "primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        bottom = box("h", self.reset_all, "stretch", close)
        title = Label("Settings", TITLE, "text", 600)
        box("v", title, self.finder, HLine(), (area, 1), HLine(), bottom,
            margins=(S5, S5, S5, S4), spacing=S2 + 2, into=self)  # fmt: skip

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
        reset = IconButton("reset", f"Reset {label}", 24, 14)
        reset.clicked.connect(partial(self._reset, setting.name))
        self._resets[setting.name] = reset
        keeps_room = reset.sizePolicy()
        keeps_room.setRetainSizeWhenHidden(True)
        reset.setSizePolicy(keeps_room)
        row = QWidget()
        line = box("h", (words, 1), reset, editor, spacing=S2, into=row)
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
            self._look_at_changes()
            self.changed.emit(settings)

    # ---- back to the defaults
    def _look_at_changes(self) -> None:
        plain = Settings()
        for name, reset in self._resets.items():
            reset.setVisible(getattr(self._settings, name) != getattr(plain, name))
        self.reset_all.setEnabled(self.offered(self._settings) != self.offered(plain))

    def _reset(self, name: str) -> None:
        _show_value(self._editors[name], getattr(Settings(), name))
        self._editors[name].setFocus()

    @Slot()
    def _reset_all(self) -> None:
        for name in self._editors:
            _show_value(self._editors[name], getattr(Settings(), name))

    # ---- finding
    @Slot(str)
    def _filter(self, text: str) -> None:
        wanted = text.casefold().split()
        shown: set[str] = set()
        for setting in fields(Settings):
            row = self.rows.get(setting.name)
            if row is None:
                continue
            facts = setting.metadata
            group = facts.get("group", "")
            choices = " ".join(facts.get("choices", {}).values())
            words = f"{facts['label']} {facts.get('help', '')} {group} {choices}".casefold()
            is_found = all(word in words for word in wanted)
            row.setVisible(is_found)
            if is_found:
                shown.add(group)
        for group, heading in self.headings.items():
            heading.setVisible(group in shown)
        self.nothing.setText(f"No setting matches “{text.strip()}”.")
        self.nothing.setVisible(not shown)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.finder.text():
            self.finder.clear()
        else:
            super().keyPressEvent(event)


def _show_value(editor: QWidget, value: Any) -> None:
    """As a person would enter it: what hangs on it follows."""
    if isinstance(editor, ChoiceEdit):
        editor.choose(value)
    elif isinstance(editor, Switch):
        editor.setChecked(value)
    elif isinstance(editor, QSpinBox):
        editor.setValue(value)
    elif isinstance(editor, QLineEdit):
        editor.setText(value)
        editor.editingFinished.emit()


def _value_of(editor: QWidget) -> Any:
    if isinstance(editor, ChoiceEdit):
        return editor.value()
    if isinstance(editor, Switch):
        return editor.isChecked()
    if isinstance(editor, QSpinBox):
        return editor.value()
    assert isinstance(editor, QLineEdit)
    return editor.text()
