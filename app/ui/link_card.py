"""Where a link leads, in full, before anything is opened."""

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QGuiApplication

from app.ui import theme
from app.ui.controls import Label, Popover, box, button
from app.ui.theme import BODY, SMALL


class LinkCard(Popover):
    opened = Signal(str)

    def __init__(self, address: str) -> None:
        super().__init__(theme.u(360))
        self.setObjectName("link")
        self.setAccessibleName("Link")
        self._address = address
        shown = QUrl(address).toString(QUrl.ComponentFormattingOption.FullyEncoded) or address
        # A break may stand after each sign, so that a long address is seen whole.
        self.address = Label(_breakable(shown), BODY, "text", wrap=True)
        self.address.setAccessibleName(shown)
        self.open_button = button("Open in the browser", "primary")
        self.copy = button("Copy", "", "copy")
        self.body.addWidget(Label("This link leads to", SMALL, "muted"))
        self.body.addWidget(self.address)
        self.body.addLayout(box("h", self.open_button, self.copy, "stretch"))
        self.open_button.clicked.connect(self._open)
        self.copy.clicked.connect(self._copy)

    @Slot()
    def _open(self) -> None:
        self.close()
        self.opened.emit(self._address)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._address)
        self.close()


def _breakable(address: str) -> str:
    return "".join(f"{sign}\u200b" if sign in "/?&=-_.%#" else sign for sign in address)
