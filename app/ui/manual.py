"""The manual, in a window of its own: the same text that lies in resources."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QWidget

from app import paths
from app.ui import theme
from app.ui.controls import box
from app.ui.richtext import RichText
from app.ui.theme import S4, S5


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
        self._holder = QWidget()
        box("v", self.text, "stretch", margins=(S5, S4, S5, S5), into=self._holder)
        self._area = QScrollArea()
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._holder)
        box("v", (self._area, 1), into=self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """As wide as the window, and as high as its text is then."""
        super().resizeEvent(event)
        self.text.place(self._area.viewport().width() - 2 * S5)
