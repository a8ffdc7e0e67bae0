"""Writes Markdown tokens into a QTextDocument through a cursor. No HTML is made or read.

All of it but tables are blocks of the root frame: code, quotes and rules are blocks with
properties, and decorations.py paints what a document cannot draw. That keeps a growing answer
cheap: Qt lays out anew only from the first block that changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLine,
    QTextTable,
    QTextTableCellFormat,
    QTextTableFormat,
)

from app.ui import formulas, markdown, theme
from app.ui.formula_rule import FORMULA
from app.ui.highlight import highlight
from app.ui.theme import READING, color, font, reading_font

_PROPERTY = QTextFormat.Property.UserProperty.value
INLINE_CODE = _PROPERTY + 1  # of characters: what the last of them is wider by
CODE = _PROPERTY + 2  # of every block of code: how far its card stands in from the left
CODE_HEAD_OF = _PROPERTY + 3  # of the first block of code: its language
CODE_GOES_ON = _PROPERTY + 4  # of a block that continues the line of code before it
QUOTE = _PROPERTY + 5  # of a block: how many quotes it stands in
RULE = _PROPERTY + 6  # of the block of a horizontal rule
TASK = _PROPERTY + 7  # of a list item: 1 open, 2 done
MARK = _PROPERTY + 8  # of the first block of a list item: BULLET, or its number
BULLET = "\u2022"

CODE_HEAD, CODE_TOP, CODE_PAD, CODE_BOTTOM = 30, 11, 14, 11
TABLE_BOTTOM = 12
PILL_ROOM = 4.0  # px beside inline code: its edge, and air
QUOTE_STEP, DEEPEST = 16, 8  # px a level, and how many levels are shown as steps
LINE_BREAK = "\u2028"


def step_width() -> int:
    """How far a list stands in."""
    return round(22 * max(1.0, scale()))


def scale() -> float:
    """How much larger reading text is than the 15 px that the measures here are for."""
    return theme.reading_px() / 15


class Styles:
    """Character formats of one scheme and text size, made once."""

    @lru_cache(maxsize=128)  # noqa: B019 - lives as long as its few instances, see styles()
    def chars(
        self,
        step: int = READING,
        weight: int = 400,
        role: str = "text",
        is_mono: bool = False,
    ) -> QTextCharFormat:
        made = QTextCharFormat()
        made.setFont(reading_font(step, weight, is_mono))
        made.setForeground(color(role))
        return made


@lru_cache(maxsize=4)
def _styles(_scheme: str, _reading_px: int, _family: str) -> Styles:
    return Styles()


def styles() -> Styles:
    return _styles(theme.t().name, theme.reading_px(), theme.ui_family())


def x_of(line: QTextLine, position: int) -> float:
    """Where a position stands in a line. (PySide gives the position behind it as well.)"""
    found: Any = line.cursorToX(position)
    return float(found[0] if isinstance(found, tuple | list) else found)


def prepare(document: QTextDocument) -> None:
    """Empties a document and sets what all of ours have in common."""
    document.clear()
    document.setDocumentMargin(0)
    document.setIndentWidth(step_width())
    document.setUndoRedoEnabled(False)
    document.setDefaultFont(reading_font())


@dataclass
class OpenList:
    """A list that is being written. Its marks are painted: a QTextList would lay out all of its
    items anew for each that is added."""

    is_ordered: bool
    next_number: int = 1
    suffix: str = "."

    def take_mark(self) -> str:
        if not self.is_ordered:
            return BULLET
        self.next_number += 1
        return f"{self.next_number - 1}{self.suffix}"


class Writer:
    """Writes blocks where its cursor stands; may be handed a document's tail again and again.

    `is_fresh` says that the current block is empty and to be used. `lists` is the stack of open
    lists: a writer that goes on inside a list is given the one that was open.
    """

    def __init__(
        self,
        cursor: QTextCursor,
        *,
        is_fresh: bool = True,
        lists: list[OpenList] | None = None,
    ) -> None:
        self.cursor, self.is_fresh = cursor, is_fresh
        self.lists = lists or []
        self.quotes = 0
        self.is_growing = False  # code that stands last is not coloured while it grows
        self._table_before: QTextTable | None = None  # written last: Qt finds it only later
        self._item_is_open = False  # the current block is a list item without text
        self._styles = styles()
        self._environment: dict[str, Any] = {}
        self._source_lines: list[str] = []

    # ---- the walk over tokens
    def write(self, tokens: list[Token], environment: dict[str, Any], source: str) -> None:
        self._environment = environment
        self._source_lines = source.split("\n")
        i = 0
        while i < len(tokens):
            handler = _HANDLERS.get(tokens[i].type)
            i = handler(self, tokens, i) if handler else i + 1

    def finish(self) -> None:
        """The empty block that Qt keeps behind a table takes no room at the end."""
        if self.is_fresh:
            self._collapse()

    def _paragraph(self, tokens: list[Token], i: int) -> int:
        self.paragraph(tokens[i + 1].content)
        return i + 3

    def paragraph(self, content: str) -> None:
        for piece, is_last in _with_last(markdown.pieces(content)):
            self.paragraph_piece(piece, is_last=is_last)

    def paragraph_piece(self, piece: str, *, is_last: bool) -> None:
        bottom = (4 if self.lists else 10) if is_last else 0
        chars = self._styles.chars(role="muted" if self.quotes else "text")
        piece = self._begin_item_text(piece, bottom, chars)
        self._inline(piece, chars)

    def _begin_item_text(self, text: str, bottom: float, chars: QTextCharFormat) -> str:
        """Opens the block for a paragraph; gives its text without the mark of a task."""
        if not self._item_is_open:
            block = self._block(bottom=bottom)
            block.setIndent(self._depth())
            self._begin(block, chars)
            return text
        self._item_is_open = False
        added = QTextBlockFormat()
        added.setBottomMargin(bottom)
        if not self.lists[-1].is_ordered and text[:4].lower() in ("[ ] ", "[x] "):
            added.setProperty(TASK, 1 if text[1] == " " else 2)
            text = text[4:]
        self.cursor.mergeBlockFormat(added)
        return text

    def _heading(self, tokens: list[Token], i: int) -> int:
        level = int(tokens[i].tag[1])
        chars = self._styles.chars({1: 6, 2: 4, 3: 2}.get(level, READING), 650)
        block = self._block(top=14, bottom=6, height=116)
        block.setHeadingLevel(level)
        block.setIndent(self._depth())
        if self._item_is_open:
            self._item_is_open = False
            block.clearProperty(QTextFormat.Property.BlockLeftMargin.value)
            self.cursor.mergeBlockFormat(block)
        else:
            self._begin(block, chars)
        for n, piece in enumerate(markdown.pieces(tokens[i + 1].content)):
            if n:
                self._begin(block, chars)
            self._inline(piece, chars)
        return i + 3

    def _rule(self, _tokens: list[Token], i: int) -> int:
        block = self._block(top=6, bottom=16)
        block.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        block.setIndent(self._depth())
        block.setProperty(RULE, True)
        self._begin(block, self._tiny())
        return i + 1

    # ---- quotes and lists
    def _quote_open(self, _tokens: list[Token], i: int) -> int:
        self.quotes += 1
        return i + 1

    def _quote_close(self, _tokens: list[Token], i: int) -> int:
        self.quotes -= 1
        return i + 1

    def _list_open(self, tokens: list[Token], i: int) -> int:
        """A list that this writer was given (it goes on in the tail) is taken up again."""
        if len(self.lists) == 1 and tokens[i].level == 0:
            return i + 1
        token = tokens[i]
        if token.type.startswith("ordered"):
            start = token.attrGet("start")
            number = int(start) if start is not None else 1
            self.lists.append(OpenList(True, number, token.markup or "."))
        else:
            self.lists.append(OpenList(False))
        return i + 1

    def _item_open(self, _tokens: list[Token], i: int) -> int:
        mark = self.lists[-1].take_mark()
        block = self._block(bottom=4)
        block.setIndent(self._depth())
        block.setProperty(MARK, mark)
        if mark != BULLET:  # numbers need room, long ones more of it
            block.setLeftMargin(block.leftMargin() + 6 + 9 * scale() * max(0, len(mark) - 3))
        self._begin(block, self._styles.chars(role="muted" if self.quotes else "text"))
        self._item_is_open = True
        return i + 1

    def _list_close(self, _tokens: list[Token], i: int) -> int:
        self.lists.pop()
        self._item_is_open = False
        if not self.lists and not self.is_fresh:
            block = self.cursor.blockFormat()
            block.setBottomMargin(max(10.0, block.bottomMargin()))
            self.cursor.setBlockFormat(block)
        return i + 1

    # ---- code
    def _fence(self, tokens: list[Token], i: int) -> int:
        token = tokens[i]
        words = token.info.split()
        is_open = self.is_growing and i == len(tokens) - 1 - len(self.lists) * 2 - self.quotes
        code = token.content.removesuffix("\n")
        self.code(code, words[0] if words else "", is_coloured=not is_open)
        return i + 1

    def _source(self, tokens: list[Token], i: int) -> int:
        self.code(tokens[i].content, "", is_coloured=False)
        return i + 1

    def code(self, code: str, language: str, *, is_coloured: bool = True) -> None:
        self._item_is_open = False
        self._begin(self._code_block(language or "text"), self._code_chars("text"))
        parts = highlight(code, language) if is_coloured else ((code, "text"),)
        for text, role in parts:
            self._code_text(text, self._code_chars(role))
        self.close_code()

    def _code_text(self, text: str, chars: QTextCharFormat) -> None:
        for n, line in enumerate(text.split("\n")):
            if n:
                self.code_line()
            self.code_rest(line, chars)

    def code_line(self) -> None:
        """Begins the next line of code."""
        self.cursor.insertBlock(self._code_block(None), self._code_chars("text"))

    def code_rest(self, text: str, chars: QTextCharFormat | None = None) -> None:
        """Text of the current line, in further blocks where it is long beyond all measure."""
        chars = chars or self._code_chars("text")
        free = markdown.WORD - self.cursor.positionInBlock()
        while len(text) > free:
            self.cursor.insertText(text[:free], chars)
            text, free = text[free:], markdown.WORD
            block = self._code_block(None)
            block.setProperty(CODE_GOES_ON, True)
            self.cursor.insertBlock(block, chars)
        if text:
            self.cursor.insertText(text, chars)

    def close_code(self) -> None:
        """The last line of code keeps the room for the card's lower edge."""
        block = self.cursor.blockFormat()
        block.setBottomMargin(CODE_BOTTOM + 14)
        self.cursor.setBlockFormat(block)

    def reopen_code(self) -> None:
        block = self.cursor.blockFormat()
        block.setBottomMargin(0)
        self.cursor.setBlockFormat(block)

    def _code_chars(self, role: str) -> QTextCharFormat:
        return self._styles.chars(READING - 2, 400, role, True)

    def _code_block(self, language: str | None) -> QTextBlockFormat:
        """A block of code; with a language it is the first, and has room for the card's head."""
        inset = self._inset()
        made = self._block(top=0, bottom=0, height=118)
        made.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        made.setLeftMargin(inset + CODE_PAD)
        made.setRightMargin(CODE_PAD)
        made.setProperty(CODE, float(inset))
        if language is not None:
            made.setProperty(CODE_HEAD_OF, language[:40])
            made.setTopMargin(CODE_HEAD + CODE_TOP + 14)
        return made

    # ---- tables
    def _table(self, tokens: list[Token], i: int) -> int:
        end = next(n for n in range(i, len(tokens)) if tokens[n].type == "table_close") + 1
        found = markdown.table(tokens[i:end], self._source_lines)
        if found is None:
            first, last = tokens[i].map or (0, 0)
            self.code("\n".join(self._source_lines[first:last]).rstrip(), "", is_coloured=False)
            return end
        self._item_is_open = False
        self._write_table(found)
        return end

    def _write_table(self, found: markdown.Table) -> None:
        look = self._table_format()
        if self.is_fresh:
            self._first_at_top(QTextBlockFormat())
            self._collapse()
        made = self.cursor.insertTable(len(found.rows), len(found.alignments), look)
        for r, row in enumerate(found.rows):
            for c, content in enumerate(row):
                cell = made.cellAt(r, c)
                cell.setFormat(_cell_format(is_head=r == 0, is_first=c == 0))
                self.cursor = cell.firstCursorPosition()
                self._cell(content, found.alignments[c], is_head=r == 0)
        self.cursor = made.lastCursorPosition()
        self.cursor.setPosition(made.lastPosition() + 1)
        self._table_before = made
        self.is_fresh = True

    def _table_format(self) -> QTextTableFormat:
        made = QTextTableFormat()
        made.setBorder(0)
        made.setCellSpacing(0)
        made.setCellPadding(0)
        # Qt leaves out the lower margin of a block that stands before a table.
        is_behind_code = not self.is_fresh and self.cursor.blockFormat().hasProperty(CODE)
        made.setTopMargin(CODE_BOTTOM + 14 if is_behind_code else 6)
        made.setBottomMargin(TABLE_BOTTOM)
        made.setLeftMargin(self._inset())
        made.setHeaderRowCount(1)
        made.setBorderCollapse(True)
        return made

    def _cell(self, content: str, alignment: str, *, is_head: bool) -> None:
        block = QTextBlockFormat()
        block.setLineHeight(112, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        if alignment in ("right", "center"):
            block.setAlignment(
                Qt.AlignmentFlag.AlignRight
                if alignment == "right"
                else Qt.AlignmentFlag.AlignHCenter
            )
        chars = self._styles.chars(READING - 1, 600 if is_head else 400)
        for n, piece in enumerate(markdown.pieces(content)):
            if n:
                self.cursor.insertBlock(block, chars)
            else:
                self.cursor.setBlockFormat(block)  # setBlockCharFormat would undo the cell's
            self._inline(piece, chars)

    # ---- blocks
    def _depth(self) -> int:
        return min(len(self.lists), DEEPEST)

    def _inset(self) -> int:
        """How far in code and tables stand; they have no list of Qt's to do it."""
        return QUOTE_STEP * min(self.quotes, DEEPEST) + step_width() * self._depth()

    def _block(self, top: float = 0.0, bottom: float = 10.0, height: int = 132) -> QTextBlockFormat:
        made = QTextBlockFormat()
        made.setTopMargin(top)
        made.setBottomMargin(bottom)
        made.setLineHeight(height, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        if self.quotes:
            levels = min(self.quotes, DEEPEST)
            made.setLeftMargin(QUOTE_STEP * levels)
            made.setProperty(QUOTE, levels)
        return made

    def _begin(self, block: QTextBlockFormat, chars: QTextCharFormat) -> None:
        if self.is_fresh:
            self._first_at_top(block)
            self._first_after_table(block)
            self.cursor.setBlockFormat(block)
            self.cursor.setBlockCharFormat(chars)
        else:
            self.cursor.insertBlock(block, chars)
        self.is_fresh = False
        self._item_is_open = False

    def _first_at_top(self, block: QTextBlockFormat) -> None:
        """Qt gives the first block of a document no top margin: code needs it for its head."""
        if self.cursor.position() != 0:
            return
        frame = self.cursor.document().rootFrame()
        wanted = CODE_HEAD + CODE_TOP if block.hasProperty(CODE) else 0
        if frame.frameFormat().topMargin() != wanted:
            changed = frame.frameFormat()
            changed.setTopMargin(wanted)
            frame.setFrameFormat(changed)

    def _first_after_table(self, block: QTextBlockFormat) -> None:
        """Nor has the block behind a table one: the table makes room for the head of code."""
        at = self.cursor.position()
        table = self._table_before or self.cursor.document().frameAt(max(0, at - 1))
        self._table_before = None
        if not isinstance(table, QTextTable) or table.lastPosition() + 1 != at:
            return
        wanted = TABLE_BOTTOM + (CODE_HEAD + CODE_TOP if block.hasProperty(CODE) else 0)
        look = table.format().toTableFormat()
        if look.bottomMargin() != wanted:
            look.setBottomMargin(wanted)
            table.setFormat(look)

    def _tiny(self) -> QTextCharFormat:
        made = QTextCharFormat()
        tiny: QFont = font()
        tiny.setPixelSize(1)
        made.setFont(tiny)
        return made

    def _collapse(self) -> None:
        """The empty block that Qt keeps beside a table shall take no room."""
        block = QTextBlockFormat()
        block.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self.cursor.setBlockFormat(block)
        self.cursor.setBlockCharFormat(self._tiny())

    # ---- text within a block
    def _inline(self, content: str, base: QTextCharFormat) -> None:
        run: list[str] = []  # neighbours of one look are inserted at once
        stack = [base]
        tokens = markdown.inline(content, self._environment)
        for i, token in enumerate(tokens):
            kind = token.type
            if kind in ("text", "text_special"):
                run.append(token.content)
            elif kind in ("softbreak", "hardbreak"):
                run.append(LINE_BREAK)
            else:
                self._flush(run, stack[-1])
                self._inline_other(token, stack, is_alone=len(tokens) == 1)
                if _is_display(token) and i + 1 < len(tokens):
                    self._end_display(tokens[i + 1], run)
        self._flush(run, stack[-1])

    def _flush(self, run: list[str], chars: QTextCharFormat) -> None:
        text = "".join(run)
        run.clear()
        if "://" not in text or chars.isAnchor():
            if text:
                self.cursor.insertText(text, chars)
            return
        for part, address in markdown.split_addresses(text):
            self.cursor.insertText(part, _link(chars, address) if address else chars)

    def _inline_other(self, token: Token, stack: list[QTextCharFormat], *, is_alone: bool) -> None:
        kind = token.type
        if kind == FORMULA:
            self._formula(token, stack[-1], is_alone=is_alone)
        elif kind == "code_inline":
            self._pill(token.content, self._inline_code(stack[-1]))
        elif kind == "image":  # never fetched: its words, as a link to it
            source = str(token.attrGet("src") or "")
            self.cursor.insertText(token.content or source, _link(stack[-1], source))
        elif kind == "link_open":
            stack.append(_link(stack[-1], str(token.attrGet("href") or "")))
        elif kind in _EMPHASIS:
            made = QTextCharFormat(stack[-1])
            _EMPHASIS[kind](made)
            stack.append(made)
        elif token.nesting < 0 and len(stack) > 1:
            stack.pop()

    def _formula(self, token: Token, around: QTextCharFormat, *, is_alone: bool) -> None:
        """A picture of it; one that can't be set stands as it was written."""
        is_display = bool(token.meta["is_display"])
        chars = formulas.chars(token.content, token.markup, around, is_display=is_display)
        if chars is None:
            self.cursor.insertText(token.markup.replace("\n", LINE_BREAK), around)
            return
        if is_display and is_alone and not self.lists:
            block = self.cursor.blockFormat()
            block.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            self.cursor.setBlockFormat(block)
        elif is_display and not self._stands_at_line_start():
            self.cursor.insertText(LINE_BREAK, around)
        self.cursor.insertText(formulas.OBJECT, chars)

    @staticmethod
    def _end_display(behind: Token, run: list[str]) -> None:
        """What stands behind a displayed formula begins a line."""
        if not behind.type.endswith("break"):
            behind.content = behind.content.lstrip()
            run.append(LINE_BREAK)

    def _stands_at_line_start(self) -> bool:
        before = self.cursor.block().text()[: self.cursor.positionInBlock()]
        return before[-1:] in ("", LINE_BREAK)

    def _pill(self, code: str, chars: QTextCharFormat) -> None:
        """Inline code: the character before it and its own last one make room for its edges."""
        before = self.cursor.block().text()[: self.cursor.positionInBlock()][-1:]
        if before.isascii() and before.isprintable() and before:
            made = QTextCharFormat(self.cursor.charFormat())
            self.cursor.movePosition(
                QTextCursor.MoveOperation.PreviousCharacter, QTextCursor.MoveMode.KeepAnchor
            )
            self.cursor.setCharFormat(_with_room(made))
            self.cursor.setPosition(self.cursor.selectionEnd())
        # A sign that is put together of several characters must not be cut.
        inner, last = (code[:-1], code[-1:]) if code[-1:].isascii() else (code, "")
        if inner:
            self.cursor.insertText(inner, chars)
        if last:
            chars.setProperty(INLINE_CODE, PILL_ROOM)
            self.cursor.insertText(last, _with_room(chars))

    def _inline_code(self, around: QTextCharFormat) -> QTextCharFormat:
        made = QTextCharFormat(self._styles.chars(READING - 2, 500, "text", True))
        made.setProperty(INLINE_CODE, 0.0)
        if around.isAnchor():
            made.setAnchor(True)
            made.setAnchorHref(around.anchorHref())
            made.setForeground(around.foreground())
        return made


def _is_display(token: Token) -> bool:
    return token.type == FORMULA and bool(token.meta["is_display"])


_EMPHASIS = {
    "strong_open": lambda chars: chars.setFontWeight(650),
    "em_open": lambda chars: chars.setFontItalic(True),
    "s_open": lambda chars: chars.setFontStrikeOut(True),
}


def _with_room(chars: QTextCharFormat) -> QTextCharFormat:
    made = QTextCharFormat(chars)
    made.setFontLetterSpacingType(QFont.SpacingType.AbsoluteSpacing)
    made.setFontLetterSpacing(PILL_ROOM)
    return made


def _link(around: QTextCharFormat, address: str) -> QTextCharFormat:
    made = QTextCharFormat(around)
    if markdown.is_safe_link(address):
        made.setAnchor(True)
        made.setAnchorHref(address)
        made.setForeground(color("accent"))
        made.setFontUnderline(True)
    return made


def _cell_format(*, is_head: bool, is_first: bool) -> QTextTableCellFormat:
    made = QTextTableCellFormat()
    made.setTopPadding(6)
    made.setBottomPadding(6)
    made.setLeftPadding(0 if is_first else 16)
    made.setRightPadding(16)
    made.setBottomBorder(1)
    made.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    made.setBottomBorderBrush(color("control" if is_head else "line"))
    return made


def _with_last(parts: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """(part, is it the last) of an iterator that has at least one."""
    held = next(parts)
    for part in parts:
        yield held, False
        held = part
    yield held, True


# Token kind -> how it is written; each gives the index of the token to go on with.
_HANDLERS = {
    "paragraph_open": Writer._paragraph,
    "heading_open": Writer._heading,
    "hr": Writer._rule,
    "blockquote_open": Writer._quote_open,
    "blockquote_close": Writer._quote_close,
    "bullet_list_open": Writer._list_open,
    "ordered_list_open": Writer._list_open,
    "list_item_open": Writer._item_open,
    "bullet_list_close": Writer._list_close,
    "ordered_list_close": Writer._list_close,
    "fence": Writer._fence,
    "code_block": Writer._fence,
    "table_open": Writer._table,
    markdown.SOURCE: Writer._source,
}


def write_plain(document: QTextDocument, text: str) -> None:
    """A text exactly as typed: every line a block, nothing interpreted."""
    prepare(document)
    cursor = QTextCursor(document)
    cursor.setBlockFormat(_plain_block())
    cursor.setBlockCharFormat(styles().chars())
    append_plain(document, text)


def append_plain(document: QTextDocument, text: str) -> None:
    """More of such a text, at its end."""
    cursor = QTextCursor(document)
    cursor.movePosition(QTextCursor.MoveOperation.End)
    cursor.beginEditBlock()
    block, chars = _plain_block(), styles().chars()
    for n, line in enumerate(text.split("\n")):
        if n:
            cursor.insertBlock(block, chars)
        held = cursor.block().text()
        while (place := markdown.cut(held + line)) is not None:
            free = max(0, place[1] - len(held))
            cursor.insertText(line[:free], chars)
            cursor.insertBlock(block, chars)
            line, held = line[free:], ""
        cursor.insertText(line, chars)
    cursor.endEditBlock()


def _plain_block() -> QTextBlockFormat:
    made = QTextBlockFormat()
    made.setLineHeight(132, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return made
