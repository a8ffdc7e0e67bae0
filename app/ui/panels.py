"""Sidebar, page and inspector side by side, and who gives way when the window is narrow.

`arrangement` holds the rule and is pure: all three from 1180 px; below that the two panels replace
each other; under 900 px both are closed, and one that is opened lies over the page. A panel that
the width closed comes back with the width, one that a person closed stays closed.
"""

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRect, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.controls import painter
from app.ui.theme import color

Side = Literal["sidebar", "inspector"]
SIDES: tuple[Side, Side] = ("sidebar", "inspector")
ALL_FIT, ONE_FITS = 1180, 900
PAGE_MIN = 440
LIMITS: dict[Side, tuple[int, int]] = {"sidebar": (220, 380), "inspector": (320, 520)}


@dataclass(frozen=True)
class Arrangement:
    """What is shown: beside the page, or over it."""

    sidebar: bool = False
    inspector: bool = False
    over: Side | None = None

    def shows(self, side: Side) -> bool:
        return self.over == side or bool(getattr(self, side))


def arrangement(
    width: int, *, sidebar: bool, inspector: bool, newest: Side, over: Side | None
) -> Arrangement:
    """`sidebar` and `inspector`: wanted by the person; `newest` was opened last; `over` is what
    was opened in a window too narrow for any panel."""
    if width < ONE_FITS:
        return Arrangement(over=over)
    if width < ALL_FIT and sidebar and inspector:
        return Arrangement(sidebar=newest == "sidebar", inspector=newest == "inspector")
    return Arrangement(sidebar, inspector)


class _Shade(QWidget):
    """Dims the page under a panel that lies over it; a click closes that panel."""

    clicked = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.clicked.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("shadow", 0.28))


class Panels(QWidget):
    changed = Signal()  # which panels are shown

    def __init__(self, sidebar: QWidget, page: QWidget, inspector: QWidget) -> None:
        super().__init__()
        self._panels: dict[Side, QWidget] = {"sidebar": sidebar, "inspector": inspector}
        self._page = page
        self._wanted: dict[Side, bool] = {"sidebar": True, "inspector": False}
        self._widths: dict[Side, int] = {"sidebar": theme.u(264), "inspector": theme.u(344)}
        self._newest: Side = "sidebar"
        self._over: Side | None = None
        self._shown = Arrangement()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setHandleWidth(1)
        self._splitter.splitterMoved.connect(self._on_moved)
        for widget in (sidebar, page, inspector):
            self._splitter.addWidget(widget)
        page.setMinimumWidth(PAGE_MIN)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setCollapsible(1, False)
        for side in SIDES:
            low, high = LIMITS[side]
            self._panels[side].setMinimumWidth(theme.u(low))
            self._panels[side].setMaximumWidth(theme.u(high))
            self._panels[side].hide()
        self._shade = _Shade(self)
        self._shade.hide()
        self._shade.clicked.connect(self.close_over)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._splitter)

    # ---- what is remembered
    def restore(self, *, sidebar: bool, inspector: bool, widths: dict[Side, int]) -> None:
        self._wanted = {"sidebar": sidebar, "inspector": inspector}
        for side in SIDES:
            low, high = (theme.u(limit) for limit in LIMITS[side])
            self._widths[side] = min(max(widths[side], low), high)
        self._arrange()

    def is_wanted(self, side: Side) -> bool:
        return self._wanted[side]

    def width_of(self, side: Side) -> int:
        return self._widths[side]

    def set_width(self, side: Side, width: int) -> None:
        """As if it was dragged to it."""
        if width != self._widths[side]:
            self._widths[side] = width
            if getattr(self._shown, side):
                self._split()
            self._place_over()

    # ---- what a person does
    def is_shown(self, side: Side) -> bool:
        return self._shown.shows(side)

    def is_over(self) -> bool:
        return self._shown.over is not None

    def toggle(self, side: Side) -> None:
        self.set_shown(side, not self.is_shown(side))

    def set_shown(self, side: Side, is_shown: bool) -> None:
        if self.width() < ONE_FITS:
            self._over = side if is_shown else None
        else:
            self._wanted[side] = is_shown
            if is_shown:
                self._newest = side
        self._arrange()

    @Slot()
    def close_over(self) -> None:
        self._over = None
        self._arrange()

    # ---- placing
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.width() >= ONE_FITS:
            self._over = None
        self._arrange()

    def _arrange(self) -> None:
        shown = arrangement(
            self.width(),
            sidebar=self._wanted["sidebar"],
            inspector=self._wanted["inspector"],
            newest=self._newest,
            over=self._over,
        )
        has_changed = shown != self._shown
        self._shown = shown
        if has_changed:
            for side in SIDES:
                self._place(side)
            self._split()
        self._place_over()
        if has_changed:
            self.changed.emit()

    def _place(self, side: Side) -> None:
        """Puts a panel beside the page, over it, or away."""
        panel = self._panels[side]
        if self._shown.over == side:
            panel.setParent(self)
        elif self._splitter.indexOf(panel) < 0:
            self._splitter.insertWidget(0 if side == "sidebar" else 2, panel)
            self._splitter.setStretchFactor(self._splitter.indexOf(self._page), 1)
        panel.setVisible(self._shown.shows(side))

    def _split(self) -> None:
        beside = [side for side in SIDES if getattr(self._shown, side)]
        rest = self.width() - sum(self._widths[side] + 1 for side in beside)
        sizes = []
        for place in range(self._splitter.count()):
            widget = self._splitter.widget(place)
            side = next((s for s in SIDES if self._panels[s] is widget), None)
            if side is None:
                sizes.append(max(rest, PAGE_MIN))
            else:
                sizes.append(self._widths[side] if side in beside else 0)
        self._splitter.setSizes(sizes)

    def _place_over(self) -> None:
        over = self._shown.over
        self._shade.setVisible(over is not None)
        if over is None:
            return
        self._shade.setGeometry(self.rect())
        self._shade.raise_()
        panel = self._panels[over]
        width = min(self._widths[over], self.width() - 48)
        x = 0 if over == "sidebar" else self.width() - width
        panel.setGeometry(QRect(x, 0, width, self.height()))
        panel.raise_()

    @Slot(int, int)
    def _on_moved(self, _position: int, _handle: int) -> None:
        """Widths are remembered; a panel that was dragged shut is closed by hand."""
        for side in SIDES:
            if not getattr(self._shown, side):
                continue
            width = self._splitter.sizes()[self._splitter.indexOf(self._panels[side])]
            if width:
                self._widths[side] = width
            else:
                self.set_shown(side, False)
