"""Small parts of a message: the fold of its thoughts, versions, figures, state, edit field."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QWidget,
)

from app.ui import icons, theme
from app.ui.controls import (
    IconButton,
    Label,
    Panel,
    box,
    button,
    fill_round,
    focus_ring,
    painter,
    text_width,
)
from app.ui.items import STATS_SEPARATOR, Item
from app.ui.theme import BODY, R_PANEL, SMALL, color, font, reading_font

VCENTER = Qt.AlignmentFlag.AlignVCenter


class Disclosure(QAbstractButton):
    """Opens and closes something: the thoughts of an answer, further options."""

    def __init__(self, icon: str = "thinking") -> None:
        super().__init__()
        self._icon = icon
        self.setCheckable(True)
        self.setFixedHeight(28)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_words(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.updateGeometry()
        self.setAccessibleName(f"{text}, {'shown' if self.isChecked() else 'hidden'}")

    def sizeHint(self) -> QSize:
        return QSize(18 + 6 + 18 + text_width(self.text(), font(BODY, 500)) + 18, 28)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        if self.underMouse():
            fill_round(draw, area, theme.R_CONTROL, color("hover"))
        middle = area.center().y()
        icons.paint(draw, self._icon, QRectF(4, middle - 8, 16, 16), "muted")
        draw.setFont(font(BODY, 500))
        draw.setPen(color("muted"))
        draw.drawText(area.adjusted(26, 0, 0, 0), VCENTER, self.text())
        x = 26 + text_width(self.text(), draw.font()) + 4
        chevron = "chevron-down" if self.isChecked() else "chevron-right"
        icons.paint(draw, chevron, QRectF(x, middle - 7, 14, 14))
        focus_ring(draw, self, area, theme.R_CONTROL)


def header_words(item: Item) -> str:
    """Who wrote the answer, and what else is to be known of it before it is read."""
    parts = (
        item.model,
        item.adapter,
        "Edited" if item.is_edited else "",
        "Pinned" if item.is_pinned else "",
    )
    return STATS_SEPARATOR.join(part for part in parts if part)


class MemoryLine(QWidget):
    """Above the first message that the model still reads."""

    WORDS = "Memory begins here: what is above is no longer read, unless it is pinned"
    HEIGHT = 30

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(self.HEIGHT)
        self.setAccessibleName(self.WORDS)
        self.setToolTip(self.WORDS)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.setFont(font(SMALL, 500))
        words = "Memory begins here"
        width = text_width(words, draw.font())
        middle, left = self.height() / 2, (self.width() - width) / 2
        draw.fillRect(QRectF(0, middle, left - 12, 1), color("control"))
        draw.fillRect(QRectF(left + width + 12, middle, left - 12, 1), color("control"))
        draw.setPen(color("muted"))
        draw.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, words)


def thinking_words(item: Item) -> str:
    if item.is_thinking:
        seconds = int(item.thought_seconds)
        return f"Thinking, {seconds} s" if seconds else "Thinking"
    if item.thought_seconds:
        return f"Thought for {item.thought_seconds:.1f} s"
    return "Thought"


class BranchSwitch(QWidget):
    """The versions of a message at this point, as < 2/3 >. Announced as "Version 2 of 3"."""

    action = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.previous = IconButton("chevron-left", "Previous version (Alt+Left)", 24, 15)
        self.next = IconButton("chevron-right", "Next version (Alt+Right)", 24, 15)
        self._label = Label("", SMALL, "muted", 500)
        self.previous.clicked.connect(self._go_back)
        self.next.clicked.connect(self._go_on)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.previous, self._label, self.next):
            row.addWidget(widget)

    def set_branch(self, branch: tuple[int, int], *, is_busy: bool) -> None:
        at, count = branch
        self._label.setText(f"{at}/{count}")
        self.setAccessibleName(f"Version {at} of {count}")
        self.previous.setEnabled(not is_busy and at > 1)
        self.next.setEnabled(not is_busy and at < count)

    def _go_back(self) -> None:
        self.action.emit("previous")

    def _go_on(self) -> None:
        self.action.emit("next")


class Stats(QWidget):
    """Figures at the right; in a narrow column the last ones drop out first."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(20)

    def set_text(self, text: str, kept: str = "") -> None:
        """`kept` is for whoever asks: in the hint, and read out."""
        self._parts = text.split(STATS_SEPARATOR) if text else []
        words = ", ".join([*self._parts, *([kept] if kept else [])])
        self.setAccessibleName(words)
        self.setToolTip(words)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.setFont(font(SMALL))
        draw.setPen(color("muted"))
        for count in range(len(self._parts), 0, -1):
            text = STATS_SEPARATOR.join(self._parts[:count])
            if text_width(text, draw.font()) <= self.width():
                draw.drawText(self.rect(), VCENTER | Qt.AlignmentFlag.AlignRight, text)
                return


