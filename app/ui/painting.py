"""Painting that several controls share."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget

from app.ui import icons
from app.ui.theme import CAPTION, R_BADGE, color, font

SOFT_TONES = ("accent", "success", "warning", "danger")


def painter(widget: QWidget) -> QPainter:
    made = QPainter(widget)
    made.setRenderHint(QPainter.RenderHint.Antialiasing)
    return made


def fill_round(
    draw: QPainter,
    rect: QRectF,
    radius: float,
    fill: QColor | None = None,
    line: QColor | None = None,
    width: float = 1.0,
) -> None:
    """Fills, and strokes inside the edge so that lines of 1 px stay crisp at every scale."""
    area = QRectF(rect)
    if line is not None:
        area = area.adjusted(width / 2, width / 2, -width / 2, -width / 2)
    draw.setPen(QPen(line, width) if line is not None else Qt.PenStyle.NoPen)
    draw.setBrush(fill if fill is not None else Qt.BrushStyle.NoBrush)
    draw.drawRoundedRect(area, radius, radius)


def focus_ring(
    draw: QPainter, widget: QWidget, rect: QRectF, radius: float, on: str | None = None
) -> None:
    """2 px of accent at the edge; on a filled control a ring inside it, coloured as its text."""
    if not widget.hasFocus():
        return
    if on:
        inside = rect.adjusted(3, 3, -3, -3)
        fill_round(draw, inside, max(2, radius - 3), None, color(on), 1.75)
    else:
        fill_round(draw, rect, radius, None, color("accent"), 2)


def soft_shadow(
    draw: QPainter, rect: QRectF, radius: float, spread: int = 14, strength: float = 0.16
) -> None:
    """Layers of a shadow. (QGraphicsEffect would draw the widget anew at every repaint.)"""
    draw.setPen(Qt.PenStyle.NoPen)
    for i in range(spread, 0, -1):
        alpha = strength * (1 - i / spread) ** 2 * 0.2
        draw.setBrush(color("shadow", alpha))
        draw.drawRoundedRect(rect.adjusted(-i, -i * 0.6, i, i * 1.2), radius + i, radius + i)


def text_width(text: str, used_font: QFont) -> int:
    return QFontMetrics(used_font).horizontalAdvance(text)


def badge_width(text: str, icon: str | None = None) -> int:
    return text_width(text, font(CAPTION, 600)) + 12 + (15 if icon else 0)


def paint_badge(
    draw: QPainter, rect: QRectF, text: str, tone: str, icon: str | None = None
) -> None:
    soft = color(f"{tone}_soft") if tone in SOFT_TONES else None
    fill_round(draw, rect, R_BADGE, soft, None if soft else color("line"))
    x = rect.left() + 6
    if icon:
        icons.paint(draw, icon, QRectF(x - 2, rect.center().y() - 6.5, 13, 13), tone)
        x += 13
    draw.setFont(font(CAPTION, 600))
    draw.setPen(color(tone))
    place = QRectF(x, rect.top(), rect.right() - x, rect.height())
    draw.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
