"""Which chats are there already: those that began at the same moment and hold every message.

A title says nothing: many chats are called "New chat", and one can be renamed. A chat that was gone
on with here holds all of the old one; one that was gone on with elsewhere is new.
"""

import hashlib
import json
from collections.abc import Iterable

from app.chat.exchange.values import Saved
from app.store.records import MessageRecord
from app.store.rows import writable
from app.store.store import Store


class Known:
    """Reads of the store only the chats that began when one that is asked for did."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._begun: dict[float, list[frozenset[bytes]]] = {}  # {moment: messages of each chat}

    def holds(self, chat: Saved) -> bool:
        wanted = _places(chat.messages)
        return any(wanted <= there for there in self._of(chat.conversation.created_at))

    def add(self, chat: Saved) -> None:
        self._of(chat.conversation.created_at).append(_places(chat.messages))

    def _of(self, moment: float) -> list[frozenset[bytes]]:
        if moment not in self._begun:
            numbers = self._store.conversations_begun(moment)
            self._begun[moment] = [_places(self._store.messages(each)) for each in numbers]
        return self._begun[moment]


def _places(messages: Iterable[MessageRecord]) -> frozenset[bytes]:
    """Each message by its words and those of all above it."""
    found: dict[int | None, bytes] = {None: b""}
    for message in messages:
        parts = [
            (part.kind, writable(part.text), str(part.details.get("attachment")))
            for part in message.parts
        ]
        words = json.dumps([message.role, parts]).encode()
        above = found.get(message.parent_id, b"")
        found[message.id] = hashlib.sha256(above + words).digest()
    return frozenset(digest for number, digest in found.items() if number is not None)
