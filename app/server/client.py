"""The server's side of the engine's loop: one request, its events one by one, and its end."""

import itertools
import queue
from collections.abc import Callable, Iterator
from typing import Protocol

from app.chat.events import Event, Failed, Finished, Reply, Request
from app.chat.messages import Message, ModelInfo, Options
from app.engine.stop import Stop

FIRST_ID = 1_000_000_000  # apart from those of other clients, so that a log can be read


class Loop(Protocol):
    def submit(self, request: Request, sink: Callable[[Event], None] | None = None) -> Stop: ...


class EngineClient:
    """`model` tells what is loaded now; any thread may call."""

    def __init__(self, loop: Loop, model: Callable[[], ModelInfo | None]) -> None:
        self._loop, self.model = loop, model
        self._ids = itertools.count(FIRST_ID)

    def ask(self, messages: tuple[Message, ...], options: Options) -> "Asked":
        asked = Asked(next(self._ids))
        request = Reply(asked.number, messages, options)
        asked.stop = self._loop.submit(request, asked.events.put)
        return asked


class Asked:
    def __init__(self, number: int) -> None:
        self.number = number
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.stop = Stop()

    def follow(self, is_wanted: Callable[[], bool], *, look_s: float) -> Iterator[Event]:
        """All events up to Finished or Failed. Every `look_s` it asks whether anyone still wants
        them; if nobody does, the answer is stopped, and its end awaited."""
        while True:
            try:
                event = self.events.get(timeout=look_s)
            except queue.Empty:
                if not self.stop.is_set() and not is_wanted():
                    self.stop.set()
                continue
            yield event
            if isinstance(event, Finished | Failed):
                return
