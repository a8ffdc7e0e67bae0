"""Long work and writing to the store, off the window's thread.

Results come back through a slot of an object that lives in the window's thread, so what is handed
in here may be any callable: it never runs on a worker. Order of store work is kept.
"""

import logging
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.store.store import Store
from app.ui import notices

if TYPE_CHECKING:  # the package brings the importers, which no window waits for
    from app.convert.progress import Progress

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 0.1
T = TypeVar("T")


class Job(QObject):
    """Runs a generator of Progress on a thread of its own. Every yield is a place to cancel.

    Exactly one of done (the generator's return value), failed (a sentence for a person) and
    cancelled ends it, always last.
    """

    progress = Signal(object)
    done = Signal(object)
    failed = Signal(str)
    cancelled = Signal()

    def __init__(
        self, work: Callable[[], "Generator[Progress, None, Any]"], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._work = work
        self._is_cancelled = False
        self._pool = ThreadPoolExecutor(1, "job")

    def start(self) -> None:
        self._pool.submit(self._run)
        self._pool.shutdown(wait=False)

    def cancel(self) -> None:
        self._is_cancelled = True

    def wait(self) -> None:
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        try:
            value = self._exhaust()
        except Exception as error:
            self.failed.emit(notices.sentence(error))
            return
        if self._is_cancelled:
            self.cancelled.emit()
        else:
            self.done.emit(value)

    def _exhaust(self) -> Any:
        steps = self._work()
        last = 0.0
        while not self._is_cancelled:
            try:
                step = next(steps)
            except StopIteration as end:
                # A job that was finished when cancel came stays finished on disk.
                self._is_cancelled = False
                return end.value
            if monotonic() - last >= PROGRESS_INTERVAL_S:
                last = monotonic()
                self.progress.emit(step)
        steps.close()
        return None


class StoreJob(QObject):
    """The one writer of the store: one thread, first come first served. A second thread searches:
    there the newest question alone is answered."""

    _finished = Signal(object, object, object)
    _found = Signal(int, object, object)

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._pool = ThreadPoolExecutor(1, "store")
        self._open = 0
        self._is_closed = False
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        self._searches = ThreadPoolExecutor(1, "search")
        self._search_number = 0
        self._found.connect(self._deliver_found, Qt.ConnectionType.QueuedConnection)

    @property
    def is_idle(self) -> bool:
        return self._open == 0

    def run(
        self,
        write: Callable[[Store], T],
        on_done: Callable[[T], None] | None = None,
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """`write` runs on the store's thread; one of the others then in the caller's."""
        self._open += 1
        self._pool.submit(self._run, write, on_done, on_failed)

    def search(
        self,
        read: Callable[[Store], T],
        on_done: Callable[[T], None],
        on_failed: Callable[[str], None],
    ) -> None:
        """Cuts off the search before it, whose result is dropped."""
        self.drop_search()
        self._searches.submit(self._run_search, self._search_number, read, on_done, on_failed)

    def drop_search(self) -> None:
        self._search_number += 1
        self._store.stop_search()

    def close(self) -> None:
        """Waits until all is written. Results that are still on their way are dropped."""
        self._is_closed = True
        self.drop_search()
        self._searches.shutdown(wait=True)
        self._pool.shutdown(wait=True)

    def _run(self, write: Callable[[Store], Any], on_done: Any, on_failed: Any) -> None:
        try:
            value = write(self._store)
        except Exception as error:
            self._finished.emit(on_failed, notices.sentence(error), None)
        else:
            self._finished.emit(on_done, value, None)

    @Slot(object, object, object)
    def _deliver(self, callback: Callable[[Any], None] | None, value: object, _: object) -> None:
        self._open -= 1
        if callback is not None and not self._is_closed:
            callback(value)

    def _run_search(
        self, number: int, read: Callable[[Store], Any], on_done: Any, on_failed: Any
    ) -> None:
        if number != self._search_number:
            return
        try:
            value = read(self._store)
        except Exception as error:
            self._found.emit(number, on_failed, notices.sentence(error))
        else:
            self._found.emit(number, on_done, value)

    @Slot(int, object, object)
    def _deliver_found(self, number: int, callback: Callable[[Any], None], value: object) -> None:
        if number == self._search_number and not self._is_closed:
            callback(value)
