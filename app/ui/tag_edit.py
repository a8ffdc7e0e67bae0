"""Several short texts in one field: Enter or a comma adds one, Backspace takes the last back."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QSizePolicy, QWidget

from app.ui import icons
from app.ui.controls import Flow, fill_round, focus_ring, painter, text_width
from app.ui.theme import R_CONTROL, SMALL, color, font

MOST_SHOWN = 40  # letters of a tag


def shown(text: str) -> str:
    """A line break, which ends many answers, must be seen."""
    words = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}…"


def meant(words: str) -> str:
    """What was typed, with \\n and \\t as they are written in code."""
    kept = words.replace("\\\\", "\0")
    return kept.replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")


class _Tag(QAbstractButton):
    """A press removes it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text_of = text
        self.setText(shown(text))
        self.setAccessibleName(f"Remove {shown(text)}")
        self.setToolTip(f"Remove {shown(text)}")
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFixedHeight(26)

    def sizeHint(self) -> QSize:
        return QSize(text_width(self.text(), font(SMALL, 500)) + 32, 26)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        role = "pressed" if self.isDown() else "hover" if self.underMouse() else "bubble"
        fill_round(draw, area, R_CONTROL, color(role))
        draw.setFont(font(SMALL, 500))
        draw.setPen(color("text"))
        draw.drawText(area.adjusted(9, 0, -20, 0), Qt.AlignmentFlag.AlignVCenter, self.text())
        icons.paint(draw, "close", QRectF(area.right() - 18, area.center().y() - 6, 12, 12))
        focus_ring(draw, self, area, R_CONTROL)


class _Field(QLineEdit):
    entered = Signal()
    emptied = Signal()  # Backspace where there is nothing to take away

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) or event.text() == ",":
            self.entered.emit()
            return
        if event.key() == Qt.Key.Key_Backspace and not self.text():
            self.emptied.emit()
            return
        super().keyPressEvent(event)


class TagEdit(QWidget):
    changed = Signal()

    def __init__(self, name: str, placeholder: str) -> None:
        super().__init__()
        self._texts: tuple[str, ...] = ()
        self._flow = Flow()
        self._flow.setContentsMargins(0, 0, 0, 0)
        self.setLayout(self._flow)
        self.field = _Field()
        self.field.setAccessibleName(name)
        self.field.setPlaceholderText(placeholder)
        self.field.setMinimumWidth(110)
        self.field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.field.entered.connect(self._enter)
        self.field.emptied.connect(self._take_back)
        self.field.editingFinished.connect(self._enter)
        self._flow.addWidget(self.field)

    def texts(self) -> tuple[str, ...]:
        return self._texts

    def set_texts(self, texts: Sequence[str]) -> None:
        if tuple(texts) == self._texts:
            return
        self._texts = tuple(texts)
        while (old := self._flow.takeAt(0)) is not None:
            widget = old.widget()
            if isinstance(widget, _Tag):
                widget.hide()
                widget.deleteLater()
        for text in texts:
            tag = _Tag(text)
            tag.clicked.connect(self._remove)
            self._flow.addWidget(tag)
        self._flow.addWidget(self.field)
        self.updateGeometry()

    def _change(self, texts: Sequence[str]) -> None:
        if tuple(texts) != self._texts:
            self.set_texts(texts)
            self.changed.emit()

    @Slot()
    def _enter(self) -> None:
        """What was typed becomes a tag, also when the focus goes elsewhere."""
        text = meant(self.field.text())
        self.field.clear()
        if text.strip(" ") and text not in self._texts:
            self._change((*self._texts, text))

    @Slot()
    def _take_back(self) -> None:
        if self._texts:
            last = self._texts[-1]
            self._change(self._texts[:-1])
            self.field.setText(shown(last) if len(last) <= MOST_SHOWN else "")

    @Slot()
    def _remove(self) -> None:
        tag = self.sender()
        assert isinstance(tag, _Tag)
        self._change([text for text in self._texts if text != tag.text_of])
        self.field.setFocus()
