"""Conversations in one SQLite file. Knows rows and records; nothing of models, tokens or windows.

Write first, then show: every method that changes something returns after its commit. The user's
turn and a finished answer are also on the disk by then (`synchronous = FULL`); an answer in the
making and drafts survive a killed process, and at worst a power cut takes their last moment.

Any thread may call any method; the window uses one thread for all writes so that none happens in a
click. The methods are in conversations.py, folders.py, messages.py and search.py.
"""

import time
from contextlib import suppress
from pathlib import Path

from app.store.conversations import Conversations
from app.store.errors import StoreError, plain_errors
from app.store.folders import Folders
from app.store.messages import Messages
from app.store.places import is_temporary
from app.store.records import State
from app.store.search import Search

__all__ = ["Store", "StoreError", "is_temporary", "set_aside"]


class Store(Conversations, Folders, Messages, Search):
    """The open file. Opening it brings an older file up to date and marks what a crash cut off."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._mark_interrupted()
        except BaseException:
            self.close()
            raise

    def remove_old_copies(self, older_than_s: float) -> None:
        """Copies that were made before the file was changed in its shape: by now it has proved
        itself, and what was deleted since should not stay in them."""
        for copy in self.path.parent.glob(f"{self.path.name}.before-step-*"):
            with suppress(OSError):  # somebody else's turn, or next time
                if copy.stat().st_mtime <= time.time() - older_than_s:
                    copy.unlink()

    def _mark_interrupted(self) -> None:
        """Answers whose writer no longer runs; one that another program writes is left alone."""
        with self._disk.write() as writer:
            rows = writer.execute(
                "SELECT id, writer FROM message WHERE state = ?", (State.WRITING,)
            )
            for message_id, number in rows.fetchall():
                # Our own number was free a moment ago: whoever wrote under it before is gone.
                if number not in (None, self._disk.number) and self._disk.lock.is_alive(number):
                    continue
                writer.execute(
                    "UPDATE message SET state = ?, writer = NULL WHERE id = ?",
                    (State.INTERRUPTED, message_id),
                )
                writer.execute(
                    "UPDATE part SET is_searchable = 1 WHERE message_id = ? AND kind = 'text'",
                    (message_id,),
                )


def set_aside(path: Path) -> Path:
    """Move a chats file that cannot be opened out of the way; returns its new path."""
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    destination = path.with_name(f"{path.stem}-set-aside-{stamp}{path.suffix}")
    number = 2
    while destination.exists():  # twice in a second, or the clock was put back
        destination = path.with_name(f"{path.stem}-set-aside-{stamp}-{number}{path.suffix}")
        number += 1
    with plain_errors(path):
        for ending in ("-wal", "-shm", ""):
            source = path.with_name(path.name + ending)
            if source.exists():
                source.rename(destination.with_name(destination.name + ending))
    return destination
