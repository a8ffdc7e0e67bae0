"""The store on real files: nothing is lost, nothing is shown that is not written."""

import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.store import schema
from app.store.errors import plain_errors
from app.store.records import PartRecord, State
from app.store.store import Store, StoreError, set_aside


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "chats.sqlite3"


@pytest.fixture
def store(path):
    store = Store(path)
    yield store
    store.close()


def said(text):
    return [PartRecord("text", text)]


def texts(store, conversation_id):
    return [part.text for record in store.messages(conversation_id) for part in record.parts]


def test_a_conversation_comes_back_as_it_was(store, path):
    chat = store.create_conversation("Title", {"temperature": 0.5})
    question = store.add_user_message(
        chat, None, [PartRecord("text", "Hi\0 \U0001f469‍\U0001f469 \udfff", {"a": [1]})]
    )
    answer = store.start_answer(chat, question, "tiny")
    store.update_answer(answer, said("Hel"), [5])
    parts = [PartRecord("thought", "hm", {"seconds": 1.5}), PartRecord("text", "Hello")]
    store.finish_answer(answer, parts, [5, 2**31 - 1], State.STOPPED, {"stats": {"seed": 3}})
    store.close()
    again = Store(path)
    first, second = again.messages(chat)
    assert first.parts == (PartRecord("text", "Hi\0 \U0001f469‍\U0001f469 ?", {"a": [1]}),)
    assert (first.id, first.parent_id, first.role) == (question, None, "user")
    assert second.parts == tuple(parts)
    assert (second.state, second.model, second.parent_id) == (State.STOPPED, "tiny", question)
    assert (second.token_ids, second.details) == ((5, 2**31 - 1), {"stats": {"seed": 3}})
    record = again.conversation(chat)
    assert (record.title, record.options, record.leaf_id) == ("Title", {"temperature": 0.5}, answer)
    again.close()


def test_newest_first_and_bin_and_purge(store):
    one, two = store.create_conversation("one"), store.create_conversation("two")
    assert [c.id for c in store.conversations()] == [two, one]
    store.add_user_message(one, None, said("x"))
    assert [c.id for c in store.conversations()] == [one, two]
    store.delete(one)
    assert [c.id for c in store.conversations()] == [two]
    assert store.purge(older_than_s=3600) == 0
    store.restore(one)
    assert texts(store, one) == ["x"]
    store.delete(one)
    assert store.purge(older_than_s=0) == 1
    assert store.conversation(one) is None
    assert store.messages(one) == []
    assert store.search("x") == []


def test_options_title_leaf_and_drafts(store):
    chat = store.create_conversation()
    store.rename(chat, "Named")
    store.set_options(chat, {"seed": 1})
    message = store.add_user_message(chat, None, said("a"))
    other = store.add_user_message(chat, None, said("b"))
    assert store.conversation(chat).leaf_id == other
    store.set_leaf(chat, message)
    assert store.draft(None) == store.draft(chat) == ""
    store.save_draft(None, "new")
    store.save_draft(chat, "half a sent")
    record = store.conversation(chat)
    assert (record.title, record.options, record.leaf_id) == ("Named", {"seed": 1}, message)
    assert (store.draft(None), store.draft(chat), record.draft) == (
        "new",
        "half a sent",
        "half a sent",
    )


def test_deleting_a_message_hides_what_follows_and_can_be_undone(store):
    chat = store.create_conversation()
    question = store.add_user_message(chat, None, said("q"))
    kept = store.start_answer(chat, question, "m")
    gone = store.start_answer(chat, question, "m")
    below = store.add_user_message(chat, gone, said("more"))
    store.delete_message(gone)
    assert [m.id for m in store.messages(chat)] == [question, kept]
    assert store.conversation(chat).leaf_id == question
    store.restore_message(gone)
    assert [m.id for m in store.messages(chat)] == [question, kept, gone, below]
    store.delete_message(gone)
    store.purge(older_than_s=0)
    store.restore_message(gone)
    assert [m.id for m in store.messages(chat)] == [question, kept]


def test_search_finds_words_beginnings_and_scripts_without_spaces(store):
    chat = store.create_conversation()
    store.add_user_message(chat, None, said("Der schnelle Füchse-Plan, 你好世界"))
    answer = store.start_answer(chat, None, "m")
    store.update_answer(answer, said("unfinished zebra"), [])
    assert store.search("zebra") == []
    store.finish_answer(
        answer, [PartRecord("thought", "secret"), *said("a zebra 100%")], [], State.DONE
    )
    words = ("zebra", "ZEB", "schnelle plan", "fuchse", "好世", "100%", "secret", "zebra plan")
    hits = {word: [hit.message_id for hit in store.search(word)] for word in words}
    assert hits["zebra"] == hits["ZEB"] == hits["100%"] == [answer]
    assert hits["schnelle plan"] == hits["fuchse"] == hits["好世"] == [answer - 1]
    assert hits["secret"] == hits["zebra plan"] == []
    for odd in ('"', "' OR 1", "a*b", "NEAR(", "(", "-", "%", "_", "\0", "\\", "   ", "\ud800"):
        store.search(odd)
    store.delete(chat)
    assert store.search("zebra") == []


