"""Going back and forth between chats and branches reads each of them once."""

import pytest

from app.chat import caches
from app.chat.events import Finished, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.errors import OutOfMemoryError
from app.engine.stop import Stop


def run(session, text, **given):
    request = Reply(1, (Message.of("user", text),), Options(**given))
    return list(session.handle(request, Stop()))


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


LONG, OTHER, THIRD = "first " * 60, "second " * 60, "third " * 60


def test_two_chats_in_turn_are_read_once(open_session):
    session = open_session("yes")
    for text in (LONG, OTHER):
        assert run(session, text)[-1].stats.kept_tokens < 60
    for text in (LONG, OTHER, LONG):
        stats = run(session, text)[-1].stats
        assert stats.kept_tokens == stats.prompt_tokens - 1
    assert run(session, THIRD)[-1].stats.kept_tokens < 60  # in place of the one not used for long
    assert len(session._caches._generators) == 2
    assert run(session, LONG)[-1].stats.kept_tokens > 60
    assert run(session, OTHER)[-1].stats.kept_tokens < 60


def test_a_small_change_is_read_in_the_same_cache(open_session):
    session = open_session("yes")
    run(session, LONG)
    assert run(session, LONG + "and more")[-1].stats.kept_tokens > len(LONG)
    assert run(session, LONG[:-30] + "otherwise")[-1].stats.kept_tokens >= len(LONG) - 30
    assert len(session._caches._generators) == 1


def test_where_memory_is_short_there_is_one(open_session, monkeypatch):
    monkeypatch.setattr(caches, "MOST_BYTES", 10_000)
    session = open_session("yes")
    for text in (LONG, OTHER, LONG):
        assert text_of(run(session, text)) == "yes"
    assert len(session._caches._generators) == 1


def test_no_memory_closes_both(open_session):
    session = open_session("yes")
    run(session, LONG)
    run(session, OTHER)
    both = list(session._caches._generators)

    def fail():
        raise OutOfMemoryError("The device is full.")

    session._loaded.model.before_run = fail
    assert run(session, LONG + "more")[-1].kind == "memory"
    assert [generator.is_closed for generator in both] == [True, True]
    session._loaded.model.before_run = lambda: None
    assert text_of(run(session, LONG)) == "yes"


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-spm"])
def test_the_text_is_the_same_as_with_one(data_folder, name, monkeypatch):
    found = []
    for few in (0, 10**6):
        monkeypatch.setattr(caches, "_FEW", few)
        session = ChatSession()
        assert isinstance(
            list(session.load(Load(1, str(data_folder / name)), Stop()))[-1], Finished
        )
        options = {"temperature": 0.0, "longest_answer": 10}
        texts = ("one two three", "four five", "one two six", "four five")
        found.append([text_of(run(session, text, **options)) for text in texts])
        assert len(session._caches._generators) == (1 if few else 2)
        session.close()
    assert found[0] == found[1]
