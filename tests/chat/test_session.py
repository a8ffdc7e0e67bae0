"""Turns of a conversation through ChatSession: what is read, what is kept, how answers end."""

import dataclasses

import pytest

from app.chat.events import Failed, Finished, Load, Loaded, Loading, Piece, Prefill, Reply, Unload
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.errors import EngineError, ModelError, OutOfMemoryError
from app.engine.stop import Stop


def text_of(events, *, thought=False):
    return "".join(e.text for e in events if isinstance(e, Piece) and e.is_thought == thought)


def ids_of(events):
    return [token for e in events if isinstance(e, Piece) for token in e.token_ids]


def one_end(events):
    """The rule that everything above relies on: one last event, and it is the last."""
    ends = [e for e in events if isinstance(e, Finished | Failed)]
    assert ends == events[-1:]
    return ends[0]


def test_an_answer_comes_as_text_and_token_ids(open_session, ask, fake):
    events = ask(open_session("Hëllo 👩‍👩‍👧 there"), "Hi")
    end = one_end(events)
    assert end.reason == "end"
    assert text_of(events) == "Hëllo 👩‍👩‍👧 there"
    assert fake.Tokenizer().decode(ids_of(events)) == "Hëllo 👩‍👩‍👧 there"
    assert end.stats.new_tokens == len(ids_of(events))
    assert not any("\ufffd" in e.text for e in events if isinstance(e, Piece))


