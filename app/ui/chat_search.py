"""The search over all chats: asked in the window, answered from another thread, the newest only."""

import logging
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from app.store.records import SearchHit
from app.ui.job import StoreJob

log = logging.getLogger(__name__)

MOST_CHATS = 100


class ChatSearch(QObject):
    found = Signal(str, list)  # what was searched, and SearchHits; nothing was searched: "", []
    failed = Signal(str)  # a sentence

    def __init__(self, job: StoreJob, parent: QObject) -> None:
        super().__init__(parent)
        self._job = job

    @Slot(str)
    def search(self, text: str) -> None:
        query = text.strip()
        if not query:
            self._job.drop_search()
            self.found.emit("", [])
            return
        self._job.search(
            lambda store: store.search(query, limit=MOST_CHATS),
            partial(self._on_found, query),
            self._on_failed,
        )

    def _on_found(self, query: str, hits: list[SearchHit]) -> None:
        self.found.emit(query, hits)

    def _on_failed(self, message: str) -> None:
        log.warning("the search failed: %s", message)
        self.failed.emit(message)
