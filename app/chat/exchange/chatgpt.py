"""conversations.json of a ChatGPT export: a list of chats, each a mapping of nodes."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.chat.exchange.checks import number, object_of, objects, text, texts
from app.chat.exchange.tree import About, Node, saved
from app.chat.exchange.values import Found, gone
from app.store.records import PartRecord

_SILENT = {"user_editable_context", "model_editable_context"}  # settings, not words


def is_one(chats: Sequence[Mapping[str, Any]]) -> bool:
    return bool(chats) and isinstance(chats[0].get("mapping"), dict)


def found(chats: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    for at, chat in enumerate(chats, 1):
        left_out: Counter[str] = Counter()
        nodes = [
            _node(key, object_of(entry), left_out)
            for key, entry in object_of(chat.get("mapping")).items()
        ]
        about = About(
            title=text(chat.get("title")),
            created_at=number(chat.get("create_time")),
            updated_at=number(chat.get("update_time")),
            shown=text(chat.get("current_node")),
        )
        yield Found(saved(nodes, about), left_out, at / len(chats))


def _node(key: str, entry: Mapping[str, Any], left_out: Counter[str]) -> Node:
    message = object_of(entry.get("message"))
    details = object_of(message.get("metadata"))
    role = text(object_of(message.get("author")).get("role"))
    parts: tuple[PartRecord, ...] = ()
    if role in ("user", "assistant") and not details.get("is_visually_hidden_from_conversation"):
        parts = tuple(_parts(object_of(message.get("content")), left_out))
    elif role == "tool":
        left_out["tool's output"] += 1
        role, parts = "assistant", (gone("tool's output"),)
    return Node(
        key,
        text(entry.get("parent")),
        role,
        parts,
        created_at=number(message.get("create_time")),
        model=text(details.get("model_slug")),
    )


def _parts(content: Mapping[str, Any], left_out: Counter[str]) -> Iterator[PartRecord]:
    kind = text(content.get("content_type"))
    if kind == "thoughts":
        for thought in objects(content.get("thoughts")):
            words = [text(thought.get("summary")), text(thought.get("content"))]
            yield PartRecord("thought", "\n\n".join(word for word in words if word))
    elif kind == "code":
        language = text(content.get("language"))
        known = language if language.isalnum() and language != "unknown" else ""
        code = text(content.get("text"))
        longest = max(map(len, re.findall("`+", code)), default=0)
        fence = "`" * max(3, longest + 1)
        yield PartRecord("text", f"{fence}{known}\n{code}\n{fence}")
    elif kind not in _SILENT and kind != "reasoning_recap":
        yield from _written(content, left_out)


def _written(content: Mapping[str, Any], left_out: Counter[str]) -> Iterator[PartRecord]:
    parts = content.get("parts")
    words = texts(parts) if isinstance(parts, list) else [text(content.get("text"))]
    for part in objects(parts):
        kind = text(part.get("content_type"))
        if "image" in kind:
            left_out["picture"] += 1
            words.append(gone("picture").text)
        elif kind == "audio_transcription":
            words.append(text(part.get("text")))
        else:
            left_out["attachment"] += 1
            words.append(gone("attachment").text)
    whole = "\n\n".join(word for word in words if word.strip())
    if whole:
        yield PartRecord("text", whole)
