"""Chats go into files and come back; what other programs export comes in; nothing hurts."""

import io
import json
import random
import re
import zipfile
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chat import exchange
from app.chat.exchange import ExchangeError, Saved, Summary
from app.store.records import ConversationRecord, MessageRecord, PartRecord, State
from app.store.store import Store

GPT = [
    {
        "title": "Lamps",
        "create_time": 1700000000.25,
        "update_time": 1700000500.5,
        "current_node": "d2",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": {
                "parent": "root",
                "message": {"author": {"role": "system"}, "content": {"parts": [""]}},
            },
            "a": {
                "parent": "s",
                "message": {
                    "author": {"role": "user"},
                    "create_time": 1700000001.0,
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": ["What is it?", {"content_type": "image_asset_pointer"}],
                    },
                },
            },
            "b": {
                "parent": "a",
                "message": {
                    "author": {"role": "assistant"},
                    "metadata": {"model_slug": "gpt-9"},
                    "content": {
                        "content_type": "thoughts",
                        "thoughts": [{"summary": "Looking", "content": "at the lamp"}],
                    },
                },
            },
            "c": {
                "parent": "b",
                "message": {"author": {"role": "tool"}, "content": {"parts": ["42"]}},
            },
            "d": {
                "parent": "c",
                "message": {
                    "author": {"role": "assistant"},
                    "metadata": {"model_slug": "gpt-9"},
                    "content": {"content_type": "text", "parts": ["A *lamp*."]},
                },
            },
            "a2": {
                "parent": "s",
                "message": {
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["And now?"]},
                },
            },
            "d2": {
                "parent": "a2",
                "message": {
                    "author": {"role": "assistant"},
                    "content": {"content_type": "code", "language": "python", "text": "x = 1"},
                },
            },
        },
    },
    {"title": "empty", "create_time": 1.0, "mapping": {}},
]
WEBUI = [
    {
        "id": "1",
        "title": "Boats",
        "created_at": 1700000000,
        "updated_at": 1700000100,
        "pinned": True,
        "chat": {
            "system": "Be brief.",
            "history": {
                "currentId": "q",
                "messages": {
                    "p": {"role": "user", "content": "Why do boats float?", "parentId": None,
                          "timestamp": 1700000001},
                    "q": {
                        "role": "assistant",
                        "parentId": "p",
                        "model": "llama",
                        "content": '<details type="reasoning" done="true"><summary>T</summary>'
                        "\n&gt; water\n&gt; 1 &lt; 2\n</details>\nBuoyancy.",
                    },
                    "r": {"role": "assistant", "parentId": "p", "content": "Luck."},
                },
            },
        },
    },
    {"title": "Old", "created_at": 5, "chat": {"messages": [
        {"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}]}},
]  # fmt: skip


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "chats.sqlite")
    yield opened
    opened.close()


def brought_in(path, store) -> Summary:
    steps = exchange.import_chats(path, store)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


def written(tmp_path, document, name="chats.json"):
    path = tmp_path / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def shown(store, number):
    return [
        (message.role, [(part.kind, part.text) for part in message.parts])
        for message in exchange.saved_chat(store, number).shown().messages
    ]


# ---- other programs


def test_a_chatgpt_export(tmp_path, store):
    summary = brought_in(written(tmp_path, GPT), store)
    assert (len(summary.chats), summary.known, summary.unreadable) == (1, 0, 1)
    assert summary.left_out == {"picture": 1, "tool's output": 1}
    (number,) = summary.chats
    chat = store.conversation(number)
    assert (chat.title, chat.created_at, chat.updated_at) == ("Lamps", 1700000000.25, 1700000500.5)
    assert shown(store, number) == [
        ("user", [("text", "And now?")]),
        ("assistant", [("text", "```python\nx = 1\n```")]),
    ]
    other = [m for m in store.messages(number) if m.model == "gpt-9"]
    assert [(p.kind, p.text) for p in other[0].parts] == [
        ("thought", "Looking\n\nat the lamp"),
        ("text", "[A tool's output stood here.]\n\nA *lamp*."),
    ]
    first = next(m for m in store.messages(number) if m.created_at == 1700000001.0)
    assert first.parts[0].text == "What is it?\n\n[A picture stood here.]"
    assert summary.words() == (
        "1 chat imported, 1 could not be read, 1 picture left out, 1 tool's output left out"
    )


def test_the_archive_as_it_is_sent_and_twice(tmp_path, store):
    path = tmp_path / "a name of no kind"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.json", "{}")
        archive.writestr("export/conversations.json", json.dumps(GPT))
    assert exchange.looks_like_chats(path)
    assert len(brought_in(path, store).chats) == 1
    again = brought_in(path, store)
    assert (again.chats, again.known) == ((), 1)
    assert len(store.conversations()) == 1
    assert [p.name for p in tmp_path.iterdir() if "evil" in p.name] == []


def test_an_open_webui_export(tmp_path, store):
    summary = brought_in(written(tmp_path, WEBUI), store)
    assert len(summary.chats) == 2
    boats, old = summary.chats
    assert shown(store, boats) == [
        ("user", [("text", "Why do boats float?")]),
        ("assistant", [("thought", "water\n1 < 2"), ("text", "Buoyancy.")]),
    ]
    chat = store.conversation(boats)
    assert chat.is_pinned
    assert chat.options == {"system_prompt": "Be brief."}
    assert len(store.messages(boats)) == 3
    assert [text for _, [(_, text)] in shown(store, old)] == ["One", "Two"]


@pytest.mark.parametrize("created_at", [None, 0, 1700000000])
def test_chats_of_one_title_and_moment_are_not_taken_for_one(tmp_path, store, created_at):
    def chat(words):
        said = {"messages": [{"role": "user", "content": words}]}
        return {"title": "New Chat", "created_at": created_at, "chat": said}

    path = written(tmp_path, [chat("one"), chat("two"), chat("one")])
    first, second = brought_in(path, store), brought_in(path, store)
    assert (len(first.chats), first.known) == (2, 1)
    assert (len(second.chats), second.known) == (0, 3)
    assert sorted(shown(store, n)[0][1][0][1] for n in first.chats) == ["one", "two"]


def test_a_chat_that_was_renamed_and_gone_on_with_is_known_and_a_longer_one_is_new(tmp_path, store):
    _, old = brought_in(written(tmp_path, WEBUI), store).chats
    store.rename(old, "Another name")
    leaf = store.conversation(old).leaf_id
    store.add_user_message(old, leaf, [PartRecord("text", "Three")])
    assert brought_in(written(tmp_path, WEBUI), store).known == 2
    longer = json.loads(json.dumps(WEBUI))
    longer[1]["chat"]["messages"].append({"role": "user", "content": "Elsewhere"})
    summary = brought_in(written(tmp_path, longer), store)
    assert (len(summary.chats), summary.known) == (1, 1)


def test_a_message_of_which_nothing_can_be_kept_stands_in_its_turn(tmp_path, store):
    def row(parent, role, words, *files):
        kinds = [{"type": kind} for kind in files]
        return {"parentId": parent, "role": role, "content": words, "files": kinds}

    tree = {
        "1": row(None, "user", "hello"), "2": row("1", "assistant", "hi"),
        "3": row("2", "user", "", "image", "file"), "4": row("3", "assistant", "a cat"),
    }  # fmt: skip
    history = {"history": {"currentId": "4", "messages": tree}}
    summary = brought_in(written(tmp_path, [{"title": "x", "chat": history}]), store)
    assert summary.left_out == {"picture": 1, "attachment": 1}
    roles, parts = zip(*shown(store, summary.chats[0]), strict=True)
    assert roles == ("user", "assistant") * 2
    lines = [text for _, text in parts[2]]
    assert lines == ["[A picture stood here.]", "[An attachment stood here.]"]


def test_code_of_chatgpt_that_holds_a_fence_stays_one_block(tmp_path, store):
    content = {"content_type": "code", "language": "md", "text": "```\ninner\n```"}
    node = {"parent": None, "message": {"author": {"role": "assistant"}, "content": content}}
    (number,) = brought_in(
        written(tmp_path, [{"title": "x", "mapping": {"a": node}}]), store
    ).chats
    ((_, [(_, source)]),) = shown(store, number)
    assert [block.rstrip("\n") for block in exchange.code_blocks(source)] == [content["text"]]


def test_trees_that_are_none(tmp_path, store):
    """Cycles, missing parents, several roots: every word is there once."""
    message = {"author": {"role": "user"}, "content": {"content_type": "text"}}

    def node(parent, words):
        said = {**message, "content": {**message["content"], "parts": [words]}}
        return {"parent": parent, "message": said}

    mapping = {
        "a": node("b", "one"), "b": node("a", "two"), "c": node("c", "three"),
        "d": node("nowhere", "four"), "e": node(None, "five"), "f": {"parent": 7, "message": 3},
    }  # fmt: skip
    (number,) = brought_in(written(tmp_path, [{"title": "x", "mapping": mapping}]), store).chats
    words = "\n\n".join(p.text for m in store.messages(number) for p in m.parts)
    assert sorted(words.split()) == ["five", "four", "one", "three", "two"]


def test_a_long_chain_and_many_steps_of_one_answer(tmp_path, store):
    mapping = {"0": {"parent": None, "message": None}}
    for at in range(1, 4001):
        role = "user" if at % 20 == 1 else "assistant"
        content = {"content_type": "text", "parts": [f"w{at}"]}
        mapping[str(at)] = {
            "parent": str(at - 1), "message": {"author": {"role": role}, "content": content},
        }  # fmt: skip
    document = [{"title": "long", "mapping": mapping, "current_node": "4000"}]
    (number,) = brought_in(written(tmp_path, document), store).chats
    found = shown(store, number)
    assert [role for role, _ in found] == ["user", "assistant"] * 200
    assert found[-1][1][0][1].split() == [f"w{at}" for at in range(3982, 4001)]


# ---- our own

texts = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=30
)
details = st.dictionaries(texts, st.one_of(st.integers(-9, 9), texts, st.none()), max_size=3)
kinds = st.sampled_from(["text", "thought", "file"])
parts = st.lists(st.builds(PartRecord, kinds, texts, st.just({})), min_size=1, max_size=3)
times = st.floats(1, 4e9)


@st.composite
def chats(draw):
    count = draw(st.integers(1, 6))
    messages = []
    for number in range(1, count + 1):
        messages.append(
            MessageRecord(
                id=number,
                conversation_id=0,
                parent_id=draw(st.sampled_from([None, *range(1, number)])),
                role=draw(st.sampled_from(["user", "assistant"])),
                parts=tuple(draw(parts)),
                state=draw(st.sampled_from(sorted(set(State) - {State.WRITING}))),
                created_at=draw(times),
                model=draw(texts),
                token_ids=tuple(draw(st.lists(st.integers(0, 2**31 - 1), max_size=4))),
                details=draw(details),
                is_pinned=draw(st.booleans()),
            )
        )
    conversation = ConversationRecord(
        id=0, title=draw(texts), created_at=draw(times), updated_at=draw(times),
        options=draw(details), leaf_id=draw(st.integers(1, count)), is_pinned=draw(st.booleans()),
        memory_start=draw(st.sampled_from([None, *range(1, count + 1)])),
    )  # fmt: skip
    return Saved(conversation, tuple(messages), draw(st.sampled_from(["", "Work", "Größe"])))


def same(chat: Saved) -> Saved:
    """Without the numbers that a store gives: messages are counted from 1."""
    order = {message.id: at for at, message in enumerate(chat.messages, 1)}
    number = order.get
    return Saved(
        replace(
            chat.conversation, id=0, folder_id=None, view={}, draft="",
            leaf_id=number(chat.conversation.leaf_id),
            memory_start=number(chat.conversation.memory_start),
        ),
        tuple(
            replace(m, id=order[m.id], parent_id=number(m.parent_id), conversation_id=0)
            for m in chat.messages
        ),
        chat.folder,
        chat.attachments,
    )  # fmt: skip


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(chat=chats())
def test_all_of_a_chat_comes_back(chat, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    path = folder / "own.json"
    exchange.write_chats([chat], path)
    store = Store(folder / "chats.sqlite")
    try:
        (number,) = brought_in(path, store).chats
        assert same(exchange.saved_chat(store, number)) == same(chat)
    finally:
        store.close()


def test_files_that_went_along_come_back(tmp_path, store):
    digest = store.add_attachment(b"\x00\xffpicture", "image/png")
    number = store.create_conversation("With a file")
    part = PartRecord("file", "words of it", {"name": "a.txt", "attachment": digest})
    store.add_user_message(number, None, [part, PartRecord("text", "Look")])
    path = tmp_path / "own.json"
    exchange.write_chats([exchange.saved_chat(store, number)], path)
    other = Store(tmp_path / "other.sqlite")
    (copy,) = brought_in(path, other).chats
    assert other.attachment(digest) == b"\x00\xffpicture"
    assert other.messages(copy)[0].parts == store.messages(number)[0].parts
    other.close()


def test_a_chat_comes_in_whole_or_not_at_all(store, monkeypatch):
    from app.store import messages

    chat = ConversationRecord(0, "t", 1.0, 2.0, leaf_id=2)
    rows = [
        MessageRecord(1, 0, None, "user", (PartRecord("text", "a"),), State.DONE, 1.0),
        MessageRecord(2, 0, 1, "assistant", (PartRecord("text", "b"),), State.DONE, 1.0),
    ]
    real = messages._copy_of

    def failing(writer, record, *place):
        if record.id == 2:
            raise RuntimeError("no")
        return real(writer, record, *place)

    monkeypatch.setattr(messages, "_copy_of", failing)
    with pytest.raises(RuntimeError, match="no"):
        store.add_conversation(chat, rows)
    assert store.conversations() == []


# ---- for people


class Words(HTMLParser):
    def __init__(self):
        super().__init__()
        self.said, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.said.append(data)


HARD = (
    'A <b>tag</b> & "quotes"\n\n| a | b |\n|---|---|\n| `x|y` | 2 |\n\n'
    "![p](http://x/y.png) $e^2$ עברית"
)


def chat_of(*said):
    messages = [
        MessageRecord(n, 0, n - 1 or None, role, (PartRecord("text", text),), State.DONE, 1.0, "m")
        for n, (role, text) in enumerate(said, 1)
    ]
    conversation = ConversationRecord(0, "T <i> & co", 1.0, 2.0, leaf_id=len(said))
    return Saved(conversation, tuple(messages)).shown()


def test_markdown_holds_every_word_as_it_was_written():
    text = exchange.markdown(chat_of(("user", HARD), ("assistant", HARD)))
    assert text.count(HARD) == 2
    assert re.findall(r"^#+ .*$", text, re.MULTILINE) == ["# T <i> & co", "## You", "## m"]


def test_a_web_page_shows_tags_as_words_and_fetches_nothing():
    script = "\n\n<script>x</script>"
    page = exchange.web_page(chat_of(("user", HARD), ("assistant", HARD + script)))
    words = Words()
    words.feed(page)
    said = "".join(words.said)
    assert said.count("<b>tag</b>") == 2
    assert "<script>x</script>" in said
    tags = {tag for tag, _ in words.tags}
    assert "table" in tags
    assert not tags & {"script", "img", "iframe", "link", "object"}
    assert not [attrs for _, attrs in words.tags if "src" in attrs]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Lease", "Lease.md"),
        ('a/b\\c:d*e?"f<g>|h', "a b c d e f g h.md"),
        ("..", "Chat.md"),
        ("con", "Chat con.md"),
        ("COM1.txt", "Chat COM1.txt.md"),
        ("x" * 300, "x" * 100 + ".md"),
        ("a\u202egnp.exe\n", "a gnp.exe.md"),
        ("", "Chat.md"),
        ("\ud800", "Chat.md"),
    ],
)
def test_file_names_are_those_that_every_system_takes(title, name):
    assert exchange.file_name(title, "md") == name


def test_a_file_that_cannot_be_written_says_so_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")

    def broken():
        raise OSError(28, "No space left on device")
        yield

    with pytest.raises(ExchangeError, match="No space left"):
        exchange.write_chats(broken(), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ExchangeError, match="could not be written"):
        exchange.write_text("x", tmp_path / "no folder" / "x.md")


# ---- whatever comes


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b"null", b"7", b"\xff\xfe", b"PK\x03\x04", b"[" * 100_000,
     b'{"format": "inglenook-chats", "version": 99}', b'{"format": "inglenook-chats"}',
     b'[{"mapping": 5}]', b'[{"chat": []}]', b'["a", 3]'],
    ids=lambda data: repr(data[:20]),
)  # fmt: skip
def test_what_holds_no_chats_is_a_sentence(data, tmp_path, store):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(ExchangeError, match=r"x\.json"):
        brought_in(path, store)
    assert store.conversations() == []


