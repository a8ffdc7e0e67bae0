"""Files that will go along with the next message: one chip each, above the field.

Shows values; `removed` and `opened` bring a file's number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.ui import icons, theme
from app.ui.controls import Flow, IconButton, box, fill_round, focus_ring, painter, text_width
from app.ui.theme import R_CONTROL, SMALL, color, font

LONGEST_NAME = 26
HEIGHT = 34


@dataclass(frozen=True)
class TrayItem:
    """`facts` are its size and cost, or why it can't be taken."""

    key: int
    name: str
    state: Literal["reading", "ready", "failed"] = "reading"
    facts: str = ""


class _Face(QAbstractButton):
    """The name and the facts; a press shows what the model would read."""

    def __init__(self, item: TrayItem) -> None:
        super().__init__()
        self._item = item
        # A reason names the file itself.
        self.setText("" if item.state == "failed" else _short(item.name))
        self.setFixedHeight(HEIGHT)
        self.setEnabled(item.state == "ready")
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        words = {"reading": "is being read", "ready": item.facts, "failed": item.facts}[item.state]
        self.setAccessibleName(f"{item.name}, {words}")
        self.setToolTip(f"{item.name}\n{words}")

    def _facts(self) -> str:
        return "Reading" if self._item.state == "reading" else self._item.facts

    def sizeHint(self) -> QSize:
        words = text_width(self.text(), font(SMALL, 500)) + text_width(self._facts(), font(SMALL))
        return QSize(min(30 + words + 8 + 10, theme.u(520)), HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        if self.underMouse() and self.isEnabled():
            fill_round(draw, area, R_CONTROL, color("hover"))
        failed = self._item.state == "failed"
        tone = "danger" if failed else "muted"
        middle = area.center().y()
        icons.paint(draw, "error" if failed else "file", QRectF(8, middle - 8, 16, 16), tone)
        text = area.adjusted(30, 0, -6, 0)
        vertical = Qt.AlignmentFlag.AlignVCenter
        draw.setFont(font(SMALL, 500))
        draw.setPen(color("text"))
        draw.drawText(text, vertical, self.text())
        if self.text():
            text.setLeft(text.left() + text_width(self.text(), draw.font()) + 8)
        draw.setFont(font(SMALL))
        draw.setPen(color(tone))
        facts = draw.fontMetrics().elidedText(
            self._facts(), Qt.TextElideMode.ElideRight, int(text.width())
        )
        draw.drawText(text, vertical, facts)
        focus_ring(draw, self, area, R_CONTROL)


class _Chip(QWidget):
    def __init__(self, item: TrayItem, tray: "AttachmentTray") -> None:
        super().__init__()
        self.key = item.key
        self._tone = "danger" if item.state == "failed" else "line"
        self._face = _Face(item)
        self._remove = IconButton("close", f"Remove {item.name}", 26, 14)
        self._face.clicked.connect(self._open)
        self._remove.clicked.connect(self._drop)
        self._tray = tray
        box("h", (self._face, 1), self._remove, margins=(1, 0, 4, 0), spacing=0, into=self)

    @Slot()
    def _open(self) -> None:
        self._tray.opened.emit(self.key)

    @Slot()
    def _drop(self) -> None:
        self._tray.removed.emit(self.key)

    def paintEvent(self, _event: QPaintEvent) -> None:
        area = QRectF(self.rect())
        fill_round(painter(self), area, R_CONTROL, color("canvas"), color(self._tone))


class AttachmentTray(QWidget):
    removed = Signal(int)
    opened = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("attachments")
        self._flow = Flow()
        self._flow.setContentsMargins(0, 0, 0, 4)
        self.setLayout(self._flow)
        self._items: tuple[TrayItem, ...] = ()
        self.hide()

    def items(self) -> tuple[TrayItem, ...]:
        return self._items

    def set_items(self, items: Sequence[TrayItem]) -> None:
        if tuple(items) == self._items:
            return
        self._items = tuple(items)
        while (old := self._flow.takeAt(0)) is not None:
            chip = old.widget()
            assert chip is not None
            chip.hide()
            chip.deleteLater()
        for item in items:
            self._flow.addWidget(_Chip(item, self))
        self.setVisible(bool(items))
        self.updateGeometry()


def _short(name: str) -> str:
    """The beginning and the ending, which says what kind it is."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 10]}…{name[-9:]}"
