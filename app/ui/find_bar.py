"""The bar that finds words in the chat on the page."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QTextEdit, QWidget

from app.ui.controls import IconButton, Label, box, painter
from app.ui.finding import Match, find_all
from app.ui.message import AssistantMessage
from app.ui.richtext import RichText
from app.ui.theme import SMALL, color
from app.ui.transcript import TranscriptView


class FindBar(QWidget):
    """Searches what is stored, goes to a match wherever it is, marks those that are in sight."""

    closed = Signal()

    def __init__(self, transcript: TranscriptView) -> None:
        super().__init__()
        self.setObjectName("find-bar")
        self._transcript = transcript
        self._matches: list[Match] = []
        self._at = 0
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find in this chat")
        self.field.setAccessibleName("Find in this chat")
        self.field.setMaxLength(1_000)
        self.count = Label("", SMALL, "muted")
        before = IconButton("chevron-up", "Previous (Shift+F3)")
        behind = IconButton("chevron-down", "Next (F3)")
        close = IconButton("close", "Close (Esc)")
        row = (self.field, 1), self.count, before, behind, close
        box("h", *row, margins=(16, 6, 10, 6), spacing=6, into=self)
        self.field.textChanged.connect(self._search)
        before.clicked.connect(self.go_back)
        behind.clicked.connect(self.go_on)
        close.clicked.connect(self.close_bar)
        transcript.verticalScrollBar().valueChanged.connect(self._mark)
        self.hide()

    @Slot()
    def open_bar(self) -> None:
        self.show()
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search()

    def show_at(self, words: str, key: int) -> None:
        """Words that a search found in this message; the focus stays where it is."""
        self.show()
        self.field.setText(words)
        self._matches = find_all(self._transcript.items(), words)
        places = (at for at, match in enumerate(self._matches) if match.key == key)
        self._at = next(places, 0)
        self._show()

    @Slot()
    def close_bar(self) -> None:
        if not self.isHidden():
            self.hide()
            self._mark()
            self.closed.emit()

    @Slot()
    def go_on(self) -> None:
        self._step(1)

    @Slot()
    def go_back(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        if self.isHidden():
            self.open_bar()
            return
        self._matches = find_all(self._transcript.items(), self.field.text())
        if self._matches:
            self._at = (self._at + step) % len(self._matches)
        self._show()

    @Slot()
    def _search(self) -> None:
        """The first match from what is in sight on, so that typing does not throw one far off."""
        self._matches = find_all(self._transcript.items(), self.field.text())
        rows = {item.key: row for row, item in enumerate(self._transcript.items())}
        seen = [rows[key] for key in self._transcript.live_widgets() if key in rows]
        first = min(seen, default=0)
        near = (n for n, match in enumerate(self._matches) if rows[match.key] >= first)
        self._at = next(near, 0)
        self._show()

    def _show(self) -> None:
        count = f"{self._at + 1:,} of {len(self._matches):,}" if self._matches else "Not found"
        self.count.setText(count if self.field.text() else "")
        self.count.setAccessibleName(self.count.text())
        if self._matches:
            self._go_to(self._matches[self._at])
        self._mark()

    def _go_to(self, match: Match) -> None:
        view = self._transcript
        view.scroll_to(match.key)
        widget = view.live_widgets().get(match.key)
        if widget is None:
            return
        if match.is_thought and isinstance(widget, AssistantMessage):
            widget.unfold()
        while widget.has_more:
            widget.advance()
        body = self._body_of(match)
        cursor = self._cursor_of(body, match) if body is not None else None
        if body is not None and cursor is not None:
            y = body.mapTo(view.viewport(), body.cursorRect(cursor).center()).y()
            bar = view.verticalScrollBar()
            bar.setValue(bar.value() + y - view.viewport().height() // 3)

    def _body_of(self, match: Match) -> RichText | None:
        widget = self._transcript.live_widgets().get(match.key)
        if isinstance(widget, AssistantMessage):
            return widget.thought if match.is_thought else widget.body
        bodies = widget.bodies() if widget is not None else []
        return bodies[-1] if bodies else None

    def _cursor_of(self, body: RichText, match: Match) -> QTextCursor | None:
        """Signs of Markdown are not drawn, so what is found may be drawn less often."""
        found = _places(body, self.field.text())
        return found[min(match.number, len(found) - 1)] if found else None

    @Slot()
    def _mark(self) -> None:
        current = self._matches[self._at] if self._matches and not self.isHidden() else None
        body = self._body_of(current) if current is not None else None
        chosen = self._cursor_of(body, current) if body is not None and current else None
        for widget in self._transcript.live_widgets().values():
            for each in widget.bodies():
                words = "" if self.isHidden() else self.field.text()
                is_here = each is body
                each.setExtraSelections(
                    [
                        _selection(place, is_current=is_here and place == chosen)
                        for place in _places(each, words)
                    ]
                )

    # ---- events
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_bar()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self._step(-1 if back else 1)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.fillRect(self.rect(), color("canvas"))
        draw.fillRect(0, self.height() - 1, self.width(), 1, color("line"))


def _places(body: RichText, words: str) -> list[QTextCursor]:
    found: list[QTextCursor] = []
    cursor = body.document().find(words, 0) if words else QTextCursor()
    while not cursor.isNull() and len(found) < 1_000:
        found.append(cursor)
        cursor = body.document().find(words, cursor)
    return found


def _selection(place: QTextCursor, *, is_current: bool) -> QTextEdit.ExtraSelection:
    made = QTextEdit.ExtraSelection()
    look = QTextCharFormat()
    look.setBackground(color("accent" if is_current else "p2"))
    look.setForeground(color("on_accent" if is_current else "text"))
    made.cursor, made.format = place, look
    return made
