"""EngineLoop with a small session: order, one end for each request, stops that are never lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.chat.events import (
    Failed,
    Finished,
    Inspect,
    Load,
    Loading,
    Piece,
    Prefill,
    Reply,
    Trying,
    Unload,
)
from app.chat.loop import EngineLoop
from app.chat.messages import Message, Options, TokenView


class CountingSession:
    """Says its pieces; waits for `gate` before each, so that a test decides the moment."""

    def __init__(self, pieces=3):
        self.pieces, self.options, self.closed = pieces, None, False
        self.gate = threading.Semaphore(0)
        self.started = threading.Semaphore(0)
        self.seen = []

    def handle(self, request, stop):
        self.seen.append(request)
        if isinstance(request, Load):
            yield Loading(request.request_id, request.path)
        self.started.release()
        if isinstance(request, Reply):
            if request.messages[-1].text == "bug":
                raise ZeroDivisionError
            for index in range(self.pieces):
                assert self.gate.acquire(timeout=10)
                if stop.is_set():
                    break
                yield Piece(request.request_id, f"{index} ", token_ids=(index,))
        elif isinstance(request, Load | Inspect):
            assert self.gate.acquire(timeout=10)
        yield Finished(request.request_id, "stopped" if stop.is_set() else "end")

    def set_options(self, options):
        self.options = options

    def close(self):
        self.closed = True


def reply(number, text="hi", **options):
    return Reply(number, (Message.of("user", text),), Options(**options))


@pytest.fixture
def running():
    """A loop on its own thread; `wait_end(id)` collects until that request has ended."""
    ready = threading.Event()
    session = CountingSession()
    loop = EngineLoop(session, ready.set)
    events = []

    def wait_end(*ids):
        while not set(ids) <= {e.request_id for e in events if isinstance(e, Finished | Failed)}:
            assert ready.wait(10)
            ready.clear()
            events.extend(loop.drain())
        return events

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(loop.run)
        yield loop, session, wait_end
        loop.close()
        for _ in range(100):
            session.gate.release()
        done.result(10)
    assert session.closed


def test_order_is_kept_and_each_request_has_one_end(running):
    loop, session, wait_end = running
    for _ in range(20):
        session.gate.release()
    requests = [Load(1, "a"), reply(2), reply(3, "bug"), reply(4), Unload(5)]
    for request in requests:
        loop.submit(request)
    events = wait_end(5)
    assert [e.request_id for e in events] == sorted(e.request_id for e in events)
    for number in range(1, 6):
        own = [e for e in events if e.request_id == number]
        assert [isinstance(e, Finished | Failed) for e in own] == [False] * (len(own) - 1) + [True]
    assert "".join(e.text for e in events if isinstance(e, Piece) and e.request_id == 4) == "0 1 2 "


def test_a_bug_is_one_sentence_and_the_log_has_it(running, caplog):
    loop, _, wait_end = running
    loop.submit(reply(1, "bug"))
    end = wait_end(1)[-1]
    assert (end.kind, "Zero" in end.message) == ("bug", False)
    assert "ZeroDivisionError" in caplog.text


def test_a_stop_before_the_start_is_not_lost(running):
    loop, session, wait_end = running
    loop.submit(reply(1))
    assert session.started.acquire(timeout=10)
    loop.submit(reply(2))
    loop.stop()
    loop.submit(reply(3))
    for _ in range(9):
        session.gate.release()
    events = wait_end(1, 2, 3)
    reasons = {e.request_id: e.reason for e in events if isinstance(e, Finished)}
    assert reasons == {1: "stopped", 2: "stopped", 3: "end"}


def test_stop_means_the_answer_and_else_the_loading(running):
    loop, session, wait_end = running
    loop.submit(Load(1, "a"))
    assert session.started.acquire(timeout=10)
    loop.submit(reply(2))
    loop.stop()
    session.gate.release()
    session.gate.release()
    reasons = {e.request_id: e.reason for e in wait_end(1, 2) if isinstance(e, Finished)}
    assert reasons == {1: "end", 2: "stopped"}
    loop.submit(Load(3, "a"))
    loop.stop()
    session.gate.release()
    assert wait_end(3)[-1].reason == "stopped"
    loop.stop()  # harmless when idle
    loop.submit(Unload(4))
    assert wait_end(4)[-1].reason == "end"


def test_options_reach_the_answer_that_is_meant(running):
    loop, session, wait_end = running
    loop.set_options(Options(top_k=1))  # idle: nothing to change
    assert session.options is None
    loop.submit(reply(1))
    assert session.started.acquire(timeout=10)
    loop.set_options(Options(top_k=2))
    assert session.options.top_k == 2
    for _ in range(3):
        session.gate.release()
    wait_end(1)
    assert session.options is None  # a change that came too late is not for the next answer
    loop.submit(Load(2, "a"))
    assert session.started.acquire(timeout=10)
    loop.submit(reply(3))
    loop.set_options(Options(top_k=3))
    for _ in range(4):
        session.gate.release()
    wait_end(3)
    assert session.seen[-1].options.top_k == 3


def test_requests_that_wait_at_the_end_are_answered_too():
    session = CountingSession()
    loop = EngineLoop(session, lambda: None)
    for number in range(3):
        loop.submit(reply(number))
        session.gate.release()
    loop.close()
    loop.submit(reply(3))
    session.gate.release()
    loop.run()
    loop.submit(reply(4))
    ends = [e for e in loop.drain() if isinstance(e, Finished)]
    assert [(e.request_id, e.reason) for e in ends] == [(n, "stopped") for n in range(5)]


def test_no_wake_up_is_lost_and_none_is_sent_for_a_full_outbox():
    """Every event arrives although the reader only looks when it is called."""
    ready = threading.Semaphore(0)
    session = CountingSession(pieces=5_000)
    loop = EngineLoop(session, ready.release)
    for _ in range(5_000):
        session.gate.release()
    loop.submit(reply(1))
    worker = threading.Thread(target=loop.run)
    worker.start()
    ids = []
    end = None
    while end is None:
        assert ready.acquire(timeout=20)
        for event in loop.drain():
            if isinstance(event, Piece):
                ids += event.token_ids
            else:
                end = event
    assert ids == list(range(5_000))
    loop.close()
    worker.join(10)
    assert not worker.is_alive()


def test_pieces_that_follow_each_other_are_joined():
    session = CountingSession()
    loop = EngineLoop(session, lambda: None)
    script = [
        Prefill(1, 1, 9, 0),
        Prefill(1, 9, 9, 0),
        Piece(1, "a", True, (1,)),
        Piece(1, "b", True, (2,)),
        Piece(1, "c", False, (3,)),
        Piece(1, "", False, (4,)),
        Piece(2, "d", False, (5,)),
        Finished(2),
    ]
    for event in script:
        loop._emit(event)
    assert loop.drain() == [
        Prefill(1, 9, 9, 0),
        Piece(1, "ab", True, (1, 2)),
        Piece(1, "c", False, (3, 4)),
        Piece(2, "d", False, (5,)),
        Finished(2),
    ]
    assert loop.drain() == []


def test_another_clients_request_keeps_to_its_own_sink(running):
    loop, session, wait_end = running
    got = []
    begun, ended = threading.Event(), threading.Event()

    def sink(event):
        got.append(event)
        begun.set()
        if isinstance(event, Finished | Failed):
            ended.set()

    stop = loop.submit(reply(7), sink)
    assert session.started.acquire(timeout=10)
    loop.stop()  # the window's button is for the window's answers
    loop.set_options(Options(temperature=0.9))
    session.gate.release()
    loop.submit(reply(8))
    assert begun.wait(10)
    stop.set()
    session.gate.release(10)
    assert ended.wait(10)
    assert got[0] == Piece(7, "0 ", token_ids=(0,))
    assert got[-1] == Finished(7, "stopped")
    assert session.options is None
    events = wait_end(8)
    assert {event.request_id for event in events} == {8}


def test_joined_pieces_keep_the_tokens_and_the_last_count():
    loop = EngineLoop(CountingSession(), lambda: None)
    one, two = TokenView(1, "a", 0, 0.5, 0), TokenView(2, "b", 1, 0.25, 1)
    loop._emit(Piece(1, "a", token_ids=(1,), tokens=(one,), avoided=1))
    loop._emit(Piece(1, "b", token_ids=(2,), tokens=(two,), avoided=3))
    loop._emit(Trying(1, 4, 8))
    loop._emit(Trying(1, 4, 16))
    assert loop.drain() == [
        Piece(1, "ab", token_ids=(1, 2), tokens=(one, two), avoided=3),
        Trying(1, 4, 16),
    ]


def test_stop_ends_looking_at_an_answer_too(running):
    loop, session, wait_end = running
    loop.submit(Inspect(5, (), Options(), (1, 2)))
    assert session.started.acquire(timeout=10)
    loop.stop()
    session.gate.release(10)
    assert wait_end(5)[-1] == Finished(5, "stopped")
