"""A small window of pairs to read: the keyboard shortcuts, what this app is."""

from collections.abc import Sequence

from PySide6.QtWidgets import QDialog, QFrame, QScrollArea, QWidget

from app.ui import theme
from app.ui.controls import HLine, Label, box, button
from app.ui.theme import BODY, S2, S4, S5, SMALL, TITLE

LONGEST = 520


class Sheet(QDialog):
    def __init__(
        self,
        title: str,
        pairs: Sequence[tuple[str, str]],
        text: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.u(460))
        rows = box("v", margins=(0, 0, S4, 0), spacing=S2)
        for left, right in pairs:
            value = Label(right, SMALL, "text", 600)
            rows.addLayout(box("h", (Label(left, BODY, "muted", wrap=True), 1), value, spacing=S4))
        holder = QWidget()
        holder.setLayout(rows)
        area = QScrollArea()
        area.setAccessibleName(title)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(holder)
        holder.setAutoFillBackground(False)
        area.setMinimumHeight(min(LONGEST, holder.sizeHint().height() + 4))
        close = button("Close", "primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        box(
            "v",
            Label(title, TITLE, "text", 600),
            Label(text, BODY, "muted", wrap=True) if text else None,
            HLine(),
            (area, 1),
            box("h", "stretch", close),
            margins=(S5, S5, S5, S4),
            spacing=S2 + 2,
            into=self,
        )
