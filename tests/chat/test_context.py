"""What of a long chat the model reads: counted, shown, forgotten in big steps, never silently."""

import random

import pytest

from app.chat.context import fitted, is_remembered, remembered
from app.chat.events import (
    Count,
    Counted,
    Failed,
    Finished,
    Forgot,
    Load,
    Piece,
    Prefill,
    Preview,
    Previewed,
    Reply,
)
from app.chat.messages import Message, Options
from app.chat.prompt import Prompt
from app.chat.session import ChatSession
from app.engine.stop import Stop


def chat(*texts, pinned=()):
    return tuple(
        Message.of("assistant" if index % 2 else "user", text)
        if index not in pinned
        else Message(("user", "assistant")[index % 2], Message.of("user", text).parts, True)
        for index, text in enumerate(texts)
    )


def run(session, request):
    events = list(session.handle(request, Stop()))
    assert [e for e in events if isinstance(e, Finished | Failed)] == events[-1:]
    return events


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


def the(kind, events):
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


# ---- which messages


def test_turns_are_kept_whole_and_the_last_one_always():
    messages = chat("q0", "a1", "q2", "a3", "q4")
    assert is_remembered(messages, 0) == [True] * 5
    assert is_remembered(messages, 2) == [False, False, True, True, True]
    assert is_remembered(messages, 1) == [False, False, True, True, True]
    assert is_remembered(messages, 99) == [False] * 4 + [True]
    assert remembered((), 0) == ()


@pytest.mark.parametrize("pinned", [0, 1])
def test_a_pin_keeps_its_turn(pinned):
    messages = chat("q0", "a1", "q2", "a3", "q4", pinned={pinned})
    assert is_remembered(messages, 4) == [True, True, False, False, True]


def test_forgetting_is_one_big_step_that_leaves_most_room_free():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(300):
        count = rng.randrange(1, 20, 2)
        texts = ["x" * rng.randrange(1, 30) for _ in range(count)]
        pinned = {index for index in range(count) if rng.random() < 0.1}
        messages, limit = chat(*texts, pinned=pinned), 100
        options = Options(overflow="forget", longest_answer=rng.choice([10, 1000]))
        room = min(options.longest_answer, 25)

        def build(messages):
            return Prompt(tuple(range(sum(len(message.text) for message in messages))))

        prompt, first = fitted(build, messages, 0, options=options, context_length=limit)
        whole = sum(map(len, texts))
        if whole + room <= limit:
            assert first == 0
            continue
        assert first % 2 == 0
        assert prompt == build(remembered(messages, first))
        if first:
            before = build(remembered(messages, first - 2))
            assert len(before) > limit // 2  # no more than needed was forgotten
        if len(prompt) > limit // 2:
            assert first == count - 1  # all but the last turn, and what is pinned


# ---- in a session


def test_a_chat_is_counted_without_running_the_model(open_session, fake):
    session = open_session("x")
    session._loaded.model.before_run = lambda: 1 / 0
    messages = chat("Hello", "Hi there", "More?")
    use = the(Counted, run(session, Count(3, messages, Options(system_prompt="Be kind.")))).use
    assert (use.system, use.turns) == (8, (5, 8, 5))
    assert (use.limit, use.first) == (4096, 0)
    text = "".join(
        f"<|im_start|>{role}\n{said}<|im_end|>\n"
        for role, said in [
            ("system", "Be kind."), ("user", "Hello"), ("assistant", "Hi there"), ("user", "More?"),
        ]
    )  # fmt: skip
    text += "<|im_start|>assistant\n"
    assert use.total == len(fake.Tokenizer().encode(text))
    later = the(Counted, run(session, Count(3, messages, Options(), first=2))).use
    assert later.turns == (0, 0, 5)
    assert later.total < use.total
    answered = the(Counted, run(session, Count(3, messages[:2], Options()))).use
    assert answered.turns == (5, 8)
    assert answered.total < use.total
    empty = the(Counted, run(session, Count(3, (), Options(system_prompt="Be kind.")))).use
    assert empty.turns == ()
    assert empty.system == 8 <= empty.total
    assert the(Counted, run(session, Count(3, (), Options()))).use.total == 0


