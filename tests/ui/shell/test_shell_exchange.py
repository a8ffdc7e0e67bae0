"""Chats that are exported and imported in the window: by menus, dialogs and drops."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pypdf
import pytest
from PySide6.QtWidgets import QFileDialog

from app.store.store import is_temporary
from app.ui.drops import verdict

WORDS = "Grüße an die **Werkstatt**"


def joint(desk: Any) -> Any:
    return next(each for each in desk.window.joints if type(each).__name__ == "ExchangeJoint")


def until_idle(desk: Any) -> None:
    desk.until(lambda: not desk.chat.exchanging.is_busy)
    desk.until(lambda: desk.running.job.is_idle)


def foreign(path: Path, *titles: str) -> str:
    """An export of Open WebUI."""
    chats = [
        {"title": title, "created_at": at, "chat": {"messages": [
            {"role": "user", "content": f"Say {title}"},
            {"role": "assistant", "content": title}]}}
        for at, title in enumerate(titles, 1)
    ]  # fmt: skip
    path.write_text(json.dumps(chats), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("ending", ["md", "html", "pdf", "json"])
def test_a_chat_goes_into_a_file(desk: Any, tmp_path: Path, ending: str) -> None:
    desk.session.will_answer("Die Lampe ist fertig.\n\n```python\nx = 1\n```\n")
    desk.ask(WORDS)
    path = tmp_path / f"a.{ending}"
    joint(desk).export(desk.chat.shown, str(path))
    until_idle(desk)
    desk.until(path.exists)
    data = path.read_bytes()
    text = data.decode("utf-8") if ending != "pdf" else ""
    if ending == "pdf":
        pages = pypdf.PdfReader(BytesIO(data)).pages
        text = " ".join(page.extract_text() for page in pages)
    assert "Lampe" in text
    assert "Werkstatt" in text
    assert desk.chat.notice.title == "Exported"
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_long_chat_fills_pages_with_numbers(desk: Any, tmp_path: Path) -> None:
    said = "\n\n".join(f"Paragraph {n} of the answer about the sea." for n in range(120))
    desk.session.will_answer(said)
    desk.ask("Tell me of the sea")
    path = tmp_path / "a.pdf"
    joint(desk).export(desk.chat.shown, str(path))
    until_idle(desk)
    desk.until(path.exists)
    pages = pypdf.PdfReader(path).pages
    assert len(pages) > 2
    texts = [" ".join(page.extract_text().split()) for page in pages]
    assert all(str(number) in text for number, text in enumerate(texts, 1))
    found = " ".join(texts)
    assert all(f"Paragraph {n} " in found for n in range(120))


def test_where_it_goes_is_asked_with_a_name_from_the_title(desk: Any, tmp_path: Path) -> None:
    desk.ask("What? A/B: test")
    desk.window.actions_["export_chat"].trigger()
    dialog = desk.window.findChild(QFileDialog, "export-dialog")
    assert dialog.selectedFiles()[0].endswith("What A B test.md")
    dialog.filterSelected.emit("PDF (*.pdf)")
    assert dialog.defaultSuffix() == "pdf"
    dialog.fileSelected.emit(str(tmp_path / "x.md"))
    dialog.reject()
    until_idle(desk)
    desk.until((tmp_path / "x.md").exists)


def test_all_chats_go_out_and_come_back(desk: Any, tmp_path: Path) -> None:
    for words in ("One", "Two", "Three"):
        desk.ask(words)
        desk.window.actions_["new"].trigger()
    desk.window.actions_["temporary"].trigger()
    desk.until(lambda: desk.chat.state.is_temporary)
    desk.ask("In secret")
    path = tmp_path / "all.json"
    joint(desk).export_all(str(path))
    until_idle(desk)
    desk.until(path.exists)
    document = json.loads(path.read_text("utf-8"))
    assert sorted(chat["title"] for chat in document["chats"]) == ["One", "Three", "Two"]
    kept = [row.id for row in desk.window.sidebar.chats() if not is_temporary(row.id)]
    desk.chat.delete_chats(kept[:2])
    desk.until(lambda: desk.running.job.is_idle)
    joint(desk).import_from(str(path))
    until_idle(desk)
    desk.until(lambda: desk.chat.notice is not None and "imported" in desk.chat.notice.text)
    assert desk.chat.notice.text == "2 chats imported, 1 was there already."
    assert sorted(title for title in desk.titles() if title != "In secret") == [
        "One", "Three", "Two",
    ]  # fmt: skip


def test_an_import_is_listed_told_and_taken_back(desk: Any, tmp_path: Path) -> None:
    desk.ask("Mine")
    path = foreign(tmp_path / "export.json", "Boats", "Trains")
    desk.window.drops.chats_dropped.emit(path)
    until_idle(desk)
    desk.until(lambda: sorted(desk.titles()) == ["Boats", "Mine", "Trains"])
    assert desk.chat.notice.text == "2 chats imported."
    boats = next(row.id for row in desk.window.sidebar.chats() if row.title == "Boats")
    desk.chat.open_chat(boats)
    assert desk.texts() == ["Say Boats", "Boats"]
    desk.session.will_answer("They float")
    desk.ask("Why?")
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.titles() == ["Mine"])
    assert desk.chat.shown is None
    store = desk.chat.exchanging._screen.store
    assert sorted(each.title for each in store.deleted_conversations()) == ["Boats", "Trains"]
    assert store.messages(boats)[-1].parts[0].text == "They float"  # what was new is not lost


def test_a_file_that_holds_none_is_a_sentence(desk: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    joint(desk).import_from(str(path))
    until_idle(desk)
    desk.until(lambda: desk.chat.notice is not None)
    assert desk.chat.notice.title == "No chats were imported"
    assert "ChatGPT" in desk.chat.notice.text
    joint(desk).export(99_999, str(tmp_path / "none.md"))
    until_idle(desk)
    desk.until(lambda: desk.chat.notice.title == "The chat was not exported")


def test_a_folder_that_takes_no_files_is_a_sentence(desk: Any, tmp_path: Path) -> None:
    desk.ask("Something")
    for ending in ("md", "pdf"):
        desk.chat.show_notice(None)
        joint(desk).export(desk.chat.shown, str(tmp_path / "no folder" / f"x.{ending}"))
        until_idle(desk)
        desk.until(lambda: desk.chat.notice is not None)
        assert desk.chat.notice.title == "The chat was not exported"


def test_options_of_no_kind_in_an_imported_chat_hurt_nothing(desk: Any, tmp_path: Path) -> None:
    document = {"format": "inglenook-chats", "version": 1, "chats": [{
        "title": "Odd", "created_at": 1, "options": {
            "temperature": "hot", "banned": 7, "beams": [], "longest_answer": -5, "x": None,
            "stop_strings": {"a": 1}, "answer_format": 3, "overflow": "??", "seed": 1e99},
        "messages": [{"id": 1, "role": "user", "parts": [{"kind": "text", "text": "Hi"}],
                      "details": {"stats": 7, "error": [], "model": {}}}]}]}  # fmt: skip
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    joint(desk).import_from(str(path))
    until_idle(desk)
    desk.until(lambda: desk.titles() == ["Odd"])
    desk.chat.open_chat(desk.window.sidebar.chats()[0].id)
    assert desk.texts() == ["Hi"]
    desk.session.will_answer("Hello")
    desk.ask("And now?")
    assert desk.texts()[-1] == "Hello"


def test_a_dropped_file_says_what_it_would_do(tmp_path: Path) -> None:
    chats = foreign(tmp_path / "export.json", "Boats")
    assert verdict([chats]).is_chats is False  # no sign of chats that are sure: it is attached
    ours = tmp_path / "ours.json"
    ours.write_text('{"format": "inglenook-chats", "version": 1, "chats": []}')
    assert verdict([str(ours)]).is_chats
    other = tmp_path / "data.json"
    other.write_text('{"a": 1}')
    assert verdict([str(other)]).files == (str(other),)
