"""Two answers to one question, side by side, and what differs. Stacked where it is narrow."""

from dataclasses import replace

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent, QResizeEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QBoxLayout,
    QDoubleSpinBox,
    QFrame,
    QPlainTextEdit,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QTextEdit,
    QWidget,
)

from app.chat.messages import Options
from app.ui import theme
from app.ui.compare_controller import CompareController, Side
from app.ui.controls import (
    ElidedLabel,
    IconButton,
    Label,
    Panel,
    Segmented,
    box,
    button,
    painter,
)
from app.ui.differences import Differences, differences, in_words
from app.ui.presets import CUSTOM, PRESETS, preset_of
from app.ui.theme import BODY, H_BAR, R_CARD, S3, SMALL, color, reading_font

NARROW = 720
NAMES = ("Left", "Right")
LARGEST_SEED = 2**31 - 1


class SideOptions(QWidget):
    """A preset, or three numbers of one's own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        words = [*(preset.name for preset in PRESETS), "Custom"]
        called = f"Preset of the {name.lower()} answer"
        self.preset = Segmented([(word, None) for word in words], CUSTOM, called)
        self.temperature, self.top_p = QDoubleSpinBox(), QDoubleSpinBox()
        self.top_k = QSpinBox()
        self.temperature.setRange(0, 2)
        self.top_p.setRange(0.01, 1)
        self.top_k.setRange(0, 1000)
        self.temperature.setSingleStep(0.05)
        self.top_p.setSingleStep(0.01)
        rows = []
        for label, spin in (
            ("Temperature", self.temperature),
            ("Top-p", self.top_p),
            ("Top-k", self.top_k),
        ):
            spin.setAccessibleName(f"{label} of the {name.lower()} answer")
            spin.setFixedSize(theme.u(70), theme.H_CONTROL)
            spin.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            spin.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            spin.setKeyboardTracking(False)
            spin.valueChanged.connect(self._on_number)
            rows.append(box("v", Label(label, SMALL, "muted"), spin, spacing=2))
        numbers = box("h", *rows, "stretch", spacing=10)
        box("v", self.preset, numbers, spacing=8, into=self)
        self.preset.changed.connect(self._on_preset)

    def set_options(self, options: Options, defaults: Options) -> None:
        for spin, name in (
            (self.temperature, "temperature"),
            (self.top_p, "top_p"),
            (self.top_k, "top_k"),
        ):
            value = getattr(options, name)
            value = getattr(defaults, name) if value is None else value
            spin.blockSignals(True)
            spin.setValue(value or 0)
            spin.blockSignals(False)
        self._on_number()

    def choose(self, preset: int) -> None:
        self.preset.set_current(preset)
        self._on_preset(preset)

    def options(self, base: Options) -> Options:
        return replace(
            base,
            temperature=round(self.temperature.value(), 2),
            top_p=round(self.top_p.value(), 2),
            top_k=self.top_k.value(),
        )

    @Slot(int)
    def _on_preset(self, index: int) -> None:
        if index < CUSTOM:
            preset = PRESETS[index]
            self.set_options(
                Options(temperature=preset.temperature, top_p=preset.top_p, top_k=preset.top_k),
                Options(),
            )

    @Slot()
    def _on_number(self) -> None:
        """Any number of one's own is Custom."""
        chosen = self.options(Options())
        self.preset.set_current(preset_of(chosen))