def test_the_prompt_is_shown_as_the_model_reads_it(data_folder):
    for name in ("tiny-llama", "tiny-llama-gqa", "tiny-spm"):
        session = ChatSession()
        run(session, Load(1, str(data_folder / name)))
        messages = chat("Hello <|end|> you", "Hi", "And 🎉?")
        shown = the(Previewed, run(session, Preview(2, messages, Options(system_prompt="Be."))))
        for text in ("Hello <|end|> you", "Hi", "And 🎉?", "Be."):
            assert text in shown.text
        request = Reply(3, messages, Options(system_prompt="Be.", longest_answer=1))
        stats = run(session, request)[-1].stats
        assert shown.token_count == stats.prompt_tokens
        read = session._generator.get_sequence(0).tolist()[: stats.prompt_tokens]
        tokenizer = session._loaded.tokenizer
        tokenizer.update_options(skip_special_tokens=False)
        decoded = tokenizer.decode(read)
        assert "".join(decoded.split()) == "".join(shown.text.split())
        end = run(session, Preview(4, (), Options()))[-1]
        assert isinstance(end, Finished | Failed)
        session.close()


@pytest.mark.parametrize("overflow", ["ask", "stop"])
def test_a_chat_that_does_not_fit_says_by_how_much(open_session, overflow):
    session = open_session("ok", context_length=100)
    messages = chat("x" * 80, "yes", "y" * 80)
    end = run(session, Reply(1, messages, Options(overflow=overflow)))[-1]
    assert (end.kind, end.limit) == ("context", 100)
    assert end.needed > 180
    assert f"{end.needed - end.limit:,} tokens longer" in end.message


def test_the_oldest_turns_are_forgotten_and_it_is_said(open_session):
    session = open_session("ok", context_length=400)
    texts = [f"message {index} " * 6 for index in range(9)]
    messages = chat(*texts)
    options = Options(overflow="forget")
    events = run(session, Reply(1, messages, options))
    forgot = the(Forgot, events)
    kinds = [type(event) for event in events]
    assert kinds.index(Forgot) < kinds.index(Prefill)
    assert forgot.first in (2, 4, 6, 8)
    stats = events[-1].stats
    assert stats.prompt_tokens <= 200
    counted = the(Counted, run(session, Count(2, messages, options, first=forgot.first))).use
    assert counted.total == stats.prompt_tokens
    whole = the(Counted, run(session, Count(2, messages, options))).use
    assert forgot.tokens == whole.total - stats.prompt_tokens
    # The next turns begin where memory begins now: the cache is used, and nothing more is said.
    texts += ["ok", "next?"]
    later = run(session, Reply(3, chat(*texts), options, first=forgot.first))
    assert not [event for event in later if isinstance(event, Forgot)]
    assert later[-1].stats.kept_tokens >= stats.prompt_tokens


def test_over_many_turns_little_is_read_again(open_session):
    session = open_session(*["an answer of some length"] * 60, context_length=600)
    texts, first, steps, read, given, longest = [], 0, 0, 0, 0, 0
    for turn in range(60):
        texts.append(f"question {turn}, and some words more")
        request = Reply(1, chat(*texts), Options(overflow="forget"), first=first)
        events = run(session, request)
        for event in events:
            if isinstance(event, Forgot):
                first, steps = event.first, steps + 1
        stats = events[-1].stats
        read += stats.prompt_tokens - stats.kept_tokens
        given += stats.prompt_tokens
        longest = max(longest, stats.prompt_tokens)
        texts.append(text_of(events))
    assert 2 <= steps <= 20
    assert longest <= 600
    assert read < given / 2  # without a cache it were all


def test_pinned_turns_stay(open_session, fake):
    session = open_session("ok", context_length=400)
    texts = [f"message {index} " * 6 for index in range(9)]
    messages = chat(*texts, pinned={1})
    run(session, Reply(1, messages, Options(overflow="forget")))
    read = fake.Tokenizer().decode(session._generator.sequence)
    assert texts[0] in read
    assert texts[1] in read
    assert texts[2] not in read
    assert texts[8] in read


def test_one_message_that_is_too_long_cannot_be_forgotten(open_session):
    session = open_session("ok", context_length=100)
    end = run(session, Reply(1, chat("x" * 300), Options(overflow="forget")))[-1]
    assert (end.kind, end.needed > end.limit) == ("context", True)


def test_an_answer_that_filled_the_context_goes_on_after_forgetting(open_session):
    session = open_session("0123456789" * 30, "0123456789" * 30, context_length=300)
    texts = ["a question of some length " * 2, "yes " * 20, "another one"]
    events = run(session, Reply(1, chat(*texts), Options(longest_answer=1000)))
    assert events[-1].reason == "context"
    start = tuple(id for event in events if isinstance(event, Piece) for id in event.token_ids)
    on = run(session, Reply(2, chat(*texts), Options(overflow="forget"), start=start))
    assert the(Forgot, on).first == 2
    assert text_of(on).startswith(text_of(events))
    assert len(text_of(on)) > len(text_of(events))
