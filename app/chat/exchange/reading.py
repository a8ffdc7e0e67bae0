"""A file of chats from anywhere: what it is, is told by what it holds, not by its name."""

import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.chat.exchange import chatgpt, open_webui, own
from app.chat.exchange.errors import ExchangeError
from app.chat.exchange.values import Found

MOST_BYTES = 1 << 30
INSIDE = "conversations.json"  # in the archive that ChatGPT sends
_HEAD_BYTES = 1 << 16
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, ValueError)
_SIGNS = (b'"mapping"', b'"inglenook-chats"', b'"history"', b'"currentId"')


def looks_like_chats(path: Path) -> bool:
    """From the beginning alone: whether it is worth asking if these are chats."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                return _inside(archive) is not None
    except (OSError, zipfile.BadZipFile):
        return False
    return head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[") and any(
        sign in head for sign in _SIGNS
    )


def read_chats(path: Path) -> Iterator[Found]:
    """One after the other; ExchangeError, before the first, where the file holds none."""
    document = _document(path)
    if isinstance(document, dict) and document.get("format") == own.FORMAT:
        version = document.get("version")
        if type(version) is not int or version > own.VERSION:
            raise ExchangeError(f"“{path.name}” was written by a newer Inglenook: update this one.")
        return own.found(document)
    chats = document if isinstance(document, list) else [document]
    rows = [chat for chat in chats if isinstance(chat, dict)]
    if chatgpt.is_one(rows):
        return chatgpt.found(rows)
    if open_webui.is_one(rows):
        return open_webui.found(rows)
    raise ExchangeError(
        f"“{path.name}” holds no chats that can be read here: exports of Inglenook, ChatGPT and "
        "Open WebUI can."
    )


def _document(path: Path) -> Any:
    data = _bytes(path)
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ExchangeError(
            f"“{path.name}” is no JSON file, or it is cut or damaged: export the chats again."
        ) from error


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ExchangeError(f"“{path.name}” is larger than 1 GB, too large to be read.")
        data = path.read_bytes()
        return _unpacked(path) if data.startswith(b"PK") else data
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExchangeError(f"“{path.name}” could not be read: {reason}.") from error


def _unpacked(path: Path) -> bytes:
    """Of an archive the one file that is known, and no more of it than fits."""
    try:
        with zipfile.ZipFile(path) as archive:
            entry = _inside(archive)
            if entry is None:
                raise ExchangeError(f"“{path.name}” holds no “{INSIDE}”, so there are no chats.")
            with archive.open(entry) as file:
                data = file.read(MOST_BYTES + 1)
    except _DAMAGED as error:
        raise ExchangeError(
            f"“{path.name}” is cut or damaged, or has a password: get the export again."
        ) from error
    if len(data) > MOST_BYTES:
        raise ExchangeError(f"“{INSIDE}” in “{path.name}” is larger than 1 GB.")
    return data


def _inside(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    named = (entry for entry in archive.infolist() if entry.filename.split("/")[-1] == INSIDE)
    return next(named, None)
