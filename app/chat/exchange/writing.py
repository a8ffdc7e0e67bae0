"""Chats as files: names, Markdown, and all of it as JSON."""

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from app.chat.exchange import own
from app.chat.exchange.errors import ExchangeError
from app.chat.exchange.values import Saved, Shown
from app.store.records import MessageRecord

FORMATS = {
    "md": "Markdown",
    "html": "Web page",
    "pdf": "PDF",
    "json": "Everything, for Inglenook (JSON)",
}
_LONGEST_NAME = 100
_PORTS = {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
_RESERVED = {"con", "prn", "aux", "nul"} | _PORTS  # on Windows
YOU = "You"


def file_name(title: str, ending: str) -> str:
    """A name that every system takes, from a chat's title."""
    plain = re.sub(r'[\x00-\x1f\x7f\\/:*?"<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]+', " ", title)
    plain = " ".join(plain.encode("utf-8", "ignore").decode().split()).strip(". ")
    plain = plain[:_LONGEST_NAME].rstrip(". ")
    if not plain or plain.split(".")[0].lower() in _RESERVED:
        plain = f"Chat {plain}".strip()
    return f"{plain}.{ending}"


def markdown(chat: Shown) -> str:
    """The text of each message is as it was written, unchanged."""
    conversation = chat.conversation
    pieces = [f"# {' '.join(conversation.title.split()) or 'Chat'}", dated(chat)]
    for message in chat.messages:
        pieces.append(f"## {speaker(message)}")
        for part in message.parts:
            if part.kind == "thought" and part.text.strip():
                pieces.append(
                    f"<details>\n<summary>Thoughts</summary>\n\n{part.text}\n\n</details>"
                )
            elif part.kind in ("file", "image"):
                pieces.append(f"*File: {file_label(part.details.get('name'), part.kind)}*")
            elif part.kind == "text" and part.text:
                pieces.append(part.text)
    return "\n\n".join(pieces) + "\n"


def speaker(message: MessageRecord) -> str:
    return YOU if message.role == "user" else message.model or "Answer"


def file_label(name: object, kind: str) -> str:
    return name if isinstance(name, str) and name else {"image": "a picture"}.get(kind, "a file")


def dated(chat: Shown) -> str:
    begun = time.strftime("%Y-%m-%d", time.localtime(chat.conversation.created_at))
    return f"*{begun}, exported from Inglenook*"


def write_chats(chats: Iterable[Saved], path: Path) -> None:
    """All of them, as JSON."""
    with chats_file(path) as write:
        for chat in chats:
            write(chat)


@contextmanager
def chats_file(path: Path) -> Iterator[Callable[[Saved], None]]:
    """Hand one chat after the other to what this gives; the file is there when the block ends."""
    with _new_file(path) as file:
        file.write(own.HEAD)
        count = 0

        def write(chat: Saved) -> None:
            nonlocal count
            file.write(own.BETWEEN if count else "")
            file.write(own.as_json(chat))
            count += 1

        yield write
        file.write(own.TAIL)


def write_text(text: str, path: Path) -> None:
    with _new_file(path) as file:
        file.write(text)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    """The old file stays until the new one is whole, and nothing is left of one that is not."""
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            yield file
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExchangeError(f"“{path.name}” could not be written: {reason}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
