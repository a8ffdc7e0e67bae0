"""Folders, pins, memory, finds, copies, and chats that never touch the disk."""

import os
import shutil
import sqlite3
import sys

import pytest

from app.store import schema
from app.store.records import ListedChat, PartRecord, SearchHit, State
from app.store.store import Store, StoreError, is_temporary

CANARY = "zq-canary-7f3a"


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


def test_a_file_of_the_first_version_is_brought_up_to_date(path, tmp_path):
    path.parent.mkdir()
    old = sqlite3.connect(path, isolation_level=None)
    schema.migrate(old, path, schema.STEPS[:1])
    old.execute("INSERT INTO conversation(title, created_at, updated_at) VALUES ('Old', 1, 2)")
    old.execute(
        "INSERT INTO message(conversation_id, role, state, created_at)"
        " VALUES (1, 'user', 'done', 1)"
    )
    old.close()
    store = Store(path)
    (record,) = store.conversations()
    assert (record.title, record.folder_id, record.is_pinned, record.view) == (
        "Old",
        None,
        False,
        {},
    )
    assert [m.is_pinned for m in store.messages(1)] == [False]
    store.close()
    copy = sqlite3.connect(path.with_name(path.name + ".before-step-2"))
    assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    assert copy.execute("SELECT title FROM conversation").fetchone() == ("Old",)
    copy.close()


def test_folders_keep_their_order_and_chats_survive_them(store):
    first, second = store.create_folder("Letters"), store.create_folder("Cases")
    chat = store.create_conversation("A", folder_id=second)
    assert [folder.name for folder in store.folders()] == ["Letters", "Cases"]
    store.move_folder(second, 0)
    store.rename_folder(first, "Mail")
    assert [folder.name for folder in store.folders()] == ["Cases", "Mail"]
    store.delete_folder(second)
    assert [folder.name for folder in store.folders()] == ["Mail"]
    assert [c.id for c in store.conversations()] == [chat]
    store.restore_folder(second)
    assert store.conversation(chat).folder_id == second
    store.delete_folder(second)
    store.purge(0)
    assert store.conversation(chat).folder_id is None
    store.move_to_folder(chat, first)
    assert store.conversation(chat).folder_id == first


def test_pins_memory_and_view_come_back(store, path):
    chat = store.create_conversation("A")
    question = store.add_user_message(chat, None, said("x"))
    store.set_pinned(chat, True)
    store.pin_message(question, True)
    store.set_memory_start(chat, question)
    store.set_view(chat, {"tab": "tokens"})
    again = Store(path)
    record = again.conversation(chat)
    assert (record.is_pinned, record.memory_start, record.view) == (
        True,
        question,
        {"tab": "tokens"},
    )
    assert again.messages(chat)[0].is_pinned
    again.close()


def test_finds_say_where_they_are(store):
    chat = store.create_conversation("Zebra notes")
    message = store.add_user_message(chat, None, said("I saw a zebra and zebras"))
    title, hit = store.search("zebr")
    assert title == SearchHit(chat, None, "Zebra notes", ((0, 4),))
    assert (hit.conversation_id, hit.message_id) == (chat, message)
    assert [hit.excerpt[at : at + length] for at, length in hit.highlights] == ["zebra", "zebras"]
    assert [h.message_id for h in store.search('"a zebra"')] == [message]
    assert store.search('"zebra saw"') == []
    store.rename(chat, "世界 notes")
    assert store.search("世界")[0].highlights == ((0, 2),)


def test_the_bin_lists_and_forgets(store, path):
    chat = store.create_conversation("Gone")
    store.add_user_message(chat, None, said(CANARY))
    store.delete(chat)
    assert [record.title for record in store.deleted_conversations()] == ["Gone"]
    store.delete_for_good(chat)
    assert store.deleted_conversations() == []
    assert store.conversation(chat) is None
    store.close()
    found = [file.name for file in path.parent.iterdir() if CANARY.encode() in file.read_bytes()]
    assert found == []


WORD = "quokkaparade"  # one word: the index has it as it stands


def files_with(word, path):
    return sorted(f.name for f in path.parent.iterdir() if word.encode() in f.read_bytes())


@pytest.mark.parametrize("way", ["purge", "empty", "for good"])
def test_what_is_deleted_for_good_stays_in_no_file_even_while_it_is_open(store, path, way):
    kept = store.create_conversation("Kept")
    store.add_user_message(kept, None, said("wombat " * 500))
    chat, folder = store.create_conversation(WORD), store.create_folder(f"{WORD} folder")
    for number in range(20):
        store.add_user_message(chat, None, said(f"{WORD} {number} " * 300))
    store.save_draft(chat, f"a draft of the {WORD}")
    store.set_options(chat, {"system_prompt": f"Speak as the {WORD}"})
    store.delete(chat)
    store.delete_folder(folder)
    assert files_with(WORD, path)
    if way == "purge":
        assert store.purge(0) == 1
    elif way == "empty":
        store.empty_bin()
    else:
        store.delete_for_good(chat)
        store.delete_folder_for_good(folder)
    assert (store.deleted_conversations(), store.deleted_folders()) == ([], [])
    assert files_with(WORD, path) == []
    assert [hit.conversation_id for hit in store.search("wombat")] == [kept]
    assert store.search(WORD) == []


