"""A temporary chat never touches the disk, whatever is done in it; kept, it is like the others."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtTest import QTest

from app.paths import Folders
from app.store.records import PartRecord
from app.store.store import Store, is_temporary
from app.ui.temporary import copy_to_disk

SECRET = "xylophone"


def start(desk: Any) -> None:
    desk.window.actions_["temporary"].trigger()
    desk.until(lambda: desk.chat.state.is_temporary)


def found_on_disk(folder: Path) -> list[str]:
    """Files that hold the secret, in any of the encodings that a database or a log would use."""
    needles = [SECRET.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files  # the chats' own file at least
    return [
        path.name
        for path in files
        if any(needle in path.read_bytes().lower() for needle in needles)
    ]


def test_nothing_of_it_is_written_to_the_disk(desk: Any, folders: Folders, hold: Any) -> None:
    desk.ask("An ordinary chat")
    start(desk)
    assert desk.page.banner.isVisible()
    desk.session.will_answer(f"The {SECRET} is ", "an instrument", hold)
    desk.say(f"What is a {SECRET}?")
    desk.until(lambda: desk.texts()[-1:] == [f"The {SECRET} is an instrument"])
    desk.chat.stop()
    desk.until_written()
    desk.chat.edit(desk.keys()[0], f"And two {SECRET}s?")
    desk.until_written()
    desk.composer.field.setPlainText(f"a draft of {SECRET}")
    desk.chat.open_chat(None)  # saves the draft
    desk.until(lambda: desk.running.job.is_idle)
    shown = next(row.id for row in desk.window.sidebar.chats() if is_temporary(row.id))
    desk.chat.open_chat(shown)
    assert desk.composer.text() == f"a draft of {SECRET}"
    found: list[Any] = []
    desk.chat.searching.found.connect(lambda _query, hits: found.extend(hits))
    desk.chat.searching.search(SECRET)
    desk.until(lambda: {hit.conversation_id for hit in found} == {shown})
    desk.chat.searching.search("")
    desk.chat.continue_in_new_chat()
    desk.until(lambda: desk.chat.state.conversation_id != shown)
    assert desk.chat.state.is_temporary
    assert desk.composer.text() == f"a draft of {SECRET}"
    desk.until(lambda: desk.running.job.is_idle)
    assert found_on_disk(folders.data) == []
    desk.window.close_unasked()
    desk.running.shut_down()
    assert found_on_disk(folders.data) == []
    store = Store(folders.database)
    assert [record.title for record in store.conversations()] == ["An ordinary chat"]
    store.close()


def test_it_is_named_by_its_first_question(desk: Any) -> None:
    start(desk)
    assert desk.page.head.title.text() == "Temporary chat"
    desk.ask("What is rosin for?")
    assert desk.page.head.title.text() == "What is rosin for?"
    assert desk.titles() == ["What is rosin for?"]


def test_closed_it_is_gone_and_asks_nothing(desk: Any) -> None:
    start(desk)
    desk.ask("Once")
    desk.page.banner.close_chat.click()
    desk.until(lambda: desk.titles() == [])
    assert desk.page.is_empty()
    assert not desk.page.banner.isVisible()
    assert desk.store.deleted_conversations() == []


def test_kept_it_is_a_chat_like_the_others(desk: Any, folders: Folders) -> None:
    start(desk)
    desk.session.will_answer("First")
    desk.ask("Keep?")
    desk.session.will_answer("Second")
    desk.chat.write_last_again()
    desk.until_written()
    desk.page.banner.keep.click()
    desk.until(lambda: not desk.chat.state.is_temporary)
    assert desk.texts() == ["Keep?", "Second"]
    assert desk.page.transcript.items()[-1].branch == (2, 2)
    shown = desk.chat.state.conversation_id
    assert not is_temporary(shown)
    desk.until(lambda: desk.titles() == ["Keep?"])
    desk.window.close_unasked()
    desk.running.shut_down()
    store = Store(folders.database)
    kept = store.messages(shown)
    assert [part.text for record in kept for part in record.parts] == ["Keep?", "First", "Second"]
    assert kept[-1].token_ids == (0,)
    store.close()


def test_a_copy_that_fails_leaves_the_chat_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "chats.db")
    chat = store.create_conversation("T", is_temporary=True)
    store.add_user_message(chat, None, (PartRecord("text", "Hello"),))

    def full(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(store, "set_memory_start", full)
    with pytest.raises(OSError, match="no room"):
        copy_to_disk(store, chat)
    assert [record.id for record in store.conversations()] == [chat]
    assert store.deleted_conversations() == []
    assert store.messages(chat)[0].parts[0].text == "Hello"
    store.close()


def test_its_key_starts_one(desk: Any) -> None:
    keys = [key.toString() for key in desk.window.actions_["temporary"].shortcuts()]
    assert keys == ["Ctrl+Shift+T"]
    desk.window.activateWindow()
    QTest.keySequence(desk.window, "Ctrl+Shift+T")
    desk.until(lambda: desk.chat.state.is_temporary)
