"""The manual, in a window of its own: the same text that lies in resources."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QWidget

from app import paths
from app.ui import theme
from app.ui.controls import box
from app.ui.richtext import RichText
from app.ui.theme import S4, S5


class _Page(QScrollArea):
    """The text, as wide as there is room and as high as it is then."""

    def __init__(self, text: RichText) -> None:
        super().__init__()
        self._text = text
        holder = QWidget()
        box("v", text, "stretch", margins=(S5, S4, S5, S5), into=holder)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(holder)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._text.place(self.viewport().width() - 2 * S5)


class Manual(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("manual")
        self.setWindowTitle("Manual")
        self.resize(theme.u(720), theme.u(560))
        self.text = RichText()
        self.text.setAccessibleName("Manual")
        self.text.set_markdown((paths.resources() / "manual.md").read_text(encoding="utf-8"))
        while self.text.has_more:
            self.text.advance()
        box("v", (_Page(self.text), 1), into=self)