def test_the_copy_of_an_older_file_goes_when_the_bin_would(store, path):
    copies = [path.with_name(f"{path.name}.before-step-{number}") for number in (2, 3)]
    for copy in copies:
        copy.write_bytes(b"x")
    os.utime(copies[0], (0, 0))
    store.remove_old_copies(3600)
    assert [copy.exists() for copy in copies] == [False, True]
    assert path.exists()


def test_a_chat_whose_folder_is_deleted_comes_back_to_none(store):
    folder = store.create_folder("Letters")
    chat = store.create_conversation("A", folder_id=folder)
    store.delete(chat)
    store.delete_folder(folder)
    store.restore(chat)
    assert store.listed_chat(chat).folder_id not in {each.id for each in store.folders()}
    store.restore_folder(folder)
    assert store.listed_chat(chat).folder_id == folder


def test_a_folder_that_is_folded_up_stays_so(store, path):
    one, two = store.create_folder("One"), store.create_folder("Two")
    store.set_folder_open(one, False)
    store.set_folder_open(two, False)
    store.set_folder_open(two, True)
    again = Store(path)
    assert [(folder.name, folder.is_open) for folder in again.folders()] == [
        ("One", False),
        ("Two", True),
    ]
    again.close()
    store._disk.change("UPDATE note SET text = '{\"odd' WHERE key = 'closed folders'")
    assert [folder.is_open for folder in store.folders()] == [True, True]


def test_what_a_list_shows_of_a_chat(store):
    folder = store.create_folder("F")
    chat = store.create_conversation("A", folder_id=folder)
    temporary = store.create_conversation("T", is_temporary=True)
    store.set_view(chat, {"tab": "tokens"})
    store.set_unread(chat, True)
    store.set_pinned(chat, True)
    store.save_draft(chat, "more")
    listed = {each.id: each for each in store.listed_chats()}
    assert listed.keys() == {chat, temporary}
    record = store.conversation(chat)
    expected = ListedChat(chat, "A", record.updated_at, True, folder, True, True)
    assert listed[chat] == store.listed_chat(chat) == expected
    store.set_unread(chat, False)
    assert not store.listed_chat(chat).is_unread
    assert store.conversation(chat).view == {"tab": "tokens"}
    store.delete(chat)
    assert store.listed_chat(chat) is None


def test_a_chat_full_of_a_word_leaves_room_for_others(store):
    long, other = store.create_conversation("Long"), store.create_conversation("Other")
    for number in range(30):
        store.add_user_message(long, None, said(f"zebra zebra {number}"))
    store.add_user_message(other, None, said("There was also one zebra, among much else"))
    assert {hit.conversation_id for hit in store.search("zebra", limit=2)} == {long, other}
    assert len(store.search("zebra", limit=2)) == 2
    assert len(store.search("zebra", limit=1)) == 1


def test_titles_are_found_in_any_case_and_accent(store):
    chat = store.create_conversation("ÉTUDE für Straßen")
    for query in ("étude", "etude", "FÜR STRASSEN", "fur strassen"):
        (hit,) = store.search(query)
        assert (hit.conversation_id, hit.message_id) == (chat, None)
    assert [
        hit.excerpt[at : at + length]
        for hit in store.search("strass fur")
        for at, length in hit.highlights
    ] == ["für", "Straß"]


def test_letters_without_spaces_are_found_also_where_a_word_begins_with_them(store):
    chat = store.create_conversation()
    first = store.add_user_message(chat, None, said("東京の週末プラン"))
    other = store.create_conversation()
    second = store.add_user_message(other, None, said("週末\nは雨"))
    hits = store.search("週末")
    assert {hit.message_id for hit in hits} == {first, second}
    assert all(h.excerpt[at : at + n] == "週末" for h in hits for at, n in h.highlights)
    assert all("\n" not in hit.excerpt for hit in hits)
    assert [hit.message_id for hit in store.search("東京 プラン")] == [first]


def test_a_search_that_is_cut_off_says_so_and_the_next_one_answers(store):
    chat = store.create_conversation()
    store.add_user_message(chat, None, said("a zebra"))
    assert store.search("zebra")
    store.stop_search()
    assert store.search("zebra")
    searcher = store._disk.searcher
    searcher.set_progress_handler(lambda: searcher.interrupt() or 0, 1)
    with pytest.raises(sqlite3.OperationalError):
        store.search("zebra")
    searcher.set_progress_handler(None, 0)
    assert store.search("zebra")


