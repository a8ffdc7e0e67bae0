"""What other widgets stand in: panels, layouts, popovers."""

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QKeyEvent,
    QMouseEvent,
    QPainterPath,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.ui import theme
from app.ui.painting import fill_round, painter, soft_shadow
from app.ui.theme import R_CARD, R_POPOVER, S2, S3, color


class Panel(QFrame):
    """A filled area; with a border and round corners where wanted."""

    def __init__(
        self,
        fill: str | None = "raised",
        line: str | None = None,
        radius: int = R_CARD,
        width: float = 1,
        dash: bool = False,
    ) -> None:
        super().__init__()
        self.fill, self.line, self.radius = fill, line, radius
        self.line_width, self.dash = width, dash

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        fill = color(self.fill) if self.fill else None
        if self.dash and self.line:
            pen = QPen(color(self.line), 1.5)
            pen.setDashPattern([4, 3])
            draw.setPen(pen)
            draw.setBrush(fill if fill else Qt.BrushStyle.NoBrush)
            draw.drawRoundedRect(area.adjusted(1, 1, -1, -1), self.radius, self.radius)
            return
        line = color(self.line) if self.line else None
        fill_round(draw, area, self.radius, fill, line, self.line_width)


def box(
    direction: str,
    *items: object,
    margins: tuple[int, int, int, int] = (0, 0, 0, 0),
    spacing: int = S2,
    into: QWidget | None = None,
) -> QBoxLayout:
    """Short notation of a layout, "h" or "v": widgets, layouts, ints as gaps, "stretch",
    (widget or layout, stretch factor); None is left out."""
    layout = QHBoxLayout() if direction == "h" else QVBoxLayout()
    if into is not None:
        into.setLayout(layout)
    layout.setContentsMargins(*margins)
    layout.setSpacing(spacing)
    for item in items:
        if item is not None:
            _add(layout, item)
    return layout


def _add(layout: QBoxLayout, item: object) -> None:
    if item == "stretch":
        layout.addStretch(1)
    elif isinstance(item, int):
        layout.addSpacing(item)
    elif isinstance(item, QLayout):
        layout.addLayout(item)
    elif isinstance(item, tuple):
        thing, factor = item
        if isinstance(thing, QLayout):
            layout.addLayout(thing, factor)
        else:
            layout.addWidget(thing, factor)
    elif isinstance(item, QWidget):
        layout.addWidget(item)
    else:
        raise TypeError(f"box() cannot hold {item!r}")


class Flow(QLayout):
    """In the direction of reading, wrapping: tags, chips, the buttons of a notice."""

    def __init__(self, gap: int = 6) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._gap = gap

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), is_dry=True)

    def sizeHint(self) -> QSize:
        return QSize(120, self.heightForWidth(max(120, self.geometry().width() or 280)))

    def minimumSize(self) -> QSize:
        return QSize(60, 24)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, is_dry=False)

    def _place(self, rect: QRect, *, is_dry: bool) -> int:
        """Places the items, or only measures; gives the height that they take."""
        margins = self.contentsMargins()
        left, right = rect.x() + margins.left(), rect.right() - margins.right()
        x, y, line_height = left, rect.y() + margins.top(), 0
        parent = self.parentWidget()
        mirrored = parent is not None and parent.isRightToLeft()
        for item in self._items:
            widget = item.widget()
            if widget is not None and widget.isHidden():
                continue
            size = item.sizeHint()
            if x + size.width() > right + 1 and x > left:
                x, y, line_height = left, y + line_height + self._gap, 0
            if not is_dry:
                width = right - x if self._grows(item) else min(size.width(), right + 1 - left)
                place_x = left + right + 1 - x - width if mirrored else x
                item.setGeometry(QRect(QPoint(place_x, y), QSize(width, size.height())))
            x += size.width() + self._gap
            line_height = max(line_height, size.height())
        return y + line_height - rect.y() + margins.bottom()

    @staticmethod
    def _grows(item: QLayoutItem) -> bool:
        widget = item.widget()
        return (
            widget is not None
            and widget.sizePolicy().horizontalPolicy() == QSizePolicy.Policy.Expanding
        )


