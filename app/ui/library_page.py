"""The page of all models: what they are, whether they fit, and what can be done with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.ui import icons, theme
from app.ui.chat_state import ImportState
from app.ui.controls import (
    Badge,
    ElidedLabel,
    HLine,
    IconButton,
    IconLabel,
    Label,
    Meter,
    Panel,
    box,
    button,
    painter,
)
from app.ui.library_rows import BrokenRow, ColumnHeads, ImportRow, LibraryEntry, ModelRow
from app.ui.theme import BODY, H_BAR, R_CARD, SMALL, color

NARROW = 860


@dataclass(frozen=True)
class Device:
    """In words; `own` and `others` are shares of its memory."""

    name: str
    kind: str
    words: str
    own: float
    others: float


class LibraryPage(QWidget):
    closed = Signal()
    import_requested = Signal()
    import_cancelled = Signal()
    folder_requested = Signal()
    checked = Signal()
    used = Signal(str)
    acted = Signal(str, str)
    renamed = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("library")
        self.setAccessibleName("Models")
        self.rows: list[ModelRow] = []
        self.broken: list[BrokenRow] = []
        self.open_folder = button("Open folder", "", "folder-open")
        self.import_button = button("Import model…", "primary", "import")
        self.close_button = IconButton("close", "Back to the chat (Esc)", 30, 17)
        self.finder = QLineEdit()
        self.finder.setPlaceholderText("Find a model")
        self.finder.setAccessibleName("Find a model")
        self.finder.addAction(icons.icon("search"), QLineEdit.ActionPosition.LeadingPosition)
        self.finder.setClearButtonEnabled(True)
        self.device_name = Label("", BODY, "text", 600)
        self.device_kind = Badge("CPU")
        self.device_meter = Meter(0.0, "accent", None, 6)
        self.device_words = Label("", SMALL, "muted", wrap=True)
        self.importing = ImportRow()
        self.importing.hide()
        self.heads = ColumnHeads()
        self.total = Label("", SMALL, "muted", wrap=True)
        self.problem = Label("", BODY, "danger", wrap=True)
        self.problem.hide()
        self.nothing = Label("", BODY, "muted", wrap=True)
        self._list = QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self._build()
        self.open_folder.clicked.connect(self.folder_requested)
        self.import_button.clicked.connect(self.import_requested)
        self.importing.cancelled.connect(self.import_cancelled)
        self.close_button.clicked.connect(self.closed)
        self.finder.textChanged.connect(self._filter)

    def _build(self) -> None:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        title = ElidedLabel("Models", BODY + 1, "text", 600)
        title.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        box("h", title, self.open_folder, self.import_button, self.close_button,
            margins=(14, 0, 10, 0), into=head)  # fmt: skip
        card = Panel("raised", "line", R_CARD)
        icon = IconLabel("cpu", "accent", 18)
        name = box("h", icon, self.device_name, self.device_kind, "stretch")
        box("v", name, self.device_meter, self.device_words,
            margins=(14, 12, 14, 12), spacing=8, into=card)  # fmt: skip
        table = Panel("raised", "line", R_CARD)
        box("v", self.heads, HLine(), self.nothing, self._list, self.importing,
            margins=(1, 1, 1, 1), spacing=0, into=table)  # fmt: skip
        self.nothing.setContentsMargins(16, 14, 16, 14)
        drop = Panel(None, "control", R_CARD, dash=True)
        words = Label("Drop a model anywhere in this window to import it", BODY, "muted")
        box("h", "stretch", IconLabel("import", "muted", 18), words, "stretch",
            margins=(14, 12, 14, 12), into=drop)  # fmt: skip
        self.finder.setMaximumWidth(theme.u(320))
        inside = QWidget()
        box("v", card, self.problem, self.finder, table, drop, self.total, "stretch",
            margins=(18, 16, 18, 16), spacing=14, into=inside)  # fmt: skip
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(inside)
        inside.setAutoFillBackground(False)
        self.area = area
        box("v", head, (area, 1), spacing=0, into=self)

    # ---- values in
    def set_device(self, device: Device) -> None:
        self.device_name.setText(device.name)
        self.device_kind.set_badge(device.kind)
        self.device_meter.set_share(device.own, "accent", device.others)
        self.device_words.setText(device.words)

    def set_models(
        self,
        entries: Sequence[LibraryEntry],
        broken: Sequence[tuple[str, str, str]],
        total: str,
    ) -> None:
        """`broken` are (path, name, reason). Rows that are as they were stay, with their focus."""
        if [row.entry for row in self.rows] != list(entries):
            self._take_out(self.rows)
            self.rows = [self._row(entry) for entry in entries]
        self._take_out(self.broken)
        self.broken = [self._broken_row(*folder) for folder in broken]
        self.total.setText(total)
        self._filter(self.finder.text())
        self._fit()

    def set_importing(self, state: ImportState | None) -> None:
        self.importing.setVisible(state is not None)
        if state is not None:
            self.importing.set_state(state)
        self.import_button.setEnabled(state is None)

    def set_problem(self, sentence: str) -> None:
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))

    def _take_out(self, rows: Sequence[QWidget]) -> None:
        for row in rows:
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()

    def _row(self, entry: LibraryEntry) -> ModelRow:
        row = ModelRow(entry)
        row.used.connect(self.used)
        row.acted.connect(self.acted)
        row.renamed.connect(self.renamed)
        self._list.addWidget(row)
        return row

    def _broken_row(self, path: str, name: str, reason: str) -> BrokenRow:
        row = BrokenRow(path, name, reason)
        row.checked.connect(self.checked)
        row.removed.connect(self._remove)
        self._list.addWidget(row)
        return row

    @Slot(str)
    def _remove(self, path: str) -> None:
        self.acted.emit(path, "remove")

    @Slot(str)
    def _filter(self, text: str) -> None:
        wanted = text.casefold().split()
        shown = 0
        for row in self.rows:
            words = row.entry.spoken().casefold()
            is_found = all(word in words for word in wanted)
            row.setVisible(is_found)
            shown += is_found
        for folder in self.broken:
            folder.setVisible(not wanted)
        is_empty = not shown and not (self.broken and not wanted)
        self.nothing.setText(
            f"No model matches “{text.strip()}”." if wanted else
            "No models yet. Take a GGUF file, or a folder with a genai_config.json."
        )  # fmt: skip
        self.nothing.setVisible(is_empty)

    # ---- looks
    def _fit(self) -> None:
        is_narrow = self.width() < theme.u(NARROW)
        for row in self.rows:
            row.set_narrow(is_narrow=is_narrow)
        for cell in self.heads.wide:
            cell.setVisible(not is_narrow)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if self.finder.text():
                self.finder.clear()
            else:
                self.closed.emit()
        elif not event.text().isprintable() or not event.text():
            super().keyPressEvent(event)  # letters end here: no message is written on this page

    def restyle(self) -> None:
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("canvas"))
        draw.fillRect(0, H_BAR - 1, self.width(), 1, color("line"))
