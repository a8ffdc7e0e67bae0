"""Banned words stand nowhere in an answer, and the answer still gets written."""

import random

import pytest

from app import engine as og
from app.chat.banned import BannedWords, DeadEndError, Detours
from app.chat.events import Failed, Finished, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.stop import Stop

QUESTION = (Message.of("user", "Tell me about the sea"),)


@pytest.mark.parametrize(
    ("word", "text", "at"),
    [
        ("cat", "A CAT", 2),
        ("cat", "con\u0063atenate", 3),
        ("STRASSE", "die Straße", 4),
        ("straße", "DIE STRASSE", 4),
        ("ΟΔΟΣ", "οδος", 0),
        ("caf\u00e9", "un CAFE\u0301", 3),
        ("i\u0307", "\u0130", 0),
        ("no way", "say No Way!", 4),
        ("cat", "c at", None),
        ("", "anything", None),
        (" ", "a b", None),
        ("\n\t", "a\n\tb", None),
    ],
)
def test_where_a_word_begins(word, text, at):
    assert BannedWords([word]).find(text) == at


def test_what_ends_before_a_place_is_not_found():
    words = BannedWords(["aba", "b"])
    assert words.find("ababa", after=2) == 0
    assert words.find("ababa", after=3) == 2
    assert words.find("ababa", after=4) == 2
    assert words.find("xb", after=2) is None


def test_what_may_still_become_a_word_is_undecided():
    words = BannedWords(["no way", "Straße"])
    for text, count in (("well, NO ", 3), ("n", 1), ("x", 0), ("STRAS", 5), ("Straß", 5), ("", 0)):
        assert words.undecided(text) == count
    assert BannedWords([]).undecided("anything") == 0


def test_however_text_is_cut_a_word_is_seen_before_it_is_let_out():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    words = BannedWords(["abc", "bca", "aaß"])
    for _ in range(500):
        text = "".join(rng.choice("aAbcßS") for _ in range(12))
        out = held = ""
        for letter in text:
            held += letter
            at = words.find(out + held, after=len(out))
            if at is not None:
                assert at >= len(out), (text, out, held)
                break
            count = words.undecided(out + held)
            out, held = out + held[: len(held) - count], held[len(held) - count :]
        else:
            out += held
        assert words.find(out) is None
        assert not any(word in out.casefold() for word in ("abc", "bca", "aass"))


def test_detours_end():
    detours = Detours()
    for token in range(200):
        detours.turn_back(0, [token])
    with pytest.raises(DeadEndError):
        detours.turn_back(0, [200])
    detours = Detours()
    assert detours.turn_back(1, [7, 8]) == 1
    assert detours.barred(1) == {8}
    assert detours.turn_back(1, [7, 8]) == 0  # nothing else could stand there
    assert (detours.barred(0), detours.barred(1)) == ({7}, set())
    with pytest.raises(DeadEndError):
        detours.turn_back(0, [7])


# ---- in a session


def ask(session, **options):
    start = options.pop("start", ())
    request = Reply(1, QUESTION, Options(**options), start=start)
    return list(session.handle(request, Stop()))


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, Piece))


def ids_of(events):
    return tuple(id for event in events if isinstance(event, Piece) for id in event.token_ids)


def opened(folder):
    session = ChatSession()
    assert isinstance(list(session.load(Load(1, str(folder)), Stop()))[-1], Finished)
    return session


@pytest.fixture(params=["tiny-llama", "tiny-llama-gqa", "tiny-spm"])
def session(request, data_folder):
    session = opened(data_folder / request.param)
    yield session
    session.close()


def test_letters_that_an_answer_wants_are_written_around(session):
    wanted = text_of(ask(session, temperature=0.0, longest_answer=24))
    letters = [letter for letter in wanted if letter.strip() and letter != "\ufffd"]
    for count in (1, 2, 3):
        banned = tuple(
            "".join(letters[at : at + count]) for at in range(0, len(letters) - count, 5)
        )[:4]
        events = ask(session, temperature=0.0, longest_answer=24, banned=banned)
        folded = text_of(events).casefold()
        assert not any(word.casefold() in folded for word in banned)
        stats = events[-1].stats
        assert stats.new_tokens == len(ids_of(events)) == 24 or stats.avoided
        sequence = session._generator.get_sequence(0).tolist()
        assert tuple(sequence[stats.prompt_tokens :]) == ids_of(events)
        assert session._loaded.tokenizer.decode(list(ids_of(events)))[:1] == text_of(events)[:1]


