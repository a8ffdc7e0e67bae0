"""An answer that goes on is the answer that was never interrupted."""

import pytest

from app.chat.events import Finished, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.stop import Stop

QUESTION = (Message.of("user", "Hello there"),)
GREEDY = {"temperature": 0.0, "repetition_penalty": 1.1}


@pytest.fixture(params=["tiny-llama", "tiny-llama-gqa", "tiny-spm"])
def session(request, data_folder):
    session = ChatSession()
    assert isinstance(
        list(session.load(Load(1, str(data_folder / request.param)), Stop()))[-1], Finished
    )
    yield session
    session.close()


def ask(session, messages=QUESTION, *, stop_after=None, **given):
    options = Options(**GREEDY, longest_answer=given.pop("longest_answer", 24))
    stop, events = Stop(), []
    for event in session.handle(Reply(1, messages, options, **given), stop):
        events.append(event)
        if stop_after is not None and len(ids_of(events)) >= stop_after:
            stop.set()
    return events


def ids_of(events):
    return tuple(id for event in events if isinstance(event, Piece) for id in event.token_ids)


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


@pytest.mark.parametrize("count", [1, 2, 7, 16])
def test_a_stopped_answer_goes_on_as_if_it_never_stopped(session, count):
    whole = ask(session)
    stopped = ask(session, stop_after=count)
    start = ids_of(stopped)
    assert start == ids_of(whole)[: len(start)]
    assert stopped[-1].reason == "stopped"
    on = ask(session, start=start, longest_answer=24 - len(start))
    assert (ids_of(on), text_of(on)) == (ids_of(whole), text_of(whole))
    stats = on[-1].stats
    assert stats.kept_tokens == stats.prompt_tokens  # nothing was read again
    assert stats.new_tokens == len(ids_of(whole)) - len(start)
    assert not stats.is_repeatable


@pytest.mark.parametrize("count", [1, 9])
def test_also_after_another_chat_was_read(session, count):
    whole = ask(session)
    ask(session, (Message.of("user", "Something else " * 5),))
    start = ids_of(whole)[:count]
    on = ask(session, start=start, longest_answer=24 - count)
    assert ids_of(on) == ids_of(whole)


def test_the_first_piece_repeats_the_start_even_if_it_is_stopped_at_once(session):
    start = ids_of(ask(session))[:5]
    ask(session, (Message.of("user", "Something else"),))
    stop, events = Stop(), []
    for event in session.handle(Reply(1, QUESTION, Options(**GREEDY), start=start), stop):
        events.append(event)
        stop.set()
    assert ids_of(events) == start
    assert events[-1].reason == "stopped"


def test_a_stop_before_the_start_loses_nothing(session):
    start = ids_of(ask(session))[:5]
    text = text_of(ask(session, start=start, longest_answer=1))
    stop = Stop()
    stop.set()
    events = list(session.handle(Reply(1, QUESTION, Options(**GREEDY), start=start), stop))
    assert ids_of(events) == start
    assert text.startswith(text_of(events).rstrip("\ufffd"))
    assert (events[-1].reason, events[-1].stats.new_tokens) == ("stopped", 0)


def test_an_answer_from_another_word_on(session):
    whole = ask(session)
    start = ids_of(whole)[:4]
    head = text_of(ask(session, start=start, longest_answer=1))
    on = ask(session, start=start, start_text=" but", longest_answer=6)
    stood = text_of(on)
    assert " but" in stood
    assert ids_of(on)[:4] == start
    prompt = session._caches.current.get_sequence(0).tolist()
    assert prompt[-len(ids_of(on)) :] == list(ids_of(on))
    assert head[:1] == stood[:1]


def test_a_text_without_ids_is_a_start_too(session):
    on = ask(session, start_text="Well, yes", longest_answer=5)
    assert text_of(on).startswith("Well, yes")
    first = next(event for event in on if isinstance(event, Piece))
    assert session._loaded.tokenizer.decode(first.token_ids) == first.text


def test_an_answer_that_ended_can_be_continued(open_session, ask, fake):
    session = open_session("Hello.")
    events = ask(session, "Hi")
    request = Reply(2, (Message.of("user", "Hi"),), Options(), start=ids_of(events))
    on = list(session.handle(request, Stop()))
    assert (text_of(on), on[-1].reason, on[-1].stats.new_tokens) == ("Hello.", "end", 0)
    assert ids_of(on) == ids_of(events)


def test_a_thought_goes_on_as_a_thought(open_session, ask, fake):
    session = open_session("<think>\nlet me see\n</think>\n\nFour.")
    whole = ask(session, "2+2?")
    for count in range(len(ids_of(whole))):
        request = Reply(2, (Message.of("user", "2+2?"),), Options(), start=ids_of(whole)[:count])
        on = list(session.handle(request, Stop()))
        for is_thought in (True, False):
            assert "".join(
                e.text for e in on if isinstance(e, Piece) and e.is_thought == is_thought
            ) == ("let me see" if is_thought else "Four.")
        assert ids_of(on) == ids_of(whole)


def test_from_another_token_on_only_that_token_is_read(session, data_folder):
    whole = ask(session)
    stands = ids_of(whole)[:6]
    views = [
        view
        for event in session.handle(
            Reply(1, QUESTION, Options(**GREEDY, longest_answer=8), watches_tokens=True), Stop()
        )
        if isinstance(event, Piece)
        for view in event.tokens
    ]
    assert tuple(view.token_id for view in views[:6]) == stands
    ends = session._loaded.end_tokens
    other = next(o for o in views[6].alternatives[1:] if o.token_id not in ends)
    start = (*stands, other.token_id)
    on = ask(session, start=start, longest_answer=10)
    assert on[-1].stats.kept_tokens == on[-1].stats.prompt_tokens - 1
    fresh = ChatSession()
    list(fresh.load(Load(1, session._loaded.info.path), Stop()))
    assert ids_of(ask(fresh, start=start, longest_answer=10)) == ids_of(on)
    fresh.close()
