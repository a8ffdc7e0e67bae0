"""Rows of the options panel: a name, whether it was changed, a way back, and the field itself.

Each row knows one option by name and sends its value; None means the model's default.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.controls import IconButton, Label, Segmented, Slider, Switch, box, painter
from app.ui.tag_edit import TagEdit
from app.ui.theme import BODY, S4, SMALL, color

Value = float | int | None
RANDOM_SEED = -1
LARGEST_SEED = 2**31 - 1
SEED_HELP = "The same seed, options and device give the same answer."


@dataclass(frozen=True)
class Choice:
    """One number of Options. `decimals` 0 makes it whole."""

    name: str
    label: str
    help: str
    low: float
    high: float
    step: float
    decimals: int = 0
    has_slider: bool = False


class ChangeDot(QWidget):
    """A dot in the gutter: this value is not the model's default."""

    def __init__(self) -> None:
        super().__init__()
        self._is_on = False
        self.setFixedSize(8, 20)

    def set_on(self, is_on: bool) -> None:
        self._is_on = is_on
        self.setAccessibleName("Changed from the default" if is_on else "")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._is_on:
            draw = painter(self)
            draw.setPen(Qt.PenStyle.NoPen)
            draw.setBrush(color("accent"))
            draw.drawEllipse(QRectF(0, 7, 6, 6))


def number_field(choice: Choice, width: int = 70) -> QDoubleSpinBox | QSpinBox:
    """The wheel acts only on a field that has the focus: scrolling past must not change it."""
    field = QDoubleSpinBox() if choice.decimals else QSpinBox()
    if isinstance(field, QDoubleSpinBox):
        field.setDecimals(choice.decimals)
        field.setRange(choice.low, choice.high)
        field.setSingleStep(choice.step)
    else:
        field.setRange(int(choice.low), int(choice.high))
        field.setSingleStep(int(choice.step))
    field.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    field.lineEdit().setTextMargins(0, 0, 5, 0)
    field.setFixedSize(theme.u(width), theme.H_CONTROL)
    field.setAccessibleName(choice.label)
    field.setAccessibleDescription(choice.help)
    field.setObjectName(choice.name)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    field.setKeyboardTracking(False)
    return field


class OptionRow(QWidget):
    """dot | label ... reset | value, a slider below where it helps, then what it does."""

    reset_requested = Signal()

    def __init__(self, label: str, help_text: str, *fields: QWidget) -> None:
        super().__init__()
        self._words = ""
        self._dot = ChangeDot()
        self.name = Label(label, BODY, "text", 500)
        self.name.setToolTip(help_text)
        self.reset = IconButton("reset", f"Back to the model's default: {label}", 24, 15, "accent")
        policy = self.reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(policy)
        self.reset.hide()
        self.reset.clicked.connect(self.reset_requested)
        self.help = Label(help_text, SMALL, "muted", wrap=True)
        top = box("h", self._dot, self.name, "stretch", self.reset, *fields, spacing=6)
        top.setContentsMargins(0, 0, S4, 0)
        self.lines: QVBoxLayout = box("v", top, margins=(6, 0, 0, 0), spacing=2, into=self)  # type: ignore[assignment]
        self.lines.addLayout(box("v", self.help, margins=(14, 0, S4, 2)))
        self.help.hide()

    def set_ruled_out(self, why: str, *, is_explaining: bool) -> None:
        """Other options leave this one without effect: it says so in place of what it does."""
        if not self._words:
            self._words = self.help.text()
        self.help.setText(why or self._words)
        self.help.setVisible(bool(why) or is_explaining)
        self.name.set_role("faint" if why else "text")

    def set_changed(self, is_changed: bool, default: str = "") -> None:
        self._dot.set_on(is_changed)
        self.reset.setVisible(is_changed)
        if default:
            self.reset.set_tip(f"Back to the model's default, {default}")


class NumberRow(OptionRow):
    """A number with its field, and a slider that says the same."""

    chosen = Signal(str, object)  # name, value or None for the default

    def __init__(self, choice: Choice) -> None:
        self.field = number_field(choice)
        super().__init__(choice.label, choice.help, self.field)
        self._choice = choice
        self._scale = 10**choice.decimals
        self._default: float = choice.low
        self.slider: Slider | None = None
        if choice.has_slider:
            low, high = (round(x * self._scale) for x in (choice.low, choice.high))
            self.slider = Slider(low, high, low, None, choice.label)
            self.slider.setSingleStep(max(1, round(choice.step * self._scale)))
            self.slider.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.lines.insertLayout(1, box("h", self.slider, margins=(6, 0, S4 - 8, 0)))
            self.slider.valueChanged.connect(self._on_slider)
        self.field.valueChanged.connect(self._on_field)
        self.reset_requested.connect(self._on_reset)

    def set_value(self, value: Value, default: float) -> None:
        self._default = default
        if self.slider is not None:
            self.slider.set_default(round(default * self._scale))
        self._show(default if value is None else value)

    def _show(self, value: float) -> None:
        self.field.blockSignals(True)
        if isinstance(self.field, QSpinBox):
            self.field.setValue(int(value))
        else:
            self.field.setValue(value)
        self.field.blockSignals(False)
        if self.slider is not None:
            self.slider.blockSignals(True)
            self.slider.setValue(round(value * self._scale))
            self.slider.blockSignals(False)
        is_changed = round(value * self._scale) != round(self._default * self._scale)
        self.set_changed(is_changed, f"{self._default:g}")

    @Slot(int)
    def _on_slider(self, position: int) -> None:
        self._choose(position / self._scale)

    @Slot()
    def _on_field(self) -> None:
        self._choose(self.field.value())

    @Slot()
    def _on_reset(self) -> None:
        self._choose(self._default)

    def _choose(self, value: float) -> None:
        self._show(value)
        is_default = round(value * self._scale) == round(self._default * self._scale)
        kept: Value = value if self._choice.decimals else int(value)
        self.chosen.emit(self._choice.name, None if is_default else kept)


