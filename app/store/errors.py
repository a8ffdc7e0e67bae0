"""What SQLite and the system say about the chats file, as sentences with a way out."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.store import schema

LEAST_FREE_BYTES = 1 << 20


class StoreError(Exception):
    """A sentence for a person. kind: "full", "busy", "read-only", "damaged", "newer", "disk",
    "gone"."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """What SQLite and the system say about the file, as a sentence with a way out."""
    try:
        yield
    except schema.NewerSchemaError as error:
        raise StoreError(
            f"Your chats in {path} were saved by a newer Inglenook. Update Inglenook to read them;"
            " nothing was changed.",
            kind="newer",
        ) from error
    except schema.ForeignFileError as error:
        raise StoreError(
            f"{path} is a database of another program. Move it away, then start again.",
            kind="damaged",
        ) from error
    except sqlite3.IntegrityError:
        raise  # a caller's mistake, not the disk's
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None or (code & 0xFF) not in _SENTENCES:
            raise
        code = sqlite3.SQLITE_FULL if _is_disk_full(code, path) else code & 0xFF
        kind, sentence = _SENTENCES[code]
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except UnicodeDecodeError as error:  # in SQLite's own message about a name in the file
        kind, sentence = _DAMAGED
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except BlockingIOError as error:
        kind, sentence = _SENTENCES[sqlite3.SQLITE_BUSY]
        raise StoreError(sentence.format(path=path), kind=kind) from error
    except OSError as error:
        raise StoreError(
            f"The folder {path.parent} cannot be used for your chats: {error.strerror}. Check it,"
            " or choose another folder.",
            kind="disk",
        ) from error


def _is_disk_full(code: int, path: Path) -> bool:
    """Without room for its small files SQLite speaks of an error of the disk."""
    if code & 0xFF != sqlite3.SQLITE_IOERR:
        return False
    try:
        return shutil.disk_usage(path.parent).free < LEAST_FREE_BYTES
    except OSError:
        return False


_READ_ONLY = (
    "read-only",
    "Your chats in {path} cannot be written. Allow writing to that folder, or choose another one.",
)
_DAMAGED = (
    "damaged",
    "The file of your chats, {path}, is damaged. Put a copy of it in its place, or set it aside"
    " and start with an empty one.",
)
_SENTENCES = {
    sqlite3.SQLITE_FULL: (
        "full",
        "The disk that holds your chats is full, so the last change is not saved. Free some space"
        " and try again.",
    ),
    sqlite3.SQLITE_BUSY: (
        "busy",
        "Another program is using your chats in {path}. Close it and try again.",
    ),
    sqlite3.SQLITE_LOCKED: (
        "busy",
        "Another program is using your chats in {path}. Close it and try again.",
    ),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_IOERR: (
        "disk",
        "The disk that holds your chats, {path}, reported an error. Check the disk and try again.",
    ),
}