def test_attachments_are_kept_once_and_go_with_their_chat(store):
    chat = store.create_conversation()
    digest = store.add_attachment(b"\x89PNG", "image/png")
    assert store.add_attachment(b"\x89PNG", "image/png") == digest
    store.add_user_message(chat, None, [PartRecord("image", "", {"attachment": digest})])
    store.purge(0)
    assert store.attachment(digest) == b"\x89PNG"
    store.delete(chat)
    store.purge(0)
    assert store.attachment(digest) is None


def test_opening_marks_what_was_being_written_and_only_that(path):
    first = Store(path)
    chat = first.create_conversation()
    done = first.start_answer(chat, None, "m")
    first.finish_answer(done, said("done"), [1], State.DONE)
    cut = first.start_answer(chat, None, "m")
    first.update_answer(cut, said("half a zebra"), [1, 2])
    second = Store(path)  # another program, while the first one writes
    assert [m.state for m in second.messages(chat)] == [State.DONE, State.WRITING]
    own = second.start_answer(chat, None, "m")
    first.close()  # it ended without finishing its answer
    third = Store(path)
    states = {m.id: m.state for m in third.messages(chat)}
    assert states == {done: State.DONE, cut: State.INTERRUPTED, own: State.WRITING}
    assert third.search("zebra")[0].message_id == cut
    assert third.messages(chat)[1].token_ids == (1, 2)
    second.close()
    third.close()


def test_two_stores_write_in_turn(path):
    stores = [Store(path), Store(path)]
    chat = stores[0].create_conversation()
    failures = []

    def write(store):
        try:
            for number in range(30):
                store.add_user_message(chat, None, said(str(number)))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(stores[0].messages(chat)) == 60
    for store in stores:
        store.close()


def test_reading_does_not_wait_for_a_write(store):
    chat = store.create_conversation("a")
    with store._disk.write() as writer:
        writer.execute("UPDATE conversation SET title = 'b'")
        assert store.conversation(chat).title == "a"
    assert store.conversation(chat).title == "b"


def test_a_write_that_fails_changes_nothing(store):
    chat = store.create_conversation()
    with pytest.raises(sqlite3.IntegrityError):
        store.add_user_message(chat, 999, said("orphan"))
    assert store.messages(chat) == []
    store.add_user_message(chat, None, said("fine"))


# ---- schema


def test_migrating_twice_changes_nothing(path):
    Store(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    before = list(connection.iterdump())
    schema.migrate(connection, path)
    assert list(connection.iterdump()) == before
    connection.close()
    assert not list(path.parent.glob("*before*"))


def test_a_step_copies_the_file_first_and_is_all_or_nothing(path):
    store = Store(path)
    chat = store.create_conversation("kept")
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    good = "ALTER TABLE note ADD COLUMN more TEXT;\nCREATE TABLE extra (a);\n"
    bad = good + "CREATE TABLE extra (b);\n"
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, path, (*schema.STEPS, bad))
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(schema.STEPS)
    assert connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name='extra'"
    ).fetchone() == (0,)
    steps = (*schema.STEPS, good)
    schema.migrate(connection, path, steps)
    schema.migrate(connection, path, steps)
    connection.execute("INSERT INTO note(key, text, more) VALUES ('a', 'b', 'c')")
    connection.close()
    copy = path.with_name(f"{path.name}.before-step-{len(steps)}")
    kept = Store(copy)
    assert kept.conversation(chat).title == "kept"
    kept.close()


def test_a_newer_file_is_refused_and_left_as_it_is(path):
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(schema.STEPS) + 1}")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer Inglenook") as caught:
        Store(path)
    assert caught.value.kind == "newer"
    assert path.read_bytes() == before


# ---- files that are not well


def damage_whole(path):
    path.write_bytes(b"This is not a database. " * 400)


