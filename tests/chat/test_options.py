"""Options: which do nothing beside which, how they reach the engine, and what a wrong one costs."""

import json
import re
from dataclasses import fields, replace
from itertools import pairwise

import pytest

from app.chat.events import Failed, Finished, Load, Notice, Piece, Reply, Trying
from app.chat.messages import Message, Options
from app.chat.options import conflicts, from_record, settled, to_record
from app.chat.session import ChatSession
from app.engine.stop import Stop

DEFAULTS = Options(
    temperature=0.7, top_p=0.9, top_k=40, min_p=0.0, repetition_penalty=1.0, no_repeat_ngram_size=0
)
QUESTION = (Message.of("user", "Hello there"),)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"age": {"type": "integer", "maximum": 99}},
        "required": ["age"],
        "additionalProperties": False,
    }
)
ALWAYS = {"length_penalty", "answer_grammar", "thinks"}


@pytest.mark.parametrize(
    ("given", "off"),
    [
        ({}, set()),
        ({"temperature": 0.0}, {"top_p", "top_k", "min_p", "seed"}),
        ({"top_k": 1}, {"temperature", "top_p", "min_p", "seed"}),
        ({"beams": 4}, {"temperature", "top_p", "top_k", "min_p", "seed", "guesses_ahead"}),
        ({"beams": 4, "banned": ("x",)}, {"beams"}),
        ({"beams": 4, "banned": (" ",)}, {"temperature", "top_p", "top_k", "min_p", "seed",
                                         "guesses_ahead"}),
        ({"answer_format": "json"}, {"shortest_answer"}),
        ({"answer_format": "json", "beams": 2}, {"shortest_answer", "beams"}),
        ({"shortest_answer": 9, "longest_answer": 8}, {"shortest_answer"}),
    ],
)  # fmt: skip
def test_what_rules_out_what(given, off):
    found = conflicts(Options(**given), DEFAULTS)
    assert set(found) - ALWAYS == off
    assert all(sentence.startswith("Off: ") and sentence[-1] == "." for sentence in found.values())
    assert set(found) <= {field.name for field in fields(Options)}


def test_some_are_on_only_beside_others():
    assert "length_penalty" not in conflicts(Options(beams=2), DEFAULTS)
    schema = Options(answer_format="json_schema", answer_grammar="{}")
    assert "answer_grammar" not in conflicts(schema, DEFAULTS)
    assert "thinks" not in conflicts(Options(), replace(DEFAULTS, thinks=True))
    assert settled(schema, replace(DEFAULTS, thinks=True)).thinks is False


def test_what_is_ruled_out_does_nothing_to_an_answer(session):
    """The sentences are true: an answer is the same with and without what is off."""
    for given in ({"temperature": 0.0}, {"top_k": 1}, {"beams": 3}):
        base = Options(**given, longest_answer=8)
        found = conflicts(base, session._loaded.info.defaults)
        other = {"temperature": 1.9, "top_p": 0.3, "top_k": 7, "min_p": 0.4, "seed": 5}
        changed = replace(base, **{name: value for name, value in other.items() if name in found})
        assert ids_of(ask(session, base)) == ids_of(ask(session, changed))


def test_options_are_kept_as_json_and_come_back():
    options = Options(temperature=0.3, banned=("a", "b"), stop_strings=("x",), seed=4, beams=2)
    assert from_record(json.loads(json.dumps(to_record(options)))) == options
    assert from_record({"temperature": 0.3, "from_the_future": 1}) == Options(temperature=0.3)


# ---- on the engine


@pytest.fixture
def session(data_folder):
    session = ChatSession()
    list(session.load(Load(1, str(data_folder / "tiny-llama")), Stop()))
    yield session
    session.close()


def ask(session, options, messages=QUESTION, stop=None, **given):
    return list(session.handle(Reply(1, messages, options, **given), stop or Stop()))


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


