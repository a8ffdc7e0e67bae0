"""Files for the next message: dropped, pasted or chosen; read, shown, sent, never lost."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton

from app.ui.file_card import FileCard


def items(desk: Any) -> list[tuple[str, str]]:
    return [(item.name, item.state) for item in desk.composer.tray.items()]


def until_read(desk: Any) -> None:
    desk.until(lambda: all(state != "reading" for _, state in items(desk)))


def drop(desk: Any, *paths: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(300, 300), copy, mime, left, none)
    QApplication.sendEvent(desk.window, enter)
    event = QDropEvent(QPointF(300, 300), copy, mime, left, none)
    QApplication.sendEvent(desk.window, event)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text("# Kelp\n\nGreen.", encoding="utf-8")
    return path


def test_a_dropped_file_goes_along_and_reaches_the_model(desk: Any, notes: Path) -> None:
    drop(desk, notes)
    until_read(desk)
    assert items(desk) == [("notes.md", "ready")]
    assert "about" in desk.composer.tray.items()[0].facts
    desk.ask("What is this?")
    assert items(desk) == []
    request = desk.session.replies[-1]
    assert "File: notes.md" in request.messages[-1].text
    assert request.messages[-1].text.endswith("What is this?")
    shown = desk.page.transcript.items()[0]
    assert [file.name for file in shown.attachments] == ["notes.md"]
    (question, _) = desk.store.messages(desk.chat.state.conversation_id)
    assert [part.kind for part in question.parts] == ["file", "text"]
    assert question.parts[0].text == "# Kelp\n\nGreen."
    desk.ask("And now?")  # it stays in the chat
    assert "Green." in desk.session.replies[-1].messages[0].text


def test_files_alone_are_a_message(desk: Any, notes: Path) -> None:
    drop(desk, notes)
    until_read(desk)
    assert desk.composer.send_button.mode == "send"
    desk.composer.submit()
    desk.until_written()
    assert desk.titles() == ["notes.md"]


def test_what_cannot_be_read_says_why_and_goes_nowhere(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "photo.txt").write_bytes(b"\x89PNG\r\n\x1a\n")
    drop(desk, tmp_path / "photo.txt")
    until_read(desk)
    assert items(desk) == [("photo.txt", "failed")]
    assert "picture" in desk.composer.tray.items()[0].facts
    assert desk.composer.send_button.mode == "off"
    desk.ask("Never mind")
    assert "photo" not in desk.session.replies[-1].messages[-1].text


def test_several_files_at_once_and_one_taken_out(desk: Any, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.txt"
    other.write_text("b")
    drop(desk, notes, other)
    until_read(desk)
    assert len(items(desk)) == 2
    remove = next(
        each
        for each in desk.composer.tray.findChildren(QAbstractButton)
        if each.accessibleName() == "Remove b.txt"
    )
    remove.click()
    assert items(desk) == [("notes.md", "ready")]


def test_too_many_are_told(desk: Any, tmp_path: Path) -> None:
    paths = []
    for number in range(22):
        path = tmp_path / f"{number}.txt"
        path.write_text("x")
        paths.append(path)
    drop(desk, *paths)
    until_read(desk)
    assert len(items(desk)) == 20
    assert "20 files" in desk.notice().text


def test_a_long_paste_becomes_a_file_and_can_come_back(desk: Any, qtbot: Any) -> None:
    text = "A line of a long letter.\n" * 500
    QGuiApplication.clipboard().setText(text)
    desk.composer.field.setFocus()
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    until_read(desk)
    assert desk.composer.text() == ""
    assert [state for _, state in items(desk)] == ["ready"]
    desk.composer.tray.opened.emit(desk.composer.tray.items()[0].key)
    card = desk.window.findChildren(FileCard)[-1]
    card.findChild(QPushButton, "put-in").click()
    assert desk.composer.text() == text
    assert items(desk) == []


def test_copied_files_are_attached_and_short_text_is_text(
    desk: Any, qtbot: Any, notes: Path
) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(notes))])
    QGuiApplication.clipboard().setMimeData(mime)
    desk.composer.field.paste()
    until_read(desk)
    assert items(desk) == [("notes.md", "ready")]
    QGuiApplication.clipboard().setText("short")
    desk.composer.field.paste()
    assert desk.composer.text() == "short"


def test_a_message_that_came_back_brings_its_files(desk: Any, notes: Path, failure: Any) -> None:
    drop(desk, notes)
    until_read(desk)
    desk.session.will_answer(failure("It did not work.", "model"))
    desk.ask("What is this?")
    desk.until(lambda: desk.composer.text() == "What is this?")
    assert items(desk) == [("notes.md", "ready")]
    assert desk.store.conversations() == []
    desk.composer.submit()
    desk.until_written()
    assert "Green." in desk.session.replies[-1].messages[-1].text


def test_files_wait_in_the_chat_that_they_were_attached_in(desk: Any, notes: Path) -> None:
    desk.ask("First chat")
    first = desk.chat.state.conversation_id
    drop(desk, notes)
    until_read(desk)
    desk.window.actions_["new"].trigger()
    assert items(desk) == []
    desk.ask("Second chat")
    assert "Green." not in desk.session.replies[-1].messages[-1].text
    desk.chat.open_chat(first)
    assert items(desk) == [("notes.md", "ready")]


def test_a_new_chat_that_goes_on_takes_the_files_along(desk: Any, notes: Path) -> None:
    desk.ask("First chat")
    drop(desk, notes)
    until_read(desk)
    desk.chat.continue_in_new_chat()
    assert desk.chat.state.conversation_id is None
    assert items(desk) == [("notes.md", "ready")]
