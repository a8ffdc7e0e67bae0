"""Where an answer was unsure, as bars; and what the tints mean."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.controls import fill_round, painter
from app.ui.theme import CAPTION, color, font
from app.ui.token_flow import paint_tint
from app.ui.token_words import RAMP, UNSURE

LEAST_BAR = 2.0  # pixels from one bar to the next
WIDEST_BAR = 8.0
TINTED = 0.7


class DoubtChart(QWidget):
    """One bar a token, taller where it was less likely; a click goes to it. Of a long answer,
    tokens share a bar, which is as tall as its most unlikely one."""

    token_clicked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._chances: list[float] = []
        self._bars: list[float] = []  # the least chance of each
        self._per_bar = 1
        self._current = -1
        self.setFixedHeight(46)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._name()

    def set_chances(self, chances: list[float]) -> None:
        self._chances, self._bars, self._per_bar, self._current = [], [], 1, -1
        self.append(chances)

    def append(self, chances: list[float]) -> None:
        for chance in chances:
            place = len(self._chances) // self._per_bar
            self._chances.append(chance)
            if place == len(self._bars):
                self._bars.append(chance)
            else:
                self._bars[place] = min(self._bars[place], chance)
        self._fit()
        self._name()
        self.update()

    def set_current(self, token: int) -> None:
        self._current = token
        self.update()

    def _name(self) -> None:
        unsure = sum(chance < UNSURE for chance in self._chances)
        count = f"{len(self._chances):,} tokens, {unsure:,} of them unsure"
        self.setAccessibleName(f"Where the answer was unsure: {count}")
        self.setToolTip("Taller is less likely. Click to go there.")

    def _fit(self) -> None:
        """As many tokens to a bar as the width asks for, a power of two."""
        most = max(1, int(self.width() / LEAST_BAR))
        per_bar = 1
        while len(self._chances) > most * per_bar:
            per_bar *= 2
        if per_bar != self._per_bar:
            self._per_bar = per_bar
            starts = range(0, len(self._chances), per_bar)
            self._bars = [min(self._chances[at : at + per_bar]) for at in starts]

    def _step(self) -> float:
        return min(WIDEST_BAR, self.width() / max(1, len(self._bars)))

    def resizeEvent(self, _event: object) -> None:
        self._fit()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = int(event.position().x() / self._step())
        if 0 <= place < len(self._bars):
            first = place * self._per_bar
            here = self._chances[first : first + self._per_bar]
            self.token_clicked.emit(first + here.index(min(here)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        draw.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        base, step = self.height() - 5, self._step()
        draw.fillRect(QRectF(0, base, self.width(), 1), color("line"))
        tones = {role: color(role) for role in ("accent", "danger", "warning", "control")}
        current = self._current // self._per_bar if self._current >= 0 else -1
        gap = 1.5 if step > 3 else 0.5 if step > 2 else 0.0
        for place, chance in enumerate(self._bars):
            height = max(1.5, (1 - chance) * (base - 5))
            role = "danger" if chance < UNSURE else "warning" if chance < TINTED else "control"
            bar = QRectF(place * step, base - height, max(1.0, step - gap), height)
            draw.fillRect(bar, tones["accent" if place == current else role])
        if 0 <= current < len(self._bars):
            draw.setRenderHint(QPainter.RenderHint.Antialiasing)
            draw.setPen(Qt.PenStyle.NoPen)
            draw.setBrush(tones["accent"])
            draw.drawEllipse(QRectF((current + 0.4) * step - 2, base + 1.5, 4, 3.5))


class Legend(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(36)
        labels = ", ".join(step.label.replace(" % +", " and more") for step in RAMP)
        self.setAccessibleName(f"Tints by probability in percent: {labels}")

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        width = self.width() / len(RAMP)
        draw.setFont(font(CAPTION))
        for place, step in enumerate(RAMP):
            area = QRectF(place * width, 0, width - 4, 16)
            if step.tint:
                paint_tint(draw, area, step)
            else:
                fill_round(draw, area, 3, None, color("line"))
            draw.setPen(color("muted"))
            words = QRectF(place * width, 18, width - 4, 18)
            draw.drawText(words, Qt.AlignmentFlag.AlignCenter, step.label)