def ids_of(events):
    return [id for event in events if isinstance(event, Piece) for id in event.token_ids]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": 1.0, "top_p": 3.0},
        {"temperature": 1.0, "min_p": 2.0},
        {"temperature": 1.0, "top_k": 10**6},
        {"repetition_penalty": 0.0},
        {"beams": 99},
        {"answer_format": "json_schema", "answer_grammar": "{"},
        {"answer_format": "json_schema", "answer_grammar": '{"type": 3}'},
        {"answer_format": "json_schema", "answer_grammar": " "},
        {"answer_format": "regex", "answer_grammar": "("},
        {"answer_format": "regex", "answer_grammar": ""},
    ],
)
def test_a_wrong_option_is_a_sentence_and_costs_nothing(session, wrong):
    first = ask(session, Options(temperature=0.0, longest_answer=6))
    generator, count = session._generator, session._generator.token_count()
    end = ask(session, Options(**wrong))[-1]
    assert isinstance(end, Failed)
    assert (end.kind, end.message[-1]) == ("options", ".")
    assert session._generator is generator
    assert generator.token_count() == count
    again = ask(session, Options(temperature=0.0, longest_answer=6))
    assert ids_of(again) == ids_of(first)
    assert again[-1].stats.kept_tokens == again[-1].stats.prompt_tokens - 1


def test_answers_of_a_form(session):
    for seed in range(3):
        options = Options(temperature=1.5, seed=seed, longest_answer=200)
        schema = replace(options, answer_format="json_schema", answer_grammar=SCHEMA)
        events = ask(session, schema)
        assert isinstance(json.loads(text_of(events))["age"], int)
        assert events[-1].reason == "end"
        regex = replace(options, answer_format="regex", answer_grammar="(yes|no), [0-9]{3}")
        assert re.fullmatch("(yes|no), [0-9]{3}", text_of(ask(session, regex)))
    events = ask(session, replace(options, answer_format="json", longest_answer=400))
    if events[-1].reason == "end":
        assert isinstance(json.loads(text_of(events)), dict | list)
    assert text_of(events).lstrip()[0] in "[{"
    free = ask(session, Options(temperature=0.0, longest_answer=8))
    assert ids_of(free) == ids_of(ask(session, Options(temperature=0.0, longest_answer=8)))


