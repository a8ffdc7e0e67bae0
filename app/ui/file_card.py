"""What the model would read of an attached file."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPlainTextEdit

from app.ui import theme
from app.ui.controls import Label, Popover, box, button
from app.ui.theme import BODY, SMALL

MOST_SHOWN = 20_000
MOST_PUT_IN = 100_000  # letters that a message field is still pleasant with


class FileCard(Popover):
    put_in = Signal(int)  # its text shall stand in the message

    def __init__(self, key: int, name: str, text: str) -> None:
        super().__init__(theme.u(480))
        self._key = key
        self.setObjectName("file")
        self.setAccessibleName(f"The text of {name}")
        view = QPlainTextEdit(text[:MOST_SHOWN])
        view.setReadOnly(True)
        view.setAccessibleName(f"The text of {name}")
        view.setFont(theme.font(SMALL, mono=True))
        view.setFixedHeight(theme.u(220))
        self.body.addWidget(Label(name, BODY, "text", 600, wrap=True))
        self.body.addWidget(view)
        if len(text) > MOST_SHOWN:
            words = f"The first {MOST_SHOWN:,} of {len(text):,} letters are shown here."
            self.body.addWidget(Label(words, SMALL, "muted", wrap=True))
        if len(text) <= MOST_PUT_IN:
            inside = button("Put into the message", "flat", "edit")
            inside.setObjectName("put-in")
            inside.clicked.connect(self._put_in)
            self.body.addLayout(box("h", inside, "stretch"))

    @Slot()
    def _put_in(self) -> None:
        self.close()
        self.put_in.emit(self._key)
