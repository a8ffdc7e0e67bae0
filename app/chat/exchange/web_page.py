"""A chat as one web page: no scripts, nothing from elsewhere, light and dark, fit to be printed."""

from collections.abc import Iterator
from html import escape

from markdown_it import MarkdownIt

from app.chat.exchange.values import Shown
from app.chat.exchange.writing import dated, file_label, speaker
from app.store.records import MessageRecord

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: .85rem; color: #5a6b6b; margin: 2rem 0 .3rem; }
.user { background: #8881; border-radius: .6rem; padding: .1rem 1rem; white-space: pre-wrap; }
.date, .file, details { color: #5a6b6b; font-size: .9rem; }
pre { background: #8882; border-radius: .4rem; padding: .7rem; white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; } td, th { border: 1px solid #8886; padding: .25rem .6rem; }
blockquote { border-left: 3px solid #8886; margin-left: 0; padding-left: 1rem; }
@media print { h2 { break-after: avoid; } pre, table { break-inside: avoid; } }
"""
_markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
    ["table", "strikethrough"]
)
_markdown.disable("image")  # nothing is fetched when the page is looked at


def web_page(chat: Shown, *, is_folded: bool = True, style: str = _STYLE) -> str:
    """`is_folded`: thoughts open by a click; on paper they are left out."""
    title = escape(" ".join(chat.conversation.title.split()) or "Chat")
    body = "\n".join(
        line for message in chat.messages for line in _message(message, is_folded=is_folded)
    )
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<style>{style}</style></head>\n<body>\n<h1>{title}</h1>\n"
        f'<p class="date">{escape(dated(chat).strip("*"))}</p>\n{body}\n</body></html>\n'
    )


def fragment(source: str) -> str:
    """Markdown as plain HTML without styles, for the clipboard."""
    return str(_markdown.render(source))


def code_blocks(source: str) -> list[str]:
    """What stands in the blocks of code, in their order."""
    kinds = ("fence", "code_block")
    return [token.content for token in _markdown.parse(source) if token.type in kinds]


def _message(message: MessageRecord, *, is_folded: bool) -> Iterator[str]:
    yield f"<h2>{escape(speaker(message))}</h2>"
    for part in message.parts:
        if part.kind == "thought" and part.text.strip() and is_folded:
            yield (
                f"<details><summary>Thoughts</summary>{_markdown.render(part.text)}</details>"
            )
        elif part.kind in ("file", "image"):
            name = escape(file_label(part.details.get("name"), part.kind))
            yield f'<p class="file">File: {name}</p>'
        elif part.kind == "text" and message.role == "user":
            yield f'<div class="user" dir="auto">{escape(part.text)}</div>'
        elif part.kind == "text":
            yield f'<div dir="auto">{_markdown.render(part.text)}</div>'
