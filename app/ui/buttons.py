"""Buttons, painted from the theme.

Each is the Qt class with the right meaning (QAbstractButton, QPushButton), so focus, keys and
screen readers work unchanged.
"""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.ui import icons, theme
from app.ui.painting import badge_width, fill_round, focus_ring, paint_badge, painter, text_width
from app.ui.theme import BODY, H_CONTROL, R_CONTROL, color, font

VCENTER = Qt.AlignmentFlag.AlignVCenter


class IconButton(QAbstractButton):
    """An icon that does something; `tip` is its tooltip and its name for screen readers."""

    def __init__(
        self,
        icon: str,
        tip: str,
        size: int = 28,
        glyph: int = 18,
        role: str = "muted",
        checkable: bool = False,
        fill: str | None = None,
        round_: bool = False,
    ) -> None:
        super().__init__()
        self.icon_name, self._glyph, self._role = icon, glyph, role
        self._fill, self._round = fill, round_
        self.setFixedSize(size, size)
        self.set_tip(tip)
        self.setCheckable(checkable)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_tip(self, tip: str) -> None:
        self.setToolTip(tip)
        self.setAccessibleName(tip)

    def set_look(self, icon: str, role: str, fill: str | None = None, glyph: int = 0) -> None:
        """Another icon, with the colours that go with it; the button keeps its size."""
        self.icon_name, self._role, self._fill = icon, role, fill
        self._glyph = glyph or self._glyph
        self.update()

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        radius = area.height() / 2 if self._round else R_CONTROL
        self._paint_ground(draw, area, radius)
        glyph = QRectF(0, 0, self._glyph, self._glyph)
        glyph.moveCenter(area.center())
        icons.paint(draw, self.icon_name, glyph, self._glyph_role())
        is_filled = bool(self._fill) and self.isEnabled()
        focus_ring(draw, self, area, radius, self._role if is_filled else None)

    def _paint_ground(self, draw: QPainter, area: QRectF, radius: float) -> None:
        live = self.isEnabled()
        if self._fill and live:
            fill_round(draw, area, radius, color(self._fill))
        elif self.isDown():
            fill_round(draw, area, radius, color("pressed"))
        elif self.isChecked():
            fill_round(draw, area, radius, color("selected"))
        elif self.underMouse() and live:
            fill_round(draw, area, radius, color("hover"))

    def _glyph_role(self) -> str:
        if not self.isEnabled():
            return "disabled"
        return "accent" if self.isChecked() and not self._fill else self._role


