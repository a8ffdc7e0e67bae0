"""The conversation: a virtualised scroll area over items. Knows no store and no engine.

Only entries near the viewport exist as widgets, taken from a small pool per kind. Heights are
estimated, then measured; when a measure differs from its estimate above the reader, the scroll
bar moves by as much. The invariant: the line that the reader looks at stays where it is, unless
the reader moves it or the view follows the end.
"""

import math
import time
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QWidget

from app.ui import icons, theme
from app.ui.controls import IconButton, fill_round, painter, soft_shadow
from app.ui.items import Item
from app.ui.message import EDGE, KINDS, MessageWidget
from app.ui.richtext import RichText
from app.ui.theme import READING_WIDTH, color

GAP = 26  # between entries
PAD_X, PAD_TOP, PAD_BOTTOM = 24, 24, 12
OVERSCAN = 400  # px beyond the viewport in which entries exist
EDIT_ROOM = 80  # px of a message that must be seen to edit it where it stands
AT_END = 8  # px from the end that still count as the end
WIDEST_SHARE = 0.15  # of the time that drawing and painting a stream may take
CHEAP_MS = 8.0  # a tick that costs less never waits


class JumpButton(IconButton):
    """Shown when the reader has left the end; new text never pulls them back."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("arrow-down", "Jump to the latest text (End)", 48, 18, "text")
        self.setParent(parent)
        self.hide()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect()).adjusted(8, 6, -8, -10)
        soft_shadow(draw, area, area.height() / 2, 8, 0.3)
        ground = "hover" if self.underMouse() else "raised"
        line = color("accent") if self.hasFocus() else color("control", 0.6)
        fill_round(draw, area, area.height() / 2, color(ground), line, 2 if self.hasFocus() else 1)
        icons.paint(draw, "arrow-down", area.adjusted(7, 7, -7, -7), "text")


@dataclass
class _Anchor:
    """What the reader looks at: an entry, a line of its text if there is one, and its height
    in the viewport."""

    key: int
    y: int
    body: RichText | None = None
    position: int = 0


class TranscriptView(QAbstractScrollArea):
    """Items in, signals with values out. Keys must be unique.

    `action` carries copy, edit, regenerate, statistics, previous, next, or the action of a
    notice's way. An edit happens in place; `edited` then carries the new text.
    """

    action = Signal(int, str)
    link_activated = Signal(str)
    edited = Signal(int, str)

    def __init__(self, max_width: int = READING_WIDTH) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName("Conversation")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._max_width = max_width
        self._items: list[Item] = []
        self._row_of: dict[int, int] = {}
        self._heights: list[int] = []
        self._tops: list[int] = [PAD_TOP]
        self._live: dict[int, MessageWidget] = {}  # by key
        self._pool: dict[str, list[MessageWidget]] = {kind: [] for kind in KINDS}
        self._unfolded: set[int] = set()
        self._follows = True
        self._moves_itself = False
        self._laid_out_width = 0
        self._resized_to: tuple[_Anchor | None, int] = (None, 0)
        self._is_busy = False
        self._pending: dict[int, tuple[str, str]] = {}
        self._draw_again_at = 0.0
        self._late_tick = QTimer(self, singleShot=True)
        self._late_tick.timeout.connect(self._draw_pending)
        self._after_paint = QTimer(self, singleShot=True)
        self._after_paint.timeout.connect(self._count_cost)
        self._tick_started = 0.0
        self.jump = JumpButton(self)
        self.jump.clicked.connect(self.to_end)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.verticalScrollBar().setSingleStep(24)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._focus_changed)

    # ---- items
    def items(self) -> list[Item]:
        return list(self._items)

    @property
    def is_following(self) -> bool:
        """Whether new text keeps the end in view."""
        return self._follows

    @property
    def is_drawn(self) -> bool:
        """Whether all text that it was given is on the page; dear text comes a little later."""
        has_more = any(widget.has_more for widget in self._live.values())
        return not self._pending and not has_more

    def set_items(self, items: Iterable[Item]) -> None:
        """Another conversation, or the same one after a switch of branch: shown at its end."""
        self._forget_pending()
        for key in list(self._live):
            self._release(key)
        self._items = list(items)
        self._unfolded &= {item.key for item in self._items}
        self._heights = [self._guess(item) for item in self._items]
        self._index()
        self._busy_changed()
        self._reflow()
        self.to_end()

    def append(self, item: Item) -> None:
        """At the end. What the person sends brings the view there; an answer only follows."""
        self._items.append(item)
        self._heights.append(self._guess(item))
        self._index()
        self._busy_changed()
        self._reflow()
        if item.role == "user" or self._follows:
            self.to_end()
        else:
            self._realise()

    def replace(self, item: Item) -> None:
        row = self._row_of.get(item.key)
        if row is None:
            return
        self._pending.pop(item.key, None)
        old = self._items[row]
        self._items[row] = item
        self._busy_changed()
        anchor = self._anchor()
        if old.role != item.role and item.key in self._live:
            self._release(item.key, role=old.role)
        widget = self._live.get(item.key)
        if widget is not None:
            self._fill(widget, item)
            self._set_height(row, widget.place(self._column()))
            self._go_on_if_needed()
        else:
            self._set_height(row, self._guess(item))
        self._settle(anchor)

    def remove(self, key: int) -> None:
        row = self._row_of.get(key)
        if row is None:
            return
        self._pending.pop(key, None)
        anchor = self._anchor()
        if key in self._live:
            self._release(key)
        del self._items[row]
        del self._heights[row]
        self._unfolded.discard(key)
        self._index()
        self._busy_changed()
        self._reflow()
        self._settle(anchor)

    def stream(self, key: int, text: str, thought: str = "") -> None:
        """The whole text so far. Draws at once, or, where drawing is dear, as soon as it may."""
        if key not in self._row_of:
            return
        self._pending[key] = (text, thought)
        now = time.monotonic()
        if now >= self._draw_again_at:
            self._draw_pending()
        else:
            self._draw_later()

    def _draw_later(self) -> None:
        if not self._late_tick.isActive() and not self._after_paint.isActive():
            wait = max(0.0, self._draw_again_at - time.monotonic())
            self._late_tick.start(int(wait * 1000) + 1)

    def _draw_pending(self) -> None:
        """Draws what came, and what was left of texts too long for one go."""
        started = time.monotonic()
        pending, self._pending = self._pending, {}
        self._late_tick.stop()
        for key, (text, thought) in pending.items():
            self._draw_growth(key, text, thought)
        for key in [key for key, widget in self._live.items() if widget.has_more]:
            if key not in pending:
                self._advance(key)
        self._tick_started = started
        self._draw_again_at = math.inf
        self._after_paint.start(0)

    def _count_cost(self) -> None:
        """Runs when what was drawn is also painted. A dear tick earns a pause."""
        now = time.monotonic()
        cost = now - self._tick_started
        is_dear = cost * 1000 > CHEAP_MS
        self._draw_again_at = now + cost * (1 / WIDEST_SHARE - 1) if is_dear else 0.0
        if self._pending:
            self._draw_later()
        self._go_on_if_needed()

    def _go_on_if_needed(self) -> None:
        """Texts too long for one go are drawn on, tick by tick."""
        if any(widget.has_more for widget in self._live.values()):
            self._draw_later()

    def _advance(self, key: int) -> None:
        anchor, widget, row = self._anchor(), self._live[key], self._row_of[key]
        widget.advance()
        height = widget.place(self._column())
        if height != self._heights[row]:
            self._set_height(row, height)
            self._settle(anchor)

    def _draw_growth(self, key: int, text: str, thought: str) -> None:
        row = self._row_of.get(key)
        if row is None:
            return
        item = replace(self._items[row], text=text, thought=thought)
        self._items[row] = item
        widget = self._live.get(key)
        is_held = not self._follows or self._is_selecting()
        anchor = self._anchor() if is_held else None
        if widget is not None:
            widget.stream(item)
            height = widget.place(self._column())
        else:
            height = self._guess(item)
        if self._heights[row] != height:
            self._set_height(row, height)
            self._settle(anchor)

    def _forget_pending(self) -> None:
        self._pending.clear()
        self._late_tick.stop()
        self._after_paint.stop()
        self._draw_again_at = 0.0

    def _index(self) -> None:
        self._row_of = {item.key: row for row, item in enumerate(self._items)}

    def _busy_changed(self) -> None:
        is_busy = any(item.is_writing for item in self._items)
        if is_busy == self._is_busy:
            return
        self._is_busy = is_busy
        for widget in self._live.values():
            widget.set_busy(is_busy)

    # ---- geometry
    def _column(self) -> int:
        """From the whole width, so that text stays when the scroll bar comes or goes."""
        return max(40, min(self._max_width, self.width() - 2 * PAD_X))

    def _guess(self, item: Item) -> int:
        per_line = max(20, round(self._column() / (8 * theme.text_scale())))
        lines = len(item.text) // per_line + item.text.count("\n") + 1
        return 2 * EDGE + round(24 * theme.text_scale()) * lines + 60 * (item.role == "assistant")

    def _set_height(self, row: int, height: int) -> None:
        self._heights[row] = height
        self._reflow()

    def _reflow(self) -> None:
        """Running sums, and the range of the scroll bar, without a word to anyone."""
        steps = (height - 2 * EDGE + GAP for height in self._heights)
        self._tops = list(accumulate(steps, initial=PAD_TOP))
        bar, view = self.verticalScrollBar(), self.viewport().height()
        self._moves_itself = True
        bar.setPageStep(max(1, view))
        bar.setRange(0, max(0, self._tops[-1] - GAP + PAD_BOTTOM - view))
        self._moves_itself = False

    def _move_bar(self, value: int) -> None:
        self._moves_itself = True
        self.verticalScrollBar().setValue(value)
        self._moves_itself = False

    def _row_at(self, y: int) -> int:
        return max(0, min(bisect_right(self._tops, y) - 1, len(self._items) - 1))

    def _anchor(self) -> _Anchor | None:
        """The first line of text that is whole in the viewport, else the first entry."""
        if not self._items:
            return None
        value = self.verticalScrollBar().value()
        row = self._row_at(value)
        key = self._items[row].key
        anchor = _Anchor(key, self._tops[row] - value)
        widget = self._live.get(key)
        found = widget.body_at(value - self._tops[row] + EDGE) if widget is not None else None
        if found is not None and widget is not None:
            body, inside = found
            anchor.body, anchor.position = body, body.position_at(inside)
            anchor.y = self._tops[row] - EDGE + body.y() + body.line_top(anchor.position) - value
        return anchor

    def _y_of(self, anchor: _Anchor) -> int | None:
        """Where in the conversation that line is now."""
        row = self._row_of.get(anchor.key)
        if row is None:
            return None
        widget = self._live.get(anchor.key)
        is_shown = widget is not None and anchor.body in widget.bodies()
        if anchor.body is None or not is_shown or anchor.body.isHidden():
            return self._tops[row]
        return self._tops[row] - EDGE + anchor.body.y() + anchor.body.line_top(anchor.position)

    def _hold(self, anchor: _Anchor | None) -> None:
        """Moves the bar so that the anchor is where it was in the viewport."""
        y = self._y_of(anchor) if anchor is not None else None
        if anchor is not None and y is not None:
            self._move_bar(y - anchor.y)

    def _settle(self, anchor: _Anchor | None) -> None:
        """After heights changed: follows the end, or holds what the reader looks at."""
        self._reflow()
        if self._follows and not self._is_selecting():
            self.to_end()
        else:
            self._hold(anchor)
            self._realise()
            self._show_jump()

    @staticmethod
    def _is_selecting() -> bool:
        """While a button is down text must not move under the pointer."""
        return QApplication.mouseButtons() != Qt.MouseButton.NoButton

    # ---- moving
    def to_end(self) -> None:
        self._follows = True
        for _ in range(4):  # measuring the last entries may change the range
            self._move_bar(self.verticalScrollBar().maximum())
            if not self._realise():
                break
        self._show_jump()

    def scroll_to(self, key: int) -> None:
        """Brings the start of an entry into view and leaves the end, if that is elsewhere."""
        row = self._row_of.get(key)
        if row is None:
            return
        self._follows = False
        for _ in range(4):
            self._move_bar(self._tops[row] - PAD_TOP)
            if not self._realise():
                break
        self._follows = self._is_at_end()
        self._show_jump()

    def _is_at_end(self) -> bool:
        bar = self.verticalScrollBar()
        return bar.value() >= bar.maximum() - AT_END

    def _scrolled(self, _value: int) -> None:
        if self._moves_itself:
            return
        self._follows = self._is_at_end()
        self._realise()
        self._show_jump()

    def _show_jump(self) -> None:
        self.jump.setVisible(not self._is_at_end() and bool(self._items))

    # ---- widgets
    def _wanted(self) -> range:
        if not self._items:
            return range(0)
        value, view = self.verticalScrollBar().value(), self.viewport().height()
        first = self._row_at(value - OVERSCAN)
        last = bisect_right(self._tops, value + view + OVERSCAN, hi=len(self._items))
        return range(first, max(last, first + 1))

    def _realise(self) -> bool:
        """Makes, measures and places what is near the viewport. True if a height changed."""
        wanted = self._wanted()
        for key in [key for key in self._live if self._row_of[key] not in wanted]:
            if not self._is_needed(self._live[key]):
                self._release(key)
        anchor = self._anchor()
        changed = False
        for row in wanted:
            if self._items[row].key not in self._live:
                changed = self._make(row) or changed
        if changed:
            self._reflow()
            if not self._follows:
                self._hold(anchor)
        self._place_widgets()
        self._go_on_if_needed()
        return changed

    def _make(self, row: int) -> bool:
        """Gives an entry its widget. True if it is not as high as it was taken to be."""
        item = self._items[row]
        pool = self._pool[item.role]
        widget = pool.pop() if pool else self._new_widget(item.role)
        self._live[item.key] = widget
        self._fill(widget, item)
        height = widget.place(self._column())
        widget.show()
        if height == self._heights[row]:
            return False
        self._heights[row] = height
        return True

    def _new_widget(self, role: str) -> MessageWidget:
        made: MessageWidget = KINDS[role]()
        made.setParent(self.viewport())
        made.action.connect(self._acted)
        made.edited.connect(self._edited)
        made.resized.connect(self._resized_itself)
        made.link_activated.connect(self.link_activated)
        return made

    def _fill(self, widget: MessageWidget, item: Item) -> None:
        widget.fill(item, is_busy=self._is_busy, is_unfolded=item.key in self._unfolded)

    def _place_widgets(self) -> None:
        value = self.verticalScrollBar().value()
        x = (self.width() - self._column()) // 2 - EDGE
        for key, widget in self._live.items():
            widget.move(x, self._tops[self._row_of[key]] - EDGE - value)

    @staticmethod
    def _is_needed(widget: MessageWidget) -> bool:
        focused = QApplication.focusWidget()
        return widget.is_kept or (
            focused is not None and (focused is widget or widget.isAncestorOf(focused))
        )

    def _release(self, key: int, role: str = "") -> None:
        widget = self._live.pop(key)
        focused = QApplication.focusWidget()
        if focused is not None and (focused is widget or widget.isAncestorOf(focused)):
            self.setFocus(Qt.FocusReason.OtherFocusReason)  # never to nowhere
        widget.end_edit()
        widget.hide()
        self._pool[role or widget.item.role].append(widget)

    def live_widgets(self) -> dict[int, MessageWidget]:
        """The entries that exist as widgets now, by key."""
        return dict(self._live)

    def control(self, key: int, name: str) -> QWidget | None:
        """The button of an action, for a popover to stand at; None if it is not shown."""
        widget = self._live.get(key)
        if widget is None:
            return None
        for child in widget.findChildren(IconButton):
            if child.property("action") == name and child.isVisible():
                return child
        return None

    # ---- what a person does
    def edit(self, key: int) -> None:
        """Opens a message for editing, in its place."""
        if key not in self._live:
            self.scroll_to(key)
        widget = self._live.get(key)
        if widget is not None and not widget.item.is_writing and widget.item.role != "notice":
            if not 0 <= widget.y() < self.viewport().height() - EDIT_ROOM:
                self.scroll_to(key)
            widget.begin_edit()

    def _key_of_sender(self) -> int | None:
        sender = self.sender()
        return sender.item.key if isinstance(sender, MessageWidget) else None

    def _acted(self, name: str) -> None:
        key = self._key_of_sender()
        if key is None:
            return
        if name in ("fold", "unfold"):
            (self._unfolded.add if name == "unfold" else self._unfolded.discard)(key)
            return
        if name == "edit":
            self.edit(key)
        self.action.emit(key, name)

    def _edited(self, text: str) -> None:
        key = self._key_of_sender()
        if key is not None:
            self.edited.emit(key, text)

    def _resized_itself(self) -> None:
        """Thoughts or details were opened: what the person clicked stays under the pointer."""
        key = self._key_of_sender()
        widget = self._live.get(key) if key is not None else None
        if key is None or widget is None:
            return
        self._set_height(self._row_of[key], widget.place(self._column()))
        self._follows = self._is_at_end()
        self._realise()
        self._show_jump()

    def _focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        for widget in self._live.values():
            has_focus = new is not None and (new is widget or widget.isAncestorOf(new))
            had_focus = old is not None and (old is widget or widget.isAncestorOf(old))
            if has_focus or had_focus:
                widget.set_focus_inside(has_focus)
                widget.update()

    # ---- keys
    def _focused_row(self) -> int | None:
        focused = QApplication.focusWidget()
        for key, widget in self._live.items():
            if focused is not None and (focused is widget or widget.isAncestorOf(focused)):
                return self._row_of[key]
        return None

    def _focus_row(self, row: int) -> None:
        """Focuses an entry, which may not have been alive, and shows its start."""
        if not 0 <= row < len(self._items):
            return
        key = self._items[row].key
        top, value = self._tops[row], self.verticalScrollBar().value()
        bottom = top + self._heights[row] - 2 * EDGE
        if not (value <= top and bottom <= value + self.viewport().height()):
            self.scroll_to(key)
        if key in self._live:
            self._live[key].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _step_focus(self, step: int) -> None:
        current = self._focused_row()
        if current is None:
            value, view = self.verticalScrollBar().value(), self.viewport().height()
            current = self._row_at(value + view) + 1 if step < 0 else self._row_at(value) - 1
        self._focus_row(min(max(current + step, 0), len(self._items) - 1))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._handle_key(event):
            event.ignore()

    def _handle_key(self, event: QKeyEvent) -> bool:
        bar, key = self.verticalScrollBar(), event.key()
        if event.modifiers() & Qt.KeyboardModifier.AltModifier:
            return self._handle_alt(key)
        steps = {
            Qt.Key.Key_PageUp: -bar.pageStep() + 48,
            Qt.Key.Key_PageDown: bar.pageStep() - 48,
            Qt.Key.Key_Up: -bar.singleStep() * 2,
            Qt.Key.Key_Down: bar.singleStep() * 2,
        }
        if key == Qt.Key.Key_Home:
            bar.setValue(0)
        elif key == Qt.Key.Key_End:
            self.to_end()
        elif key in steps:
            bar.setValue(bar.value() + steps[Qt.Key(key)])
        elif event.matches(QKeySequence.StandardKey.Copy) and self._focused_row() is not None:
            self.action.emit(self._items[self._focused_row() or 0].key, "copy")
        else:
            return False
        return True

    def _handle_alt(self, key: int) -> bool:
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step_focus(-1 if key == Qt.Key.Key_Up else 1)
            return True
        row = self._focused_row()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and row is not None:
            at, count = self._items[row].branch or (1, 1)
            name = "previous" if key == Qt.Key.Key_Left else "next"
            if not self._is_busy and 1 <= at + (1 if name == "next" else -1) <= count:
                self.action.emit(self._items[row].key, name)
            return True
        return False

    # ---- looks
    def retheme(self) -> None:
        """Draws everything in the colours and text size of now; the reader's line stays."""
        anchor = self._anchor()
        for key, widget in self._live.items():
            widget.redraw()
            self._heights[self._row_of[key]] = widget.place(self._column())
        for pool in self._pool.values():
            for widget in pool:
                widget.deleteLater()
            pool.clear()
        for row, item in enumerate(self._items):
            if item.key not in self._live:
                self._heights[row] = self._guess(item)
        self._settle(anchor)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.jump.move((self.width() - 48) // 2, self.height() - 56)
        anchor = self._resize_anchor()
        if self._column() != self._laid_out_width:
            self._laid_out_width = self._column()
            for key, widget in self._live.items():
                self._heights[self._row_of[key]] = widget.place(self._laid_out_width)
            for row, item in enumerate(self._items):
                if item.key not in self._live:
                    self._heights[row] = self._guess(item)
        self._reflow()
        if self._follows:
            self.to_end()
        else:
            self._hold(anchor)
            self._realise()
            self._show_jump()
        self._resized_to = (anchor, self.verticalScrollBar().value())

    def _resize_anchor(self) -> _Anchor | None:
        """The line of the first of several resizes in a row: an edge that is dragged to and fro
        must not walk through the text."""
        anchor, value = self._resized_to
        if anchor is None or value != self.verticalScrollBar().value():
            return self._anchor()
        return anchor if anchor.key in self._live else self._anchor()

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self.viewport()).fillRect(event.rect(), color("canvas"))

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Widgets are moved by _realise."""