def test_what_was_sent_is_never_taken_back(session):
    """Pieces one by one make no banned word, and what is written is what the cache holds."""
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    options = {"temperature": 1.5, "seed": seed, "longest_answer": 40}
    plain = text_of(ask(session, **options))
    pairs = sorted({plain[at : at + 2] for at in range(0, len(plain) - 2, 3)})
    banned = tuple(pair for pair in pairs if "\ufffd" not in pair)[:6]
    events = ask(session, **options, banned=banned)
    assert isinstance(events[-1], Finished)
    text, words = "", [word for word in banned if word.strip()]
    for event in events:
        if isinstance(event, Piece):
            text += event.text
            assert not any(word.casefold() in text.casefold() for word in words)
    counts = [event.avoided for event in events if isinstance(event, Piece)]
    assert counts == sorted(counts)
    assert events[-1].stats.avoided >= counts[-1]


def test_the_same_seed_avoids_the_same(session):
    options = {"temperature": 1.5, "seed": 4, "longest_answer": 24, "banned": ("e", "th")}
    one, two = ask(session, **options), ask(session, **options)
    assert (ids_of(one), one[-1].stats.avoided) == (ids_of(two), two[-1].stats.avoided)


def test_a_letters_ban_is_the_ban_of_all_tokens_with_it(session):
    """What is left is chosen as the model would: exactly, after all the going back."""
    events = ask(session, temperature=0.0, longest_answer=16, banned=("e",))
    tokenizer, size = session._loaded.tokenizer, session._loaded.model.config.model.vocab_size
    with_it = [token for token in range(size) if "e" in tokenizer.decode([token]).casefold()]
    prompt = session._generator.get_sequence(0)[: events[-1].stats.prompt_tokens]
    params = og.GeneratorParams(session._loaded.model)
    params.set_search_options(max_length=len(prompt) + 16, do_sample=False)
    params.set_banned_tokens(with_it)
    generator = og.Generator(session._loaded.model, params)
    generator.append_tokens(prompt)
    found = []
    while not generator.is_done() and not session._loaded.end_tokens.intersection(found):
        generator.generate_next_token()
        found.append(int(generator.get_next_tokens()[0]))
    assert list(ids_of(events)) == [t for t in found if t not in session._loaded.end_tokens]


def test_a_word_that_began_in_what_stands_is_not_completed(open_session, fake):
    session = open_session("concatenate them")
    start = tuple(b"conc")
    events = ask(session, banned=("cat",), start=start)
    assert text_of(events).startswith("conc")
    assert "cat" not in text_of(events)
    # What stands already may be banned: it is the person's own choice.
    events = ask(session, banned=("cat",), start=tuple(b"concat"))
    assert text_of(events) == "concatenate them"


def test_a_dead_end_is_told_and_the_text_before_it_kept(session):
    events = ask(
        session,
        temperature=0.0,
        longest_answer=30,
        answer_format="regex",
        answer_grammar="yes it is a cat",
        banned=("a cat",),
    )
    assert isinstance(events[-1], Failed)
    assert (events[-1].kind, "banned word" in events[-1].message) == ("options", True)
    assert text_of(events) == "yes it is"
    assert isinstance(ask(session, longest_answer=3)[-1], Finished)


def test_words_banned_on_the_way_act_from_there_on(open_session):
    session = open_session("one two one two one two")
    said = ""
    for event in session.handle(Reply(1, QUESTION, Options()), Stop()):
        if isinstance(event, Piece):
            said += event.text
            if said == "one two ":
                session.set_options(Options(banned=("one",)))
    assert said.startswith("one two ")
    assert "one" not in said[len("one two ") - 2 :]
    assert event.stats.avoided >= 1


@pytest.mark.starter
def test_200_answers_of_the_starter_contain_none(starter_int8):
    """Sampled at temperature 2, where nearly anything comes; the words are those that do come."""
    session = opened(starter_int8)
    banned = (" the", "sea", "AN", "ocean", "on of", "e i", "Ü", "é", ", ")
    avoided = 0
    try:
        for seed in range(200):
            events = ask(
                session, temperature=2.0, top_k=200, top_p=1.0, seed=seed, longest_answer=16,
                banned=banned,
            )  # fmt: skip
            assert isinstance(events[-1], Finished)
            folded = text_of(events).casefold()
            assert not [word for word in banned if word.casefold() in folded], (seed, folded)
            avoided += events[-1].stats.avoided
    finally:
        session.close()
    assert avoided > 200