class SeedRow(OptionRow):
    chosen = Signal(object)  # a number, or None for a new one each time

    def __init__(self) -> None:
        choice = Choice("seed", "Seed", SEED_HELP, RANDOM_SEED, LARGEST_SEED, 1)
        self.field = number_field(choice, 98)
        assert isinstance(self.field, QSpinBox)
        self.field.setSpecialValueText("random")
        self.dice = IconButton("dice", "New random seed that stays", 30, 18)
        super().__init__(choice.label, choice.help, self.dice, self.field)
        self.field.valueChanged.connect(self._on_field)
        self.dice.clicked.connect(self._throw)
        self.reset_requested.connect(self._on_reset)

    def set_value(self, seed: int | None) -> None:
        self.field.blockSignals(True)
        self.field.setValue(RANDOM_SEED if seed is None else seed)
        self.field.blockSignals(False)
        self.set_changed(seed is not None, "a random one each time")

    @Slot()
    def _on_field(self) -> None:
        value = int(self.field.value())
        seed = None if value == RANDOM_SEED else value
        self.set_changed(seed is not None)
        self.chosen.emit(seed)

    @Slot()
    def _throw(self) -> None:
        self.field.setValue(secrets.randbelow(1_000_000))

    @Slot()
    def _on_reset(self) -> None:
        self.field.setValue(RANDOM_SEED)


class SwitchRow(OptionRow):
    """Yes or no."""

    chosen = Signal(str, object)

    def __init__(self, name: str, label: str, help_text: str) -> None:
        self.switch = Switch(False, label)
        self.switch.setObjectName(name)
        self.switch.setAccessibleDescription(help_text)
        super().__init__(label, help_text, self.switch)
        self._name, self._default = name, False
        self.switch.toggled.connect(self._on_toggled)
        self.reset_requested.connect(self._on_reset)

    def set_value(self, value: bool | None, default: bool) -> None:
        self._default = default
        self.switch.blockSignals(True)
        self.switch.setChecked(default if value is None else value)
        self.switch.blockSignals(False)
        self.set_changed(self.switch.isChecked() != default, "on" if default else "off")

    @Slot(bool)
    def _on_toggled(self, is_on: bool) -> None:
        self.set_changed(is_on != self._default)
        self.chosen.emit(self._name, is_on)

    @Slot()
    def _on_reset(self) -> None:
        self.switch.setChecked(self._default)


class ChoiceRow(OptionRow):
    """One of a few words; the first is the default."""

    chosen = Signal(str, object)

    def __init__(self, name: str, label: str, help_text: str, choices: Mapping[str, str]) -> None:
        super().__init__(label, help_text)
        self._name, self._values = name, list(choices)
        self.segments = Segmented([(words, None) for words in choices.values()], 0, label)
        self.segments.setObjectName(name)
        self.lines.insertLayout(1, box("h", self.segments, margins=(14, 0, S4, 2)))
        self.segments.changed.connect(self._on_changed)
        self.reset_requested.connect(self._on_reset)

    def set_value(self, value: str) -> None:
        self.segments.set_current(self._values.index(value))
        self.set_changed(value != self._values[0], "")

    @Slot(int)
    def _on_changed(self, index: int) -> None:
        self.set_changed(index != 0)
        self.chosen.emit(self._name, self._values[index])

    @Slot()
    def _on_reset(self) -> None:
        self.segments.set_current(0)
        self._on_changed(0)


class TagsRow(OptionRow):
    """Several texts."""

    chosen = Signal(str, object)

    def __init__(self, name: str, label: str, help_text: str, placeholder: str) -> None:
        super().__init__(label, help_text)
        self._name = name
        self.tags = TagEdit(label, placeholder)
        self.tags.field.setObjectName(name)
        self.lines.insertLayout(1, box("h", self.tags, margins=(14, 0, S4, 2)))
        self.tags.changed.connect(self._on_changed)
        self.reset_requested.connect(self._on_reset)

    def set_value(self, texts: Sequence[str]) -> None:
        self.tags.set_texts(texts)
        self.set_changed(bool(texts), "none")

    @Slot()
    def _on_changed(self) -> None:
        self.set_changed(bool(self.tags.texts()), "none")
        self.chosen.emit(self._name, self.tags.texts())

    @Slot()
    def _on_reset(self) -> None:
        self.tags.set_texts(())
        self._on_changed()
