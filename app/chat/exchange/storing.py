"""Between the store and files of chats."""

from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from app.chat.exchange.known import Known
from app.chat.exchange.reading import read_chats
from app.chat.exchange.values import Saved, Summary
from app.convert.progress import Progress
from app.store.store import Store

_STEPS = 1000  # of a progress, which counts no bytes here


def saved_chat(store: Store, conversation_id: int) -> Saved | None:
    """A chat as it stands; None where it is gone."""
    conversation = store.conversation(conversation_id)
    if conversation is None:
        return None
    messages = store.messages(conversation_id)
    names = {part.details.get("attachment") for message in messages for part in message.parts}
    files = {}
    for digest in names:
        if isinstance(digest, str) and (data := store.attachment(digest)) is not None:
            files[digest] = "application/octet-stream", data
    folders = {folder.id: folder.name for folder in store.folders()}
    return Saved(
        conversation, tuple(messages), folders.get(conversation.folder_id or -1, ""), files
    )


def import_chats(path: Path, store: Store) -> Generator[Progress, None, Summary]:
    """Each chat whole or not at all; one that is cancelled keeps those before. ExchangeError where
    the file holds no chats. What is there already is not doubled."""
    words = f"Reading chats from {path.name}"
    yield Progress(0, _STEPS, words)
    folders = {folder.name: folder.id for folder in store.folders()}
    there = Known(store)
    new: list[int] = []
    left_out: Counter[str] = Counter()
    known = unreadable = 0
    for found in read_chats(path):
        chat = found.chat
        if chat is None:
            unreadable += 1
        elif there.holds(chat):
            known += 1
        else:
            if chat.folder and chat.folder not in folders:
                folders[chat.folder] = store.create_folder(chat.folder)
            place = replace(chat.conversation, folder_id=folders.get(chat.folder))
            new.append(store.add_conversation(place, chat.messages, chat.attachments))
            there.add(chat)
            left_out.update(found.left_out)
        yield Progress(int(found.share * _STEPS), _STEPS, words)
    return Summary(tuple(new), known, unreadable, left_out)
