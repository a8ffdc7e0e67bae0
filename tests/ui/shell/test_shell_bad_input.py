"""Each kind of bad input: one plain sentence with a way out, in its place; nothing is lost."""

import errno
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.paths import Folders
from app.store.store import Store, StoreError

LONG_SENTENCE = 300


def is_plain(notice: Any) -> bool:
    """Words for a person: short, ended, with no trace of code."""
    text = f"{notice.title} {notice.text}"
    traces = ("Traceback", "Error:", "Exception", "0x", "self.")
    return (
        0 < len(notice.text) < LONG_SENTENCE
        and notice.text.rstrip().endswith(".")
        and not any(trace in text for trace in traces)
    )


def actions(notice: Any) -> set[str]:
    return {way.action for way in notice.ways}


def test_no_model_shows_the_first_run_card(open_desk: Callable[..., Any], tmp_path: Path) -> None:
    desk = open_desk(Folders(tmp_path / "empty"), wait=False)
    desk.until(lambda: desk.window.isVisible())
    card = desk.page.first_run.card
    assert card.open.isVisible()
    assert "model is needed" in card.accessibleName()
    desk.composer.field.setPlainText("Hello")
    desk.composer.field.submitted.emit()
    assert desk.composer.text() == "Hello"
    assert desk.composer.send_button.mode == "off"


