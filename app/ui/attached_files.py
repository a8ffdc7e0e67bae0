"""The files of the message that is being written: read off the window's thread, kept until sent.

Knows no widget: says what the tray shows and what goes into the message.
"""

import hashlib
import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.store.records import PartRecord
from app.ui.attachment_tray import TrayItem
from app.ui.chat_items import short_size
from app.ui.job import Job

if TYPE_CHECKING:
    from app.chat.attachments import Attachment
    from app.convert.progress import Progress

MOST_FILES = 20
LETTERS_PER_TOKEN = 4  # of English text, about; the context meter counts exactly


@dataclass
class _File:
    item: TrayItem
    attachment: "Attachment | None" = None
    job: Job | None = None


class AttachedFiles(QObject):
    changed = Signal()
    refused = Signal(str)  # a sentence

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._files: dict[int, _File] = {}
        self._elsewhere: dict[int | None, dict[int, _File]] = {}  # of other chats, by their number
        self._keys = itertools.count(1)

    # ---- what a person does
    @Slot(list)
    def add(self, paths: Sequence[str]) -> None:
        for path in map(Path, paths):
            self._add(path.name, partial(_read, path))

    @Slot(str)
    def add_text(self, text: str) -> None:
        """A long text that was pasted."""
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]
        name = f"pasted-{digest}.txt"
        self._add(name, partial(_from_text, text, name))

    def _add(self, name: str, work: "Callable[[], Generator[Progress, None, Attachment]]") -> None:
        if len(self._files) >= MOST_FILES:
            self.refused.emit(f"A message takes up to {MOST_FILES} files. {name} is left out.")
            return
        key = next(self._keys)
        job = Job(work, self)
        self._files[key] = _File(TrayItem(key, name), job=job)
        job.done.connect(self._on_done)
        job.failed.connect(self._on_failed)
        job.setProperty("key", key)
        self.changed.emit()
        job.start()

    @Slot(int)
    def remove(self, key: int) -> None:
        file = self._files.pop(key, None)
        if file is not None:
            if file.job is not None:
                file.job.cancel()
            self.changed.emit()

    def go_to(self, chat: int | None, *, leaving: int | None) -> None:
        """Another chat is shown: the files of this one wait for it, as its draft does."""
        self._elsewhere[leaving] = self._files
        self._files = self._elsewhere.pop(chat, {})
        self.changed.emit()

    def take(self) -> tuple[PartRecord, ...]:
        """They go into a message now; those that could not be read go nowhere."""
        parts = self.parts()
        self._files.clear()
        self.changed.emit()
        return parts

    def give_back(self, parts: Sequence[PartRecord]) -> None:
        """A message that came back brings its files."""
        from app.chat.attachments import Attachment

        for part in parts:
            key = next(self._keys)
            details = part.details
            attachment = Attachment(
                str(details.get("name", "file")),
                str(details.get("media_type", "")),
                part.text,
                int(details.get("size_bytes", 0)),
                str(details.get("sha256", "")),
                str(details.get("note", "")),
            )
            self._files[key] = _File(_ready(TrayItem(key, attachment.name), attachment), attachment)
        if parts:
            self.changed.emit()

    # ---- what is the case
    def items(self) -> list[TrayItem]:
        return [file.item for file in self._files.values()]

    @property
    def is_reading(self) -> bool:
        return any(file.item.state == "reading" for file in self._files.values())

    def parts(self) -> tuple[PartRecord, ...]:
        """What the store keeps of each file: its text, and what it was."""
        return tuple(
            PartRecord(
                "file",
                file.attachment.text,
                {
                    "name": file.attachment.name,
                    "media_type": file.attachment.media_type,
                    "size_bytes": file.attachment.size_bytes,
                    "sha256": file.attachment.sha256,
                    "note": file.attachment.note,
                },
            )
            for file in self._files.values()
            if file.attachment is not None
        )

    def prompt_text(self) -> str:
        """What they add to the message for the model."""
        from app.chat.attachments import to_prompt_text

        return "".join(
            to_prompt_text(part.details["name"], part.text) + "\n\n" for part in self.parts()
        )

    def text(self, key: int) -> str:
        file = self._files.get(key)
        return file.attachment.text if file is not None and file.attachment is not None else ""

    # ---- what comes back
    @Slot(object)
    def _on_done(self, attachment: "Attachment") -> None:
        file = self._file_of_sender()
        if file is not None:
            file.attachment, file.job = attachment, None
            file.item = _ready(file.item, attachment)
            self.changed.emit()

    @Slot(str)
    def _on_failed(self, message: str) -> None:
        file = self._file_of_sender()
        if file is not None:
            file.job = None
            file.item = replace(file.item, state="failed", facts=message)
            self.changed.emit()

    def _file_of_sender(self) -> _File | None:
        """None: it was taken out while it was read. It may belong to a chat that is not shown."""
        job = self.sender()
        job.deleteLater()
        key = int(job.property("key"))
        every = (self._files, *self._elsewhere.values())
        return next((files[key] for files in every if key in files), None)


def _ready(item: TrayItem, attachment: "Attachment") -> TrayItem:
    facts = f"{short_size(attachment.size_bytes)}, about {tokens_of(attachment.text):,} tokens"
    return replace(item, state="ready", facts=" ".join(filter(None, (facts, attachment.note))))


def tokens_of(text: str) -> int:
    return max(1, len(text) // LETTERS_PER_TOKEN)


def _read(path: Path) -> "Generator[Progress, None, Attachment]":
    from app.chat.attachments import read_attachment

    yield from ()
    return read_attachment(path)


def _from_text(text: str, name: str) -> "Generator[Progress, None, Attachment]":
    from app.chat.attachments import from_bytes

    yield from ()
    return from_bytes(text.encode("utf-8", "replace"), name)
