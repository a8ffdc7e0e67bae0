"""A chat on paper: pages with numbers, in a PDF file whose words can be searched."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMarginsF, QRectF, QSizeF, Qt
from PySide6.QtGui import QFont, QPageLayout, QPageSize, QPainter, QPdfWriter, QTextDocument

if TYPE_CHECKING:
    from app.chat.exchange import Shown

MARGIN_MM = 20.0
POINTS = 10.5
_STYLE = """
h1 { font-size: 17pt; } h2 { font-size: 9pt; color: #5a6b6b; margin-top: 14pt; }
pre, code { font-family: monospace; font-size: 9pt; }
pre { background-color: #f1f3f3; } th, td { padding: 2pt 5pt; border: 1px solid #c8d0d0; }
.date, .file { color: #5a6b6b; }
"""


def print_chat(chat: "Shown", path: str) -> None:
    """OSError where the file cannot be written. Thoughts stay out."""
    from app.chat.exchange import web_page

    target = Path(path)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    part.touch()  # raises the system's own error
    try:
        _print(web_page(chat, is_folded=False, style=_STYLE), chat.conversation.title, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _print(page: str, title: str, path: Path) -> None:
    writer = QPdfWriter(str(path))
    writer.setResolution(144)
    writer.setTitle(title)
    writer.setCreator("Inglenook")
    margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
    size = QPageSize(QPageSize.PageSizeId.A4)
    writer.setPageLayout(
        QPageLayout(size, QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter)
    )
    document = QTextDocument()
    font = QFont()
    font.setPointSizeF(POINTS)
    document.setDefaultFont(font)
    document.documentLayout().setPaintDevice(writer)
    document.setHtml(page)
    area = QSizeF(writer.width(), writer.height())
    document.setPageSize(area)
    painter = QPainter(writer)
    if not painter.isActive():
        raise OSError("The PDF file could not be begun")
    for number in range(document.pageCount()):
        if number:
            writer.newPage()
        painter.save()
        painter.translate(0, -number * area.height())
        inside = QRectF(0, number * area.height(), area.width(), area.height())
        document.drawContents(painter, inside)
        painter.restore()
        foot = QRectF(0, area.height() + 20, area.width(), 60)
        painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, str(number + 1))
    painter.end()