def test_a_missing_file_and_a_folder_are_a_sentence(tmp_path, store):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ExchangeError, match="could not be read"):
            brought_in(path, store)


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path, store, monkeypatch):
    from app.chat.exchange import reading

    monkeypatch.setattr(reading, "MOST_BYTES", 100_000)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"0" * 10_000_000)
    with pytest.raises(ExchangeError, match="larger than 1 GB"):
        brought_in(path, store)


JUNK = [None, True, -1, 10**400, 1e308, float("nan"), "", "\x00", "\ud800", [], {}, [[]], {"a": {}}]


def spoilt(value, draw):
    """A copy in which some values are others."""
    if draw.random() < 0.06:
        return draw.choice(JUNK)
    if isinstance(value, dict):
        return {
            (key if draw.random() > 0.03 else "other"): spoilt(inner, draw)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [spoilt(inner, draw) for inner in value]
    return value


def test_200_spoilt_files_come_in_or_are_a_sentence(tmp_path, store):
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    own = tmp_path / "own.json"
    brought_in(written(tmp_path, WEBUI), store)
    exchange.write_chats(
        [exchange.saved_chat(store, c.id) for c in store.conversations()], own
    )
    documents = [GPT, WEBUI, json.loads(own.read_text("utf-8"))]
    came_in = 0
    for at in range(200):
        text = json.dumps(spoilt(documents[at % 3], draw))
        data = bytearray(text.encode("utf-8"))
        if at % 5 == 4:
            del data[draw.randrange(len(data)) :]
        path = tmp_path / f"{at}.json"
        path.write_bytes(data)
        try:
            summary = brought_in(path, store)
        except ExchangeError:
            continue
        came_in += 1
        for number in summary.chats:
            chat = exchange.saved_chat(store, number)
            exchange.markdown(chat.shown())
            exchange.web_page(chat.shown())
            exchange.write_chats([chat], tmp_path / "again.json")
    assert came_in > 40


def test_a_damaged_archive_is_a_sentence(tmp_path, store):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(GPT))
    whole = data.getvalue()
    refused = 0
    for at in range(0, len(whole), 17):
        spoilt_bytes = bytearray(whole)
        spoilt_bytes[at] ^= 0x55
        path = tmp_path / "x.zip"
        path.write_bytes(spoilt_bytes)
        with suppress(ExchangeError):
            brought_in(path, store)
            continue
        refused += 1
    assert refused > 5
