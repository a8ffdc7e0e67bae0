"""Sliders and meters, painted from the theme."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from app.ui import theme
from app.ui.painting import painter
from app.ui.theme import color


class Slider(QSlider):
    """A QSlider in meaning; the filled part in accent, a tick where the default lies."""

    def __init__(
        self, lo: int, hi: int, value: int, default: int | None = None, name: str = ""
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setRange(lo, hi)
        self.setValue(value)
        self._default = default
        self.setAccessibleName(name)
        self.setFixedHeight(20)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_default(self, default: int | None) -> None:
        self._default = default
        self.update()

    def _x(self, value: int) -> float:
        span = max(1, self.maximum() - self.minimum())
        return 8 + (self.width() - 16) * (value - self.minimum()) / span

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        y = self.height() / 2
        self._paint_track(draw, y)
        self._paint_knob(draw, y)

    def _paint_track(self, draw: QPainter, y: float) -> None:
        live = self.isEnabled()
        draw.setPen(Qt.PenStyle.NoPen)
        draw.setBrush(color("control", 0.55) if live else color("line"))
        draw.drawRoundedRect(QRectF(8, y - 1.5, self.width() - 16, 3), 1.5, 1.5)
        if not live:
            return
        draw.setBrush(color("accent"))
        draw.drawRoundedRect(QRectF(8, y - 1.5, self._x(self.value()) - 8, 3), 1.5, 1.5)
        if self._default is not None and self._default != self.value():
            draw.setBrush(color("control"))
            draw.drawRoundedRect(QRectF(self._x(self._default) - 1, y - 5, 2, 10), 1, 1)

    def _paint_knob(self, draw: QPainter, y: float) -> None:
        live = self.isEnabled()
        knob = QPointF(self._x(self.value()), y)
        draw.setBrush(color(("text" if theme.is_dark() else "raised") if live else "chrome"))
        draw.setPen(QPen(color("accent" if live else "line"), 1.75))
        draw.drawEllipse(knob, 6.5, 6.5)
        if self.hasFocus():
            draw.setBrush(Qt.BrushStyle.NoBrush)
            draw.setPen(QPen(color("accent", 0.45), 3))
            draw.drawEllipse(knob, 8.5, 8.5)


def tone_of(share: float) -> str:
    """How a filling meter is coloured. Words must say the same."""
    return "danger" if share >= 0.95 else "warning" if share >= 0.8 else "accent"


class Meter(QWidget):
    """How full something is. Its colour follows the level; figures beside it say it in words."""

    def __init__(
        self,
        share: float,
        tone: str = "accent",
        width: int | None = 56,
        height: int = 4,
        second: float = 0.0,
    ) -> None:
        super().__init__()
        self._share, self._tone, self._second = share, tone, second
        self._thickness = height
        self.setFixedHeight(max(height, 8))
        if width:
            self.setFixedWidth(width)
        else:
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_share(self, share: float, tone: str = "accent", second: float = 0.0) -> None:
        self._share, self._tone, self._second = share, tone, second
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(max(56, self.minimumWidth()), self.height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        top = (self.height() - self._thickness) / 2
        track = QRectF(0, top, self.width(), self._thickness)
        paint_meter(painter(self), track, self._share, self._tone, self._second)


def paint_meter(draw: QPainter, rect: QRectF, share: float, tone: str, second: float = 0.0) -> None:
    """`second` is a share taken by something else, drawn grey before the coloured one."""
    radius = rect.height() / 2
    draw.setPen(Qt.PenStyle.NoPen)
    draw.setBrush(color("pressed"))
    draw.drawRoundedRect(rect, radius, radius)
    track = QPainterPath()
    track.addRoundedRect(rect, radius, radius)
    draw.save()
    draw.setClipPath(track)
    taken = rect.width() * min(max(second, 0.0), 1.0)
    if second:
        draw.setBrush(color("control", 0.8))
        draw.drawRect(QRectF(rect.left(), rect.top(), taken, rect.height()))
        taken += 1
    draw.setBrush(color(tone))
    width = rect.width() * min(max(share, 0.0), 1.0)
    draw.drawRect(QRectF(rect.left() + taken, rect.top(), width, rect.height()))
    draw.restore()


Segment = tuple[float, str]  # share of the whole, colour role


def paint_segments(draw: QPainter, rect: QRectF, segments: Sequence[Segment]) -> None:
    """What fills something, one part beside the other, with a hair of room between them."""
    radius = rect.height() / 2
    draw.setPen(Qt.PenStyle.NoPen)
    draw.setBrush(color("pressed"))
    draw.drawRoundedRect(rect, radius, radius)
    track = QPainterPath()
    track.addRoundedRect(rect, radius, radius)
    draw.save()
    draw.setClipPath(track)
    left = rect.left()
    for share, role in segments:
        width = rect.width() * min(max(share, 0.0), 1.0)
        draw.setBrush(color(role))
        draw.drawRect(
            QRectF(left, rect.top(), max(0.0, width - (1 if width > 2 else 0)), rect.height())
        )
        left += width
    draw.restore()


class SegmentMeter(QWidget):
    """How full something is, and of what."""

    def __init__(self, width: int | None = None, height: int = 4) -> None:
        super().__init__()
        self._segments: tuple[Segment, ...] = ()
        self._thickness = height
        self.setFixedHeight(max(height, 8))
        if width:
            self.setFixedWidth(width)
        else:
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_segments(self, segments: Sequence[Segment]) -> None:
        if tuple(segments) != self._segments:
            self._segments = tuple(segments)
            self.update()

    def segments(self) -> tuple[Segment, ...]:
        return self._segments

    def paintEvent(self, _event: QPaintEvent) -> None:
        top = (self.height() - self._thickness) / 2
        paint_segments(painter(self), QRectF(0, top, self.width(), self._thickness), self._segments)


class Ring(QWidget):
    """The meter of narrow windows."""

    def __init__(self, share: float, tone: str = "accent", size: int = 18) -> None:
        super().__init__()
        self._share, self._tone = share, tone
        self.setFixedSize(size, size)

    def set_share(self, share: float, tone: str = "accent") -> None:
        self._share, self._tone = share, tone
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        draw.setPen(QPen(color("pressed"), 3))
        draw.drawEllipse(area)
        pen = QPen(color(self._tone), 3)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        draw.setPen(pen)
        draw.drawArc(area, 90 * 16, int(-360 * 16 * min(max(self._share, 0.0), 1.0)))
