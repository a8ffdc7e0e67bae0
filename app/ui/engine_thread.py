"""The one QThread on which models run, and the only door to it.

Thin over app.chat.loop: requests go in from the window's thread and return at once, events come
out in order as the signal `events`, at most 30 times a second however fast tokens arrive. The
invariant: every request that was submitted is answered by exactly one Finished or Failed, also
one that was stopped before the engine had been imported.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QThread, QTimer, Signal, Slot

from app.chat.events import Event, Failed, Finished, Piece, Request
from app.chat.messages import Options

if TYPE_CHECKING:
    from app.chat.loop import EngineLoop

log = logging.getLogger(__name__)

DRAIN_INTERVAL_MS = 33
LETTERS_PER_DRAIN = 4096  # some 30,000 tokens a second: no model is so fast, a flood may be
STACK_BYTES = 8 * 1024 * 1024  # macOS gives a thread half a megabyte, too little for ONNX Runtime


class MakeLoop(Protocol):
    """Called on the engine's thread, so that importing the engine never holds up the window."""

    def __call__(self, on_ready: Callable[[], None], /) -> "EngineLoop": ...


class _Runner(QObject):
    """Lives on the engine's thread. Makes the loop there and runs it until it is closed."""

    made = Signal(object)
    broken = Signal(str)
    ready = Signal()

    def __init__(self, make_loop: MakeLoop) -> None:
        super().__init__()
        self._make_loop = make_loop
        self.loop: EngineLoop | None = None
        self.is_closing = threading.Event()

    @Slot()
    def run(self) -> None:
        try:
            self.loop = self._make_loop(self.ready.emit)
            self.made.emit(self.loop)
            if not self.is_closing.is_set():
                self.loop.run()
        except Exception:
            log.exception("The engine did not start or ended by a fault")
            self.broken.emit(
                "The part of the app that runs models didn't start. Restart the app; if that "
                "doesn't help, install it again."
            )
        finally:
            QThread.currentThread().quit()


class EngineThread(QObject):
    """submit, stop and set_options return at once; `events` comes in the window's thread."""

    events = Signal(list)
    loop_made = Signal()

    def __init__(self, make_loop: MakeLoop, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._loop: EngineLoop | None = None
        self._waiting: list[Request] = []
        self._backlog: deque[Event] = deque()
        self._is_hurrying = False  # after a stop nobody reads along: all at once
        self._broken = ""
        self._is_closed = False
        self._since_drain = QElapsedTimer()
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._drain)
        self._thread = QThread()
        self._thread.setObjectName("engine")
        self._thread.setStackSize(STACK_BYTES)
        self._runner = _Runner(make_loop)
        self._runner.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._runner.made.connect(self._on_made, queued)
        self._runner.broken.connect(self._on_broken, queued)
        self._runner.ready.connect(self._on_ready, queued)
        self._thread.started.connect(self._runner.run)

    @property
    def loop(self) -> "EngineLoop | None":
        """For clients besides the window, once it is made."""
        return self._loop

    def start(self) -> None:
        """Called once, after the first frame is on the screen."""
        self._thread.start()

    def submit(self, request: Request) -> None:
        if self._broken:
            self._answer_here(Failed(request.request_id, self._broken, "engine"))
        elif self._loop is None:
            self._waiting.append(request)
        else:
            self._loop.submit(request)

    def stop(self) -> None:
        """Ends the request in work, or those that wait for the engine. Harmless when idle."""
        self._is_hurrying = True
        if self._loop is not None:
            self._loop.stop()
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._answer_here(Finished(request.request_id, "stopped"))

    def cancel(self, request_id: int) -> None:
        """Ends that request alone, wherever it stands. Harmless when it has ended."""
        if self._loop is not None:
            self._loop.cancel(request_id)
        for request in [each for each in self._waiting if each.request_id == request_id]:
            self._waiting.remove(request)
            self._answer_here(Finished(request_id, "stopped"))

    def set_options(self, options: Options) -> None:
        """While an answer is written: acts from its next token."""
        if self._loop is not None:
            self._loop.set_options(options)

    def close(self, timeout_ms: int = 10_000) -> bool:
        """Stops what runs and waits for the thread. False: it did not end in time."""
        if self._is_closed:
            return not self._thread.isRunning()
        self._is_closed = True
        self._runner.is_closing.set()
        if self._runner.loop is not None:
            self._runner.loop.stop()
            self._runner.loop.close()
        self._thread.quit()
        has_ended = self._thread.wait(timeout_ms)
        if has_ended and self._loop is not None:
            self._is_hurrying = True
            self._drain()
        self._timer.stop()
        return has_ended

    def _answer_here(self, event: Event) -> None:
        """Answers without the engine, yet never inside the caller's own call."""
        self._backlog.append(event)
        self._on_ready()

    @Slot(object)
    def _on_made(self, loop: "EngineLoop") -> None:
        self._loop = loop
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            loop.submit(request)
        self.loop_made.emit()

    @Slot(str)
    def _on_broken(self, text: str) -> None:
        self._broken = text
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._answer_here(Failed(request.request_id, text, "engine"))

    @Slot()
    def _on_ready(self) -> None:
        """The outbox holds something: drain now, or when the last drain is long enough ago."""
        if self._timer.isActive():
            return
        passed = self._since_drain.elapsed() if self._since_drain.isValid() else DRAIN_INTERVAL_MS
        self._timer.start(max(0, DRAIN_INTERVAL_MS - int(passed)))

    @Slot()
    def _drain(self) -> None:
        self._since_drain.start()
        if self._loop is not None:
            self._backlog.extend(self._loop.drain())
        if self._is_hurrying:
            batch = list(self._backlog)
            self._backlog.clear()
            self._is_hurrying = False
        else:
            batch = take(self._backlog, LETTERS_PER_DRAIN)
        if self._backlog:
            self._timer.start(DRAIN_INTERVAL_MS)
        if batch:
            self.events.emit(batch)


def take(backlog: deque[Event], letters: int) -> list[Event]:
    """The first events, with at most so much text: a flood is shown as fast as can be read, and
    the window stays awake. A piece of many tokens is cut, its ids in proportion; what is known of
    its tokens comes with its last part, when all their text is there."""
    batch: list[Event] = []
    while backlog and letters > 0:
        event = backlog.popleft()
        if isinstance(event, Piece) and len(event.text) > letters:
            ids = round(len(event.token_ids) * letters / len(event.text))
            rest = replace(event, text=event.text[letters:], token_ids=event.token_ids[ids:])
            backlog.appendleft(rest)
            head = event.text[:letters]
            event = replace(event, text=head, token_ids=event.token_ids[:ids], tokens=())
        letters -= len(event.text) if isinstance(event, Piece) else 0
        batch.append(event)
    return batch
