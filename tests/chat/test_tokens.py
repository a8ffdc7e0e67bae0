"""The tokens of an answer as the model saw them, beside exact figures."""

import math

import numpy as np
import pytest

from app import engine as og
from app.chat.events import Finished, Inspect, Inspected, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.chat.splitter import Span
from app.chat.tokens import Eye, Places, Seen, perplexity
from app.engine.stop import Stop

QUESTION = (Message.of("user", "Hello there"),)


@pytest.fixture(params=["tiny-llama", "tiny-llama-gqa", "tiny-spm"])
def folder(request, data_folder):
    return data_folder / request.param


@pytest.fixture
def session(folder):
    session = ChatSession()
    assert isinstance(list(session.load(Load(1, str(folder)), Stop()))[-1], Finished)
    yield session
    session.close()


def run(session, request):
    return list(session.handle(request, Stop()))


def tokens_of(events):
    return [view for event in events if isinstance(event, Piece) for view in event.tokens]


def text_of(events, *, thought=False):
    return "".join(e.text for e in events if isinstance(e, Piece) and e.is_thought == thought)


def exact(folder, prompt, answer):
    """Probabilities of every token (L, V) in float64, each from a cache that read all at once."""
    model = og.Model(str(folder))
    rows = []
    for count in range(len(answer)):
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(prompt) + len(answer) + 1)
        generator = og.Generator(model, params)
        generator.append_tokens(np.array([*prompt, *answer[:count]], np.int32))
        row = generator.get_logits()[0].astype(np.float64)
        rows.append(np.exp(row - row.max()) / np.exp(row - row.max()).sum())
    return np.array(rows)


@pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"temperature": 1.8, "seed": 3}])
def test_probabilities_are_the_models_own_whatever_the_options(session, folder, sampling):
    options = Options(**sampling, top_k=40, repetition_penalty=1.3, longest_answer=12)
    events = run(session, Reply(1, QUESTION, options, watches_tokens=True))
    views, stats = tokens_of(events), events[-1].stats
    sequence = session._generator.get_sequence(0).tolist()
    prompt = sequence[: stats.prompt_tokens]
    answer = [view.token_id for view in views]
    assert answer == sequence[stats.prompt_tokens :] != []
    wanted = exact(folder, prompt, answer)
    for view, row in zip(views, wanted, strict=True):
        best = np.argsort(-row, kind="stable")
        assert view.probability == pytest.approx(row[view.token_id], rel=1e-3)
        assert view.rank == int((row > row[view.token_id]).sum())
        assert [other.token_id for other in view.alternatives] == best[:5].tolist()
        assert [other.probability for other in view.alternatives] == pytest.approx(
            row[best[:5]], rel=1e-3
        )
    logs = [math.log(row[token]) for token, row in zip(answer, wanted, strict=True)]
    assert stats.perplexity == pytest.approx(math.exp(-np.mean(logs)), rel=1e-3)


def test_an_answer_that_stands_is_looked_at_again(session):
    options = Options(temperature=1.5, seed=2, longest_answer=40)
    events = run(session, Reply(1, QUESTION, options, watches_tokens=True))
    views = tokens_of(events)
    ids = tuple(view.token_id for view in views)
    run(session, Reply(2, (Message.of("user", "Something else"),), options))
    seen = run(session, Inspect(3, QUESTION, options, ids))
    found = next(event for event in seen if isinstance(event, Inspected))
    assert isinstance(seen[-1], Finished)
    assert [view.token_id for view in found.tokens] == list(ids)
    for one, other in zip(found.tokens, views, strict=True):
        assert (one.text, one.start, one.rank) == (other.text, other.start, other.rank)
        assert one.probability == pytest.approx(other.probability, rel=1e-3)
        assert len(one.alternatives) == 10
        for here, there in zip(one.alternatives[:5], other.alternatives, strict=True):
            assert here.probability == pytest.approx(there.probability, rel=1e-3)
    assert found.perplexity == pytest.approx(events[-1].stats.perplexity, rel=1e-3)
    # The cache holds it: the answer goes on without reading.
    on = run(session, Reply(4, QUESTION, options, start=ids))
    assert on[-1].stats.kept_tokens == on[-1].stats.prompt_tokens


def test_looking_stops_when_it_is_told_to(session):
    stop, last = Stop(), None
    ids = tuple(range(40, 100)) + tuple(range(40, 100))
    for event in session.handle(Inspect(1, QUESTION, Options(), ids), stop):
        stop.set()
        last = event
    assert last == Finished(1, "stopped")
    assert isinstance(run(session, Reply(2, QUESTION, Options(longest_answer=3)))[-1], Finished)


def test_starts_are_utf16_and_parts_of_a_character_stand_where_it_does(open_session, ask, fake):
    said = "<think>\nhm 🎉\n</think>\n\nA 👩‍👩‍👧 e\u0301 漢字 z"
    session = open_session(said)
    events = run(session, Reply(1, (Message.of("user", "Go"),), Options(), watches_tokens=True))
    for is_thought in (True, False):
        text = text_of(events, thought=is_thought)
        views = [view for view in tokens_of(events) if view.is_thought == is_thought]
        assert text
        assert "".join(view.text for view in views) == text
        units = text.encode("utf-16-le")
        at = 0
        for view in views:
            assert view.start == at
            length = len(view.text.encode("utf-16-le"))
            assert units[2 * at : 2 * at + length] == view.text.encode("utf-16-le")
            at += length // 2
        assert at == len(units) // 2
    assert len(tokens_of(events)) == len(fake.Tokenizer().encode(said))


def test_places_in_real_vocabularies(folder):
    tokenizer = og.Tokenizer(str(folder))
    text = "Cafe\u0301, 漢字 and 🎉🎉 done\n  twice"
    ids = tokenizer.encode_plain(text).tolist()
    places = Places(tokenizer)
    shown = tokenizer.decode(ids)
    for token in ids:
        places.add(Seen(token, 0.5, 0))
    places.show(Span(shown, at=0))
    views = places.views(len(shown), is_thought=False, is_last=True)
    assert [view.token_id for view in views] == ids
    assert "".join(view.text for view in views) == shown
    at = 0
    for view in views:
        assert view.start == at
        at += len(view.text.encode("utf-16-le")) // 2


def test_pieces_of_text_carry_their_tokens_in_order(session):
    options = Options(temperature=1.0, seed=9, longest_answer=30)
    events = run(session, Reply(1, QUESTION, options, watches_tokens=True))
    ids = [id for event in events if isinstance(event, Piece) for id in event.token_ids]
    assert [view.token_id for view in tokens_of(events)] == ids
    plain = run(session, Reply(2, QUESTION, options))
    assert text_of(plain) == text_of(events)
    assert tokens_of(plain) == []


def test_control_tokens_have_their_names(folder):
    tokenizer = og.Tokenizer(str(folder))
    eye = Eye(tokenizer)
    for token in tokenizer.special_token_ids:
        assert eye.text(token)
    assert tokenizer.decode(list(tokenizer.special_token_ids)) == ""  # as before


def test_perplexity_of_a_uniform_choice_is_its_size():
    assert perplexity([1 / 8] * 5) == pytest.approx(8)
    assert perplexity([]) == 0.0