def test_a_branch_becomes_a_chat_of_its_own(store):
    chat = store.create_conversation("A", {"temperature": 0.1})
    one = store.add_user_message(chat, None, said("one"))
    two = store.add_answer(chat, one, said("two"), model="m", token_ids=[4, 5])
    store.add_user_message(chat, two, said("three"))
    store.set_memory_start(chat, two)
    copy = store.copy_branch(chat, two, "Copy")
    assert store.conversation(copy).memory_start == store.messages(copy)[1].id
    assert [part.text for m in store.messages(copy) for part in m.parts] == ["one", "two"]
    assert store.messages(copy)[1].token_ids == (4, 5)
    record = store.conversation(copy)
    assert (record.options, record.leaf_id) == ({"temperature": 0.1}, store.messages(copy)[1].id)
    assert len(store.messages(chat)) == 3
    assert [hit.conversation_id for hit in store.search("two")] in ([chat, copy], [copy, chat])


def test_an_answer_that_goes_on_keeps_what_stands(store, path):
    chat = store.create_conversation()
    answer = store.start_answer(chat, None, "m")
    store.finish_answer(answer, said("Half a"), [1, 2], State.STOPPED)
    store.reopen_answer(answer)
    assert store.messages(chat)[0].state is State.WRITING
    store.close()
    again = Store(path)  # as after a crash
    (record,) = again.messages(chat)
    assert (record.state, record.parts[0].text, record.token_ids) == (
        State.INTERRUPTED,
        "Half a",
        (1, 2),
    )
    again.close()


def test_a_temporary_chat_never_touches_the_disk(store, path):
    kept = store.create_conversation("Kept")
    chat = store.create_conversation(CANARY, is_temporary=True)
    assert is_temporary(chat)
    assert not is_temporary(kept)
    question = store.add_user_message(chat, None, said(CANARY))
    answer = store.start_answer(chat, question, "m")
    store.update_answer(answer, said(CANARY), [1])
    store.finish_answer(answer, said(CANARY), [1], State.DONE, {"x": CANARY})
    store.save_draft(chat, CANARY)
    store.set_options(chat, {"system_prompt": CANARY})
    store.set_view(chat, {"x": 1})
    store.pin_message(question, True)
    store.move_to_folder(chat, store.create_folder("F"))
    digest = store.add_attachment(CANARY.encode(), "text/plain", beside=chat)
    assert store.attachment(digest) == CANARY.encode()
    assert store.draft(chat) == CANARY
    assert {record.id for record in store.conversations()} == {kept, chat}
    assert [m.id for m in store.messages(chat)] == [question, answer]
    assert [hit.message_id for hit in store.search(CANARY)] in ([None, question], [None, answer])
    assert store.conversation(chat).folder_id is None
    open_files = [file.read_bytes() for file in path.parent.iterdir()]
    store.close()
    closed_files = [file.read_bytes() for file in path.parent.iterdir()]
    assert not any(CANARY.encode() in data for data in open_files + closed_files)
    again = Store(path)
    assert [record.id for record in again.conversations()] == [kept]
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there, rights are no bits of a file")
def test_only_the_owner_may_read(path, monkeypatch):
    old = os.umask(0o022)
    try:
        store = Store(path)
        chat = store.create_conversation("A")
        store.add_user_message(chat, None, said("x"))
        assert path.parent.stat().st_mode & 0o077 == 0
        assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}
        schema.copy_file(store._disk.writer, path.with_name("copy"))
        assert path.with_name("copy").stat().st_mode & 0o077 == 0
        store.close()
    finally:
        os.umask(old)


@pytest.mark.skipif(sys.platform == "win32", reason="there, an open file cannot be deleted")
@pytest.mark.parametrize("is_replaced", [False, True])
def test_what_is_written_to_a_file_that_is_gone_is_told(store, path, is_replaced):
    chat = store.create_conversation("A")
    shutil.rmtree(path.parent)
    if is_replaced:
        Store(path).close()
    for write in (
        lambda: store.create_conversation("B"),
        lambda: store.create_folder("F"),
        lambda: store.set_pinned(chat, True),
        lambda: store.add_user_message(chat, None, said("x")),
        lambda: store.start_answer(chat, None, "m"),
        lambda: store.save_draft(None, "x"),
        lambda: store.copy_branch(chat, 1, "x"),
    ):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.kind in ("gone", "disk")
    temporary = store.create_conversation("In memory", is_temporary=True)
    store.add_user_message(temporary, None, said("still here"))


def test_a_search_of_any_length_is_answered(store):
    chat = store.create_conversation("T")
    store.add_user_message(chat, None, said("x"))
    for query in (" ".join(["x"] * 3000), "x" * 100_000, '"' * 999, "\x02\x03"):
        store.search(query)
    assert store.search(" ".join(["x"] * 3000))
