"""What goes to the clipboard of a message: its source, and the same as clean rich text.

Editors take the source, a Markdown text, byte for byte; word processors, mails and spreadsheets
take the rich form, in which tables are tables and nothing has a colour or a font.
"""

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QTextDocumentFragment


def copy(source: str) -> None:
    QGuiApplication.clipboard().setMimeData(mime_of(source))


def mime_of(source: str) -> QMimeData:
    from app.chat.exchange import fragment

    data = QMimeData()
    data.setText(source)
    data.setHtml(fragment(source))
    return data


def plain_of(source: str) -> str:
    """The words alone, without the marks of Markdown."""
    from app.chat.exchange import fragment

    return QTextDocumentFragment.fromHtml(fragment(source)).toPlainText().replace("\xa0", " ")


def last_code(source: str) -> str | None:
    from app.chat.exchange import code_blocks

    found = code_blocks(source)
    return found[-1] if found else None