def test_a_form_goes_on_where_it_stopped(session):
    options = Options(
        temperature=0.0, answer_format="regex", answer_grammar="(yes|no), [0-9]{3} and [a-z]{4}"
    )
    whole = ids_of(ask(session, options))
    for count in (1, len(whole) // 2, len(whole)):
        on = ask(session, options, start=tuple(whole[:count]))
        assert ids_of(on) == whole
    end = ask(session, options, start=tuple(whole[1:]))[-1]
    assert isinstance(end, Failed)
    assert end.kind == "options"


def test_beams_give_their_text_at_the_end(session):
    options = Options(beams=4, longest_answer=12)
    events = ask(session, options)
    kinds = [type(event) for event in events]
    assert Trying in kinds
    assert kinds.index(Piece) > max(at for at, kind in enumerate(kinds) if kind is Trying)
    assert events[-1].stats.options["num_beams"] == 4
    assert ids_of(ask(session, options)) == ids_of(events) != []
    stop, seen = Stop(), []
    for event in session.handle(Reply(1, QUESTION, replace(options, longest_answer=100)), stop):
        seen.append(event)
        if isinstance(event, Trying) and event.tokens:
            session.set_options(Options(temperature=0.1))
        if isinstance(event, Notice):
            stop.set()
    assert [event for event in seen if isinstance(event, Notice)]
    assert (seen[-1].reason, bool(ids_of(seen))) == ("stopped", True)


def test_beams_begin_where_an_answer_stands(session):
    start = tuple(ids_of(ask(session, Options(temperature=0.0, longest_answer=5))))
    assert len(start) == 5
    events = ask(session, Options(beams=2, longest_answer=4), start=start)
    assert tuple(ids_of(events)[:5]) == start


def test_guesses_change_no_text(session):
    options = Options(
        temperature=0.0, longest_answer=60, answer_format="regex", answer_grammar="(xyz ){20}"
    )
    plain = ask(session, options)
    guessed = ask(session, replace(options, guesses_ahead=True))
    assert ids_of(guessed) == ids_of(plain)
    assert session._generator.get_speculative_stats()["draft_tokens_proposed"] > 0
    assert guessed[-1].stats.kept_tokens > 0
    assert ids_of(ask(session, options)) == ids_of(plain)


def test_an_answer_is_not_shorter_than_asked(session):
    for extra in (set(), set(range(0, 300, 2))):
        ends = session._loaded.end_tokens
        session._loaded = replace(
            session._loaded, end_tokens=ends | extra, extra_ends=frozenset(extra - ends)
        )
        options = Options(temperature=1.5, seed=1, shortest_answer=15, longest_answer=30)
        assert len(ids_of(ask(session, options))) >= 15


def test_no_run_of_tokens_twice(session):
    ids = ids_of(ask(session, Options(temperature=0.0, no_repeat_ngram_size=2, longest_answer=60)))
    pairs = list(pairwise(ids))
    assert len(pairs) == len(set(pairs)) > 0


def test_min_p_leaves_only_likely_tokens(session):
    options = Options(temperature=2.0, top_k=0, top_p=1.0, min_p=1.0, seed=3, longest_answer=20)
    greedy = Options(temperature=0.0, longest_answer=20)
    assert ids_of(ask(session, options)) == ids_of(ask(session, greedy))


def test_what_cannot_change_on_the_way_is_told(session):
    seen = []
    options = Options(temperature=0.0, longest_answer=30)
    for event in session.handle(Reply(1, QUESTION, options), Stop()):
        if isinstance(event, Piece) and not ids_of(seen):
            session.set_options(replace(options, beams=3, longest_answer=10))
        seen.append(event)
    assert len([event for event in seen if isinstance(event, Notice)]) == 1
    assert isinstance(seen[-1], Finished)
    assert len(ids_of(seen)) == 10
    assert seen[-1].stats.is_repeatable is False


def test_a_wrong_change_on_the_way_is_told_and_the_answer_goes_on(session):
    seen = []
    options = Options(temperature=0.0, longest_answer=12)
    for event in session.handle(Reply(1, QUESTION, options), Stop()):
        if isinstance(event, Piece) and not ids_of(seen):
            session.set_options(replace(options, temperature=1.0, top_p=7.0))
        seen.append(event)
    (notice,) = [event for event in seen if isinstance(event, Notice)]
    assert "top_p" in notice.message
    assert ids_of(seen) == ids_of(ask(session, options))


def test_the_template_hears_whether_to_think(open_session, fake):
    template = fake.Tokenizer().chat_template.replace(
        "<|im_start|>assistant\n' }}{% endif",
        "<|im_start|>assistant\n' }}"
        "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n' }}"
        "{% endif %}{% endif",
    )
    session = open_session("Ok.", tokenizer=fake.Tokenizer(template))
    assert session._loaded.info.defaults.thinks is True
    for thinks, expected in ((None, False), (True, False), (False, True)):
        ask(session, Options(thinks=thinks))
        text = fake.Tokenizer().decode(session._generator.sequence)
        assert ("<think>\n\n</think>\n" in text) == expected
    assert open_session("Ok.")._loaded.info.defaults.thinks is None


@pytest.mark.parametrize("given", [{"temperature": 1.3}, {"beams": 3}, {"banned": ("e",)}])
def test_an_answer_can_be_written_again_from_its_record(session, given):
    options = Options(**given, top_k=50, longest_answer=16)
    first = ask(session, options)
    record = json.loads(json.dumps(to_record(from_record(first[-1].stats.chosen))))
    ask(session, Options(), (Message.of("user", "Something else"),))
    again = ask(session, from_record(record))
    assert (ids_of(again), text_of(again)) == (ids_of(first), text_of(first))
    stats = again[-1].stats
    assert stats.is_repeatable
    assert stats.fingerprint == first[-1].stats.fingerprint != ""
    assert (stats.device, len(stats.fingerprint), len(stats.template_hash)) == ("CPU", 64, 64)
