"""Formulas as vector pictures: TeX by ziamath, drawn by QtSvg as objects of a text document."""

import logging
import math
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QByteArray, QRect, QRectF, QSizeF
from PySide6.QtGui import (
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from app.ui.formula_rule import LONGEST

_log = logging.getLogger(__name__)

FORMULA_OBJECT = QTextFormat.ObjectTypes.UserObject.value + 1
_PROPERTY = QTextFormat.Property.UserProperty.value
TEX = _PROPERTY + 20  # of the character of a formula
SOURCE = _PROPERTY + 21  # the same with its delimiters, as it was written
PIXELS = _PROPERTY + 22  # size of its letters
IS_DISPLAY = _PROPERTY + 23

DEEPEST = 20  # levels of braces
_REFUSED = ("\\def", "\\newcommand", "\\href", "\\includegraphics")
OBJECT = "\ufffc"


@dataclass(frozen=True)
class Picture:
    renderer: QSvgRenderer
    size: QSizeF
    depth: float  # how much of it stands below the baseline


def _is_bounded(tex: str) -> bool:
    depth = deepest = 0
    for sign in tex:
        depth += (sign == "{") - (sign == "}")
        deepest = max(deepest, depth)
    return len(tex) <= LONGEST and deepest <= DEEPEST and not any(w in tex for w in _REFUSED)


@lru_cache(maxsize=512)
def picture(tex: str, pixels: int, color: str, is_display: bool) -> Picture | None:
    """None if it cannot be set, and is to be shown as it was written."""
    if not _is_bounded(tex):
        return None
    try:
        from ziamath import zmath  # large; most chats have no formula
        from ziamath.config import config

        config.svg2 = False  # QtSvg knows no symbols
        made = zmath.Latex(tex, size=pixels, color=color, inline=not is_display)
        svg, size = made.svg(), made.getsize()
        offset = made.getyofst()
    except Exception as error:  # what the library raises for bad TeX has no common base
        _log.debug("A formula could not be set: %s", error)
        return None
    renderer = QSvgRenderer(QByteArray(svg.encode()))
    box = renderer.viewBoxF()
    if not renderer.isValid() or not all(map(math.isfinite, (*size, offset))) or box.isEmpty():
        return None
    return Picture(renderer, box.size(), max(0.0, box.bottom()))


def chars(
    tex: str, source: str, around: QTextCharFormat, *, is_display: bool
) -> QTextCharFormat | None:
    """The format of the character that stands for a formula; None if it can't be set."""
    used = around.font()
    pixels, color = used.pixelSize(), around.foreground().color().name()
    found = picture(tex, pixels, color, is_display)
    if found is None:
        return None
    made = QTextCharFormat(around)
    made.setObjectType(FORMULA_OBJECT)
    for kind, value in ((TEX, tex), (SOURCE, source), (PIXELS, pixels), (IS_DISPLAY, is_display)):
        made.setProperty(kind, value)
    if not is_display:
        # Qt lets such an object reach below the baseline as far as the letters of its font do.
        used.setPixelSize(max(pixels, math.ceil(found.depth * 4)))
        made.setFont(used)
        made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    return made


def _of(look: QTextFormat) -> Picture | None:
    color = look.foreground().color().name()
    return picture(
        str(look.property(TEX)), int(look.property(PIXELS)), color, bool(look.property(IS_DISPLAY))
    )


class FormulaObjects(QPyTextObject):
    """Measures and draws the formulas of one document."""

    def intrinsicSize(self, _document: QTextDocument, _at: int, look: QTextFormat) -> QSizeF:
        found = _of(look)
        if found is None:
            return QSizeF()
        below = self._below(look)
        return QSizeF(found.size.width(), found.size.height() - found.depth + below)

    @staticmethod
    def _below(look: QTextFormat) -> float:
        """Room below the baseline: of letters, or the picture's own if it stands alone."""
        if look.property(IS_DISPLAY):
            found = _of(look)
            return found.depth if found else 0.0
        return QFontMetricsF(look.toCharFormat().font()).descent()

    def drawObject(
        self,
        draw: QPainter,
        rect: QRectF | QRect,
        _document: QTextDocument,
        _at: int,
        look: QTextFormat,
    ) -> None:
        rect = QRectF(rect)
        found = _of(look)
        if found is not None:
            top = rect.bottom() - self._below(look) - (found.size.height() - found.depth)
            wide = min(rect.width(), found.size.width())
            scale = wide / found.size.width()
            place = QRectF(rect.left(), top, wide, found.size.height() * scale)
            found.renderer.render(draw, place)


def sources_between(selection: QTextCursor) -> list[str]:
    """The formulas of a selection as they were written, in order."""
    cursor, found = QTextCursor(selection.document()), []
    text = selection.selectedText()
    at = text.find(OBJECT)
    while at >= 0:
        # Offsets of Qt count UTF-16 units.
        units = len(text[: at + 1].encode("utf-16-le", "surrogatepass")) // 2
        cursor.setPosition(selection.selectionStart() + units)
        found.append(str(cursor.charFormat().property(SOURCE) or OBJECT))
        at = text.find(OBJECT, at + 1)
    return found


def with_sources(text: str, sources: list[str]) -> str:
    """A text copied from a document, its formulas as they were written."""
    given = iter(sources)
    return "".join(next(given, OBJECT) if sign == OBJECT else sign for sign in text)