def damage_pages(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * len(data[4096:])
    path.write_bytes(data)


def damage_cut(path):
    path.write_bytes(path.read_bytes()[: 4096 + 100])


def damage_foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE conversation SET options = '{\"a\": ', title = CAST(x'61ff62' AS TEXT)",
        "UPDATE conversation SET options = '[1]'",
        "UPDATE message SET details = 'x', state = 'dOne', token_ids = x'0102030405'",
        "UPDATE part SET details = '\x01', text = CAST(x'776f7264ff' AS TEXT)",
    ],
)
def test_a_byte_that_the_disk_got_wrong_hides_no_chat(path, statement):
    store = Store(path)
    chat = store.create_conversation("x", {"seed": 1})
    store.add_user_message(chat, None, said("word"))
    store._disk.writer.execute("DROP TRIGGER part_forgotten")
    store._disk.writer.execute("DROP TRIGGER part_learned")
    store._disk.writer.execute(statement)
    store.close()
    store = Store(path)
    (found,) = store.conversations()
    ((part,),) = [record.parts for record in store.messages(found.id)]
    assert part.text.startswith("word")
    store.close()


def test_a_name_in_the_schema_that_is_no_text(path):
    Store(path).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"leaf_id INTEGER REF", b"leaf_\xffd INTEGER=REF"))
    with pytest.raises(StoreError) as caught:
        Store(path)
    assert caught.value.kind == "damaged"


def test_names_that_are_no_text_are_kept_as_far_as_they_go(store):
    chat = store.create_conversation("a\ud800b")
    store.start_answer(chat, None, "model\udcff")
    assert store.conversation(chat).title == "a?b"
    assert [record.model for record in store.messages(chat)] == ["model?"]


def test_what_is_set_aside_replaces_nothing(path, monkeypatch):
    monkeypatch.setattr("app.store.store.time.strftime", lambda form: "2026-11-30-120000")
    kept = set()
    for content in (b"first", b"second", b"third"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        kept.add(set_aside(path).read_bytes())
    assert kept == {file.read_bytes() for file in path.parent.iterdir()}
    assert len(kept) == 3


@pytest.mark.parametrize("damage", [damage_whole, damage_pages, damage_cut, damage_foreign])
def test_a_damaged_file_is_told_and_can_be_set_aside(path, damage):
    store = Store(path)
    chat = store.create_conversation("x")
    store.add_user_message(chat, None, said("word " * 3000))
    store.close()
    damage(path)
    before = path.read_bytes()

    def use():
        store = Store(path)
        try:
            store.messages(chat)
            store.add_user_message(chat, None, said("y"))
        finally:
            store.close()

    with pytest.raises(StoreError) as caught:
        use()
    assert caught.value.kind == "damaged"
    assert str(path) in str(caught.value)
    if damage is damage_foreign:
        assert path.read_bytes() == before
    aside = set_aside(path)
    assert aside.exists()
    assert not path.exists()
    use_again = Store(path)
    assert use_again.conversations() == []
    use_again.close()


def test_a_full_disk_keeps_what_was_saved_and_the_store_usable(store):
    chat = store.create_conversation("a")
    store.add_user_message(chat, None, said("saved"))
    pages = store._disk.writer.execute("PRAGMA page_count").fetchone()[0]
    store._disk.writer.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="full") as caught:
        store.add_user_message(chat, None, said("x" * 100_000))
    assert caught.value.kind == "full"
    assert texts(store, chat) == ["saved"]
    store._disk.writer.execute("PRAGMA max_page_count = 1000000")
    store.add_user_message(chat, None, said("after"))
    assert texts(store, chat) == ["saved", "after"]


def test_an_error_at_the_first_look_is_told_as_it_is(path):
    """SQLite ends a transaction at some errors; ending it again must not hide them."""

    class WithoutRoom(sqlite3.Connection):
        def execute(self, statement, *values):
            if "user_version" in statement:
                super().execute("ROLLBACK")
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(statement, *values)

    Store(path).close()
    connection = sqlite3.connect(path, isolation_level=None, factory=WithoutRoom)
    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        schema.migrate(connection, path)
    connection.close()


@pytest.mark.parametrize(("free", "kind"), [(0, "full"), (1 << 30, "disk")])
def test_no_room_for_the_small_files_is_a_full_disk(path, monkeypatch, free, kind):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    monkeypatch.setattr("app.store.errors.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(StoreError) as caught, plain_errors(path):
        raise error
    assert caught.value.kind == kind


def test_a_file_that_cannot_be_written(store, tmp_path):
    store._disk.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        store.create_conversation()
    assert caught.value.kind == "read-only"
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "chats.sqlite3", tmp_path):
        with pytest.raises(StoreError):
            Store(place)


def test_a_file_that_another_program_holds(store, path, monkeypatch):
    store._disk.writer.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="Another program") as caught:
        store.create_conversation()
    assert caught.value.kind == "busy"
    other.execute("ROLLBACK")
    other.close()
    assert store.create_conversation()


def test_every_sentence_ends_and_names_no_code(path):
    from app.store.errors import _SENTENCES

    for _, sentence in _SENTENCES.values():
        text = sentence.format(path=Path("/data/chats.sqlite3"))
        assert text.endswith(".")
        assert "SQL" not in text.replace("sqlite3", "")
