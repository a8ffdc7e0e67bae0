"""The engine's one loop: an inbox of requests, an outbox of events. No Qt, no thread of its own.

`run` blocks: the thread that calls it owns the session and the model. Every other method may be
called from any thread and returns at once. For each request exactly one Finished or Failed comes
out, and it is the last event of that request, also when the loop is closed before its turn.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from app.chat.events import (
    Event,
    Failed,
    Finished,
    Inspect,
    Load,
    Piece,
    Prefill,
    Reply,
    Request,
    Trying,
)
from app.chat.messages import Options, TokenView
from app.engine.stop import Stop

log = logging.getLogger(__name__)

BUG = "Something went wrong inside Inglenook. The details are in the log; please try again."


Sink = Callable[[Event], None]


class Session(Protocol):
    """What the loop drives: ChatSession, or something smaller in tests."""

    def handle(self, request: Request, stop: Stop) -> Iterator[Event]: ...
    def set_options(self, options: Options | None) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class _Job:
    request: Request
    stop: Stop
    sink: Sink | None = None


class EngineLoop:
    def __init__(self, session: Session, on_ready: Callable[[], None]) -> None:
        """`on_ready` is called when the empty outbox gets an event: by the thread of `run`, or, for
        a request that came after its end, by the one that submits.
        """
        self._session = session
        self._on_ready = on_ready
        self._changed = threading.Condition()  # guards all of the following
        self._inbox: deque[_Job] = deque()
        self._current: _Job | None = None
        self._outbox: deque[Event] = deque()
        self._is_closing = False
        self._has_ended = False

    def submit(self, request: Request, sink: Sink | None = None) -> Stop:
        """Queue a request; order is kept. After `close` it is answered as stopped.

        With a `sink` its events go there, one by one on the thread of `run`, and not to the outbox:
        then it is another client's, whom `stop` and `set_options` leave alone; the Stop that is
        returned ends it.
        """
        job = _Job(request, Stop(), sink)
        with self._changed:
            if self._is_closing:
                job.stop.set()
            if not self._has_ended:
                self._inbox.append(job)
                self._changed.notify()
                return job.stop
        self._emit(Finished(request.request_id, "stopped"), sink)
        return job.stop

    def stop(self) -> None:
        """Stop the answers that were asked for so far; when there are none, the loading.

        A request that has not started yet is stopped as well: a stop is never lost. Harmless when
        idle, and nothing that is submitted later is touched.
        """
        with self._changed:
            waiting = [job for job in self._waiting() if job.sink is None]
            answers = [job.stop for job in waiting if isinstance(job.request, Reply | Inspect)]
            loads = [job.stop for job in waiting if isinstance(job.request, Load)]
        for stop in answers or loads:
            stop.set()

    def cancel(self, request_id: int) -> None:
        """Stop that request of the window alone; harmless when it has ended."""
        with self._changed:
            for job in self._waiting():
                if job.sink is None and job.request.request_id == request_id:
                    job.stop.set()

    def set_options(self, options: Options) -> None:
        """For the answer that is being written, from its next token on; ignored when idle."""
        with self._changed:
            current = self._current
            if current is not None and current.sink is None and isinstance(current.request, Reply):
                self._session.set_options(options)
                return
            # Not started yet: let the first waiting answer start with them.
            for index, job in enumerate(self._inbox):
                if job.sink is None and isinstance(job.request, Reply):
                    changed = replace(job.request, options=options)
                    self._inbox[index] = replace(job, request=changed)
                    return

    def drain(self) -> list[Event]:
        """All events since the last call, in order; pieces that follow each other are joined."""
        with self._changed:
            events = list(self._outbox)
            self._outbox.clear()
        return _joined(events)

    def close(self) -> None:
        """Stop everything; `run` returns soon. Requests that waited end as stopped."""
        with self._changed:
            self._is_closing = True
            for job in self._waiting():
                job.stop.set()
            self._changed.notify()

    def run(self) -> None:
        """Handle requests until closed, then give the model's memory back."""
        try:
            while (job := self._next()) is not None:
                self._handle(job)
        finally:
            self._session.close()

    # ---- inside

    def _waiting(self) -> list[_Job]:
        return ([self._current] if self._current else []) + list(self._inbox)

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._inbox:
                if self._is_closing:
                    self._has_ended = True
                    return None
                self._changed.wait()
            self._current = self._inbox.popleft()
            return self._current

    def _handle(self, job: _Job) -> None:
        """The one place that catches everything: a bug ends a request, never the loop."""
        request = job.request
        last: Event | None = None
        try:
            for event in self._session.handle(request, job.stop):
                if isinstance(event, Finished | Failed):
                    self._leave()
                self._emit(event, job.sink)
                last = event
        except Exception:
            log.exception("request %s failed", type(request).__name__)
        if not isinstance(last, Finished | Failed):
            self._leave()
            self._emit(Failed(request.request_id, BUG), job.sink)

    def _leave(self) -> None:
        """Before the last event goes out: who sees it and changes options means the next answer."""
        with self._changed:
            self._current = None
            self._session.set_options(None)

    def _emit(self, event: Event, sink: Sink | None = None) -> None:
        if sink is not None:
            sink(event)
            return
        with self._changed:
            was_empty = not self._outbox
            self._outbox.append(event)
        if was_empty:
            self._on_ready()


def _joined(events: list[Event]) -> list[Event]:
    joined: list[Event] = []
    texts: list[str] = []  # of the last event, while it is a piece
    ids: list[int] = []
    tokens: list[TokenView] = []
    avoided = 0

    def settle() -> None:
        if joined and isinstance(last := joined[-1], Piece):
            joined[-1] = replace(
                last,
                text="".join(texts),
                token_ids=tuple(ids),
                tokens=tuple(tokens),
                avoided=avoided,
            )

    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, Piece) and _goes_on(last, event):
            texts.append(event.text)
            ids.extend(event.token_ids)
            tokens.extend(event.tokens)
            avoided = event.avoided
            continue
        settle()
        if isinstance(event, Prefill | Trying) and type(event) is type(last):
            if last.request_id == event.request_id:
                joined.pop()
        elif isinstance(event, Piece):
            texts, ids, tokens = [event.text], list(event.token_ids), list(event.tokens)
            avoided = event.avoided
        joined.append(event)
    settle()
    return joined


def _goes_on(last: Event | None, piece: Piece) -> bool:
    return (
        isinstance(last, Piece)
        and last.request_id == piece.request_id
        and (last.is_thought == piece.is_thought or not piece.text)
    )
