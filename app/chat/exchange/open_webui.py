"""The chats that Open WebUI exports: a list of rows, each with a tree of messages in its chat."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.chat.exchange.checks import number, object_of, objects, text, texts
from app.chat.exchange.tree import About, Node, saved
from app.chat.exchange.values import Found, gone
from app.store.records import PartRecord

_THOUGHTS = re.compile(
    r'<details type="reasoning"[^>]*>\s*(?:<summary>.*?</summary>)?(.*?)</details>\s*', re.DOTALL
)
_QUOTED = re.compile(r"^(?:>|&gt;) ?", re.MULTILINE)


def is_one(chats: Sequence[Mapping[str, Any]]) -> bool:
    inner = object_of(chats[0].get("chat")) if chats else {}
    return isinstance(inner.get("messages"), list) or isinstance(inner.get("history"), dict)


def found(chats: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    for at, row in enumerate(chats, 1):
        chat, left_out = object_of(row.get("chat")), Counter[str]()
        history = object_of(chat.get("history"))
        tree = object_of(history.get("messages"))
        nodes = [_node(key, object_of(entry), left_out) for key, entry in tree.items()]
        shown = text(history.get("currentId"))
        if not nodes:  # older chats have no tree
            nodes = _in_a_row(objects(chat.get("messages")), left_out)
            shown = nodes[-1].key if nodes else ""
        created = number(row.get("created_at")) or number(chat.get("timestamp"))
        about = About(
            title=text(row.get("title")) or text(chat.get("title")),
            created_at=created,
            updated_at=number(row.get("updated_at")),
            shown=shown,
            is_pinned=row.get("pinned") is True,
            system_prompt=text(chat.get("system"))
            or text(object_of(chat.get("params")).get("system")),
        )
        yield Found(saved(nodes, about), left_out, at / len(chats))


def _in_a_row(messages: Sequence[Mapping[str, Any]], left_out: Counter[str]) -> list[Node]:
    nodes: list[Node] = []
    for place, entry in enumerate(messages):
        linked = {**entry, "parentId": str(place - 1) if place else ""}
        nodes.append(_node(str(place), linked, left_out))
    return nodes


def _node(key: str, entry: Mapping[str, Any], left_out: Counter[str]) -> Node:
    role = text(entry.get("role"))
    files = ["picture" if file.get("type") == "image" else "attachment"
             for file in objects(entry.get("files"))]  # fmt: skip
    left_out.update(files)
    parts = (*map(gone, files), *_parts(_content(entry.get("content"))))
    return Node(
        key,
        text(entry.get("parentId")),
        role,
        parts if role in ("user", "assistant") else (),
        created_at=number(entry.get("timestamp")),
        model=text(entry.get("modelName")) or text(entry.get("model")),
    )


def _content(value: object) -> str:
    """Text, or a list of parts as OpenAI's interface has them."""
    if isinstance(value, list):
        return "\n\n".join([*texts(value), *(text(part.get("text")) for part in objects(value))])
    return text(value)


def _parts(content: str) -> Iterator[PartRecord]:
    """Thoughts stand in the text, as HTML with quoted lines."""
    at = 0
    for match in _THOUGHTS.finditer(content):
        if content[at : match.start()].strip():
            yield PartRecord("text", content[at : match.start()])
        thought = html.unescape(_QUOTED.sub("", match[1].strip()))
        if thought:
            yield PartRecord("thought", thought)
        at = match.end()
    if content[at:].strip():
        yield PartRecord("text", content[at:])