class ActionRow(QWidget):
    """What can be done with an answer. `action` carries the name of what was asked for."""

    action = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.copy = self._button("copy", "Copy answer", "copy")
        self.edit = self._button("edit", "Edit answer", "edit")
        self.regenerate = self._button("regenerate", "Write again (Ctrl+R)", "regenerate")
        self.tokens = self._button("tokens", "Look at it token by token (Ctrl+3)", "tokens")
        self.statistics = self._button("gauge", "What made this answer", "statistics")
        self.more = self._button("more", "More", "more")
        self.go_on = button("Continue", "flat", "pen")
        self.go_on.setToolTip("Let the model write on from here")
        self.go_on.setProperty("action", "continue")
        self.go_on.clicked.connect(self._clicked)
        self.branch, self.stats = BranchSwitch(), Stats()
        self.branch.action.connect(self.action)
        box(
            "h",
            self.copy,
            self.edit,
            self.regenerate,
            self.tokens,
            self.statistics,
            self.more,
            6,
            self.branch,
            self.go_on,
            12,
            (self.stats, 1),
            spacing=2,
            into=self,
        )
        self.setFixedHeight(28)

    def _button(self, icon: str, tip: str, name: str) -> IconButton:
        made = IconButton(icon, tip)
        made.setProperty("action", name)
        made.clicked.connect(self._clicked)
        return made

    def _clicked(self) -> None:
        self.action.emit(self.sender().property("action"))

    def fill(self, item: Item, *, is_busy: bool) -> None:
        self.branch.setVisible(item.branch is not None)
        if item.branch:
            self.branch.set_branch(item.branch, is_busy=is_busy)
        self.stats.set_text(item.stats, item.kept)
        self.statistics.setEnabled(bool(item.stats))
        self.edit.setEnabled(not is_busy)
        self.regenerate.setEnabled(not is_busy)
        self.go_on.setVisible(item.can_continue)
        self.go_on.setEnabled(not is_busy)
        self.copy.setEnabled(bool(item.text))


STATE_WORDS = {
    "stopped": ("Stopped", "stop", "muted"),
    "interrupted": ("Interrupted", "warning", "warning"),
    "length": ("Reached the longest answer", "flag", "warning"),
    "failed": ("Failed", "error", "danger"),
}


class StateLine(QWidget):
    """How an answer stands, in words: what goes on before its first one, or how it ended."""

    def __init__(self) -> None:
        super().__init__()
        self._text, self._icon, self._role = "", "", "muted"
        self.setFixedHeight(24)

    def set_item(self, item: Item) -> None:
        words, self._icon, self._role = STATE_WORDS.get(item.state, ("", "clock", "muted"))
        self._text = item.status or words
        self.setAccessibleName(self._text)
        self.setToolTip(self._text)
        self.update()

    @property
    def text(self) -> str:
        return self._text

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        icons.paint(draw, self._icon, QRectF(0, 4, 16, 16), self._role)
        draw.setFont(font(SMALL, 500))
        draw.setPen(color(self._role))
        shown = QFontMetrics(draw.font()).elidedText(
            self._text, Qt.TextElideMode.ElideRight, self.width() - 22
        )
        draw.drawText(QRectF(22, 0, self.width() - 22, 24), VCENTER, shown)


class _EditText(QPlainTextEdit):
    saved = Signal()
    cancelled = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        elif (
            event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        ):
            self.saved.emit()
        else:
            super().keyPressEvent(event)


class EditField(Panel):
    """A message being changed in its place. Ctrl+Enter saves, Esc gives it back as it was."""

    saved = Signal(str)
    cancelled = Signal()
    resized = Signal()

    LEAST_LINES, MOST_LINES = 2, 12

    def __init__(self, text: str, save: str = "Save and send") -> None:
        super().__init__("raised", "accent", R_PANEL, 1.5)
        self._height = 0
        self.field = _EditText()
        self.field.setFrameShape(QFrame.Shape.NoFrame)
        self.field.setFont(reading_font())
        self.field.setPlainText(text)
        self.field.setTabChangesFocus(True)
        self.field.viewport().setAutoFillBackground(False)
        self.field.setAccessibleName("Edit message")
        self.field.setObjectName("edit message")
        self._save = button(save, "primary")
        self._save.setToolTip(f"{save} (Ctrl+Enter)")
        cancel = button("Cancel", "flat")
        cancel.setToolTip("Cancel (Esc)")
        buttons = box("h", "stretch", cancel, self._save, spacing=6)
        self._column = box("v", self.field, buttons, margins=(12, 8, 8, 8), spacing=6, into=self)
        self._save.clicked.connect(self._send)
        cancel.clicked.connect(self.cancelled)
        self.field.saved.connect(self._send)
        self.field.cancelled.connect(self.cancelled)
        self.field.textChanged.connect(self._changed)
        self._changed()

    def _send(self) -> None:
        if self.field.toPlainText().strip():
            self.saved.emit(self.field.toPlainText())

    def _changed(self) -> None:
        self._save.setEnabled(bool(self.field.toPlainText().strip()))
        if self._wanted_height() != self._height:
            self.resized.emit()

    def _wanted_height(self) -> int:
        # The size of a plain text document counts lines, not pixels.
        lines = int(self.field.document().size().height())
        shown = min(max(lines, self.LEAST_LINES), self.MOST_LINES)
        return QFontMetrics(self.field.font()).lineSpacing() * shown + 10

    def place(self, width: int) -> int:
        """Takes the height that the text needs at this width; gives it."""
        self.setFixedWidth(width)
        self._column.activate()
        self._height = self._wanted_height()
        self.field.setFixedHeight(self._height)
        self._column.activate()
        height = self._column.sizeHint().height()
        self.setFixedHeight(height)
        return height
