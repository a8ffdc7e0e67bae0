"""The rows of the library: a model, one on its way in, a folder that cannot be used.

Values in, signals out; each row knows only what it shows.
"""

from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QMenu, QSizePolicy, QWidget

from app.ui import theme
from app.ui.chat_state import ImportState
from app.ui.controls import (
    Badge,
    ElidedLabel,
    IconButton,
    IconLabel,
    Label,
    Meter,
    box,
    button,
    painter,
)
from app.ui.theme import BODY, SMALL, color

COLUMNS = (84, 76, 76, 76)  # family, size, weights, context
MEMORY = 168
LEFT, RIGHT = 16, 12


@dataclass(frozen=True)
class LibraryEntry:
    """A model in words. `share` of the free memory, `fit` says whether it is enough."""

    path: str
    name: str
    source: str
    family: str
    size: str
    weights: str
    context: str
    memory: str
    share: float
    fit: str
    tone: str
    is_current: bool = False
    has_licence: bool = False

    def spoken(self) -> str:
        facts = (self.family, self.size, self.weights, f"context {self.context}", self.fit)
        state = ", in use" if self.is_current else ""
        return f"{self.name}{state}, " + ", ".join(fact for fact in facts if fact)


class ColumnHeads(QWidget):
    def __init__(self) -> None:
        super().__init__()
        names = ("Family", "Size", "Weights", "Context")
        words = [Label(name, SMALL, "muted", 600) for name in names]
        for label, width in zip(words, COLUMNS, strict=True):
            label.setFixedWidth(theme.u(width))
        memory = Label("Memory on this device", SMALL, "muted", 600)
        memory.setFixedWidth(theme.u(MEMORY))
        self.wide = [words[0], words[2], words[3]]
        room = QWidget()
        room.setFixedWidth(theme.u(106))
        box("h", 42, (Label("Model", SMALL, "muted", 600), 1), *words, memory, room,
            margins=(LEFT, 9, RIGHT, 9), into=self)  # fmt: skip


