"""Everything at once: tokens watched, words banned, stop strings, thoughts, stops at any moment."""

import random

import pytest

from app.chat.events import Failed, Finished, Inspect, Inspected, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.stop import Stop

QUESTION = (Message.of("user", "Hello there"),)


def joined(events, *, thought):
    return "".join(e.text for e in events if isinstance(e, Piece) and e.is_thought == thought)


def check_views(events):
    """Tokens stand where they say, in order, and miss nothing that a person sees."""
    ids = [id for event in events if isinstance(event, Piece) for id in event.token_ids]
    views = [view for event in events if isinstance(event, Piece) for view in event.tokens]
    assert [view.token_id for view in views] == ids
    for is_thought in (True, False):
        text = joined(events, thought=is_thought)
        units, at = text.encode("utf-16-le"), 0
        for view in views:
            if view.is_thought != is_thought:
                continue
            encoded = view.text.encode("utf-16-le")
            assert view.start == at
            assert units[2 * at : 2 * at + len(encoded)] == encoded
            at += len(encoded) // 2
            assert 0.0 <= view.probability <= 1.0
        assert 2 * at == len(units)
    return ids


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa", "tiny-spm"])
def test_whatever_is_asked_for_the_pieces_agree(data_folder, name):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    session = ChatSession()
    list(session.handle(Load(0, str(data_folder / name)), Stop()))
    letters = "etaoinshrdlu ,.🎉é"
    for number in range(25):
        options = Options(
            temperature=rng.choice([0.0, 1.0, 2.0]),
            seed=number,
            longest_answer=rng.randrange(1, 40),
            stop_strings=tuple(rng.choice(letters) for _ in range(rng.randrange(2))),
            banned=tuple(
                "".join(rng.choice(letters) for _ in range(rng.randrange(1, 3)))
                for _ in range(rng.randrange(4))
            ),
            guesses_ahead=rng.random() < 0.3,
        )
        stop, stops_at, events = Stop(), rng.randrange(60), []
        for event in session.handle(Reply(1, QUESTION, options, watches_tokens=True), stop):
            events.append(event)
            if len(events) == stops_at:
                stop.set()
        assert [e for e in events if isinstance(e, Finished | Failed)] == events[-1:]
        ids = check_views(events)
        text = joined(events, thought=False).casefold()
        assert not [w for w in options.banned if w.strip() and w.casefold() in text]
        assert not [s for s in options.stop_strings if s in joined(events, thought=False)]
        if ids:
            looked = list(session.handle(Inspect(2, QUESTION, options, tuple(ids)), Stop()))
            (found,) = [event for event in looked if isinstance(event, Inspected)]
            assert [view.token_id for view in found.tokens] == ids
    session.close()


@pytest.mark.starter
def test_the_starters_answers_go_on_and_are_looked_at(starter_fp32):
    """On real text: an answer in two parts is the answer in one, and every token is in place."""
    session = ChatSession()
    list(session.handle(Load(0, str(starter_fp32)), Stop()))
    question = (Message.of("user", "Write one line with the emoji 🎉 and the word 日本語."),)
    options = Options(temperature=0.0, longest_answer=40)
    events = list(session.handle(Reply(1, question, options, watches_tokens=True), Stop()))
    ids = check_views(events)
    shorter = Options(temperature=0.0, longest_answer=len(ids) // 2)
    first = list(session.handle(Reply(2, question, shorter), Stop()))
    start = tuple(id for event in first if isinstance(event, Piece) for id in event.token_ids)
    assert start == tuple(ids[: len(start)])
    rest = Options(temperature=0.0, longest_answer=40 - len(start))
    on = list(session.handle(Reply(3, question, rest, start=start), Stop()))
    assert [id for event in on if isinstance(event, Piece) for id in event.token_ids] == ids
    assert on[-1].stats.kept_tokens == on[-1].stats.prompt_tokens
    again = [
        list(session.handle(Reply(4, question, Options(seed=11, longest_answer=30)), Stop()))
        for _ in range(2)
    ]
    assert joined(again[0], thought=False) == joined(again[1], thought=False) != ""
    session.close()
