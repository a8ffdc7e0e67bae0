"""The whole window over a real store and the real loop; only the model is a script."""

import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from app.__main__ import Application
from app.chat.events import (
    Count,
    Counted,
    Event,
    Failed,
    Finished,
    Inspect,
    Inspected,
    Load,
    Loaded,
    Loading,
    Piece,
    Prefill,
    Preview,
    Previewed,
    Reply,
    Request,
)
from app.chat.loop import EngineLoop
from app.chat.messages import Alternative, ContextUse, ModelInfo, Options, Stats, TokenView
from app.paths import Folders

PATIENCE_MS = 20_000
DEFAULTS = Options(temperature=0.6, top_p=0.9, top_k=40, repetition_penalty=1.05)


CHANCES = (0.97, 0.3, 0.8, 0.55, 0.1)  # of the tokens of a scripted answer, in turn


def token_view(token_id: int, text: str, start: int = 0, *, is_thought: bool = False) -> TokenView:
    """What is known of a scripted token: it stands third, another two are likelier."""
    chance = CHANCES[token_id % len(CHANCES)]
    others = [
        Alternative(1000 + token_id, " other", 0.5),
        Alternative(2000 + token_id, " end", 0.3),
    ]
    others[1] = replace(others[1], is_end=True)
    ways = (
        *others,
        Alternative(token_id, text, chance),
        Alternative(3000 + token_id, "\u0434", 0.01),
    )
    return TokenView(token_id, text, start, chance, 2, ways, is_thought)


class Hold:
    """In a script: waits here until it is released, or the answer is stopped."""

    def __init__(self) -> None:
        self._released = threading.Event()
        self.is_reached = threading.Event()

    def release(self) -> None:
        self._released.set()

    def wait(self, stop: Any) -> None:
        self.is_reached.set()
        while not self._released.wait(0.005) and not stop.is_set():
            pass


@dataclass(frozen=True)
class Thought:
    text: str


@dataclass(frozen=True)
class Failure:
    message: str
    kind: str
    needed: int = 0
    limit: int = 0


@dataclass(frozen=True)
class Say:
    """Any other event, made with the number of the request."""

    event: Callable[[int], Event]


Step = str | Thought | Failure | Say | Hold | Exception


@dataclass
class FakeChatSession:
    """Answers with what was scripted: text pieces, thoughts, waits, failures, bugs."""

    scripts: deque[list[Step]] = field(default_factory=deque)
    before_reading: Hold | None = None  # holds between two chunks of the prompt
    while_loading: Hold | None = None
    while_inspecting: Hold | None = None
    load_failure: str = ""
    inspect_failure: str = ""
    requests: list[Request] = field(default_factory=list)
    live_options: list[Options] = field(default_factory=list)
    is_closed: bool = False
    context_length: int = 2048

    def will_answer(self, *steps: Step) -> None:
        self.scripts.append(list(steps))

    @property
    def replies(self) -> list[Reply]:
        return [request for request in self.requests if isinstance(request, Reply)]

    def handle(self, request: Request, stop: Any) -> Iterator[Event]:
        self.requests.append(request)
        if isinstance(request, Load):
            return self._load(request, stop)
        if isinstance(request, Count):
            return self._count(request)
        if isinstance(request, Inspect):
            return self._inspect(request, stop)
        if isinstance(request, Preview):
            return self._preview(request)
        assert isinstance(request, Reply)
        return self._reply(request, stop)

    def _preview(self, request: Preview) -> Iterator[Event]:
        said = [request.options.system_prompt, *(message.text for message in request.messages)]
        yield Previewed(request.request_id, "".join(f"<turn>{text}" for text in said), len(said))
        yield Finished(request.request_id)

    def set_options(self, options: Options | None) -> None:
        if options is not None:
            self.live_options.append(options)

    def close(self) -> None:
        self.is_closed = True

    def _load(self, request: Load, stop: Any) -> Iterator[Event]:
        yield Loading(request.request_id, request.path)
        if self.while_loading is not None:
            self.while_loading.wait(stop)
        if self.load_failure:
            yield Failed(request.request_id, self.load_failure, "model")
            return
        name = Path(request.path).name
        model = ModelInfo(request.path, name, "CPU", self.context_length, DEFAULTS)
        yield Loaded(request.request_id, model)
        yield Finished(request.request_id)

    def _count(self, request: Count) -> Iterator[Event]:
        """A token is a word; what lies before `first` is left out unless it is pinned."""
        turns = tuple(
            len(message.text.split()) if place >= request.first or message.is_pinned else 0
            for place, message in enumerate(request.messages)
        )
        system = len(request.options.system_prompt.split())
        use = ContextUse(system, turns, system + sum(turns), self.context_length, request.first)
        yield Counted(request.request_id, use)
        yield Finished(request.request_id)

    def _inspect(self, request: Inspect, stop: Any) -> Iterator[Event]:
        """A token's text is its number."""
        number, total = request.request_id, len(request.token_ids)
        yield Prefill(number, 0, total, 0)
        if self.while_inspecting is not None:
            self.while_inspecting.wait(stop)
        if self.inspect_failure:
            yield Failed(number, self.inspect_failure, "memory")
            return
        if stop.is_set():
            yield Finished(number, "stopped")
            return
        views = tuple(token_view(token, f" {token}") for token in request.token_ids)
        yield Inspected(number, views, 1.5)
        yield Finished(number)

    def _reply(self, request: Reply, stop: Any) -> Iterator[Event]:
        number, written = request.request_id, 0
        prompt = sum(len(message.text.split()) for message in request.messages)
        if not stop.is_set():
            yield Prefill(number, 0, prompt, 0)
        if self.before_reading is not None:
            self.before_reading.wait(stop)
        if not stop.is_set():
            yield Prefill(number, prompt, prompt, 0)
        for step in self.scripts.popleft() if self.scripts else ["An ", "answer."]:
            if stop.is_set():
                break
            if isinstance(step, Hold):
                step.wait(stop)
            elif isinstance(step, Exception):
                raise step
            elif isinstance(step, Say):
                yield step.event(number)
            elif isinstance(step, Failure):
                yield Failed(number, step.message, step.kind, step.needed, step.limit)
                return
            else:
                is_thought = isinstance(step, Thought)
                text = step.text if isinstance(step, Thought) else step
                stands = written < len(request.start)
                token = request.start[written] if stands else written
                watched = request.watches_tokens and not stands
                views = (token_view(token, text, is_thought=is_thought),) if watched else ()
                yield Piece(number, text, is_thought, (token,), views)
                written += 1
        stats = Stats(prompt_tokens=prompt, new_tokens=written, tokens_per_second=10.0)
        yield Finished(number, "stopped" if stop.is_set() else "end", stats)