class ModelRow(QWidget):
    used = Signal(str)
    acted = Signal(str, str)  # the path, and what: folder, licence, remove
    renamed = Signal(str, str)

    def __init__(self, entry: LibraryEntry) -> None:
        super().__init__()
        self.entry = entry
        self.setAccessibleName(entry.spoken())
        self.name = ElidedLabel(entry.name, BODY, "text", 600)
        self.second = ElidedLabel("", SMALL, "muted")
        self.field = QLineEdit()
        self.field.setAccessibleName(f"New name of {entry.name}")
        self.field.hide()
        self.field.editingFinished.connect(self._end_rename)
        self.use = button("Use")
        self.use.setAccessibleName(f"Use {entry.name}")
        self.use.clicked.connect(self._use)
        self.more = IconButton("more", f"More for {entry.name}")
        self.more.clicked.connect(self._open_menu)
        self.wide: list[QWidget] = []
        self._build()

    def _build(self) -> None:
        entry = self.entry
        cells = [Label(words, BODY, "text") for words in
                 (entry.family, entry.size, entry.weights, entry.context)]  # fmt: skip
        for label, width in zip(cells, COLUMNS, strict=True):
            label.setFixedWidth(theme.u(width))
        self.wide = [cells[0], cells[2], cells[3]]
        meter = Meter(entry.share, entry.tone, 60)
        figures = box("h", meter, Label(entry.memory, SMALL, "muted"), "stretch", spacing=8)
        words = Label(entry.fit, SMALL, {"accent": "muted"}.get(entry.tone, entry.tone))
        memory = QWidget()
        memory.setFixedWidth(theme.u(MEMORY))
        box("v", figures, words, spacing=3, into=memory)
        names = box("v", self.name, self.field, self.second, spacing=2)
        self.badge = Badge("In use", "success", "check")
        state = box("h", "stretch", self.badge if entry.is_current else self.use, self.more)
        end = QWidget()
        end.setFixedWidth(theme.u(106))
        end.setLayout(state)
        self.use.setVisible(not entry.is_current)
        self.badge.setVisible(entry.is_current)
        icon = IconLabel("model", "accent" if entry.is_current else "muted", 20)
        box("h", icon, 14, (names, 1), *cells, memory, end,
            margins=(LEFT, 9, RIGHT, 9), into=self)  # fmt: skip
        self.set_narrow(is_narrow=False)

    def set_narrow(self, *, is_narrow: bool) -> None:
        """Where there is no room for all columns, two of them stand below the name."""
        for cell in self.wide:
            cell.setVisible(not is_narrow)
        entry = self.entry
        facts = [entry.weights, f"{entry.context} context"] if is_narrow else [entry.source]
        self.second.setText(", ".join(fact for fact in facts if fact))

    # ---- what can be done
    @Slot()
    def _use(self) -> None:
        self.used.emit(self.entry.path)

    @Slot()
    def _open_menu(self) -> None:
        self.menu().exec(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        entry = self.entry
        rename = menu.addAction("Rename…")
        rename.triggered.connect(self.begin_rename)
        menu.addAction("Show its folder").triggered.connect(lambda: self._act("folder"))
        if entry.has_licence:
            menu.addAction("Show its licence").triggered.connect(lambda: self._act("licence"))
        menu.addSeparator()
        remove = menu.addAction("Move to the wastebasket")
        remove.triggered.connect(lambda: self._act("remove"))
        for action in (rename, remove):
            action.setEnabled(not entry.is_current)
            if entry.is_current:
                action.setText(f"{action.text().rstrip('…')} (not while it is in use)")
        return menu

    def _act(self, what: str) -> None:
        self.acted.emit(self.entry.path, what)

    @Slot()
    def begin_rename(self) -> None:
        self.field.setText(self.entry.name)
        self.name.hide()
        self.field.show()
        self.field.selectAll()
        self.field.setFocus()

    @Slot()
    def _end_rename(self) -> None:
        if self.field.isHidden():
            return
        text = self.field.text().strip()
        self.field.hide()
        self.name.show()
        if text and text != self.entry.name:
            self.renamed.emit(self.entry.path, text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not self.field.isHidden():
            self.field.setText(self.entry.name)
            self._end_rename()
            self.more.setFocus()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        if self.entry.is_current:
            draw.fillRect(self.rect(), color("selected"))
        draw.fillRect(0, self.height() - 1, self.width(), 1, color("line"))


class ImportRow(QWidget):
    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedLabel("", BODY, "text", 600)
        self.words = ElidedLabel("", SMALL, "muted")
        self.meter = Meter(0.0, "accent", None, 6)
        self.cancel = button("Cancel")
        self.cancel.clicked.connect(self.cancelled)
        self.setAccessibleName("A model on its way in")
        names = box("v", self.name, self.words, self.meter, spacing=3)
        box("h", IconLabel("import", "accent", 20), 14, (names, 1), 12, self.cancel,
            margins=(LEFT, 9, RIGHT, 9), into=self)  # fmt: skip

    def set_state(self, state: ImportState) -> None:
        self.name.setText(state.name)
        words = "Cancelling" if state.is_cancelling else state.text or "Reading the file"
        self.words.setText(f"{words}, {state.share:.0%}" if state.share else words)
        self.meter.set_share(state.share)
        self.cancel.setEnabled(not state.is_cancelling)


class BrokenRow(QWidget):
    checked = Signal()
    removed = Signal(str)

    def __init__(self, path: str, name: str, reason: str) -> None:
        super().__init__()
        self._path = path
        self.setAccessibleName(f"{name} can't be used: {reason}")
        title = ElidedLabel(name, BODY, "text", 600)
        why = Label(reason, BODY, "text", wrap=True)
        self.check, self.remove = button("Check again"), button("Remove", "danger")
        self.check.clicked.connect(self.checked)
        self.remove.clicked.connect(self._remove)
        for each, what in ((self.check, "Check"), (self.remove, "Remove")):
            each.setAccessibleName(f"{what} {name}")
        first = box("h", (title, 1), Label("Can't be used", BODY, "danger"))
        words = box("v", first, why, spacing=4)
        buttons = box("h", self.check, self.remove, "stretch")
        box("h", IconLabel("error", "danger", 20), 14, (box("v", words, buttons), 1),
            margins=(LEFT, 10, RIGHT, 10), into=self)  # fmt: skip
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)

    @Slot()
    def _remove(self) -> None:
        self.removed.emit(self._path)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("danger", 0.10))
        draw.fillRect(0, 0, 3, self.height(), color("danger"))
