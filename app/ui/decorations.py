"""What a text document cannot draw: cards of code, pills, bars of quotes, bullets, rules.

Rects are collected after a layout and only looped over when painting. A growing document is
collected anew from its first changed position; what stands before it is kept.
"""

from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QPainter,
    QTextBlock,
    QTextDocument,
)

from app.ui import icons
from app.ui.document import (
    BULLET,
    CODE,
    CODE_BOTTOM,
    CODE_GOES_ON,
    CODE_HEAD,
    CODE_HEAD_OF,
    CODE_TOP,
    INLINE_CODE,
    MARK,
    QUOTE,
    QUOTE_STEP,
    RULE,
    TASK,
    scale,
    x_of,
)
from app.ui.painting import fill_round
from app.ui.theme import R_BADGE, R_CARD, SMALL, color, font, reading_font

NUMBER_WIDTH = 120  # room that the number of a list item may take


@dataclass
class Card:
    """A card of code: where its text starts in the document, and its place."""

    position: int
    rect: QRectF
    language: str


@dataclass
class _Mark:
    position: int
    rect: QRectF
    level: int = 0


@dataclass
class _ItemMark(_Mark):
    """The mark of a list item; `level` is its task: 0 none, 1 open, 2 done."""

    text: str = BULLET


@dataclass
class Decorations:
    cards: list[Card] = field(default_factory=list)
    pills: list[_Mark] = field(default_factory=list)
    bars: list[_Mark] = field(default_factory=list)
    items: list[_ItemMark] = field(default_factory=list)
    rules: list[_Mark] = field(default_factory=list)

    def collect(self, document: QTextDocument, position: int) -> None:
        """Measures the blocks from the one at `position` on."""
        block = document.findBlock(position)
        if not block.isValid():
            return
        self._forget(block.position())
        layout = document.documentLayout()
        while block.isValid():
            self._block(block, layout, document.textWidth())
            block = block.next()

    def _forget(self, start: int) -> None:
        every: tuple[list[Any], ...] = (self.cards, self.pills, self.bars, self.items, self.rules)
        for marks in every:
            while marks and marks[-1].position >= start:
                marks.pop()

    def _block(self, block: QTextBlock, layout: QAbstractTextDocumentLayout, width: float) -> None:
        look = block.blockFormat()
        if look.hasProperty(QUOTE):
            self._bar(block, layout.blockBoundingRect(block), int(look.property(QUOTE)))
        if look.hasProperty(CODE):
            self._card(block, layout.blockBoundingRect(block), width)
            return
        if look.hasProperty(RULE):
            rect = layout.blockBoundingRect(block)
            left = look.leftMargin()
            self.rules.append(_Mark(block.position(), QRectF(left, rect.top(), width - left, 1)))
            return
        if look.hasProperty(MARK):
            self._item(block, layout.blockBoundingRect(block).topLeft())
        self._pills_of(block, layout)

    def _bar(self, block: QTextBlock, rect: QRectF, levels: int) -> None:
        look = block.blockFormat()
        top = rect.top() - (CODE_HEAD + CODE_TOP if look.hasProperty(CODE_HEAD_OF) else 0)
        is_code_end = look.hasProperty(CODE) and look.bottomMargin() > 0
        bottom = rect.bottom() + (CODE_BOTTOM if is_code_end else 0)
        for level in range(levels):
            place = QRectF(2 + QUOTE_STEP * level, top, 3, bottom - top)
            before = next((bar for bar in reversed(self.bars) if bar.level == level), None)
            if before is not None and self._is_behind(before, block):
                place.setTop(before.rect.bottom())
            self.bars.append(_Mark(block.position(), place, level))

    @staticmethod
    def _is_behind(bar: _Mark, block: QTextBlock) -> bool:
        previous = block.previous()
        return previous.isValid() and previous.position() == bar.position

    def _card(self, block: QTextBlock, rect: QRectF, width: float) -> None:
        look = block.blockFormat()
        if look.hasProperty(CODE_HEAD_OF) or not self.cards:
            left = float(look.property(CODE) or 0)
            top = rect.top() - CODE_HEAD - CODE_TOP
            place = QRectF(left, top, width - left, rect.bottom() + CODE_BOTTOM - top)
            self.cards.append(Card(block.position(), place, str(look.property(CODE_HEAD_OF))))
        else:
            self.cards[-1].rect.setBottom(rect.bottom() + CODE_BOTTOM)

    def _item(self, block: QTextBlock, origin: QPointF) -> None:
        if block.layout().lineCount() == 0:
            return
        look, line = block.blockFormat(), block.layout().lineAt(0)
        text, task = str(look.property(MARK)), int(look.property(TASK) or 0)
        is_rtl = block.textDirection() == Qt.LayoutDirection.RightToLeft
        right = origin.x() + line.x() + line.naturalTextRect().right()
        left = origin.x() + line.x()
        if text != BULLET:
            x = right + 7 if is_rtl else left - 7 - NUMBER_WIDTH
            rect = QRectF(x, origin.y() + line.y(), NUMBER_WIDTH, line.ascent() + line.descent())
        else:
            size = (15.0 if task else 4.8) * scale()
            middle = origin.y() + line.y() + line.ascent() * 0.66
            gap = (13 if task else 11) * scale()
            x = right + gap if is_rtl else left - gap
            rect = QRectF(x - size / 2, middle - size / 2, size, size)
        level = -1 if is_rtl and text != BULLET else task
        self.items.append(_ItemMark(block.position(), rect, level, text))

    def _pills_of(self, block: QTextBlock, layout: QAbstractTextDocumentLayout) -> None:
        iterator = block.begin()
        start: int | None = None  # of a pill whose last character is still to come
        end = 0
        while not iterator.atEnd():
            fragment = iterator.fragment()
            chars, at = fragment.charFormat(), fragment.position() - block.position()
            if chars.hasProperty(INLINE_CODE):
                start = at if start is None else start
                end = at + fragment.length()
                if room := float(chars.property(INLINE_CODE)):
                    self._pill(block, layout, start, end, room)
                    start = None
            elif start is not None:
                self._pill(block, layout, start, end, 0)
                start = None
            iterator += 1
        if start is not None:
            self._pill(block, layout, start, end, 0)

    def _pill(
        self,
        block: QTextBlock,
        layout: QAbstractTextDocumentLayout,
        at: int,
        end: int,
        room: float,
    ) -> None:
        """`room`: how much wider the last character was made, for the edge and the air."""
        origin = layout.blockBoundingRect(block).topLeft()
        while at < end:
            line = block.layout().lineForTextPosition(at)
            if not line.isValid():
                return
            stop = min(end, line.textStart() + line.textLength())
            left, right = sorted((x_of(line, at), x_of(line, stop)))
            base = origin.y() + line.y() + line.ascent()
            height = 18 * scale()
            edge = 3 - room if stop == end else 3
            rect = QRectF(
                origin.x() + left - 3, base - 0.75 * height, right - left + 3 + edge, height
            )
            self.pills.append(_Mark(block.position(), rect))
            if stop <= at:
                return
            at = stop

    # ---- painting
    def paint(self, draw: QPainter, clip: QRectF) -> None:
        for card in self.cards:
            if card.rect.intersects(clip):
                _paint_card(draw, card)
        for pill in self.pills:
            if pill.rect.intersects(clip):
                fill_round(draw, pill.rect, R_BADGE, color("code"), color("line"))
        for bar in self.bars:
            if bar.rect.intersects(clip):
                draw.fillRect(bar.rect, color("line"))
        for rule in self.rules:
            if rule.rect.intersects(clip):
                draw.fillRect(rule.rect, color("line"))
        for item in self.items:
            if item.rect.intersects(clip):
                _paint_item(draw, item)


