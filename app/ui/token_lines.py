"""Tokens as lines of text: where each of them stands, at a width.

Grows at the end without touching what stands: a line can only change while it is the last one of a
paragraph, so only that one is laid out anew; where letters run to the left, the paragraph. Knows no
widget.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.chat.messages import TokenView
from app.ui.theme import SMALL, color, reading_font
from app.ui.token_words import cut, step_of, units

NO_TEXT = "\u00b7"  # stands for a token without letters of its own
RETURN = "\u21b5"
_RETURNS = re.compile(r"(\n+)")
STEP = 1  # larger than the controls, as the design has it
PILL_OVER = 2.0  # of the tint above and below the letters
LEADING = 5.0  # between the tints of two lines
AFTER_PARAGRAPH = 10.0
INDENT = 12.0  # of thoughts, beside their bar


@dataclass(frozen=True)
class Segment:
    """A part of a token within one paragraph."""

    token: int
    text: str
    is_faint: bool = False  # a sign for something that has no letters, on no tint


@dataclass(frozen=True)
class Span:
    """Where a token stands in a line; `ink` is where its first letter does."""

    token: int
    left: float
    right: float
    ink: float


class Line:
    """One line; `layout` None: the heading of a part."""

    def __init__(
        self,
        top: float,
        height: float,
        *,
        heading: str = "",
        is_thought: bool = False,
        layout: QTextLayout | None = None,
        number: int = 0,
        segments: Sequence[Segment] = (),
        offset: int = 0,  # where the first segment begins in the text of the layout
    ) -> None:
        self.top, self.height, self.heading = top, height, heading
        self.is_thought, self.segments = is_thought, segments
        self.tokens = sorted({segment.token for segment in segments})
        self._layout, self._number, self._offset = layout, number, offset
        self._spans: list[Span] | None = None

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def indent(self) -> float:
        return INDENT if self.is_thought else 0.0

    def spans(self) -> list[Span]:
        """Found when they are first asked for."""
        if self._spans is None:
            self._spans = list(self._find()) if self._layout is not None else []
        return self._spans

    def _find(self) -> list[Span]:
        assert self._layout is not None
        line = self._layout.lineAt(self._number)
        first, at = line.textStart(), self._offset
        last = first + line.textLength()
        text = cut(self._layout.text(), first, last)
        right_to_left = Qt.LayoutDirection.RightToLeft
        is_mixed = (
            self._layout.textOption().textDirection() == right_to_left or _has_right_to_left(text)
        )
        letters_end = first + units(text.rstrip(" "))
        found: list[Span] = []
        for segment in self.segments:
            end = at + units(segment.text)
            blank = units(segment.text) - units(segment.text.lstrip(" "))
            start, stop = max(at, first), min(end, last)
            if end > last and at + blank >= last:  # its blank alone is in this line
                break
            if stop > start:
                ink = min(at + blank, stop)
                if is_mixed and start >= letters_end:
                    edge = _edge(line, last)  # blanks at the end of it have no place of their own
                    found.append(Span(segment.token, edge, edge, edge))
                elif is_mixed:
                    stop = min(stop, letters_end)
                    found += _pieces(line, segment, ink if start < ink < stop else start, stop)
                else:
                    found.append(_span(line, segment, start, stop, ink))
            at = end
        return found

    def draw(self, painter: QPainter) -> None:
        if self._layout is not None:
            self._layout.lineAt(self._number).draw(painter, QPointF(self.indent, self.top))


def _span(line: QTextLine, segment: Segment, start: int, stop: int, ink: int) -> Span:
    """Of letters that all run to the right: up to where the next one begins."""
    left = _edge(line, start)
    is_blank = ink <= start or ink >= stop
    return Span(segment.token, left, _edge(line, stop), left if is_blank else _edge(line, ink))


def _pieces(line: QTextLine, segment: Segment, start: int, stop: int) -> list[Span]:
    """Where letters run both ways, those of a token may stand apart: a span for each piece.

    Asked of the glyphs: a cursor between two directions has more than one place.
    """
    boxes = [run.boundingRect() for run in line.glyphRuns(start, stop - start)]
    pieces: list[list[float]] = []
    for left, right in sorted((box.left(), box.right()) for box in boxes):
        if pieces and left <= pieces[-1][1] + 0.5:
            pieces[-1][1] = max(pieces[-1][1], right)
        else:
            pieces.append([left, right])
    return [Span(segment.token, left, right, left) for left, right in pieces]


def _edge(line: QTextLine, place: int) -> float:
    found: Any = line.cursorToX(place)  # PySide gives the place behind it as well
    return float(found[0] if isinstance(found, tuple | list) else found)


def _direction(text: str) -> Qt.LayoutDirection | None:
    """Of the first letter that has one."""
    for letter in text:
        kind = unicodedata.bidirectional(letter)
        if kind in ("R", "AL"):
            return Qt.LayoutDirection.RightToLeft
        if kind == "L":
            return Qt.LayoutDirection.LeftToRight
    return None


def _has_right_to_left(text: str) -> bool:
    return not text.isascii() and any(
        unicodedata.bidirectional(letter) in ("R", "AL", "AN", "RLE", "RLO", "RLI")
        for letter in text
    )


class TokenLines:
    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._tops: list[float] = []
        self._width = 320.0
        self._tokens: list[TokenView] = []
        self._line_of: list[int] = []  # the line where each token begins
        self._settled = 0  # lines that stay
        self._open: list[Segment] = []  # of the paragraph, from the beginning of its last line
        self._part: bool | None = None  # whether the last token is a thought
        self._gap = 0.0  # above the open text, where it begins a paragraph
        self._has_direction = False
        self._use_fonts()

    def _use_fonts(self) -> None:
        self.font = reading_font(STEP)
        metrics = QFontMetricsF(self.font)
        self.text_height = metrics.ascent() + metrics.descent()
        self.pill_height = self.text_height + 2 * PILL_OVER
        self.line_height = self.pill_height + LEADING
        self.heading_font = reading_font(SMALL, 600)
        self._heading_height = QFontMetricsF(self.heading_font).height() + 8
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setFlags(QTextOption.Flag.IncludeTrailingSpaces)
        self._option = option

    @property
    def height(self) -> float:
        return self.lines[-1].bottom if self.lines else 0.0

    # ---- what is shown
    def set_tokens(self, tokens: Sequence[TokenView]) -> None:
        self._tokens = []
        self.lines, self._tops, self._line_of = [], [], []
        self._settled, self._open, self._part, self._gap = 0, [], None, 0.0
        self._has_direction = False
        self._option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        self.append(tokens)

    def lay_out(self, width: float) -> None:
        """All of it anew: at another width, in other fonts or colours."""
        self._width = max(60.0, width)
        self._use_fonts()
        self.set_tokens(self._tokens)

    @property
    def width(self) -> float:
        return self._width

    def append(self, tokens: Sequence[TokenView]) -> float:
        """The height from which something changed."""
        changed = self._top_of_open()
        if self._find_direction(tokens) and self._tokens:
            self.set_tokens([*self._tokens, *tokens])
            return 0.0
        for token in tokens:
            index = len(self._tokens)
            self._tokens.append(token)
            if token.is_thought != self._part:
                self._begin_part(token.is_thought)
            self._take(index, token)
        self._lay_out_open(is_last=False)
        return changed

    def _find_direction(self, tokens: Sequence[TokenView]) -> bool:
        """The first letter that has one gives it to the whole answer. True: it is right to left."""
        if self._has_direction:
            return False
        found = next((way for token in tokens if (way := _direction(token.text))), None)
        if found is None:
            return False
        self._has_direction = True
        self._option.setTextDirection(found)
        return found == Qt.LayoutDirection.RightToLeft

    def _is_right_to_left(self) -> bool:
        return self._option.textDirection() == Qt.LayoutDirection.RightToLeft

    def _begin_part(self, is_thought: bool) -> None:
        """A chat with thoughts has a heading above them and above the answer."""
        if self._part is not None:
            self._lay_out_open(is_last=True)
        if is_thought or self._part is not None:
            top = self.height + (AFTER_PARAGRAPH if self.lines else 0)
            words = "Thoughts" if is_thought else "Answer"
            self._add(Line(top, self._heading_height, heading=words, is_thought=is_thought))
            self._settled = len(self.lines)
        self._part, self._gap = is_thought, 0.0

    def _take(self, index: int, token: TokenView) -> None:
        is_faint = not step_of(token.probability).tint
        if not token.text:
            self._open.append(Segment(index, NO_TEXT, is_faint))
            return
        for piece in _RETURNS.split(token.text):
            if piece.startswith("\n"):
                self._open.append(Segment(index, RETURN * len(piece), is_faint))
                self._lay_out_open(is_last=True)
                self._gap = AFTER_PARAGRAPH if len(piece) > 1 else 0.0
            elif piece:
                self._open.append(Segment(index, _shown(piece)))

    # ---- the last paragraph
    def _top_of_open(self) -> float:
        if self._settled < len(self.lines):
            return self.lines[self._settled].top
        return self.height

    def _lay_out_open(self, *, is_last: bool) -> None:
        """Anew from its last line on. What is not the last line then, stays as it is."""
        del self.lines[self._settled :], self._tops[self._settled :]
        while self._line_of and self._line_of[-1] >= self._settled:
            self._line_of.pop()
        segments, self._open = self._open, []
        if not segments:
            return
        layout = self._laid_out(segments)
        runs_both_ways = _has_right_to_left(layout.text()) or self._is_right_to_left()
        top = self.height + (self._gap if self.lines and not self.lines[-1].heading else 0.0)
        count, place, at = layout.lineCount(), 0, 0  # `at`: where segments[place] begins
        for number in range(count):
            line = layout.lineAt(number)
            last = line.textStart() + line.textLength()
            if number == count - 1 and not is_last and not runs_both_ways:
                self._open = _rest(segments[place:], line.textStart() - at)
            here, begin = [], at
            while place < len(segments) and at < last:
                here.append(segments[place])
                if at + units(segments[place].text) > last:
                    break  # it goes on in the next line
                at += units(segments[place].text)
                place += 1
            self._add(
                Line(
                    top + number * self.line_height,
                    self.line_height,
                    is_thought=bool(self._part),
                    layout=layout,
                    number=number,
                    segments=here,
                    offset=begin,
                )
            )
        if runs_both_ways and not is_last:  # each line depends on letters before and behind it
            self._open = segments
            return
        self._settled = len(self.lines) - (0 if is_last else 1)
        if is_last or count > 1:
            self._gap = 0.0

    def _laid_out(self, segments: Sequence[Segment]) -> QTextLayout:
        text = "".join(segment.text for segment in segments)
        layout = QTextLayout(text, self.font)
        layout.setTextOption(self._option)
        layout.setFormats(self._formats(segments))
        layout.setCacheEnabled(True)
        layout.beginLayout()
        width = self._width - (INDENT if self._part else 0)
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            # A line draws itself from its own top: the layout's lines all stand at 0.
            line.setPosition(QPointF(0, (self.line_height - line.height()) / 2))
        layout.endLayout()
        return layout

    @staticmethod
    def _formats(segments: Sequence[Segment]) -> list[QTextLayout.FormatRange]:
        """Letters are drawn in the pen's colour, and faint signs in their own."""
        found, at = [], 0
        for segment in segments:
            length = units(segment.text)
            if segment.is_faint:
                made = QTextLayout.FormatRange()
                look = QTextCharFormat()
                look.setForeground(color("faint"))
                made.start, made.length, made.format = at, length, look
                found.append(made)
            at += length
        return found

    def _add(self, line: Line) -> None:
        number = len(self.lines)
        self.lines.append(line)
        self._tops.append(line.top)
        for token in line.tokens:
            if token == len(self._line_of):
                self._line_of.append(number)

    # ---- where things are
    def line_at(self, y: float) -> int:
        """The last line that begins above; 0 where there is none."""
        return max(0, bisect_right(self._tops, y) - 1)

    def token_at(self, x: float, y: float, *, is_near: bool = False) -> int | None:
        """`is_near`: the nearest one of the line will do."""
        if not self.lines or (not is_near and not 0 <= y < self.height):
            return None
        line = self.lines[self.line_at(y)]
        spans = line.spans()
        for span in spans:
            if line.indent + span.left <= x < line.indent + span.right:
                return span.token
        if not is_near or not spans:
            return None

        def distance(span: Span) -> float:
            left, right = line.indent + span.left, line.indent + span.right
            return max(left - x, x - right, 0.0)

        return min(spans, key=distance).token

    def rects(self, token: int) -> list[QRectF]:
        """One for each piece of it in each line that it stands in, around its letters."""
        found = []
        if token < len(self._line_of):
            for line in self.lines[self._line_of[token] :]:
                if line.heading:
                    continue
                if not line.tokens or line.tokens[0] > token:
                    break
                found += [self.pill(line, span) for span in line.spans() if span.token == token]
        return found

    def pill(self, line: Line, span: Span) -> QRectF:
        left = span.ink if span.ink < span.right else span.left
        top = line.top + (line.height - self.pill_height) / 2
        return QRectF(line.indent + left - 0.5, top, span.right - left + 0.5, self.pill_height)

    def line_of(self, token: int) -> int:
        return self._line_of[token]


def _shown(text: str) -> str:
    """Letters that take a place of their own, for all that would not be seen."""
    if text.isprintable():
        return text
    return "".join(_SIGNS.get(ord(letter), letter) for letter in text)


_SIGNS = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}
_SIGNS |= {ord("\t"): "\u2192\u2003", 0x2028: "\u21b5", 0x2029: "\u21b5"}


def _rest(segments: Sequence[Segment], skipped: int) -> list[Segment]:
    """Without the first units of the first one."""
    if not segments or skipped <= 0:
        return list(segments)
    first = segments[0]
    kept = cut(first.text, skipped)
    behind = list(segments[1:])
    return [Segment(first.token, kept, first.is_faint), *behind] if kept else behind
