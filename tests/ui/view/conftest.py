"""Shared by the tests of the view: the theme is applied, and documents become values."""

import pytest
from PySide6.QtGui import QTextFrame, QTextTable

from app.ui import theme
from app.ui.decorations import _Mark
from app.ui.document import (
    CODE,
    CODE_GOES_ON,
    CODE_HEAD_OF,
    INLINE_CODE,
    MARK,
    QUOTE,
    RULE,
    TASK,
)
from app.ui.richtext import RichText


def _fragments(block):
    found = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        chars = fragment.charFormat()
        look = (
            chars.font().key(),
            chars.foreground().color().name(),
            chars.anchorHref(),
            chars.hasProperty(INLINE_CODE),
            chars.fontUnderline(),
        )
        if found and found[-1][1] == look:
            found[-1] = (found[-1][0] + fragment.text(), look)
        else:
            found.append((fragment.text(), look))
        iterator += 1
    return found


def _block(block):
    look = block.blockFormat()
    return (
        block.text(),
        (look.topMargin(), look.bottomMargin(), look.leftMargin(), look.rightMargin()),
        (look.lineHeight(), look.headingLevel(), look.indent(), look.alignment()),
        [
            look.property(kind)
            for kind in (CODE, CODE_HEAD_OF, CODE_GOES_ON, QUOTE, RULE, TASK, MARK)
        ],
        _fragments(block),
    )


def _tables(frame: QTextFrame):
    found = []
    for child in frame.childFrames():
        if isinstance(child, QTextTable):
            found.append((child.firstPosition(), child.rows(), child.columns()))
        found += _tables(child)
    return found


def _rects(marks: list[_Mark]):
    return [
        (mark.position, mark.level, mark.rect.getRect(), getattr(mark, "text", ""))
        for mark in marks
    ]


def dump_of(view: RichText):
    """Blocks, tables and decorations of a view that was placed: all that its pixels come from."""
    blocks = []
    block = view.document().begin()
    while block.isValid():
        blocks.append(_block(block))
        block = block.next()
    drawn = view._decorations
    return [
        *blocks,
        _tables(view.document().rootFrame()),
        view.document().rootFrame().frameFormat().topMargin(),
        [(card.position, card.language, card.rect.getRect()) for card in drawn.cards],
        *(_rects(marks) for marks in (drawn.pills, drawn.bars, drawn.items, drawn.rules)),
    ]


@pytest.fixture(autouse=True)
def light(qapp):
    """Every test starts in the light scheme at 100 %, whatever the one before it did."""
    theme.set_text_scale(100)
    theme.apply(qapp, theme.LIGHT)
    return qapp


@pytest.fixture
def dump():
    return dump_of


@pytest.fixture
def drawn(qapp):
    """A function that draws a text at once, to its end."""

    def draw(text: str, width: int = 500) -> RichText:
        view = RichText()
        view.set_markdown(text)
        while view.has_more:
            view.advance()
        view.place(width)
        return view

    return draw
