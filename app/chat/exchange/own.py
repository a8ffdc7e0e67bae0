"""Our own JSON: everything that the app keeps of a chat. docs/chats-file.md tells the format."""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from app.chat.exchange.checks import number, object_of, objects, text
from app.chat.exchange.values import Found, Saved
from app.store.records import ConversationRecord, MessageRecord, PartRecord, State

FORMAT = "inglenook-chats"
VERSION = 1
PART_KINDS = {"text", "thought", "file", "image"}


# Around chats, a line each, so that thousands never lie in memory together.
HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "chats": [\n'
BETWEEN, TAIL = ",\n", "\n]}\n"


def as_json(chat: Saved) -> str:
    return json.dumps(_chat(chat), ensure_ascii=False)


def _chat(chat: Saved) -> dict[str, Any]:
    conversation = chat.conversation
    return {
        "title": conversation.title,
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "folder": chat.folder,
        "is_pinned": conversation.is_pinned,
        "options": conversation.options,
        "shown": conversation.leaf_id,
        "memory_start": conversation.memory_start,
        "messages": [_message(message) for message in chat.messages],
        "files": {
            digest: {"media_type": kind, "base64": base64.b64encode(data).decode("ascii")}
            for digest, (kind, data) in chat.attachments.items()
        },
    }


def _message(message: MessageRecord) -> dict[str, Any]:
    return {
        "id": message.id,
        "parent": message.parent_id,
        "role": message.role,
        "state": message.state.value,
        "created_at": message.created_at,
        "model": message.model,
        "is_pinned": message.is_pinned,
        "parts": [asdict(part) for part in message.parts],
        "token_ids": list(message.token_ids),
        "details": message.details,
    }


# ---- reading


def found(document: Mapping[str, Any]) -> Iterator[Found]:
    chats = objects(document.get("chats"))
    for at, values in enumerate(chats, 1):
        yield Found(_read(values), share=at / len(chats))


def _read(values: Mapping[str, Any]) -> Saved | None:
    files = _files(object_of(values.get("files")))
    messages: dict[int, MessageRecord] = {}
    for entry in objects(values.get("messages")):
        message = _read_message(entry, messages, files)
        if message is not None:
            messages[message.id] = message
    if not messages:
        return None
    shown = values.get("shown")
    begin = values.get("memory_start")
    conversation = ConversationRecord(
        id=0,
        title=text(values.get("title")),
        created_at=number(values.get("created_at")),
        updated_at=number(values.get("updated_at")),
        options=object_of(values.get("options")),
        leaf_id=shown if type(shown) is int and shown in messages else next(reversed(messages)),
        is_pinned=values.get("is_pinned") is True,
        memory_start=begin if type(begin) is int and begin in messages else None,
    )
    return Saved(conversation, tuple(messages.values()), text(values.get("folder")), files)


def _read_message(
    entry: Mapping[str, Any], before: Mapping[int, MessageRecord], files: Mapping[str, Any]
) -> MessageRecord | None:
    """None for what is none; a parent that is missing makes it a beginning."""
    key, parent, role = entry.get("id"), entry.get("parent"), entry.get("role")
    if type(key) is not int or key in before or role not in ("user", "assistant"):
        return None
    state = text(entry.get("state"))
    ids = entry.get("token_ids")
    is_ids = isinstance(ids, list) and all(type(i) is int and 0 <= i < 2**31 for i in ids)
    return MessageRecord(
        id=key,
        conversation_id=0,
        parent_id=parent if type(parent) is int and parent in before else None,
        role=role,
        parts=tuple(_read_part(part, files) for part in objects(entry.get("parts"))),
        state=State(state) if state in set(State) - {State.WRITING} else State.DONE,
        created_at=number(entry.get("created_at")),
        model=text(entry.get("model")),
        token_ids=tuple(ids) if isinstance(ids, list) and is_ids else (),
        details=object_of(entry.get("details")),
        is_pinned=entry.get("is_pinned") is True,
    )


def _read_part(part: Mapping[str, Any], files: Mapping[str, Any]) -> PartRecord:
    kind, details = part.get("kind"), object_of(part.get("details"))
    if "attachment" in details and details["attachment"] not in files:
        details = {name: value for name, value in details.items() if name != "attachment"}
    known = kind if isinstance(kind, str) and kind in PART_KINDS else "text"
    return PartRecord(known, text(part.get("text")), details)


def _files(values: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """Only those that are what their name says."""
    kept = {}
    for digest, entry in values.items():
        try:
            data = base64.b64decode(text(object_of(entry).get("base64")), validate=True)
        except (binascii.Error, ValueError):
            continue
        if hashlib.sha256(data).hexdigest() == digest:
            kept[digest] = text(object_of(entry).get("media_type")), data
    return kept