class SideView(Panel):
    keep_requested = Signal()

    def __init__(self, name: str) -> None:
        super().__init__("raised", "line", R_CARD)
        self._name = name
        self.chosen = SideOptions(name)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setAccessibleName(f"{name} answer")
        self.text.setObjectName(f"{name} answer")
        self.text.setTabChangesFocus(True)
        self.text.viewport().setAutoFillBackground(False)
        self.text.setMinimumHeight(theme.u(120))
        self.status = Label("", SMALL, "muted", wrap=True)
        self.only_here = Label("", SMALL, "muted", wrap=True)
        self.keep = button("Keep this", "", "check")
        self.keep.setAccessibleName(f"Keep the {name.lower()} answer")
        self.keep.setToolTip("Make this answer a version in the chat, and go on from it")
        self.keep.clicked.connect(self.keep_requested)
        foot = box("h", (self.status, 1), self.keep, spacing=8)
        box(
            "v",
            Label(name, BODY, "text", 600),
            self.chosen,
            (self.text, 1),
            self.only_here,
            foot,
            margins=(S3, S3, S3, S3),
            spacing=8,
            into=self,
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.restyle()
        self.set_side(Side(), is_running=False)

    def restyle(self) -> None:
        self.text.setFont(reading_font())

    def set_side(self, side: Side, *, is_running: bool) -> None:
        shown = self.text.toPlainText()
        if side.text != shown:
            if side.text.startswith(shown) and shown:
                cursor = QTextCursor(self.text.document())
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(side.text[len(shown) :], QTextCharFormat())
            else:
                self.text.setPlainText(side.text)
        self.status.setText(side.status or side.figures)
        self.keep.setEnabled(side.can_be_kept and not is_running)
        self.chosen.setEnabled(not is_running)
        if is_running:
            self.only_here.setText("")
            self.text.setExtraSelections([])

    def mark(self, spans: tuple[tuple[int, int], ...]) -> None:
        """Words that the other answer lacks: tinted and underlined, and told below."""
        found = []
        for start, length in spans:
            mark = _mark_of(self.text)
            mark.cursor.setPosition(start)
            mark.cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            found.append(mark)
        self.text.setExtraSelections(found)
        words = list(dict.fromkeys(f"\u201c{mark.cursor.selectedText()}\u201d" for mark in found))
        more = f" and {len(words) - 6} more" if len(words) > 6 else ""
        self.only_here.setText(f"Only here: {', '.join(words[:6])}{more}" if words else "")


def _mark_of(text: QPlainTextEdit) -> QTextEdit.ExtraSelection:
    mark = QTextEdit.ExtraSelection()
    mark.cursor = QTextCursor(text.document())
    mark.format.setBackground(color("warning_soft"))
    mark.format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
    mark.format.setUnderlineColor(color("warning"))
    return mark


class ComparePage(QWidget):
    run_requested = Signal()
    stop_requested = Signal()
    closed = Signal()
    keep_requested = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("compare")
        self.setAccessibleName("Compare two answers")
        self._base = Options()
        self.sides = [SideView(name) for name in NAMES]
        self.question = Label("", BODY, "text", wrap=True)
        self.question.setMaximumHeight(theme.u(60))
        self.seed = QSpinBox()
        self.seed.setRange(0, LARGEST_SEED)
        self.seed.setAccessibleName("Seed of both answers")
        self.seed.setFixedSize(theme.u(110), theme.H_CONTROL)
        self.run = button("Answer both", "primary", "compare")
        self.stop = button("Stop", "", "stop")
        self.summary = Label("", BODY, "text", 500, wrap=True)
        self.close_button = IconButton("close", "Close (Esc)", 30, 17)
        inside = QWidget()
        inside.setAutoFillBackground(False)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight, inside)
        self._columns.setContentsMargins(0, 0, 0, 0)
        self._columns.setSpacing(12)
        for view in self.sides:
            self._columns.addWidget(view, 1)
        self._area = QScrollArea()
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.viewport().setAutoFillBackground(False)
        self._area.setWidget(inside)
        inside.setAutoFillBackground(False)  # setWidget turns it on
        self._build()
        self.run.clicked.connect(self.run_requested)
        self.stop.clicked.connect(self.stop_requested)
        self.close_button.clicked.connect(self.closed)
        self.sides[0].keep_requested.connect(self._keep_first)
        self.sides[1].keep_requested.connect(self._keep_second)

    def _build(self) -> None:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        title = ElidedLabel("Compare", BODY + 1, "text", 600)
        title.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        box("h", title, self.close_button, margins=(14, 0, 10, 0), into=head)
        bar = box(
            "h",
            Label("Seed", SMALL, "muted"),
            self.seed,
            self.run,
            self.stop,
            6,
            (self.summary, 1),
            spacing=8,
        )
        body = box("v", self.question, bar, (self._area, 1), margins=(14, 10, 14, 12), spacing=10)
        box("v", head, (body, 1), spacing=0, into=self)

    # ---- values in
    def begin(self, compare: CompareController, base: Options, defaults: Options) -> None:
        """A question is taken: the chat's own options against a preset that differs."""
        self._base = base
        self.question.setText(" ".join(compare.question().split()))
        self.seed.setValue(compare.seed)
        self.sides[0].chosen.set_options(base, defaults)
        self.sides[1].chosen.set_options(base, defaults)
        taken = self.sides[0].chosen.preset.current()
        self.sides[1].chosen.choose(0 if taken == 2 else 2)
        self.show_all(compare)

    def options(self) -> tuple[Options, Options]:
        first, second = (view.chosen.options(self._base) for view in self.sides)
        return first, second

    def show_side(self, compare: CompareController, side: int) -> None:
        self.sides[side].set_side(compare.sides[side], is_running=compare.is_running)

    def show_all(self, compare: CompareController) -> None:
        is_running = compare.is_running
        for side in (0, 1):
            self.show_side(compare, side)
        self.run.setEnabled(not is_running)
        self.stop.setEnabled(is_running)
        self.seed.setEnabled(not is_running)
        self.summary.setText("")
        first, second = (side.text for side in compare.sides)
        if not is_running and first and second:
            self._mark(differences(first, second))

    def _mark(self, found: Differences) -> None:
        self.summary.setText(in_words(found))
        self.sides[0].mark(found.first)
        self.sides[1].mark(found.second)

    @Slot()
    def _keep_first(self) -> None:
        self.keep_requested.emit(0)

    @Slot()
    def _keep_second(self) -> None:
        self.keep_requested.emit(1)

    # ---- looks
    @property
    def is_stacked(self) -> bool:
        return self._columns.direction() == QBoxLayout.Direction.TopToBottom

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        directions = QBoxLayout.Direction
        narrow = self.width() < NARROW
        self._columns.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if self.stop.isEnabled():
                self.stop_requested.emit()
            else:
                self.closed.emit()
        elif not event.text().isprintable() or not event.text():
            super().keyPressEvent(event)  # letters end here: no message is written on this page

    def restyle(self) -> None:
        for view in self.sides:
            view.restyle()
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("canvas"))
        draw.fillRect(0, H_BAR - 1, self.width(), 1, color("line"))