class Chip(QAbstractButton):
    """Opens a picker: icon, text, a badge if there is one, chevron. Compact, it is an icon."""

    def __init__(
        self,
        icon: str,
        text: str,
        badge: tuple[str, str] | None = None,
        chevron: bool = True,
        max_text: int = 200,
        active: bool = False,
        name: str = "",
    ) -> None:
        super().__init__()
        self._icon, self._badge, self._chevron = icon, badge, chevron
        self._max_text, self._active = max_text, active
        self.compact = False
        self.set_text(text, name)
        self.setFixedHeight(30)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_text(self, text: str, name: str = "") -> None:
        """`name` is what a screen reader says and the tooltip shows, where `text` is not enough."""
        self.setText(text)
        self.setAccessibleName(name or text)
        self.setToolTip(name or text)
        self._changed()

    def set_badge(self, badge: tuple[str, str] | None) -> None:
        self._badge = badge
        self._changed()

    def set_compact(self, compact: bool, max_text: int | None = None) -> None:
        self.compact = compact
        self._max_text = self._max_text if max_text is None else max_text
        self._changed()

    def set_active(self, active: bool) -> None:
        self._active = active
        self.update()

    def _changed(self) -> None:
        self.updateGeometry()
        self.update()

    def _text_width(self) -> int:
        if self.compact:
            return 0
        return min(self._max_text, text_width(self.text(), font(BODY, 500)) + 1)

    def sizeHint(self) -> QSize:
        words = self._text_width()
        width = 8 + 18 + (6 + words if words else 0)
        if self._badge:
            width += 6 + badge_width(self._badge[0])
        return QSize(width + (18 if self._chevron else 4) + 6, 30)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        live = self.isEnabled()
        ground = "pressed" if self.isDown() else "hover" if self.underMouse() and live else None
        fill_round(draw, area, R_CONTROL, color(ground) if ground else None, color("line"))
        icon_role = "disabled" if not live else "accent" if self._active else "muted"
        middle = area.center().y()
        icons.paint(draw, self._icon, QRectF(8, middle - 8.5, 17, 17), icon_role)
        x = self._paint_text(draw, 26.0, live)
        if self._badge:
            width = badge_width(self._badge[0])
            paint_badge(draw, QRectF(x + 6, middle - 9, width, 18), *self._badge)
        if self._chevron:
            role = "muted" if live else "disabled"
            icons.paint(draw, "chevron-down", QRectF(area.right() - 20, middle - 6.5, 14, 14), role)
        focus_ring(draw, self, area, R_CONTROL)

    def _paint_text(self, draw: QPainter, x: float, live: bool) -> float:
        width = self._text_width()
        if not width:
            return x
        draw.setFont(font(BODY, 500))
        draw.setPen(color("text" if live else "disabled"))
        shown = QFontMetrics(draw.font()).elidedText(
            self.text(), Qt.TextElideMode.ElideRight, width
        )
        draw.drawText(QRectF(x + 6, 0, width + 2, self.height()), VCENTER, shown)
        return x + 6 + width


class _Segment(QAbstractButton):
    def __init__(self, text: str, icon: str | None) -> None:
        super().__init__()
        self.setText(text)
        self._icon = icon
        self.setCheckable(True)
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(26)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:
        extra = 20 if self._icon else 0
        return QSize(text_width(self.text(), font(BODY, 600)) + 20 + extra, 26)

    def minimumSizeHint(self) -> QSize:
        """With half of the room beside the word, in a narrow panel."""
        return self.sizeHint() - QSize(12, 0)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        checked, live = self.isChecked(), self.isEnabled()
        if checked:
            ground = color("control", 0.45) if theme.is_dark() else color("raised")
            fill_round(draw, area, 5, ground, color("control", 0.55))
        elif self.underMouse() and live:
            fill_round(draw, area, 5, color("pressed", 0.6))
        draw.setFont(font(BODY, 600 if checked else 500))
        role = "disabled" if not live else "text" if checked else "muted"
        width = text_width(self.text(), draw.font()) + (20 if self._icon else 0)
        x = area.center().x() - width / 2
        if self._icon:
            icon_role = "accent" if checked and live else role
            icons.paint(draw, self._icon, QRectF(x, area.center().y() - 8, 16, 16), icon_role)
            x += 20
        draw.setPen(color(role))
        draw.drawText(QRectF(x, 0, width + 4, area.height()), VCENTER, self.text())
        focus_ring(draw, self, area, 5)


class Segmented(QWidget):
    """One of a few, in a track: tabs, presets. Arrow keys move, as among radio buttons."""

    changed = Signal(int)  # by the person, not by set_current()

    def __init__(
        self, items: list[tuple[str, str | None]], current: int = 0, name: str = ""
    ) -> None:
        super().__init__()
        self.group = QButtonGroup(self)
        self.setAccessibleName(name)
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(2)
        for i, (text, icon) in enumerate(items):
            segment = _Segment(text, icon)
            self.group.addButton(segment, i)
            row.addWidget(segment)
        self.set_current(current)
        self.group.idClicked.connect(self.changed)
        self.setFixedHeight(30)

    def current(self) -> int:
        return self.group.checkedId()

    def set_current(self, index: int) -> None:
        self.group.button(index).setChecked(True)

    def paintEvent(self, _event: QPaintEvent) -> None:
        fill_round(painter(self), QRectF(self.rect()), 7, color("hover"))


