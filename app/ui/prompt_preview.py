"""The exact prompt: what the model would read now, with the template's own marks."""

import itertools
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QPlainTextEdit, QWidget

from app.chat.events import Failed, Finished, Preview, Previewed
from app.chat.messages import Message, Options
from app.ui import theme
from app.ui.answer_writer import Engine
from app.ui.controls import Label, box, button
from app.ui.theme import S2, S4, S5, SMALL, TITLE

What = tuple[tuple[Message, ...], Options, int]  # messages, options, the first in memory


class PromptPreview(QObject):
    """Asks the engine; the newest question alone is answered."""

    shown = Signal(str, int)  # the prompt, and how many tokens it is
    failed = Signal(str)

    def __init__(
        self,
        parent: QObject,
        engine: Engine,
        request_ids: "itertools.count[int]",
        what: Callable[[], What],
    ) -> None:
        super().__init__(parent)
        self._engine, self._request_ids, self._what = engine, request_ids, what
        self._asked = 0

    @Slot()
    def ask(self) -> None:
        self._asked = next(self._request_ids)
        messages, options, first = self._what()
        self._engine.submit(Preview(self._asked, messages, options, first))

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        for event in events:
            if getattr(event, "request_id", None) != self._asked:
                continue
            if isinstance(event, Previewed):
                self.shown.emit(event.text, event.token_count)
            elif isinstance(event, Failed):
                self.failed.emit(event.message)
            if isinstance(event, Finished | Failed):
                self._asked = 0


class PromptView(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("prompt")
        self.setWindowTitle("The exact prompt")
        self.resize(theme.u(680), theme.u(520))
        self.words = Label("The model is asked…", SMALL, "muted", wrap=True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("The exact prompt")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.copy = button("Copy", "", "copy")
        self.copy.setEnabled(False)
        self.copy.clicked.connect(self._copy)
        close = button("Close", "primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        title = Label("The exact prompt", TITLE, "text", 600)
        bottom = box("h", self.copy, "stretch", close)
        box("v", title, self.words, (self.text, 1), bottom,
            margins=(S5, S5, S5, S4), spacing=S2 + 2, into=self)  # fmt: skip

    @Slot(str, int)
    def set_prompt(self, text: str, count: int) -> None:
        tokens = f"{count:,} token" + "s" * (count != 1)
        self.words.setText(f"{tokens}. What the model would read if you sent the message now.")
        self.text.setPlainText(text)
        self.copy.setEnabled(True)
        self._whole = text

    @Slot(str)
    def set_problem(self, sentence: str) -> None:
        self.words.setText(sentence)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._whole)
