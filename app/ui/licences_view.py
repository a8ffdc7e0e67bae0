"""The packages that the app is made of, and the text of each licence."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QDialog,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QSplitter,
    QWidget,
)

from app import licences, paths
from app.ui import theme
from app.ui.controls import Label, box, button
from app.ui.theme import APP_NAME, S2, S4, S5, SMALL, TITLE


class LicencesView(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("licences")
        self.setWindowTitle("Licences")
        self.resize(theme.u(760), theme.u(520))
        self.list = QListWidget()
        self.list.setAccessibleName("Packages")
        self._add(APP_NAME, "MIT")
        for package in licences.packages():
            self._add(package.name, package.licence, package.version)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Text of the licence")
        halves = QSplitter(Qt.Orientation.Horizontal)
        halves.addWidget(self.list)
        halves.addWidget(self.text)
        halves.setSizes([theme.u(260), theme.u(500)])
        close = button("Close", "primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        title = Label("Licences", TITLE, "text", 600)
        words = Label(licences.QT, SMALL, "muted", wrap=True)
        box("v", title, words, (halves, 1), box("h", "stretch", close),
            margins=(S5, S5, S5, S4), spacing=S2 + 2, into=self)  # fmt: skip
        self.list.currentItemChanged.connect(self._show)
        self.list.setCurrentRow(0)

    def _add(self, name: str, licence: str, version: str = "") -> None:
        item = QListWidgetItem(" ".join(part for part in (name, version) if part))
        item.setToolTip(licence)
        item.setData(Qt.ItemDataRole.UserRole, (name, licence))
        self.list.addItem(item)

    @Slot()
    def _show(self) -> None:
        name, licence = self.list.currentItem().data(Qt.ItemDataRole.UserRole)
        text = own_licence() if name == APP_NAME else licences.text_of(name)
        self.text.setPlainText(text or f"{name}: {licence or 'it brings no text of its licence'}.")


def own_licence() -> str:
    """In a checkout it lies above the resources; an installed app has it among its own files."""
    for place in (paths.resources(), paths.resources().parent):
        if (place / "LICENSE").is_file():
            return (place / "LICENSE").read_text(encoding="utf-8")
    return ""