def _paint_card(draw: QPainter, card: Card) -> None:
    rect = card.rect
    fill_round(draw, rect, R_CARD, color("code"), color("line"))
    line = QRectF(rect.left() + 1, rect.top() + CODE_HEAD + 2, rect.width() - 2, 1)
    draw.fillRect(line, color("line"))
    draw.setFont(font(SMALL, 500))
    draw.setPen(color("muted"))
    place = QRectF(rect.left() + 13, rect.top() + 1, rect.width() - 60, CODE_HEAD)
    draw.drawText(place, Qt.AlignmentFlag.AlignVCenter, card.language)


def _paint_item(draw: QPainter, item: _ItemMark) -> None:
    if item.text != BULLET:
        draw.setFont(reading_font())
        draw.setPen(color("text"))
        side = Qt.AlignmentFlag.AlignLeft if item.level < 0 else Qt.AlignmentFlag.AlignRight
        draw.drawText(item.rect, side | Qt.AlignmentFlag.AlignBottom, item.text)
    elif not item.level:
        draw.setPen(Qt.PenStyle.NoPen)
        draw.setBrush(color("muted"))
        draw.drawEllipse(item.rect)
    else:
        _paint_task(draw, item.rect, is_done=item.level == 2)


def _paint_task(draw: QPainter, rect: QRectF, *, is_done: bool) -> None:
    fill = color("accent") if is_done else None
    fill_round(draw, rect, 3, fill, color("accent" if is_done else "control"), 1.25)
    if is_done:
        icons.paint(draw, "check", rect.adjusted(1.5, 1.5, -1.5, -1.5), "on_accent")


def code_of(document: QTextDocument, card: Card) -> str:
    """The code of a card, as it was written."""
    block = document.findBlock(card.position)
    parts = [block.text()]
    block = block.next()
    while block.isValid():
        look = block.blockFormat()
        if not look.hasProperty(CODE) or look.hasProperty(CODE_HEAD_OF):
            break
        parts.append(("" if look.hasProperty(CODE_GOES_ON) else "\n") + block.text())
        block = block.next()
    return "".join(parts)
