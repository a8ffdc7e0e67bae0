"""Ctrl+F finds in the chat on the page; F3 goes on, Esc closes."""

from typing import Any

from PySide6.QtCore import Qt


def test_words_are_found_by_keys(desk: Any, qtbot: Any) -> None:
    assert not desk.window.actions_["find"].isEnabled()
    desk.ask("Recipes with kelp")
    desk.window.actions_["find"].trigger()
    bar = desk.window.page.find_bar
    assert bar.isVisible()
    assert bar.field.hasFocus()
    qtbot.keyClicks(bar.field, "kelp")
    assert bar.count.text().startswith("1 of ")
    desk.window.actions_["find_next"].trigger()
    qtbot.keyClick(bar.field, Qt.Key.Key_Escape)
    assert bar.isHidden()
    assert desk.composer.field.hasFocus()
