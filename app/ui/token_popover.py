"""What else could have stood at a token's place, and going on from one of them."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QLineEdit, QSizePolicy, QWidget

from app.chat.messages import Alternative, TokenView
from app.ui import icons, theme
from app.ui.controls import (
    HLine,
    Label,
    Popover,
    box,
    button,
    fill_round,
    focus_ring,
    paint_meter,
    painter,
    text_width,
)
from app.ui.theme import BODY, R_CONTROL, SMALL, color, font
from app.ui.token_words import choice_words, percent, quoted, visible

WIDTH = 306
MOST_ROWS = 10
KEPT = "The answer you have is kept."


class AlternativeRow(QAbstractButton):
    """One token that could stand here; the one that does carries a tick."""

    def __init__(self, alternative: Alternative, *, is_written: bool) -> None:
        super().__init__()
        self.alternative, self.is_written = alternative, is_written
        self._text = visible(alternative.text) or quoted("")
        self.setCheckable(True)
        self.setFixedHeight(30)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        name = quoted(alternative.text).strip("\u201c\u201d")
        here = ", in the answer now" if is_written else ""
        ends = ", ends the answer" if alternative.is_end else ""
        self.setAccessibleName(f"{name}, {percent(alternative.probability)}{here}{ends}")

    def sizeHint(self) -> QSize:
        return QSize(200, 30)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        if self.isChecked() or self.underMouse():
            fill_round(draw, area, R_CONTROL, color("selected" if self.isChecked() else "hover"))
        draw.setFont(font(BODY, 500, mono=True))
        draw.setPen(color("text"))
        room = area.width() - 158
        middle = Qt.AlignmentFlag.AlignVCenter
        shown = draw.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, int(room))
        draw.drawText(area.adjusted(8, 0, 0, 0), middle, shown)
        if self.is_written:
            x = 16 + text_width(shown, draw.font())
            icons.paint(draw, "check", QRectF(x, area.center().y() - 7, 14, 14), "accent")
        meter = QRectF(area.right() - 136, area.center().y() - 2.5, 72, 5)
        tone = "accent" if self.isChecked() else "muted"
        paint_meter(draw, meter, self.alternative.probability, tone)
        draw.setFont(font(SMALL, 500))
        draw.setPen(color("text"))
        right = Qt.AlignmentFlag.AlignRight | middle
        draw.drawText(area.adjusted(0, 0, -8, 0), right, percent(self.alternative.probability))
        focus_ring(draw, self, area, R_CONTROL)


class TokenPopover(Popover):
    alternative_chosen = Signal(object)  # Alternative
    text_chosen = Signal(str)

    def __init__(self, token: TokenView, place: int, count: int, why_not: str = "") -> None:
        """`why_not`: nothing can be written now, and this is why."""
        super().__init__(theme.u(WIDTH))
        self._why_not = why_not
        self.setAccessibleName(f"Token {place + 1:,} of {count:,}")
        title = Label(f"Token {place + 1:,} of {count:,}", BODY, "text", 600)
        chance = f"{percent(token.probability)}, {choice_words(token.rank)}"
        self.body.addLayout(box("h", title, "stretch", Label(chance, SMALL, "muted")))
        self.group = QButtonGroup(self)
        self.rows = [
            AlternativeRow(other, is_written=other.token_id == token.token_id)
            for other in rows_of(token)
        ]
        self.body.addLayout(box("v", *self.rows, spacing=1))
        for row in self.rows:
            self.group.addButton(row)
        self.body.addWidget(HLine())
        self.go_on = button("Continue from here", "primary", "branch")
        self.other = button("Type another…")
        self._buttons = QWidget()
        box("h", self.go_on, self.other, "stretch", spacing=6, into=self._buttons)
        self.field = QLineEdit()
        self.field.setAccessibleName("Text to continue with")
        self.field.setPlaceholderText("Text in its place, with its blank in front")
        self.field.setMaxLength(2_000)
        self.field.hide()
        self.note = Label("", SMALL, "muted", wrap=True)
        for widget in (self.field, self._buttons, self.note):
            self.body.addWidget(widget)
        self._choose_first()
        self.group.buttonClicked.connect(self._on_row)
        self.go_on.clicked.connect(self._go_on)
        self.other.clicked.connect(self._type)
        self.field.textChanged.connect(self._follow)
        self.field.returnPressed.connect(self._go_on)
        self._follow()

    def _choose_first(self) -> None:
        """The likeliest that does not stand there already."""
        wanted = next((row for row in self.rows if not row.is_written), None)
        if wanted is not None:
            wanted.setChecked(True)

    def chosen(self) -> AlternativeRow | None:
        return next((row for row in self.rows if row.isChecked()), None)

    @Slot()
    def _on_row(self) -> None:
        self.field.hide()
        self._follow()

    @Slot()
    def _type(self) -> None:
        self.field.show()
        for row in self.rows:
            self.group.setExclusive(False)
            row.setChecked(False)
            self.group.setExclusive(True)
        self._follow()
        self.adjustSize()
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _follow(self) -> None:
        row = self.chosen()
        is_typing = not self.field.isHidden()
        self.go_on.setEnabled(not self._why_not and bool(self._wanted()))
        words = "Continue from here"
        if is_typing:
            note = f"Writes a new branch from what you type. {KEPT}"
        elif row is None:
            note = "No other token is known for this place. Type one."
        elif row.alternative.is_end:
            words, note = (
                "End the answer here",
                f"Makes a new branch that ends before this token. {KEPT}",
            )
        else:
            note = f"Writes a new branch from {quoted(row.alternative.text)}. {KEPT}"
        self.go_on.setText(words)
        self.go_on.updateGeometry()
        self.note.setText(self._why_not or note)

    def _wanted(self) -> bool:
        return bool(self.field.text()) if not self.field.isHidden() else self.chosen() is not None

    @Slot()
    def _go_on(self) -> None:
        if not self.go_on.isEnabled():
            return
        row, text = self.chosen(), self.field.text()
        is_typing = not self.field.isHidden()
        self.close()
        if is_typing:
            self.text_chosen.emit(text)
        elif row is not None:
            self.alternative_chosen.emit(row.alternative)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.focusWidget()
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and isinstance(row, AlternativeRow):
            row.click()
            self._go_on()
            return
        super().keyPressEvent(event)


def rows_of(token: TokenView) -> list[Alternative]:
    """The likeliest ones, and the one that stands there at the end if it is none of them."""
    found = list(token.alternatives[:MOST_ROWS])
    if all(other.token_id != token.token_id for other in found):
        found.append(Alternative(token.token_id, token.text, token.probability))
    return found
