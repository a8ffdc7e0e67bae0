"""The read-only view of one message, and how it grows while an answer is written.

One message is one document: selection, copy and screen readers see it whole. A growing text is
settled block by block: what stands before the last top-level block (or the last item of a list
that stands last, or the last piece of an endless paragraph) is never touched again. Only whole
lines settle anything, since a line that is half there may still become something else.
Whatever the chunks were, the end is the document that drawing the text at once makes.
"""

import html
import re
from copy import copy
from dataclasses import dataclass, field

from markdown_it.token import Token
from PySide6.QtCore import QEvent, QMimeData, QPointF, QRectF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QTextCursor,
    QTextDocument,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QTextBrowser, QToolTip, QWidget

from app.ui import document as writing
from app.ui import highlight, links, markdown
from app.ui.buttons import IconButton
from app.ui.decorations import Card, Decorations, code_of
from app.ui.document import CODE, CODE_BOTTOM, Writer
from app.ui.formulas import (
    FORMULA_OBJECT,
    OBJECT,
    FormulaObjects,
    sources_between,
    with_sources,
)
from app.ui.painting import fill_round
from app.ui.theme import color

COPIED_MS = 1_500
SLICE = 6_000  # characters that one tick may add
LONGEST_REDRAWN = 150_000  # characters; a longer text is not drawn once more for its late links


@dataclass
class _Settled:
    """How much of the source and of the document stands for good, and inside what it ends."""

    source: int = 0
    position: int = 0
    is_fresh: bool = True
    lists: list[writing.OpenList] = field(default_factory=list)  # of an open top-level list
    is_in_paragraph: bool = False


@dataclass
class _OpenFence:
    """Code that is being written: lines are only appended, until one closes it."""

    start: int  # in the source, of its first line
    offset: int  # in the source, of the line that is being written
    shown: str | None  # what is drawn of that line; None if it has no block yet
    closing: re.Pattern[str]
    mark: str  # its character

    @property
    def is_endless(self) -> bool:
        """Too long for colours, so that nothing has to be drawn anew when it is closed."""
        return self.offset - self.start > highlight.LONGEST

    def may_close(self, line: str) -> bool:
        """Whether a line that is half there may become the last one."""
        return set(line.strip()) <= {self.mark}


def _address(url: QUrl) -> str:
    """As it goes to the browser: a foreign letter in the name of a site can't hide."""
    return url.toString(QUrl.ComponentFormattingOption.FullyEncoded)


def link_hint(target: str) -> str:
    """The whole address, and why it is not opened, as text that is safe in a hint."""
    address = _address(QUrl(target))
    return "<qt>" + "<br>".join(map(html.escape, filter(None, (address, links.doubt(address)))))


class _Document(QTextDocument):
    """QTextDocument itself reads local files where its view has nothing to give: not this one."""

    def loadResource(self, _kind: int, _name: QUrl | str) -> None:
        return


