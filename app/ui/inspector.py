"""The panel at the right: how answers of this chat are written.

One table of options makes the rows. A value that equals the model's default is stored as "not
chosen" (None), so that another model brings its own default.
"""

import secrets
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QFrame,
    QPlainTextEdit,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages import Options
from app.ui import theme
from app.ui.controls import (
    HLine,
    IconButton,
    IconLabel,
    Label,
    Slider,
    box,
    button,
    painter,
)
from app.ui.theme import BODY, H_BAR, S2, S3, S4, SMALL, color, font

Value = float | int | None
RANDOM_SEED = -1
LARGEST_SEED = 2**31 - 1


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


CHOICES = (
    Choice(
        "temperature",
        "Temperature",
        "Lower is more predictable, higher is more varied. 0 always takes the likeliest word.",
        0,
        2,
        0.05,
        2,
        has_slider=True,
    ),
    Choice(
        "top_p",
        "Top-p",
        "Keeps the likeliest words that together reach this share.",
        0.01,
        1,
        0.01,
        2,
        has_slider=True,
    ),
    Choice(
        "top_k",
        "Top-k",
        "Keeps only this many of the likeliest words. 0 means no limit.",
        0,
        200,
        1,
        has_slider=True,
    ),
    Choice(
        "repetition_penalty",
        "Repetition penalty",
        "Above 1 makes words less likely once they have been used.",
        1,
        2,
        0.01,
        2,
        has_slider=True,
    ),
    Choice(
        "longest_answer",
        "Longest answer",
        "Stops after this many tokens. A token is about three quarters of a word.",
        1,
        131_072,
        64,
    ),
)
SEED_HELP = "The same seed, options and device give the same answer."
PROMPT_HELP = "Sent before every turn. Sets the voice and the rules."


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


class OptionsTab(QWidget):
    options_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._options, self._defaults = Options(), Options()
        self.prompt = QPlainTextEdit()
        self.prompt.setObjectName("field")  # the name that the style sheet dresses
        self.prompt.setFont(font(BODY))
        self.prompt.setFixedHeight(theme.u(84))
        self.prompt.setTabChangesFocus(True)
        self.prompt.setAccessibleName("System prompt")
        self.prompt.setPlaceholderText("For example: answer briefly, in plain words.")
        self._prompt_row = OptionRow("System prompt", PROMPT_HELP)
        self.numbers = {choice.name: NumberRow(choice) for choice in CHOICES}
        self.seed = SeedRow()
        self._build()
        self.prompt.textChanged.connect(self._on_prompt)
        self._prompt_row.reset_requested.connect(self.prompt.clear)
        for row in self.numbers.values():
            row.chosen.connect(self._on_number)
        self.seed.chosen.connect(self._on_seed)
        self._show()

    def _build(self) -> None:
        note = Label(
            "For this chat, from the next answer on. While one is written, from its next token.",
            SMALL,
            "muted",
            wrap=True,
        )
        rows = [
            box("v", note, margins=(20, 2, S4, 4)),
            HLine(),
            self._prompt_row,
            box("h", self.prompt, margins=(20, 0, S4, 4)),
            HLine(),
            *[self.numbers[c.name] for c in CHOICES if c.has_slider],
            HLine(),
            *[self.numbers[c.name] for c in CHOICES if not c.has_slider],
            self.seed,
            "stretch",
        ]
        box("v", *rows, margins=(0, S3, 0, S3), spacing=7, into=self)

    def set_options(self, options: Options) -> None:
        self._options = options
        self._show()

    def set_defaults(self, defaults: Options) -> None:
        """Those of the model that is loaded."""
        self._defaults = defaults
        self._show()

    def explain(self, is_explaining: bool) -> None:
        for row in (*self.numbers.values(), self.seed, self._prompt_row):
            row.help.setVisible(is_explaining)

    @property
    def changed_count(self) -> int:
        names = ("temperature", "top_p", "top_k", "repetition_penalty", "seed")
        count = sum(getattr(self._options, name) is not None for name in names)
        count += bool(self._options.system_prompt)
        return count + (self._options.longest_answer != self._defaults.longest_answer)

    @Slot()
    def reset_all(self) -> None:
        self._options = Options(longest_answer=self._defaults.longest_answer)
        self._show()
        self.options_changed.emit(self._options)

    def _show(self) -> None:
        for choice in CHOICES:
            default = getattr(self._defaults, choice.name)
            default = choice.low if default is None else default
            self.numbers[choice.name].set_value(getattr(self._options, choice.name), default)
        self.seed.set_value(self._options.seed)
        if self.prompt.toPlainText() != self._options.system_prompt:
            self.prompt.blockSignals(True)
            self.prompt.setPlainText(self._options.system_prompt)
            self.prompt.blockSignals(False)
        self._prompt_row.set_changed(bool(self._options.system_prompt), "none")

    def _change(self, options: Options) -> None:
        if options != self._options:
            self._options = options
            self.options_changed.emit(options)

    @Slot(str, object)
    def _on_number(self, name: str, value: Value) -> None:
        if name == "longest_answer" and value is None:
            value = self._defaults.longest_answer
        changed: dict[str, Any] = {name: value}
        self._change(replace(self._options, **changed))

    @Slot(object)
    def _on_seed(self, seed: int | None) -> None:
        self._change(replace(self._options, seed=seed))

    @Slot()
    def _on_prompt(self) -> None:
        text = self.prompt.toPlainText()
        self._prompt_row.set_changed(bool(text), "none")
        self._change(replace(self._options, system_prompt=text))


class Inspector(QWidget):
    """Has one tab today; its head becomes a row of tabs when there are more."""

    options_changed = Signal(object)
    hide_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("inspector")
        self.setMinimumWidth(320)
        self.options = OptionsTab()
        self.options.options_changed.connect(self.options_changed)
        self.options.options_changed.connect(self._count)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(self.options)
        self.options.setAutoFillBackground(False)  # setWidget turns it on
        box("v", self._head(), HLine(), (area, 1), HLine(), self._foot(), spacing=0, into=self)
        self._count()

    def _head(self) -> QWidget:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        close = IconButton("close", "Hide options (Ctrl+I)", 30, 17)
        close.clicked.connect(self.hide_requested)
        title = Label("Options", BODY + 1, "text", 600)
        box(
            "h",
            IconLabel("options", "accent", 18),
            title,
            "stretch",
            close,
            margins=(20, 0, S3, 0),
            spacing=8,
            into=head,
        )
        return head

    def _foot(self) -> QWidget:
        foot = QWidget()
        explain = button("Explain", "flat", "help")
        explain.setCheckable(True)
        explain.setToolTip("Show what each option does")
        explain.toggled.connect(self.options.explain)
        self._reset_all = button("Reset all")
        self._reset_all.clicked.connect(self.options.reset_all)
        box("h", explain, "stretch", self._reset_all, margins=(S2, 9, S3, 9), spacing=6, into=foot)
        return foot

    @Slot(object)
    def set_options(self, options: Options) -> None:
        self.options.set_options(options)
        self._count()

    @Slot(object)
    def set_defaults(self, defaults: Options) -> None:
        self.options.set_defaults(defaults)
        self._count()

    @Slot()
    def _count(self) -> None:
        self._reset_all.setEnabled(self.options.changed_count > 0)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("chrome"))
