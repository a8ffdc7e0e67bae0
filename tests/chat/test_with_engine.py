"""ChatSession and EngineLoop on the real engine, with models small enough for every run."""

import threading

import numpy as np
import pytest

from app import engine as og
from app.chat.events import Failed, Finished, Load, Loaded, Piece, Prefill, Reply
from app.chat.loop import EngineLoop
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.stop import Stop


def of(texts):
    return tuple(
        Message.of("assistant" if index % 2 else "user", text) for index, text in enumerate(texts)
    )


@pytest.fixture(params=["tiny-llama", "tiny-llama-gqa", "tiny-spm"])
def folder(request, data_folder):
    return data_folder / request.param


@pytest.fixture
def session(folder):
    session = ChatSession()
    events = list(session.load(Load(1, str(folder)), Stop()))
    assert isinstance(events[-1], Finished)
    yield session
    session.close()


def ask(session, *texts, stop=None, **options):
    return list(session.reply(Reply(1, of(texts), Options(**options)), stop or Stop()))


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


def ids_of(events):
    return [token for event in events if isinstance(event, Piece) for token in event.token_ids]


def plain_ids(folder, prompt_ids, count):
    """The same by the engine alone, from an empty cache."""
    model = og.Model(str(folder))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(prompt_ids) + count, do_sample=False)
    generator = og.Generator(model, params)
    generator.append_tokens(np.array(prompt_ids, np.int32))
    found = []
    while not generator.is_done():
        generator.generate_next_token()
        found.append(int(generator.get_next_tokens()[0]))
    return found


def test_turns_with_a_kept_cache_equal_turns_from_nothing(session, folder):
    texts = ["Hello there"]
    for question in ("And then?", "Why <|end|> so?", None):
        events = ask(session, *texts, temperature=0.0, longest_answer=12)
        ids, end = ids_of(events), events[-1]
        sequence = session._generator.get_sequence(0).tolist()
        prompt = sequence[: end.stats.prompt_tokens]
        expected = plain_ids(folder, prompt, 12)
        assert ids == [token for token in expected if token not in session._loaded.end_tokens]
        assert end.stats.new_tokens == len(ids)
        texts += [text_of(events), question]


def test_a_follow_up_keeps_everything_that_was_read_and_written(session):
    events = ask(session, "Hello", temperature=0.0, longest_answer=8)
    cached = session._generator.token_count()
    end = ask(session, "Hello", text_of(events), "More", temperature=0.0, longest_answer=4)[-1]
    if session._loaded.info.has_chat_template:
        assert end.stats.kept_tokens == cached
    else:  # without control tokens around it a broken answer may be read anew
        assert end.stats.kept_tokens >= cached - events[-1].stats.new_tokens
    again = ask(session, "Hello", text_of(events), "More", temperature=0.0, longest_answer=4)[-1]
    assert again.stats.kept_tokens == again.stats.prompt_tokens - 1


def test_the_same_seed_gives_the_same_answer(session):
    one = ask(session, "Hello", temperature=2.0, seed=5, longest_answer=20)
    two = ask(session, "Hello", temperature=2.0, seed=5, longest_answer=20)
    other = ask(session, "Hello", temperature=2.0, seed=6, longest_answer=20)
    assert ids_of(one) == ids_of(two) != ids_of(other)
    repeat = ask(session, "Hello", temperature=2.0, seed=one[-1].stats.seed, longest_answer=20)
    assert ids_of(repeat) == ids_of(one)


def test_the_context_is_the_end_and_a_longer_chat_is_refused(session):
    limit = session._loaded.info.context_length
    end = ask(session, "Hello", temperature=0.0, longest_answer=10_000)[-1]
    if end.reason == "context":
        assert session._generator.token_count() == limit
    end = ask(session, "word " * limit)[-1]
    assert (end.kind, "longer than the model can read" in end.message) == ("context", True)
    assert isinstance(ask(session, "Hello", longest_answer=3)[-1], Finished)


def test_a_wrong_option_is_one_sentence(session):
    end = ask(session, "Hello", temperature=-1.0)[-1]
    assert isinstance(end, Failed)
    assert end.message.endswith(".")
    assert isinstance(ask(session, "Hello", longest_answer=3)[-1], Finished)


def test_folders_that_are_no_models(tmp_path):
    session = ChatSession()
    for path in (tmp_path, tmp_path / "nowhere"):
        end = list(session.load(Load(1, str(path)), Stop()))[-1]
        assert (type(end), end.kind) == (Failed, "model")
        assert end.message.endswith(".")


def test_stopping_anywhere_through_the_loop_leaves_it_usable(data_folder):
    """The stop comes at another event each time: while reading, at the first token, later."""
    ready = threading.Semaphore(0)
    loop = EngineLoop(ChatSession(), ready.release)
    worker = threading.Thread(target=loop.run)
    worker.start()

    def until_end(stop_at=None):
        events = []
        while not (events and isinstance(events[-1], Finished | Failed)):
            assert ready.acquire(timeout=30)
            for event in loop.drain():
                events.append(event)
                if stop_at is not None and isinstance(event, stop_at):
                    loop.stop()
        return events

    loop.submit(Load(0, str(data_folder / "tiny-llama")))
    assert any(isinstance(event, Loaded) for event in until_end())
    for number, stop_at in enumerate((Prefill, Piece, Prefill, None), start=1):
        loop.submit(Reply(number, of(["Hello there " * 8]), Options(longest_answer=120)))
        if stop_at is None:
            loop.stop()
        end = until_end(stop_at)[-1]
        assert end.request_id == number
        assert end.reason in ("stopped", "length", "context", "end")
    loop.submit(Reply(9, of(["Hello"]), Options(temperature=0.0, longest_answer=5)))
    assert until_end()[-1].stats.new_tokens == 5
    loop.close()
    worker.join(30)
    assert not worker.is_alive()