@pytest.fixture
def hold() -> Hold:
    return Hold()


@pytest.fixture
def holds() -> type[Hold]:
    return Hold


@pytest.fixture
def thought() -> type[Thought]:
    return Thought


@pytest.fixture
def failure() -> type[Failure]:
    return Failure


@pytest.fixture
def say() -> type[Say]:
    return Say


@pytest.fixture
def token() -> Callable[..., TokenView]:
    return token_view


@pytest.fixture
def session() -> FakeChatSession:
    return FakeChatSession()


@pytest.fixture
def folders(tmp_path: Path, data_folder: Path) -> Folders:
    """A data folder with one small model that is whole."""
    made = Folders(tmp_path / "data")
    shutil.copytree(data_folder / "tiny-llama", made.models / "tiny-llama")
    return made


class Desk:
    """The running app, and short words for what a person does and sees."""

    def __init__(self, running: Application, session: Any, qtbot: Any) -> None:
        self.running, self.session, self.qtbot = running, session, qtbot
        self.window = running.window
        self.page = running.window.page
        self.composer = running.window.page.composer

    @property
    def chat(self) -> Any:
        return self.running.chat

    @property
    def models(self) -> Any:
        return self.running.models

    @property
    def store(self) -> Any:
        return self.running.store

    def until(self, condition: Callable[[], Any]) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=PATIENCE_MS)

    def until_ready(self) -> None:
        self.until(lambda: self.chat.state.model.phase == "ready")

    def until_written(self) -> None:
        """The answer is finished, and all of it is in the store."""
        self.until(lambda: not self.chat.state.is_writing and self.running.job.is_idle)

    def say(self, text: str) -> None:
        self.composer.field.setPlainText(text)
        self.composer.field.submitted.emit()

    def ask(self, text: str) -> None:
        self.say(text)
        self.until_written()

    def texts(self) -> list[str]:
        return [item.text for item in self.page.transcript.items()]

    def keys(self) -> list[int]:
        return [item.key for item in self.page.transcript.items()]

    def stored(self) -> list[tuple[str, str, str]]:
        """(role, text, state) of all messages of the chat that is shown."""
        records = self.store.messages(self.chat.state.conversation_id)
        return [
            (r.role, "".join(p.text for p in r.parts if p.kind == "text"), str(r.state))
            for r in records
        ]

    def notice(self) -> Any:
        """The notice that can be read now, or None."""
        return self.composer.notice()

    def titles(self) -> list[str]:
        return [row.title for row in self.window.sidebar.chats()]


@pytest.fixture
def open_desk(qtbot: Any, qapp: QApplication) -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def start(
        folders: Folders, session: Any = None, *, to_open: tuple[str, ...] = (), wait: bool = True
    ) -> Desk:
        driven = session if session is not None else FakeChatSession()
        running = Application(
            qapp,
            folders,
            to_open=to_open,
            make_loop=lambda on_ready: EngineLoop(driven, on_ready),
        )
        desk = Desk(running, driven, qtbot)
        desks.append(desk)
        running.start()
        if wait:
            desk.until_ready()
        return desk

    yield start
    for desk in desks:
        desk.window.close_unasked()
        desk.running.shut_down()
        desk.window.deleteLater()
        desk.running.deleteLater()
    qapp.processEvents()


@pytest.fixture
def desk(open_desk: Callable[..., Desk], folders: Folders, session: FakeChatSession) -> Desk:
    return open_desk(folders, session)
