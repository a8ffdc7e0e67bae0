"""Chats out of the app and into it: Markdown, HTML and JSON, and what other programs export.

Chats are the store's own records; those that come in have ids that only tell them apart.
"""

from app.chat.exchange.errors import ExchangeError
from app.chat.exchange.reading import looks_like_chats, read_chats
from app.chat.exchange.storing import import_chats, saved_chat
from app.chat.exchange.values import Found, Saved, Shown, Summary
from app.chat.exchange.web_page import code_blocks, fragment, web_page
from app.chat.exchange.writing import (
    FORMATS,
    chats_file,
    file_name,
    markdown,
    write_chats,
    write_text,
)

__all__ = [
    "FORMATS",
    "ExchangeError",
    "Found",
    "Saved",
    "Shown",
    "Summary",
    "chats_file",
    "code_blocks",
    "file_name",
    "fragment",
    "import_chats",
    "looks_like_chats",
    "markdown",
    "read_chats",
    "saved_chat",
    "web_page",
    "write_chats",
    "write_text",
]
