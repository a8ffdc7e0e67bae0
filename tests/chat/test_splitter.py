"""The splitter: cut the text anywhere, the result is the same; nothing is lost, nothing leaks."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.chat.splitter import Splitter

PIECES = [
    "<think>",
    "</think>",
    "<",
    "<th",
    "</",
    "think>",
    "\n",
    "  ",
    "a",
    "é👩‍👧",
    "END",
    "EN",
    "##",
]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
stops = st.lists(st.sampled_from(["END", "##", "NDa", "E", "\n\n", "</", ""]), max_size=3)


def split(pieces, **options):
    """(thought, answer, is_stopped) of the pieces, fed one after the other."""
    splitter = Splitter(**options)
    spans = [span for piece in pieces for span in splitter.feed(piece)]
    spans += splitter.finish()
    thought = "".join(span.text for span in spans if span.is_thought)
    answer = "".join(span.text for span in spans if not span.is_thought)
    return thought, answer, splitter.is_stopped


@given(texts, stops, st.booleans(), st.data())
@example("<think>a</think>b", [], False, None)
def test_any_cut_gives_the_same_result(text, stop_strings, starts_in_thought, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6))) if data else []
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    options = {"stop_strings": stop_strings, "starts_in_thought": starts_in_thought}
    whole = split([text], **options)
    assert split(pieces, **options) == whole
    assert split(list(text), **options) == whole


@given(texts.filter(lambda text: not text.lstrip().startswith("<think>")))
def test_an_answer_without_a_thought_comes_out_unchanged(text):
    assert split(list(text)) == ("", text, False)


@given(texts, stops)
def test_a_stop_string_is_never_in_the_answer(text, stop_strings):
    _, answer, is_stopped = split(list(text), stop_strings=stop_strings)
    assert not any(stop in answer for stop in stop_strings if stop)
    if not is_stopped and not text.lstrip().startswith("<think>"):
        assert answer == text


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>\na\n</think>\n\nb", "a", "b"),
        ("  \n<think>a</think>b", "a", "b"),
        ("<think></think>b", "", "b"),
        ("<think>\n\n</think>\n\nb\n", "", "b\n"),
        ("<think>never closed", "never closed", ""),
        ("<think>cut </thi", "cut </thi", ""),
        ("<think>a</think> <think>b</think> c", "ab", "c"),
        ("<think>about <think> tags</think>b", "about <think> tags", "b"),
        ("The tag <think>x</think> is shown", "", "The tag <think>x</think> is shown"),
        ("a</think>b", "", "a</think>b"),
        ("<thing>", "", "<thing>"),
        ("<thi", "", "<thi"),
        ("", "", ""),
        (" \n", "", " \n"),
    ],
)
def test_tags(text, thought, answer):
    assert split([text]) == (thought, answer, False)


def test_a_thought_that_the_template_opened():
    assert split(["\nhm", "</th", "ink>\n\nYes"], starts_in_thought=True) == ("hm", "Yes", False)


def test_stop_strings_count_in_the_answer_only_and_the_first_complete_one_wins():
    assert split(["<think>END</think>aENDb"], stop_strings=["END"]) == ("END", "a", True)
    assert split(["xabcd"], stop_strings=["abcd", "bc"])[1] == "xa"


def test_what_is_decided_comes_at_once():
    splitter = Splitter(stop_strings=("END",))
    assert [span.text for span in splitter.feed("Hello E")] == ["Hello "]
    assert [span.text for span in splitter.feed("d")] == ["Ed"]
    assert splitter.feed("after END and more")
    assert splitter.is_stopped
    assert splitter.feed("nothing") == []


def test_long_text_takes_one_pass():
    """Nothing that is settled is looked at again: what is held stays shorter than a stop string."""
    splitter = Splitter(stop_strings=("never this",))
    for _ in range(20_000):
        splitter.feed("word neve")
        assert len(splitter._pending) < len("never this")