class Switch(QAbstractButton):
    def __init__(self, on: bool, name: str) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setChecked(on)
        self.setAccessibleName(name)
        self.setFixedSize(40, 26)  # a track of 34 by 20, and room for the ring outside it

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        track = QRectF(self.rect()).adjusted(3.5, 3.5, -3.5, -3.5)
        on = self.isChecked()
        track_role, knob_role = ("accent", "on_accent") if on else ("control", "control")
        if not self.isEnabled():
            track_role, knob_role = "line", "disabled"
        if on:
            fill_round(draw, track, 9.5, color(track_role))
        else:
            fill_round(draw, track, 9.5, None, color(track_role), 1.5)
        draw.setPen(Qt.PenStyle.NoPen)
        draw.setBrush(color(knob_role))
        knob_x = track.right() - 9.5 if on else track.left() + 9.5
        radius = 6 if on else 5
        draw.drawEllipse(QPointF(knob_x, track.center().y()), radius, radius)
        focus_ring(draw, self, QRectF(self.rect()), 13)


class Radio(QAbstractButton):
    def __init__(self, on: bool, name: str) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setChecked(on)
        self.setAccessibleName(name)
        self.setFixedSize(24, 24)

    def sizeHint(self) -> QSize:
        return self.size()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        middle = QRectF(self.rect()).center()
        on = self.isChecked()
        role = "disabled" if not self.isEnabled() else "accent" if on else "control"
        draw.setBrush(color("field"))
        draw.setPen(QPen(color(role), 1.5))
        draw.drawEllipse(middle, 7.5, 7.5)
        if on:
            draw.setPen(Qt.PenStyle.NoPen)
            draw.setBrush(color(role))
            draw.drawEllipse(middle, 4, 4)
        focus_ring(draw, self, QRectF(self.rect()), 12)


class PushButton(QPushButton):
    """kind: "" | primary | flat | danger. At most one primary in a group: what we recommend."""

    ROLES = {"primary": "on_accent", "flat": "accent", "danger": "danger"}  # noqa: RUF012

    def __init__(self, text: str, kind: str = "", icon: str | None = None) -> None:
        super().__init__(text)
        self._kind, self._icon = kind, icon
        self.setFont(font(BODY, 500))
        self.setFixedHeight(H_CONTROL)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def _content_width(self) -> int:
        return text_width(self.text(), self.font()) + (21 if self._icon else 0)

    def sizeHint(self) -> QSize:
        return QSize(self._content_width() + (16 if self._kind == "flat" else 26), H_CONTROL)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        self._paint_ground(draw, area)
        role = self.ROLES.get(self._kind, "text") if self.isEnabled() else "disabled"
        draw.setFont(self.font())
        width = self._content_width()
        x = area.center().x() - width / 2
        if self._icon:
            icon_role = "muted" if role == "text" else role
            icons.paint(draw, self._icon, QRectF(x, area.center().y() - 8, 16, 16), icon_role)
            x += 21
        draw.setPen(color(role))
        draw.drawText(QRectF(x, 0, width + 4, area.height()), VCENTER, self.text())
        is_filled = self._kind == "primary" and self.isEnabled()
        focus_ring(draw, self, area, R_CONTROL, "on_accent" if is_filled else None)

    def _paint_ground(self, draw: QPainter, area: QRectF) -> None:
        live, down = self.isEnabled(), self.isDown()
        hot = live and (down or self.underMouse())
        if self._kind == "primary":
            fill_round(draw, area, R_CONTROL, color("accent" if live else "hover"))
            if hot:
                fill_round(draw, area, R_CONTROL, color("on_accent", 0.22 if down else 0.1))
            return
        state = "pressed" if down else "hover"
        if self._kind == "flat":
            if hot:
                fill_round(draw, area, R_CONTROL, color(state))
            return
        ground = color(state if hot else "raised") if live else None
        fill_round(draw, area, R_CONTROL, ground, color("control", 0.55) if live else color("line"))


def button(text: str, kind: str = "", icon: str | None = None) -> PushButton:
    return PushButton(text, kind, icon)