def test_a_follow_up_reads_only_what_is_new(open_session, ask, fake):
    session = open_session("First answer.", "Second answer.")
    first = ask(session, "One?")
    generator = session._generator
    cached = generator.token_count()
    generator.read.clear()
    events = ask(session, "One?", text_of(first), "Two?")
    new = fake.Tokenizer().encode(
        "<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert generator.read == new.tolist()
    assert one_end(events).stats.kept_tokens == cached
    assert text_of(events) == "Second answer."


def test_regenerate_reads_one_token_and_edit_reads_from_the_change(open_session, ask, fake):
    session = open_session("An answer.")
    prompt = one_end(ask(session, "A question?")).stats.prompt_tokens
    generator = session._generator
    generator.read.clear()
    again = one_end(ask(session, "A question?")).stats
    assert (again.kept_tokens, len(generator.read)) == (prompt - 1, 1)
    generator.read.clear()
    ask(session, "A quest?")
    common = len(fake.Tokenizer().encode("<|im_start|>user\nA quest"))
    assert len(generator.read) == len(generator.sequence) - len("An answer.") - common


def test_prefill_counts_up_to_the_prompt(open_session, ask):
    session = open_session("Yes.")
    ask(session, "x" * 100)
    events = ask(session, "x" * 60 + "y" * 60)
    counts = [e for e in events if isinstance(e, Prefill)]
    stats = one_end(events).stats
    assert counts[0].done == counts[0].kept == stats.kept_tokens > 0
    assert [e.done for e in counts] == sorted({e.done for e in counts})
    assert counts[-1].done == counts[-1].total == stats.prompt_tokens


@pytest.mark.parametrize(
    ("options", "context_length", "reason", "count"),
    [
        ({"longest_answer": 7}, 4096, "length", 7),
        ({"longest_answer": 500}, 60, "context", None),
        ({"stop_strings": ("STOP",)}, 4096, "end", None),
    ],
)
def test_how_an_answer_ends(open_session, ask, options, context_length, reason, count):
    session = open_session("0123456789" * 9 + "STOP" + "a" * 99, context_length=context_length)
    events = ask(session, "Go", **options)
    end = one_end(events)
    assert end.reason == reason
    if reason == "length":
        assert len(text_of(events)) == end.stats.new_tokens == count
    if reason == "context":
        assert session._generator.token_count() == 60
    if reason == "end":
        assert text_of(events) == "0123456789" * 9


def test_too_long_a_chat_says_by_how_much_and_keeps_the_cache(open_session, ask):
    session = open_session("ok", context_length=100)
    ask(session, "short")
    generator, cached = session._generator, session._generator.token_count()
    overhead = one_end(ask(session, "short")).stats.prompt_tokens - len("short")
    for over in (1, 2, 1500):
        end = one_end(ask(session, "x" * (100 - overhead - 1 + over)))
        assert (end.kind, f" {over:,} token" in end.message) == ("context", True)
    assert session._generator is generator
    assert generator.token_count() == cached
    assert one_end(ask(session, "x" * (100 - overhead - 1))).stats.new_tokens == 1


def test_stop_before_the_start_is_not_lost(open_session, ask):
    stop = Stop()
    stop.set()
    session = open_session("never")
    assert ask(session, "Hi", stop=stop) == [Finished(1, "stopped")]
    assert text_of(ask(session, "Hi")) == "never"


@pytest.mark.parametrize("after", range(0, 12))
def test_stop_at_any_run_leaves_the_session_usable(open_session, ask, after):
    session = open_session("0123456789", "and on")
    stop, runs = Stop(), []

    def count():
        runs.append(1)
        if len(runs) > after:
            stop.set()

    session._loaded.model.before_run = count
    events = ask(session, "q" * 40, stop=stop)
    assert one_end(events).reason == "stopped"
    said = text_of(events)
    assert "0123456789".startswith(said)
    session._loaded.model.before_run = lambda: None
    assert text_of(ask(session, "q" * 40)) == "0123456789"
    assert text_of(ask(session, "q" * 40, said or "?", "more")) == "and on"


def test_every_end_token_counts_and_none_is_kept(open_session, ask, fake):
    session = open_session("Hello</s>and more")
    session._loaded.end_tokens.add(256 + fake.SPECIALS.index("</s>"))
    events = ask(session, "Hi")
    assert (text_of(events), one_end(events).reason) == ("Hello", "end")
    assert fake.Tokenizer().decode(session._generator.sequence).endswith("Hello")


def test_thoughts_are_apart_and_left_out_of_the_next_turn(open_session, ask, fake):
    session = open_session("<think>\nlet me see\n</think>\n\nFour.", "Ok.")
    events = ask(session, "2+2?")
    assert text_of(events, thought=True) == "let me see"
    assert text_of(events) == "Four."
    ask(session, "2+2?", text_of(events), "Thanks")
    assert "let me see" not in fake.Tokenizer().decode(session._generator.sequence)


def test_a_template_that_opens_the_thought(open_session, ask, fake):
    template = fake.Tokenizer().chat_template.replace(
        "'<|im_start|>assistant\n' }}{% endif", "'<|im_start|>assistant\n<think>\n' }}{% endif"
    )
    session = open_session("hm</think>Yes.", tokenizer=fake.Tokenizer(template), start="<think>\n")
    events = ask(session, "Well?")
    assert (text_of(events, thought=True), text_of(events)) == ("hm", "Yes.")


def test_seed_is_drawn_and_reported_or_used(open_session, ask):
    session = open_session("a")
    seeds = {one_end(ask(session, "x")).stats.seed for _ in range(5)}
    assert len(seeds) > 1
    end = one_end(ask(session, "x", seed=7))
    assert (end.stats.seed, end.stats.options["random_seed"]) == (7, 7)


def test_options_fall_back_to_the_model_and_zero_is_greedy(open_session, ask):
    session = open_session("a")
    default = one_end(ask(session, "x")).stats.options
    assert (default["temperature"], default["top_k"], default["do_sample"]) == (0.7, 40, True)
    assert one_end(ask(session, "x", temperature=0.0)).stats.options["do_sample"] is False


def test_options_change_while_the_answer_is_written(open_session, fake):
    session = open_session("0123456789" * 10)
    said = ""
    for event in session.reply(Reply(1, (Message.of("user", "x"),), Options()), Stop()):
        if isinstance(event, Piece):
            said += event.text
            if said == "01234":
                session.set_options(Options(temperature=1.5, longest_answer=9, seed=3))
    assert said == "012345678"
    assert event.reason == "length"
    assert event.stats.options["temperature"] == 1.5
    assert event.stats.options["random_seed"] == 3


def test_a_shorter_longest_answer_ends_it_at_once(open_session):
    session = open_session("0123456789" * 10)
    said = ""
    for event in session.reply(Reply(1, (Message.of("user", "x"),), Options()), Stop()):
        if isinstance(event, Piece):
            said += event.text
            if said == "01234":
                session.set_options(Options(longest_answer=2))
    assert (said, event.reason) == ("01234", "length")


def test_load_answers_with_what_the_window_shows(fake, tmp_path):
    engine = fake.Engine(fake.scripted("a"), context_length=512)
    session = ChatSession(engine)
    events = list(session.load(Load(4, str(tmp_path)), Stop()))
    assert [type(e) for e in events] == [Loading, Loaded, Finished]
    info = events[1].model
    assert (info.path, info.name, info.device) == (str(tmp_path), tmp_path.name, "CPU")
    assert info.context_length == 512
    assert None not in dataclasses.astuple(dataclasses.replace(info.defaults, seed=0, thinks=True))
    list(session.load(Load(5, str(tmp_path)), Stop()))
    assert [model.is_closed for model in engine.models] == [True, False]
    assert list(session.unload(Unload(6))) == [Finished(6)]
    assert engine.models[-1].is_closed


def test_a_stop_while_loading_drops_the_model(fake, tmp_path):
    engine = fake.Engine(fake.scripted("a"))
    session = ChatSession(engine)
    stop = Stop()
    events = []
    for event in session.load(Load(1, str(tmp_path)), stop):
        events.append(event)
        stop.set()
    assert [type(e) for e in events] == [Loading, Finished]
    assert events[-1].reason == "stopped"
    assert all(model.is_closed for model in engine.models)


def test_a_wrong_folder_is_told_in_the_engines_words(fake, tmp_path):
    engine = fake.Engine(fake.scripted("a"))

    def refuse(path):
        raise ModelError("model.onnx is missing. Import the model again.")

    engine.Model = refuse
    end = one_end(list(ChatSession(engine).load(Load(1, str(tmp_path)), Stop())))
    assert end == Failed(1, "model.onnx is missing. Import the model again.", "model")


def test_too_little_memory_for_a_model(fake, tmp_path):
    engine = fake.Engine(fake.scripted("a"))

    def refuse(path):
        raise MemoryError

    engine.Model = refuse
    end = one_end(list(ChatSession(engine).load(Load(1, str(tmp_path)), Stop())))
    assert (end.kind, "smaller model" in end.message) == ("memory", True)


def test_no_model_and_a_folder_that_went_away(open_session, ask, fake, tmp_path):
    assert one_end(ask(ChatSession(fake.Engine(None)), "Hi")).kind == "no model"
    folder = tmp_path / "model"
    folder.mkdir()
    session = open_session("a")
    list(session.load(Load(2, str(folder)), Stop()))
    folder.rmdir()
    end = one_end(ask(session, "Hi"))
    assert (end.kind, str(folder) in end.message) == ("model", True)
    folder.mkdir()
    assert text_of(ask(session, "Hi")) == "a"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OutOfMemoryError("The device is full."), "memory"),
        (EngineError("It did not work."), "model"),
        (MemoryError(), "memory"),
    ],
)
def test_an_error_in_the_middle_keeps_the_text_and_the_session(open_session, ask, error, kind):
    session = open_session("0123456789")
    runs = []

    def fail():
        runs.append(1)
        if len(runs) == 8:
            raise error

    session._loaded.model.before_run = fail
    events = ask(session, "Hi")
    end = one_end(events)
    assert (end.kind, bool(end.message)) == (kind, True)
    assert text_of(events)
    assert "0123456789".startswith(text_of(events))
    assert text_of(ask(session, "Hi")) == "0123456789"


def test_a_model_without_a_chat_template_still_answers(open_session, ask, fake):
    session = open_session(
        " Fine.\nUser: and so on", tokenizer=fake.Tokenizer(None), start="Assistant:"
    )
    events = ask(session, "How are you?", system_prompt="Be short.")
    assert (text_of(events), one_end(events).reason) == (" Fine.", "end")
    assert (
        fake.Tokenizer()
        .decode(session._generator.sequence)
        .startswith("Be short.\nUser: How are you?\nAssistant:")
    )


def test_no_message_text_in_the_log(open_session, ask, caplog):
    session = open_session("a", context_length=64)
    ask(session, "secret " * 100)
    assert "secret" not in caplog.text
