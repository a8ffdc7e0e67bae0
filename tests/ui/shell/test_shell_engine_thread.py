"""The contract of EngineThread: one thread, order kept, exactly one end for each request."""

import gc
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from PySide6.QtCore import QObject, QThread, Signal, Slot

from app.chat.events import Failed, Finished, Load, Piece, Prefill, Reply
from app.chat.loop import EngineLoop
from app.chat.messages import Message, Options, TokenView
from app.ui.engine_thread import EngineThread, take

PATIENCE_MS = 20_000


def reply(number: int, text: str = "one two three") -> Reply:
    return Reply(number, (Message.of("user", text),), Options())


class Listener(QObject):
    def __init__(self, engine: EngineThread) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.threads: set[QThread] = set()
        engine.events.connect(self.take)

    @Slot(list)
    def take(self, events: list[Any]) -> None:
        self.events.extend(events)
        self.threads.add(QThread.currentThread())

    def ends(self) -> dict[int, str]:
        return {
            event.request_id: getattr(event, "reason", "failed")
            for event in self.events
            if isinstance(event, Finished | Failed)
        }


@pytest.fixture
def engine(session: Any, qtbot: Any) -> Iterator[EngineThread]:
    made = EngineThread(lambda on_ready: EngineLoop(session, on_ready))
    yield made
    assert made.close()


@pytest.fixture
def heard(engine: EngineThread) -> Listener:
    return Listener(engine)


@pytest.fixture
def until(qtbot: Any) -> Callable[[Callable[[], bool]], None]:
    return lambda condition: qtbot.waitUntil(condition, timeout=PATIENCE_MS)


def test_five_thousand_signals_from_a_thread_arrive(qtbot: Any) -> None:
    """PySide6 6.12.0 lost a reference at every emit and ended Python 3.11 after some hundreds."""

    class Talker(QObject):
        said = Signal(object, bool, str)

    class Hearer(QObject):
        count = 0

        @Slot(object, bool, str)
        def hear(self, _value: object, _flag: bool, _text: str) -> None:
            self.count += 1

    talker, hearer = Talker(), Hearer()
    talker.said.connect(hearer.hear)
    worker = threading.Thread(
        target=lambda: [talker.said.emit(None, True, "text") for _ in range(5000)]
    )
    worker.start()
    qtbot.waitUntil(lambda: hearer.count == 5000, timeout=PATIENCE_MS)
    worker.join()


def test_garbage_of_other_threads_ends_in_the_windows_thread(desk: Any) -> None:
    """Widgets in cycles must not be ended by the thread that happens to allocate."""
    ended_by: set[int] = set()

    class Loop:
        def __init__(self) -> None:
            self.me = self
            weakref.finalize(self, lambda: ended_by.add(threading.get_ident()))

    worker = threading.Thread(target=lambda: [Loop() for _ in range(5000)])
    worker.start()
    worker.join()
    assert not gc.isenabled()
    assert ended_by == set()
    desk.until(lambda: ended_by)
    assert ended_by == {threading.get_ident()}


def test_requests_before_the_start_are_kept_in_order(
    engine: EngineThread, heard: Listener, session: Any, until: Any
) -> None:
    engine.submit(Load(1, "folder"))
    engine.submit(reply(2))
    engine.start()
    until(lambda: set(heard.ends()) == {1, 2})
    assert [type(request) for request in session.requests] == [Load, Reply]


def test_events_come_in_the_threads_of_the_window(
    engine: EngineThread, heard: Listener, until: Any
) -> None:
    engine.start()
    engine.submit(reply(1))
    until(lambda: 1 in heard.ends())
    assert heard.threads == {QThread.currentThread()}
    # Neighbours of a kind come as one or as more, as they met in a batch.
    kinds = [kind for kind, _ in groupby(type(event) for event in heard.events)]
    assert kinds == [Prefill, Piece, Finished]


def test_a_stop_before_the_engine_is_there_is_not_lost(
    engine: EngineThread, heard: Listener, session: Any, until: Any
) -> None:
    engine.submit(reply(1))
    engine.stop()
    engine.start()
    engine.submit(reply(2))
    until(lambda: set(heard.ends()) == {1, 2})
    assert heard.ends() == {1: "stopped", 2: "end"}
    assert [request.request_id for request in session.replies] == [2]


