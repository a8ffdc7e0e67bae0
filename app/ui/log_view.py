"""The end of the log, as it grows; and a report of it to be pasted."""

from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase, QHideEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QWidget

from app.report import tail
from app.ui import theme
from app.ui.controls import Label, Segmented, box, button
from app.ui.theme import S2, S4, S5, SMALL, TITLE

LINES = 2000
LOOK_AGAIN_MS = 1000  # only while it is seen
ALL, WARNINGS = 0, 1


class LogView(QDialog):
    copy_requested = Signal(list)  # the lines that are shown
    folder_requested = Signal()

    def __init__(self, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("log")
        self.setWindowTitle("Log")
        self.resize(theme.u(760), theme.u(520))
        self._path = path
        self._lines = tail(path, LINES)
        self.levels = Segmented([("All", None), ("Warnings and errors", None)], ALL, "Lines shown")
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Log")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setMaximumBlockCount(LINES)
        self.copy = button("Copy report", "primary", "copy")
        self.folder = button("Open its folder", "", "folder-open")
        self.close_button = button("Close")
        words = "The log holds no text of your chats. The report has versions and settings too."
        top = box("h", Label("Log", TITLE, "text", 600), "stretch", self.levels)
        bottom = box("h", self.copy, self.folder, "stretch", self.close_button)
        box("v", top, Label(words, SMALL, "muted", wrap=True), (self.text, 1), bottom,
            margins=(S5, S5, S5, S4), spacing=S2 + 2, into=self)  # fmt: skip
        self._timer = QTimer(self, interval=LOOK_AGAIN_MS)
        self._timer.timeout.connect(self.look)
        self.levels.changed.connect(self._show)
        self.copy.clicked.connect(self._copy)
        self.folder.clicked.connect(self.folder_requested)
        self.close_button.clicked.connect(self.accept)
        self._show()

    @Slot()
    def look(self) -> None:
        lines = tail(self._path, LINES)
        if lines != self._lines:
            self._lines = lines
            self._show()

    @Slot()
    def _show(self) -> None:
        bar = self.text.verticalScrollBar()
        follows = bar.value() >= bar.maximum()
        before = bar.value()
        self.text.setPlainText("\n".join(self.shown()) or "Nothing was logged yet.")
        bar.setValue(bar.maximum() if follows else before)

    def shown(self) -> list[str]:
        """A traceback belongs to the line above it."""
        if self.levels.current() == ALL:
            return self._lines
        found, is_wanted = [], False
        for line in self._lines:
            if line[:4].isdigit():
                is_wanted = any(f" {level} " in line for level in ("WARNING", "ERROR", "CRITICAL"))
            if is_wanted:
                found.append(line)
        return found

    @Slot()
    def _copy(self) -> None:
        self.copy_requested.emit(self._lines)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()
        super().hideEvent(event)
