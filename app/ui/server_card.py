"""What a person needs to point another program at the local server."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit

from app.ui import theme
from app.ui.controls import HLine, IconButton, Label, Popover, Switch, box, button
from app.ui.theme import BODY, S2, S3, SMALL


class ServerCard(Popover):
    """`address` is empty while the server is off."""

    switched = Signal(bool)
    token_wanted = Signal()

    def __init__(self, address: str, token: str) -> None:
        super().__init__(theme.u(400))
        self.setObjectName("server")
        self.setAccessibleName("Local server")
        self.switch = Switch(bool(address), "Local server")
        self.switch.toggled.connect(self._switch)
        words = (
            "Programs on this computer that have the token can use the loaded model as they would"
            " use OpenAI's. It listens on this computer only."
        )
        title = Label("Local server", BODY, "text", 600)
        self.body.addLayout(box("h", (title, 1), self.switch, spacing=S3))
        self.body.addWidget(Label(words, SMALL, "muted", wrap=True))
        if not address:
            return
        self.body.addWidget(HLine())
        self.address = self._add_line("Address", address)
        self.token = self._add_line("Token", token)
        anew = button("Make a new token", "flat", "regenerate")
        anew.setObjectName("new-token")
        anew.clicked.connect(self._anew)
        self.body.addLayout(box("h", anew, "stretch"))

    def _add_line(self, name: str, text: str) -> QLineEdit:
        line = QLineEdit(text)
        line.setReadOnly(True)
        line.setAccessibleName(name)
        line.setObjectName(name.lower())
        line.setCursorPosition(0)
        copy = IconButton("copy", f"Copy the {name.lower()}", 30)
        copy.setProperty("copies", text)
        copy.clicked.connect(self._copy)
        self.body.addWidget(Label(name, SMALL, "muted"))
        self.body.addLayout(box("h", (line, 1), copy, spacing=S2))
        return line

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.sender().property("copies"))

    @Slot(bool)
    def _switch(self, is_on: bool) -> None:
        self.close()
        self.switched.emit(is_on)

    @Slot()
    def _anew(self) -> None:
        self.close()
        self.token_wanted.emit()