class _Shade(QWidget):
    """Lies over the whole window below an open popover, unseen: a press on it closes that."""

    pressed = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()
        self.pressed.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.accept()


class Popover(QWidget):
    """A raised card with a shadow and an arrow; `body` takes what it shows.

    open_from() shows it over the window, at a control: Esc, a click outside and the focus going
    elsewhere close it, and the focus returns to that control. It is a child of the window, not a
    window of its own: shadows need no compositor then, and no platform has to place it.
    """

    M = 18  # room around the card for its shadow

    closed = Signal()

    def __init__(self, width: int, arrow_x: int | None = None, arrow_top: bool = True) -> None:
        super().__init__()
        self._arrow_x, self._arrow_is_on_top = arrow_x, arrow_top
        self._opener: QWidget | None = None
        self._shade: _Shade | None = None
        self.setFixedWidth(width + 2 * self.M)
        self.body = QVBoxLayout(self)
        margin = self.M + S3
        self.body.setContentsMargins(margin, margin, margin, margin)
        self.body.setSpacing(S2)

    def open_from(self, opener: QWidget, *, above: bool = False) -> None:
        """Shows the card under the opener, or above it where it is told or does not fit."""
        window = opener.window()
        self._opener = opener
        self._shade = _Shade(window)
        self._shade.setGeometry(window.rect())
        self._shade.pressed.connect(self.close)
        self._shade.show()
        self.setParent(window)
        self.adjustSize()
        self._place_at(opener, window, above)
        self.show()
        self.raise_()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFocus(Qt.FocusReason.PopupFocusReason)
        self.focusNextChild()
        window.installEventFilter(self)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._focus_moved)

    def _place_at(self, opener: QWidget, window: QWidget, above: bool) -> None:
        start = opener.mapTo(window, QPoint(0, 0))
        upper = start.y() - self.height() + self.M - 8
        lower = start.y() + opener.height() - self.M + 8
        fits_below = lower + self.height() - self.M <= window.height()
        goes_up = (above or not fits_below) and upper + self.M >= 0
        middle = start.x() + opener.width() // 2
        x = min(middle - self.M - 32, window.width() + self.M - self.width() - 4)
        x = max(x, 4 - self.M)
        self._arrow_is_on_top = not goes_up
        self._arrow_x = min(max(middle - x - self.M, 18), self.width() - 2 * self.M - 18)
        self.move(x, upper if goes_up else lower)

    def _focus_moved(self, _old: QWidget | None, new: QWidget | None) -> None:
        if new is not None and new is not self and not self.isAncestorOf(new):
            self._opener = None  # the person went elsewhere: do not pull the focus back
            self.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.window() and event.type() == QEvent.Type.Resize and self.isVisible():
            self.close()
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
            return
        super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        if self._shade is None:
            return
        self._shade.deleteLater()
        self._shade = None
        self.window().removeEventFilter(self)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.disconnect(self._focus_moved)
        if self._opener is not None:
            self._opener.setFocus(Qt.FocusReason.PopupFocusReason)
            self._opener = None
        self.closed.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        card = QRectF(self.rect()).adjusted(self.M, self.M, -self.M, -self.M)
        soft_shadow(draw, card, R_POPOVER, self.M - 2, 0.6 if theme.is_dark() else 0.16)
        outline = QPainterPath()
        outline.addRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), R_POPOVER, R_POPOVER)
        if self._arrow_x is not None:
            outline = outline.united(self._arrow(card))
        draw.setPen(QPen(color("control", 0.6), 1))
        draw.setBrush(color("raised"))
        draw.drawPath(outline)

    def _arrow(self, card: QRectF) -> QPainterPath:
        x = self.M + (self._arrow_x or 0)
        on_top = self._arrow_is_on_top
        y, tip = (card.top() + 0.5, -7) if on_top else (card.bottom() - 0.5, 7)
        arrow = QPainterPath()
        arrow.moveTo(x - 8, y)
        arrow.lineTo(x, y + tip)
        arrow.lineTo(x + 8, y)
        arrow.closeSubpath()
        return arrow
