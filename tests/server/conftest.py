"""The real server over the real loop, with a session that answers by script."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.chat.events import Event, Failed, Finished, Piece, Prefill, Reply
from app.chat.loop import EngineLoop
from app.chat.messages import ModelInfo, Options, Stats
from app.server.client import EngineClient
from app.server.server import LocalServer

TOKEN = "a-token-of-a-test"


class ScriptedSession:
    """Says `pieces`; with `gate` it waits for it before each, and notes what stopped it."""

    def __init__(self) -> None:
        self.pieces: list[str | tuple[str, bool]] = ["Hello", ", ", "world", " 🌍"]
        self.failure: Failed | None = None
        self.gate: threading.Semaphore | None = None
        self.requests: list[Reply] = []
        self.has_begun = threading.Event()
        self.was_stopped = threading.Event()

    def handle(self, request: Any, stop: Any) -> Iterator[Event]:
        self.requests.append(request)
        self.has_begun.set()
        yield Prefill(request.request_id, 3, 3, 1)
        if self.failure is not None:
            yield Failed(request.request_id, self.failure.message, self.failure.kind)
            return
        for piece in self.pieces:
            while self.gate is not None and not self.gate.acquire(timeout=0.01):
                if stop.is_set():
                    break
            if stop.is_set():
                self.was_stopped.set()
                break
            text, is_thought = piece if isinstance(piece, tuple) else (piece, False)
            yield Piece(request.request_id, text, is_thought, (1,))
        reason = "stopped" if stop.is_set() else "end"
        stats = Stats(prompt_tokens=3, kept_tokens=1, new_tokens=len(self.pieces))
        yield Finished(request.request_id, reason, stats)

    def set_options(self, options: Options | None) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession()


@pytest.fixture
def loaded() -> list[ModelInfo | None]:
    return [ModelInfo("/models/tiny", "tiny", "CPU", 2048, Options())]


@pytest.fixture
def serve(loaded: list[ModelInfo | None]) -> Iterator[Callable[[Any], LocalServer]]:
    made: list[tuple[EngineLoop, LocalServer]] = []
    pool = ThreadPoolExecutor(4)

    def start(session: Any) -> LocalServer:
        loop = EngineLoop(session, lambda: None)
        pool.submit(loop.run)
        server = LocalServer(EngineClient(loop, lambda: loaded[0]), TOKEN)
        server.start()
        made.append((loop, server))
        return server

    yield start
    for loop, server in made:
        server.close()
        loop.close()
    pool.shutdown(wait=True)


@pytest.fixture
def server(serve: Callable[[Any], LocalServer], session: ScriptedSession) -> LocalServer:
    return serve(session)