class RichText(QTextBrowser):
    """As tall as its document, never scrolls by itself. Links are signalled and nothing else."""

    link_activated = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = _Document(self)
        self.setDocument(self._document)
        self._document.documentLayout().registerHandler(FORMULA_OBJECT, FormulaObjects(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setOpenLinks(False)
        self.anchorClicked.connect(self._link_clicked)
        self.viewport().setAutoFillBackground(False)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        # Its own width, not the viewport's: a hidden widget lays out late and with an old one.
        self.setLineWrapMode(QTextBrowser.LineWrapMode.FixedPixelWidth)
        self.setAccessibleName("Message text")
        self._decorations = Decorations()
        self._decorated_width = -1.0
        self._dirty_from = 0  # decorations from this position on are out of date
        self._copy_buttons: list[IconButton] = []
        self._reset()

    def _reset(self) -> None:
        self._goal = ""  # the text as it was given
        self._text = ""  # as much of it as is drawn
        self._source = ""  # the same as it is shown
        self._is_plain = False
        self._is_finishing = False
        self.is_streaming = False
        self._settled = _Settled()
        self._fence: _OpenFence | None = None
        self._references = markdown.References()
        self._is_rough = False  # the whole must be drawn once more at the end
        self._dirty_from = 0
        writing.prepare(self.document())

    # ---- what it shows
    @property
    def text(self) -> str:
        """What it was told to show; advance() may still have to draw some of it."""
        return self._goal

    @property
    def has_more(self) -> bool:
        """Whether a text that is too long to be drawn in one go waits for advance()."""
        return self._text != self._goal

    def set_plain(self, text: str) -> None:
        self._reset()
        self._goal, self._is_plain = text, True
        self.advance()

    def set_markdown(self, text: str) -> None:
        """Draws a whole text, at once if it is not too long for that."""
        self._reset()
        self._goal = text
        if len(text) > SLICE:
            self.is_streaming = self._is_finishing = True
            self.advance()
            return
        self._text, self._source = text, markdown.clean(text)
        self._redraw(is_growing=False)

    def stream(self, text: str) -> None:
        """Draws the text so far; settled blocks stay as they are."""
        if not self.is_streaming or not text.startswith(self._text):
            self._reset()
            self.is_streaming = True
        self._goal, self._is_finishing = text, False
        self.advance()

    def finish(self, text: str) -> None:
        """The last tick: the caret goes, colours come, late link definitions take effect."""
        if not self.is_streaming or not text.startswith(self._text):
            if text != self._goal or not text:
                self.set_markdown(text)
            return
        self._goal, self._is_finishing = text, True
        self.advance()

    def advance(self) -> None:
        """Draws what is missing, but at most SLICE characters more."""
        missing = len(self._goal) - len(self._text)
        added = self._goal[len(self._text) :][:SLICE]
        if self._is_plain:
            self._append_plain(added)
            return
        if added:
            self._take(added)
            if missing > SLICE or not self._is_finishing:
                self._redraw(is_growing=True)
        if self._is_finishing and missing <= SLICE:
            self._end()

    def _take(self, added: str) -> None:
        shown = added[1:] if self._text.endswith("\r") and added.startswith("\n") else added
        self._text += added
        self._source += markdown.clean(shown)

    def _append_plain(self, added: str) -> None:
        self._dirty_from = 0
        is_first = not self._text
        self._take(added)
        if is_first:
            writing.write_plain(self.document(), self._source)
        elif added:
            writing.append_plain(self.document(), markdown.clean(added))

    def _end(self) -> None:
        anchor, position = self.textCursor().anchor(), self.textCursor().position()
        self.is_streaming = self._is_finishing = False
        is_short = len(self._source) <= LONGEST_REDRAWN
        if is_short and (self._is_rough or markdown.may_hold_references(self._source)):
            self._start_over(is_growing=False)
        elif not self._append_endless_code():
            self._settle_endless_code()
            self._redraw(is_growing=False)
        self._select(anchor, position)
        self.viewport().update()

    def _append_endless_code(self) -> bool:
        """Code that is too long for colours, and is not closed, stays as it was appended."""
        fence = self._fence
        is_endless = fence is not None and len(self._source) - fence.start > highlight.LONGEST
        return is_endless and self._append_code()

    def redraw(self) -> None:
        """The same text in the colours and size of now."""
        text, is_growing = self._goal, self.is_streaming and not self._is_finishing
        if self._is_plain:
            self.set_plain(text)
        elif is_growing:
            self._reset()
            self.stream(text)
        else:
            self.set_markdown(text)

    # ---- drawing
    def _redraw(self, *, is_growing: bool) -> None:
        anchor, position = self._selection()
        if self._fence is None or not self._append_code():
            self._settle_endless_code()
            if not self._draw_tail(is_growing):
                self._start_over(is_growing)
        self._select(anchor, position)

    def _start_over(self, is_growing: bool) -> None:
        """The block that was settled in part has become another kind of block."""
        self._settled, self._is_rough = _Settled(), True
        self._references = markdown.References()
        self._dirty_from = 0
        writing.prepare(self.document())
        self._draw_tail(is_growing, may_settle=False)

    def _draw_tail(self, is_growing: bool, *, may_settle: bool = True) -> bool:
        """Rewrites what is not settled. False if it no longer fits what it continues."""
        settled = self._settled
        tail = self._source[settled.source :]
        parsed = ("x" if settled.is_in_paragraph else "") + tail
        tokens, environment = markdown.blocks(parsed, self._references)
        if not self._continues(tokens):
            return False
        if settled.is_in_paragraph:
            tokens[1].content = tokens[1].content[1:]
        self._dirty_from = min(self._dirty_from, settled.position)
        cursor = self._without_tail()
        writer = Writer(
            cursor,
            is_fresh=settled.is_fresh,
            lists=[copy(open_list) for open_list in settled.lists],
        )
        cut = self._cut(tokens, parsed) if is_growing and may_settle else 0
        if cut:
            line = (tokens[cut].map or [0])[0]
            writer.write(tokens[:cut], environment, parsed)
            self._references.found.update(environment["references"])
            self._settle(writer, _offset(parsed, line) - len(parsed) + len(tail))
        last_paragraph = self._endless_paragraph(tokens, cut) if is_growing and may_settle else None
        if last_paragraph is not None:
            writer.write(tokens[cut:last_paragraph], environment, parsed)
            self._write_pieces(writer, tokens[last_paragraph + 1].content, parsed)
        else:
            writer.is_growing = is_growing and not _ends_closed(tokens, parsed)
            writer.write(tokens[cut:], environment, parsed)
        writer.finish()
        writer.cursor.endEditBlock()
        if is_growing:
            self._watch_fence(tokens, parsed)
        return True

    def _continues(self, tokens: list[Token]) -> bool:
        settled = self._settled
        if settled.is_in_paragraph:
            return bool(tokens) and tokens[0].type == "paragraph_open"
        if settled.lists:
            wanted = "ordered_list_open" if settled.lists[0].is_ordered else "bullet_list_open"
            return bool(tokens) and tokens[0].type == wanted
        return True

    def _without_tail(self) -> QTextCursor:
        """A cursor at the end of what is settled, behind which nothing is left."""
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        cursor.setPosition(self._settled.position)
        block, chars = cursor.blockFormat(), cursor.blockCharFormat()
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        if cursor.hasSelection():
            cursor.removeSelectedText()
            # An empty block has taken the look of what was removed.
            if self._settled.source and cursor.blockFormat() != block:
                cursor.setBlockFormat(block)
                cursor.setBlockCharFormat(chars)
        return cursor

    def _settle(self, writer: Writer, source_added: int, *, is_in_paragraph: bool = False) -> None:
        self._settled = _Settled(
            source=self._settled.source + source_added,
            position=writer.cursor.position(),
            is_fresh=writer.is_fresh,
            lists=[copy(open_list) for open_list in writer.lists],
            is_in_paragraph=is_in_paragraph,
        )

    def _cut(self, tokens: list[Token], parsed: str) -> int:
        """Index of the token before which everything can be settled; 0 if nothing can."""
        if _last_start(tokens) == 0:
            return 0
        whole_lines = parsed[: parsed.rfind("\n") + 1]
        sure, _ = markdown.blocks(whole_lines, self._references)
        at = _last_start(sure)
        if at == 0:
            return 0
        level, line = sure[at].level, (sure[at].map or [0])[0]
        for i, token in enumerate(tokens):
            if token.level == level and token.nesting >= 0 and (token.map or [-1])[0] == line:
                return i if token.type == sure[at].type or level == 0 else 0
        return 0

    # ---- a paragraph without end
    @staticmethod
    def _endless_paragraph(tokens: list[Token], cut: int) -> int | None:
        """Index of a last top-level paragraph that has more than one piece."""
        start = len(tokens) - 3
        if start < cut or tokens[start].type != "paragraph_open" or tokens[start].level:
            return None
        return start if markdown.cut(tokens[start + 1].content) else None

    def _write_pieces(self, writer: Writer, content: str, parsed: str) -> None:
        """Writes a last paragraph and settles all of its pieces but the last."""
        end = (
            len(self._source) - len(parsed) + len(parsed.rstrip())
        )  # of the content, in the source
        self._is_rough = self._is_rough or "|" in content
        while (place := markdown.cut(content)) is not None:
            writer.paragraph_piece(content[: place[0]], is_last=False)
            content = content[place[1] :]
            self._settled = _Settled(
                source=end - len(content),
                position=writer.cursor.position(),
                is_fresh=False,
                is_in_paragraph=True,
            )
        writer.paragraph_piece(content, is_last=True)

    # ---- code that is being written
    def _watch_fence(self, tokens: list[Token], parsed: str) -> None:
        """Remembers code that stands open at the end, so that the next tick only appends."""
        if not tokens or tokens[-1].type != "fence" or tokens[-1].level or not tokens[-1].map:
            return
        token, line_number = tokens[-1], tokens[-1].map[0]
        first_line = parsed.split("\n")[line_number]
        if not first_line.startswith(token.markup) or _is_closed(token, parsed):
            return
        start = _offset(parsed, line_number) + len(first_line) + 1
        if start > len(parsed):
            return  # its first line is not whole yet
        mark = re.escape(token.markup[0])
        closing = re.compile(rf" {{0,3}}{mark}{{{len(token.markup)},}}[ \t]*")
        line_start = parsed.rfind("\n") + 1
        line = parsed[line_start:]
        shown: str | None = line
        if not line:
            shown = "" if not token.content else None
        base = len(self._source) - len(parsed)
        self._fence = _OpenFence(base + start, base + line_start, shown, closing, token.markup[0])

    def _append_code(self) -> bool:
        """Adds what came to the open code. False if that is no longer all there is to do."""
        fence = self._fence
        if fence is None:
            return False
        *whole, last = self._source[fence.offset :].split("\n")
        if self.is_streaming and fence.is_endless and fence.may_close(last):
            last = ""  # drawn when it is known what it becomes
        if any(fence.closing.fullmatch(line) for line in (*whole, last)):
            return False
        self._append_lines(fence, [*whole, last] if last else whole)
        if last:
            fence.shown = last
        fence.offset = len(self._source) - len(last)
        return True

    def _append_lines(self, fence: _OpenFence, lines: list[str]) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        self._dirty_from = min(self._dirty_from, cursor.block().position())
        cursor.beginEditBlock()
        writer = Writer(cursor, is_fresh=False)
        writer.reopen_code()
        for line in lines:
            if fence.shown is None:
                writer.code_line()
            writer.code_rest(line[len(fence.shown or "") :])
            fence.shown = None
        writer.close_code()
        cursor.endEditBlock()
        return cursor

    def _settle_endless_code(self) -> None:
        """Code that is too long for colours stays as it was appended also when it is closed."""
        fence, self._fence = self._fence, None
        if fence is None:
            return
        lines = self._source[fence.offset :].split("\n")
        at = next((n for n, line in enumerate(lines) if fence.closing.fullmatch(line)), None)
        if at is None or not fence.is_endless:
            return
        before = sum(len(line) + 1 for line in lines[:at])
        cursor = self._append_lines(fence, lines[:at])
        end = min(fence.offset + before + len(lines[at]) + 1, len(self._source))
        self._settled = _Settled(source=end, position=cursor.position(), is_fresh=False)

    # ---- selection
    def _selection(self) -> tuple[int, int]:
        """Anchor and position of a selection that drawing the tail would disturb; else equal."""
        cursor = self.textCursor()
        if not cursor.hasSelection() or cursor.selectionEnd() < self._settled.position:
            return 0, 0
        return cursor.anchor(), cursor.position()

    def _select(self, anchor: int, position: int) -> None:
        if anchor == position:
            return
        end = self.document().characterCount() - 1
        cursor = self.textCursor()
        cursor.setPosition(min(anchor, end))
        cursor.setPosition(min(position, end), QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    # ---- geometry
    def height_for(self, width: int) -> int:
        if self.lineWrapColumnOrWidth() != width:
            self.setLineWrapColumnOrWidth(width)
        shown = self.document()
        if shown.textWidth() != width:
            shown.setTextWidth(width)
        return int(max(shown.size().height(), self._bottom_of_last_card()) + 0.999)

    def _bottom_of_last_card(self) -> float:
        """Qt leaves out the last block's lower margin, in which the card of code ends."""
        last = self.document().lastBlock()
        if not last.blockFormat().hasProperty(CODE):
            return 0.0
        return self.document().documentLayout().blockBoundingRect(last).bottom() + CODE_BOTTOM

    def natural_width(self, most: int) -> int:
        """How wide the text is when it may be `most` px wide."""
        self.height_for(most)
        return min(most, int(self.document().idealWidth() + 1))

    def place(self, width: int) -> int:
        """Lays out at this width and takes the height that the text needs; gives it."""
        height = self.height_for(width)
        if self.width() != width or self.height() != height:
            self.setFixedSize(width, height)
        self._decorate(width)
        return height

    def _decorate(self, width: int) -> None:
        if width != self._decorated_width:
            self._dirty_from, self._decorated_width = 0, width
        self._decorations.collect(self.document(), self._dirty_from)
        self._dirty_from = self.document().characterCount()
        cards = self._decorations.cards
        while len(self._copy_buttons) < len(cards):
            button = IconButton("copy", "Copy code", 24, 15)
            button.setParent(self.viewport())
            button.clicked.connect(self._copy_code)
            self._copy_buttons.append(button)
        for i, button in enumerate(self._copy_buttons):
            if i < len(cards):
                rect = cards[i].rect
                button.move(int(rect.right()) - 30, int(rect.top()) + 4)
            button.setVisible(i < len(cards))

    def line_top(self, position: int) -> int:
        """y of the top of the line that holds this position of the document."""
        block = self.document().findBlock(position)
        if not block.isValid():
            return 0
        top = self.document().documentLayout().blockBoundingRect(block).top()
        line = block.layout().lineForTextPosition(position - block.position())
        return round(top + (line.y() if line.isValid() else 0))

    def position_at(self, y: int) -> int:
        """The first position of the line at this height."""
        layout = self.document().documentLayout()
        hit = max(0, layout.hitTest(QPointF(0, y), Qt.HitTestAccuracy.FuzzyHit))
        block = self.document().findBlock(hit)
        line = block.layout().lineForTextPosition(hit - block.position())
        return block.position() + line.textStart() if line.isValid() else hit

    # ---- copying
    @property
    def cards(self) -> list[Card]:
        return self._decorations.cards

    def _copy_code(self) -> None:
        button = self.sender()
        if not isinstance(button, IconButton):
            return
        index = self._copy_buttons.index(button)
        QGuiApplication.clipboard().setText(code_of(self.document(), self.cards[index]))
        button.set_look("check", "success")
        button.set_tip("Copied")
        QTimer.singleShot(COPIED_MS, button, self._show_copy_icons)

    def _show_copy_icons(self) -> None:
        for button in self._copy_buttons:
            button.set_look("copy", "muted")
            button.set_tip("Copy code")

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text; a selection of the whole message is its source."""
        cursor = self.textCursor()
        everything = self.document().characterCount() - 1
        is_whole = cursor.selectionStart() == 0 and cursor.selectionEnd() == everything
        data = QMimeData()
        selected = cursor.selection().toPlainText()
        if OBJECT in selected:
            selected = with_sources(selected, sources_between(cursor))
        data.setText(markdown.clean(self._goal) if is_whole else selected)
        return data

    # ---- events
    def loadResource(self, _kind: int, _name: QUrl | str) -> None:
        """An answer can never make the app read a file or the network."""
        return

    def _link_clicked(self, url: QUrl) -> None:
        address = _address(url)
        if not links.doubt(address):
            self.link_activated.emit(address)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() != QEvent.Type.ToolTip or not isinstance(event, QHelpEvent):
            return super().viewportEvent(event)
        target = self.anchorAt(event.pos())
        QToolTip.showText(event.globalPos(), link_hint(target) if target else "", self)
        return True

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the transcript scrolls

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys of selecting and of links stay here; those that scroll are the transcript's."""
        wanted = QKeySequence.StandardKey
        kept = (Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Return)
        is_kept = event.key() in kept or event.matches(wanted.Copy)
        if is_kept or event.matches(wanted.SelectAll):
            super().keyPressEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        draw = QPainter(self.viewport())
        draw.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._decorations.paint(draw, QRectF(event.rect()))
        if self.is_streaming and not self._is_finishing:
            self._paint_caret(draw)
        draw.end()
        super().paintEvent(event)

    def _paint_caret(self, draw: QPainter) -> None:
        block = self.document().lastBlock()
        layout = block.layout()
        if not layout.lineCount():
            return
        line = layout.lineAt(layout.lineCount() - 1)
        origin = self.document().documentLayout().blockBoundingRect(block).topLeft()
        x = origin.x() + writing.x_of(line, block.length() - 1) + 3
        height = 16 * writing.scale()
        top = origin.y() + line.y() + max(line.ascent() - height * 0.8, 0)
        caret = QRectF(min(x, self.width() - 9), top, 8, height)
        fill_round(draw, caret, 2, color("accent"))


# ---- helpers
def _offset(text: str, line: int) -> int:
    """Where a line starts."""
    at = 0
    for _ in range(line):
        at = text.index("\n", at) + 1
    return at


def _last_start(tokens: list[Token]) -> int:
    """Index where the last top-level block starts, or the last item of a list that stands last."""
    tops = markdown.top_blocks(tokens)
    if not tops:
        return 0
    start = tops[-1][0]
    if tokens[start].type in ("bullet_list_open", "ordered_list_open"):
        items = [
            i
            for i in range(start, len(tokens))
            if tokens[i].type == "list_item_open" and tokens[i].level == 1
        ]
        if len(items) > 1:
            return items[-1]
    return start


def _is_closed(token: Token, parsed: str) -> bool:
    """Whether this fence has its closing line."""
    first, last = token.map or (0, 0)
    if last - first < 2:
        return False
    line = parsed.split("\n")[last - 1].strip()
    return len(line) >= len(token.markup) and set(line) == {token.markup[0]}


def _ends_closed(tokens: list[Token], parsed: str) -> bool:
    """Whether code that stands last, at the top, is whole."""
    if not tokens or tokens[-1].type != "fence" or tokens[-1].level:
        return False
    return _is_closed(tokens[-1], parsed)