def test_a_stop_before_its_turn_is_not_lost(
    engine: EngineThread, heard: Listener, session: Any, hold: Any, until: Any
) -> None:
    session.will_answer("a", hold, "b")
    engine.start()
    engine.submit(reply(1))
    engine.submit(reply(2))
    until(hold.is_reached.is_set)
    engine.stop()
    until(lambda: set(heard.ends()) == {1, 2})
    assert heard.ends() == {1: "stopped", 2: "stopped"}


def test_a_stop_while_the_prompt_is_read(
    engine: EngineThread, heard: Listener, session: Any, hold: Any, until: Any
) -> None:
    session.before_reading = hold
    engine.start()
    engine.submit(reply(1))
    until(hold.is_reached.is_set)
    engine.stop()
    until(lambda: 1 in heard.ends())
    assert heard.ends() == {1: "stopped"}
    assert not any(isinstance(event, Piece) for event in heard.events)


def test_a_stop_when_idle_harms_nothing(engine: EngineThread, heard: Listener, until: Any) -> None:
    engine.start()
    engine.stop()
    engine.submit(reply(1))
    until(lambda: 1 in heard.ends())
    engine.stop()
    engine.submit(reply(2))
    until(lambda: 2 in heard.ends())
    assert heard.ends() == {1: "end", 2: "end"}


def test_exactly_one_end_for_each_request_and_it_is_the_last(
    engine: EngineThread, heard: Listener, session: Any, failure: Any, until: Any
) -> None:
    session.will_answer("fine")
    session.will_answer(failure("There is no room.", "memory"))
    session.will_answer("then", ValueError("a bug of the engine"))
    session.will_answer("fine again")
    engine.start()
    for number in range(1, 5):
        engine.submit(reply(number))
    until(lambda: len(heard.ends()) == 4)
    assert heard.ends() == {1: "end", 2: "failed", 3: "failed", 4: "end"}
    ends = [e.request_id for e in heard.events if isinstance(e, Finished | Failed)]
    assert Counter(ends) == {1: 1, 2: 1, 3: 1, 4: 1}
    for number in range(1, 5):
        own = [event for event in heard.events if event.request_id == number]
        assert isinstance(own[-1], Finished | Failed)


def test_closing_ends_what_runs_and_tells_it(
    session: Any, hold: Any, qtbot: Any, until: Any
) -> None:
    session.will_answer("some text", hold, "never")
    engine = EngineThread(lambda on_ready: EngineLoop(session, on_ready))
    heard = Listener(engine)
    engine.start()
    engine.submit(reply(1))
    until(hold.is_reached.is_set)
    assert engine.close()
    assert heard.ends() == {1: "stopped"}
    assert "".join(e.text for e in heard.events if isinstance(e, Piece)) == "some text"
    assert session.is_closed
    assert engine.close()  # a second time changes nothing


def test_closing_before_the_start(session: Any, qtbot: Any) -> None:
    engine = EngineThread(lambda on_ready: EngineLoop(session, on_ready))
    engine.submit(reply(1))
    assert engine.close()


def test_an_engine_that_does_not_start_is_said_in_words(
    qtbot: Any, until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_on_ready: Any) -> Any:
        raise ImportError("libonnxruntime.so: cannot open shared object file")

    engine = EngineThread(broken)
    heard = Listener(engine)
    engine.submit(reply(1))
    engine.start()
    until(lambda: 1 in heard.ends())
    engine.submit(reply(2))
    until(lambda: 2 in heard.ends())
    failed = [event for event in heard.events if isinstance(event, Failed)]
    assert [event.kind for event in failed] == ["engine", "engine"]
    assert "install it again" in failed[0].message
    assert "cannot open shared object" in caplog.text
    assert engine.close()


def test_options_reach_the_answer_that_is_written(
    engine: EngineThread, heard: Listener, session: Any, hold: Any, until: Any
) -> None:
    session.will_answer("a", hold, "b")
    engine.start()
    engine.submit(reply(1))
    until(hold.is_reached.is_set)
    engine.set_options(Options(temperature=1.5))
    hold.release()
    until(lambda: 1 in heard.ends())
    assert session.live_options == [Options(temperature=1.5)]


def test_what_is_known_of_tokens_comes_once_when_a_piece_is_cut() -> None:
    seen = tuple(TokenView(number, "ab", 2 * number, 0.5, 0) for number in range(10))
    backlog = deque([Piece(1, "ab" * 10, token_ids=tuple(range(10)), tokens=seen)])
    parts = []
    while backlog:
        parts += take(backlog, 7)
    assert "".join(part.text for part in parts) == "ab" * 10
    assert [number for part in parts for number in part.token_ids] == list(range(10))
    assert [len(part.tokens) for part in parts] == [0, 0, 10]
