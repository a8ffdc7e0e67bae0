"""An answer token by token: tinted by doubt, walked through by keys, read out one by one.

A QListView in meaning, so that screen readers and the focus know each token; where the tokens are
and how they look is its own. Only the lines in sight are painted, and a batch of new tokens draws
the last line and what follows it.
"""

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView

from app.chat.messages import TokenView
from app.ui.controls import fill_round
from app.ui.theme import color
from app.ui.token_lines import Line, TokenLines
from app.ui.token_words import UNSURE, Step, hint, spoken, step_of

Index = QModelIndex | QPersistentModelIndex
AT_END = 8  # pixels that still count as being at the end
MARGIN = 4  # room for the ring of a token at the edge


class TokenModel(QAbstractListModel):
    """The tokens, as what is shown and said of each."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[TokenView] = []

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.tokens)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        if not index.isValid():
            return None
        token = self.tokens[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return token.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return spoken(token)
        return hint(token) if role == Qt.ItemDataRole.ToolTipRole else None

    def set_tokens(self, tokens: Sequence[TokenView]) -> None:
        self.beginResetModel()
        self.tokens = list(tokens)
        self.endResetModel()

    def append(self, tokens: Sequence[TokenView]) -> None:
        first = len(self.tokens)
        self.beginInsertRows(QModelIndex(), first, first + len(tokens) - 1)
        self.tokens += tokens
        self.endInsertRows()


class TokenFlow(QListView):
    chosen = Signal(int)  # by a click or Enter: its alternatives are wanted
    moved = Signal(int)  # the current token, -1 for none

    def __init__(self) -> None:
        super().__init__()
        self.lines = TokenLines()
        self._pressed = -1
        self._hovered = -1
        self._column: float | None = None  # where Up and Down aim at
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Answer, token by token")
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self._model = TokenModel()
        self.setModel(self._model)

    # ---- what is shown
    @property
    def tokens(self) -> list[TokenView]:
        return self._model.tokens

    def set_tokens(self, tokens: Sequence[TokenView]) -> None:
        self._hovered = self._pressed = -1
        self._model.set_tokens(tokens)
        self.lines.set_tokens(tokens)
        self.updateGeometries()
        self.verticalScrollBar().setValue(0)
        self.viewport().update()

    def append(self, tokens: Sequence[TokenView]) -> None:
        """Further ones at the end; who looks at the end sees them come."""
        bar = self.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - AT_END
        changed = self.lines.append(tokens)
        self._model.append(tokens)
        self.updateGeometries()
        if follows and not self.hasFocus():
            bar.setValue(bar.maximum())
        top = int(changed) - self.verticalOffset()
        view = self.viewport()
        view.update(QRect(0, top, view.width(), max(0, view.height() - top)))

    def restyle(self) -> None:
        self._lay_out()

    @property
    def current(self) -> int:
        index = self.currentIndex()
        return index.row() if index.isValid() else -1

    def go_to(self, token: int) -> None:
        if 0 <= token < len(self.tokens):
            self.setCurrentIndex(self._model.index(token, 0))

    def go_to_unsure(self, step: int) -> bool:
        """The next (1) or the one before (-1). False: there is none on that side."""
        places = range(self.current + step, len(self.tokens) if step > 0 else -1, step)
        found = next((at for at in places if self.tokens[at].probability < UNSURE), None)
        if found is not None:
            self.go_to(found)
        return found is not None

    def rect_of(self, token: int) -> QRect:
        """In the viewport, its part that stands last."""
        rects = self.lines.rects(token)
        return self._in_view(rects[-1]).toAlignedRect() if rects else QRect()

    # ---- geometry, as a view is asked for it
    def _in_view(self, rect: QRectF) -> QRectF:
        return rect.translated(MARGIN, MARGIN - self.verticalOffset())

    def visualRect(self, index: Index) -> QRect:
        rects = self.lines.rects(index.row()) if index.isValid() else []
        return self._in_view(rects[0]).toAlignedRect() if rects else QRect()

    def indexAt(self, point: QPoint) -> QModelIndex:
        y = point.y() + self.verticalOffset() - MARGIN
        token = self.lines.token_at(point.x() - MARGIN, y)
        return QModelIndex() if token is None else self._model.index(token, 0)

    def horizontalOffset(self) -> int:
        return 0

    def verticalOffset(self) -> int:
        return self.verticalScrollBar().value()

    def scrollTo(
        self,
        index: Index,
        hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible,
    ) -> None:
        rects = self.lines.rects(index.row()) if index.isValid() else []
        if not rects:
            return
        bar, room = self.verticalScrollBar(), int(self.lines.line_height)
        top, bottom = int(rects[0].top()) - room // 2, int(rects[-1].bottom()) + room // 2
        if top < bar.value():
            bar.setValue(top)
        elif bottom > bar.value() + self.viewport().height() - 2 * MARGIN:
            bar.setValue(bottom - self.viewport().height() + 2 * MARGIN)

    def setSelection(self, rect: QRect, command: object) -> None:
        """Nothing is selected but the current token."""

    def visualRegionForSelection(self, selection: object) -> QRegion:
        return QRegion()

    def isIndexHidden(self, index: Index) -> bool:
        return False

    def doItemsLayout(self) -> None:
        QAbstractItemView.doItemsLayout(self)

    def updateGeometries(self) -> None:
        bar = self.verticalScrollBar()
        height = self.viewport().height()
        bar.setPageStep(height)
        bar.setSingleStep(int(self.lines.line_height))
        bar.setRange(0, max(0, int(self.lines.height) + 2 * MARGIN - height))

    def rowsInserted(self, parent: Index, start: int, end: int) -> None:
        """Without the layout that a list would do over all its rows."""
        QAbstractItemView.rowsInserted(self, parent, start, end)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self.viewport().scroll(0, dy)

    def resizeEvent(self, event: QResizeEvent) -> None:
        QAbstractItemView.resizeEvent(self, event)
        if self.viewport().width() - 2 * MARGIN != int(self.lines.width):
            self._lay_out()
        self.updateGeometries()

    def _lay_out(self) -> None:
        """At another width or in other letters; the line at the top stays where it is."""
        at = self.lines.token_at(0, self.verticalOffset(), is_near=True)
        self.lines.lay_out(self.viewport().width() - 2 * MARGIN)
        self.updateGeometries()
        if at is not None and self.verticalOffset() > 0:
            line = self.lines.lines[self.lines.line_of(at)]
            self.verticalScrollBar().setValue(int(line.top))
        self.viewport().update()

    # ---- keys and pointer
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        step = 1 if self.isLeftToRight() else -1
        if event.modifiers() & ~(
            Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
        ):
            event.ignore()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            if self.current >= 0:
                self.chosen.emit(self.current)
        elif key == Qt.Key.Key_U:
            is_back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.go_to_unsure(-1 if is_back else 1)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._step(step if key == Qt.Key.Key_Right else -step)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step_line(-1 if key == Qt.Key.Key_Up else 1)
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            lines = max(1, int(self.viewport().height() / self.lines.line_height) - 1)
            self._step_line(-lines if key == Qt.Key.Key_PageUp else lines)
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.go_to(0 if key == Qt.Key.Key_Home else len(self.tokens) - 1)
        else:
            event.ignore()

    def _step(self, step: int) -> None:
        self.go_to(min(max(self.current + step, 0), len(self.tokens) - 1))

    def _step_line(self, step: int) -> None:
        """To the token above or below, where the eye is."""
        if self.current < 0:
            self.go_to(0)
            return
        rect = self.lines.rects(self.current)[0]
        column = rect.center().x() if self._column is None else self._column
        at, way = self.lines.line_at(rect.center().y()), 1 if step > 0 else -1
        at = min(max(at + step, 0), len(self.lines.lines) - 1)
        while 0 <= at < len(self.lines.lines) and not self.lines.lines[at].tokens:
            at += way
        if 0 <= at < len(self.lines.lines):
            line = self.lines.lines[at]
            token = self.lines.token_at(column, line.top + line.height / 2, is_near=True)
            self.go_to(self.current if token is None else token)
            self._column = column

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self._column = None
        for index in (current, previous):
            self._update_token(index.row() if index.isValid() else -1)
        self.moved.emit(current.row() if current.isValid() else -1)

    def _update_token(self, token: int) -> None:
        if 0 <= token < len(self.tokens):
            for rect in self.lines.rects(token):
                around = self._in_view(rect).toAlignedRect().adjusted(-4, -4, 4, 4)
                self.viewport().update(around)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        self._pressed = index.row() if index.isValid() else -1
        if index.isValid() and event.button() == Qt.MouseButton.LeftButton:
            self.setCurrentIndex(index)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        pressed, self._pressed = self._pressed, -1
        if index.isValid() and index.row() == pressed:
            self.chosen.emit(pressed)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        self._hover(index.row() if index.isValid() else -1)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(-1)

    def _hover(self, token: int) -> None:
        if token != self._hovered:
            self._update_token(self._hovered)
            self._hovered = token
            self._update_token(token)
            shape = Qt.CursorShape.PointingHandCursor
            self.viewport().setCursor(shape if token >= 0 else Qt.CursorShape.ArrowCursor)

    # ---- painting
    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.lines.lines:
            return
        draw = QPainter(self.viewport())
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(event.rect()).translated(-MARGIN, self.verticalOffset() - MARGIN)
        draw.translate(MARGIN, MARGIN - self.verticalOffset())
        first = self.lines.line_at(area.top())
        shown = []
        for line in self.lines.lines[first:]:
            if line.top > area.bottom():
                break
            shown.append(line)
        for line in shown:
            self._paint_ground(draw, line)
        draw.setPen(color("text"))
        for line in shown:
            line.draw(draw)
        self._paint_rings(draw, shown)

    def _paint_ground(self, draw: QPainter, line: Line) -> None:
        if line.is_thought:
            draw.fillRect(QRectF(0, line.top, 3, line.height), color("line"))
        if line.heading:
            draw.setFont(self.lines.heading_font)
            draw.setPen(color("muted"))
            area = QRectF(line.indent, line.top, self.lines.width, line.height)
            draw.drawText(area, Qt.AlignmentFlag.AlignVCenter, line.heading)
            return
        for span in line.spans():
            step = step_of(self.tokens[span.token].probability)
            if step.tint:
                paint_tint(draw, self.lines.pill(line, span), step)

    def _paint_rings(self, draw: QPainter, shown: list[Line]) -> None:
        current, hovered = self.current, self._hovered
        for line in shown:
            if current not in line.tokens and hovered not in line.tokens:
                continue
            for span in line.spans():
                ring = self.lines.pill(line, span).adjusted(-1.5, -1.5, 1.5, 1.5)
                if span.token == current:
                    fill_round(draw, ring, 4, None, color("accent"), 2)
                elif span.token == hovered:
                    fill_round(draw, ring, 4, None, color("control"), 1)


def paint_tint(draw: QPainter, rect: QRectF, step: Step) -> None:
    """A ground of the step's colour and, heavier with doubt, a line under it."""
    draw.setPen(Qt.PenStyle.NoPen)
    draw.setBrush(color(step.tint))
    draw.drawRoundedRect(rect, 3, 3)
    weight = 0.6 * step.weight + 0.4
    tone = color("warning" if step.weight < 3 else "danger")
    draw.fillRect(
        QRectF(rect.left() + 1, rect.bottom() - weight, max(1.0, rect.width() - 2), weight), tone
    )