def test_a_model_that_does_not_load(
    open_desk: Callable[..., Any], folders: Folders, session: Any
) -> None:
    session.load_failure = "The file model.onnx.data is shorter than it should be."
    desk = open_desk(folders, session, wait=False)
    desk.until(lambda: desk.notice() is not None)
    assert desk.notice().title == "tiny-llama didn't load"
    assert is_plain(desk.notice())
    assert "choose-model" in actions(desk.notice())

    session.load_failure = ""
    desk.window.act("reload-model")
    desk.until_ready()
    assert desk.notice() is None  # the cause is gone, and so is the notice


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx", "genai_config.json"])
def test_a_folder_that_lost_a_file(desk: Any, folders: Folders, missing: str) -> None:
    other = folders.models / "other"
    shutil.copytree(folders.models / "tiny-llama", other)
    (other / missing).unlink()
    desk.models.load(str(other))
    assert desk.notice() is not None
    assert missing in desk.notice().text
    assert is_plain(desk.notice())
    assert desk.chat.state.model.name == "tiny-llama"  # the one that works stays
    desk.ask("Still there?")
    assert desk.texts()[-1] == "An answer."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.gguf", b"GGUF\x03\x00\x00\x00"),
        ("foreign.gguf", b"PK\x03\x04 this is a zip archive, not a model" * 20),
        ("empty.gguf", b""),
    ],
)
def test_a_model_file_that_is_none(
    desk: Any, tmp_path: Path, folders: Folders, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    desk.models.open(str(file))
    desk.until(lambda: desk.notice() is not None)
    assert desk.notice().title == f"{name} can't be used"
    assert is_plain(desk.notice())
    assert "open-model" in actions(desk.notice())
    assert [folder.name for folder in folders.models.iterdir()] == ["tiny-llama"]


def test_a_file_that_is_not_there(desk: Any, tmp_path: Path) -> None:
    desk.models.open(str(tmp_path / "gone.gguf"))
    desk.until(lambda: desk.notice() is not None)
    assert is_plain(desk.notice())


def test_a_bad_file_at_the_start_falls_back_to_a_model_that_works(
    open_desk: Callable[..., Any], folders: Folders, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(b"GGUF")
    desk = open_desk(folders, to_open=(str(cut),))
    assert desk.chat.state.model.name == "tiny-llama"
    assert desk.notice().title == "cut.gguf can't be used"


def test_a_folder_from_elsewhere_is_copied_and_used(
    desk: Any, folders: Folders, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "my model"
    shutil.copytree(folders.models / "tiny-llama", elsewhere)
    desk.models.open(str(elsewhere / "genai_config.json"))
    desk.until(lambda: desk.chat.state.model.name == "my model")
    desk.until_ready()
    assert (folders.models / "my model" / "model.onnx").is_file()


def test_an_import_can_be_cancelled_and_leaves_nothing(
    desk: Any, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: Any
) -> None:
    from app.convert.progress import Progress
    from app.library import models

    hold = holds()
    ended: list[str] = []

    class Never:
        def is_set(self) -> bool:
            return False

    def slow(source: Path, destination: Path) -> Any:
        try:
            yield Progress(1, 4, "Reading the weights")
            hold.wait(Never())
            yield Progress(2, 4, "Reading the weights")
            yield Progress(3, 4, "Reading the weights")
        finally:
            ended.append("closed")
        return destination

    monkeypatch.setattr(models, "import_model", slow)
    desk.models.open(str(tmp_path / "big.gguf"))
    desk.until(hold.is_reached.is_set)
    desk.until(lambda: desk.chat.state.model.importing.share == 0.25)
    card = desk.page.first_run.card
    assert card.cancel.isVisible()
    assert "25 %" in card.accessibleName()
    card.cancel.click()
    assert not card.cancel.isEnabled()
    hold.release()
    desk.until(lambda: desk.chat.state.model.importing is None)
    assert ended == ["closed"]
    assert desk.notice() is None
    assert desk.chat.state.model.phase == "ready"


@pytest.mark.parametrize("name", ["deleted", "d" * 300, "a\0b"])
def test_the_model_used_last_is_gone(
    name: str, open_desk: Callable[..., Any], folders: Folders
) -> None:
    folders.settings.write_text(json.dumps({"last_model": str(folders.models / name)}))
    desk = open_desk(folders)
    assert desk.chat.state.model.name == "tiny-llama"
    assert desk.notice().title == f"{name} is not there any more"
    assert is_plain(desk.notice())


def test_a_model_that_fails_in_the_answer(desk: Any, failure: Any) -> None:
    """Its folder was deleted while it was loaded: the session says so before the first token."""
    words = "The folder of tiny-llama was moved or deleted. Put it back, or choose another model."
    desk.session.will_answer(failure(words, "model"))
    desk.say("Are you there?")
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert words in desk.notice().text
    assert is_plain(desk.notice())
    assert desk.composer.text() == "Are you there?"


def test_a_prompt_longer_than_the_context_comes_back_with_a_way_out(
    desk: Any, failure: Any
) -> None:
    desk.ask("Before")
    words = "The chat needs 9,000 tokens, and the model reads 2,048."
    desk.session.will_answer(failure(words, "context"))
    text = "word " * 20  # the count says that it fits; the engine knows better
    desk.say(text)
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert desk.notice().tone == "warning"
    assert words in desk.notice().text
    assert desk.composer.text() == text.strip()
    assert desk.texts() == ["Before", "An answer."]
    desk.window.act("continue-in-new-chat")
    assert desk.chat.state.conversation_id is None
    assert desk.composer.text() == text.strip()
    assert desk.notice() is None


def test_out_of_memory_in_the_middle_keeps_the_text(desk: Any, failure: Any) -> None:
    desk.session.will_answer("Half of ", "it", failure("The memory ran out.", "memory"))
    desk.say("Go")
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert desk.stored()[-1] == ("assistant", "Half of it", "failed")
    assert "2 tokens" in desk.notice().text
    assert desk.texts()[-1] == "Half of it"


def test_a_bug_of_the_engine_is_told_in_words_and_logged(
    desk: Any, caplog: pytest.LogCaptureFixture
) -> None:
    desk.session.will_answer("Some text", RuntimeError("index 7 is out of bounds"))
    desk.say("Go")
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert is_plain(desk.notice())
    assert "open-log" in actions(desk.notice())
    assert "index 7" not in f"{desk.notice()}"
    assert "index 7 is out of bounds" in caplog.text
    assert desk.stored()[-1] == ("assistant", "Some text", "failed")
    desk.ask("Again")
    assert desk.texts()[-1] == "An answer."


def full(*_: Any, **__: Any) -> Any:
    raise StoreError("The disk is full. Free some space, then try again.", kind="full")


def test_a_full_disk_gives_the_message_back(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Store, "add_user_message", full)
        desk.say("Precious words")
        desk.until(lambda: desk.notice() is not None)
    assert desk.notice().title == "Your message wasn't sent"
    assert "disk is full" in desk.notice().text
    assert desk.composer.text() == "Precious words"
    assert desk.session.replies == []
    desk.window.act("send-again")
    desk.until(lambda: desk.texts() == ["Precious words", "An answer."])
    desk.until_written()
    assert desk.notice() is None


def test_a_full_disk_at_the_end_of_an_answer_is_tried_again(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Store, "finish_answer", full)
        broken.setattr(Store, "update_answer", full)
        desk.ask("Go")
        desk.until(lambda: desk.notice() is not None)
    assert desk.notice().title == "The answer isn't saved yet"
    assert desk.texts() == ["Go", "An answer."]
    assert desk.stored()[-1][1] != "An answer."
    desk.window.act("retry-save")
    desk.until(lambda: desk.stored()[-1] == ("assistant", "An answer.", "done"))
    assert desk.notice() is None


def test_an_operating_system_error_is_a_sentence(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Store, "rename", no_space)
    desk.ask("Name")
    desk.chat.rename_chat(desk.chat.state.conversation_id, "New name")
    desk.until(lambda: desk.notice() is not None)
    assert "disk is full" in desk.notice().text


def test_chats_that_cannot_be_read_are_said_and_can_be_set_aside(
    open_desk: Callable[..., Any], folders: Folders
) -> None:
    folders.database.write_bytes(b"this is not a database, and never was one" * 100)
    desk = open_desk(folders, wait=False)
    problem = desk.window.problem
    assert problem.isVisible()
    assert problem.notice().title == "Your chats can't be opened"
    assert is_plain(problem.notice())
    assert not desk.window.actions_["new"].isEnabled()

    problem.action.emit("set-store-aside")
    desk.until_ready()
    assert not problem.isVisible()
    desk.ask("A new beginning")
    assert desk.texts() == ["A new beginning", "An answer."]
    aside = [p for p in folders.data.glob("chats-*") if p.suffix == ".sqlite3"]
    assert len(aside) == 1
    assert aside[0].read_bytes().startswith(b"this is not a database")


def test_chats_of_a_newer_version_are_left_alone(
    open_desk: Callable[..., Any], folders: Folders
) -> None:
    Store(folders.database).close()
    with closing(sqlite3.connect(folders.database)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    before = folders.database.read_bytes()
    desk = open_desk(folders, wait=False)
    assert desk.window.problem.isVisible()
    assert is_plain(desk.window.problem.notice())
    assert "set-store-aside" not in actions(desk.window.problem.notice())
    assert folders.database.read_bytes() == before


@pytest.mark.parametrize("content", ["{ not json", "[1, 2]", '{"theme": 7, "unknown": true}'])
def test_settings_that_cannot_be_read_do_not_stop_the_start(
    open_desk: Callable[..., Any], folders: Folders, content: str
) -> None:
    folders.settings.write_text(content)
    desk = open_desk(folders)
    assert desk.window.settings().theme == "system"
    if not content.startswith('{"'):
        assert desk.notice().title == "The settings couldn't be read"
    desk.ask("Hello")
    assert desk.texts()[-1] == "An answer."


@pytest.mark.parametrize("content", ["{ not json", "[1, 2]", '{"theme": 7}'])
def test_settings_that_cannot_be_read_are_kept_beside(
    open_desk: Callable[..., Any], folders: Folders, content: str
) -> None:
    folders.settings.write_text(content)
    desk = open_desk(folders)
    desk.window.close_unasked()
    assert folders.settings.read_text() != content  # the window's own, saved as it closed
    kept = folders.settings.with_name("settings.json.unreadable")
    assert kept.read_text() == content


def test_a_size_of_the_window_that_is_no_text_does_not_stop_the_start(
    open_desk: Callable[..., Any], folders: Folders
) -> None:
    folders.settings.write_text('{"window_geometry": "\\ud800"}')
    desk = open_desk(folders)
    desk.ask("Hello")
    assert desk.texts()[-1] == "An answer."


def test_an_exception_in_the_window_is_told_once_and_logged(
    desk: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setattr(desk.running._uncaught, "_before", lambda *_: None)
    try:
        raise KeyError("a fault of ours")
    except KeyError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    assert desk.notice() is not None
    assert is_plain(desk.notice())
    assert "a fault of ours" not in desk.notice().text
    assert "a fault of ours" in caplog.text


def test_an_import_beside_a_chat_shows_its_progress_and_interrupts_nothing(
    desk: Any, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: Any
) -> None:
    from app.convert.progress import Progress
    from app.library import models

    importing, writing = holds(), holds()
    made = folders.models / "added"

    class Never:
        def is_set(self) -> bool:
            return False

    def slow(source: Path, destination: Path) -> Any:
        yield Progress(1, 2, "Reading the weights")
        importing.wait(Never())
        shutil.copytree(folders.models / "tiny-llama", made)
        return made

    monkeypatch.setattr(models, "import_model", slow)
    desk.session.will_answer("Half", writing, " and half")
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["Half"])
    desk.models.open(str(tmp_path / "big.gguf"))
    desk.until(lambda: desk.composer.progress.isVisible())
    importing.release()
    desk.until(lambda: desk.chat.state.model.importing is None)
    assert not desk.composer.progress.isVisible()
    assert desk.chat.state.is_writing
    writing.release()
    desk.until_written()
    assert desk.texts()[-1] == "Half and half"
    desk.until(lambda: desk.chat.state.model.name == "added")
    desk.until_ready()
