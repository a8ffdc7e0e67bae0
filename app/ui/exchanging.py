"""Chats that go into a file and come out of one: off the window's thread, told when it is done."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.store.store import Store, is_temporary
from app.ui.chat_screen import ChatScreen
from app.ui.items import Notice, Way
from app.ui.job import Job
from app.ui.undo import Deed

if TYPE_CHECKING:  # the package brings the importers, which no window waits for
    from app.chat.exchange import Shown, Summary
    from app.convert.progress import Progress

CANCEL = Way("Cancel", "cancel-exchange")


class Exchanging(QObject):
    saved = Signal(str)  # the file that was written
    page_wanted = Signal(object, str)  # a Shown, and the file for it: paper is the window's

    def __init__(self, screen: ChatScreen) -> None:
        super().__init__(screen)
        self._screen = screen
        self._job: Job | None = None

    @property
    def is_busy(self) -> bool:
        return self._job is not None

    def export(self, conversation_id: int, path: str) -> None:
        """In the format that the file's ending says; one that is unknown is Markdown's."""
        target = Path(path)
        if target.suffix.lower() == ".pdf":
            read = partial(_shown, self._screen.store, conversation_id)
            self._start(read, lambda chat: self._print(chat, path), "The chat was not exported")
            return
        work = partial(_export_one, self._screen.store, conversation_id, target)
        self._start(work, lambda _: self.saved.emit(path), "The chat was not exported")

    def export_all(self, path: str) -> None:
        work = partial(_export_all, self._screen.store, Path(path))
        self._start(work, lambda _: self.saved.emit(path), "The chats were not exported")

    @Slot(str)
    def import_from(self, path: str) -> None:
        work = partial(_import, self._screen.store, Path(path))
        self._start(work, self._on_imported, "No chats were imported")

    @Slot()
    def cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()

    def _start(
        self,
        work: Callable[[], "Generator[Progress, None, Any]"],
        on_done: Callable[[Any], None],
        failure: str,
    ) -> None:
        if self._job is not None:
            self._screen.show_notice(
                Notice("info", "One at a time", "Chats are on their way already.", (CANCEL,))
            )
            return
        self._failure, self._on_done = failure, on_done
        self._job = job = Job(work, self)
        job.progress.connect(self._on_progress)
        job.done.connect(self._on_job_done)
        job.failed.connect(self._on_failed)
        job.cancelled.connect(self._on_cancelled)
        job.start()

    @Slot(object)
    def _on_progress(self, progress: "Progress") -> None:
        if self._job is not None:
            words = f"{progress.text}: {progress.share:.0%}"
            self._screen.show_notice(Notice("info", "Chats are on their way", words, (CANCEL,)))

    @Slot(object)
    def _on_job_done(self, value: object) -> None:
        self._end()
        self._on_done(value)

    @Slot(str)
    def _on_failed(self, message: str) -> None:
        self._end()
        self._screen.update_chats()
        self._screen.show_notice(Notice("danger", self._failure, message))

    @Slot()
    def _on_cancelled(self) -> None:
        self._end()
        self._screen.update_chats()

    def _end(self) -> None:
        self._job = None
        notice = self._screen.notice
        if notice is not None and CANCEL in notice.ways:
            self._screen.show_notice(None)

    def _on_imported(self, summary: "Summary") -> None:
        self._screen.update_chats()
        self._screen.show_notice(Notice("info", "Chats were read", f"{summary.words()}."))
        if summary.chats:
            count = len(summary.chats)
            words = "1 chat imported" if count == 1 else f"{count:,} chats imported"
            take_back = partial(_take_back, summary.chats)
            self._screen.add_deed(Deed(words, take_back, self._on_taken_back))

    def _on_taken_back(self) -> None:
        self._screen.update_chats()
        shown = self._screen.shown
        chat = None if shown is None else self._screen.store.conversation(shown)
        if shown is not None and (chat is None or chat.deleted_at is not None):
            self._screen.shown = None
            self._screen.reload()
            self._screen.update_state()

    def _print(self, chat: "Shown | None", path: str) -> None:
        if chat is not None:
            self.page_wanted.emit(chat, path)


def _take_back(chats: Sequence[int], store: Store) -> None:
    """Into the bin: somebody may have gone on with one of them."""
    for chat in chats:
        store.delete(chat)


# ---- on the job's thread


def _shown(store: Store, conversation_id: int) -> "Generator[Progress, None, Shown | None]":
    from app.chat.exchange import saved_chat
    from app.convert.progress import Progress

    yield Progress(0, 1, "Reading the chat")
    chat = saved_chat(store, conversation_id)
    return None if chat is None else chat.shown()


def _export_one(
    store: Store, conversation_id: int, path: Path
) -> "Generator[Progress, None, None]":
    from app.chat import exchange
    from app.convert.progress import Progress

    yield Progress(0, 1, "Reading the chat")
    chat = exchange.saved_chat(store, conversation_id)
    if chat is None:
        raise exchange.ExchangeError("This chat was deleted meanwhile.")
    ending = path.suffix.lower()
    if ending == ".json":
        exchange.write_chats([chat], path)
    elif ending in (".html", ".htm"):
        exchange.write_text(exchange.web_page(chat.shown()), path)
    else:
        exchange.write_text(exchange.markdown(chat.shown()), path)


def _export_all(store: Store, path: Path) -> "Generator[Progress, None, None]":
    """Without the temporary ones and those in the bin."""
    from app.chat import exchange
    from app.convert.progress import Progress

    numbers = [chat.id for chat in store.conversations() if not is_temporary(chat.id)]
    with exchange.chats_file(path) as write:
        for at, number in enumerate(numbers, 1):
            yield Progress(at, len(numbers), "Writing chats")
            if (chat := exchange.saved_chat(store, number)) is not None:
                write(chat)


def _import(store: Store, path: Path) -> "Generator[Progress, None, Summary]":
    from app.chat.exchange import import_chats

    return (yield from import_chats(path, store))
