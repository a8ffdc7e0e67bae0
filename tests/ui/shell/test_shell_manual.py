"""The manual opens inside the app, and what it says of keys is so."""

import re
from typing import Any

from PySide6.QtGui import QKeySequence

from app import paths
from app.ui.actions import FIXED_KEYS
from app.ui.manual import Manual


def test_it_opens_in_a_window_and_all_of_it_is_there(desk: Any, qtbot: Any) -> None:
    desk.window.actions_["manual"].trigger()
    manual = desk.window.findChildren(Manual)[-1]
    desk.until(manual.isVisible)
    text = manual.text.toPlainText()
    source = (paths.resources() / "manual.md").read_text(encoding="utf-8")
    for heading in re.findall(r"^#+ (.+)$", source, re.MULTILINE):
        assert heading in text
    assert "**" not in text
    manual.resize(420, 400)
    desk.until(lambda: manual.text.width() <= 420)
    manual.close()


def test_every_key_it_names_does_something(desk: Any) -> None:
    source = (paths.resources() / "manual.md").read_text(encoding="utf-8")
    bound = {
        key.toString(QKeySequence.SequenceFormat.PortableText)
        for name, *_ in desk.window.actions_.listed()
        for key in desk.window.actions_[name].shortcuts()
    }
    fixed = {"Shift+Enter", "Up", *(keys for _, keys in FIXED_KEYS)}
    named = set(re.findall(r"\b(?:(?:Ctrl|Shift|Alt)\+)+(?:\w+|[/;])|\bF\d+\b", source))
    assert len(named) > 12
    assert named - bound - fixed == set()


def test_it_names_the_menus_as_they_are(desk: Any) -> None:
    source = (paths.resources() / "manual.md").read_text(encoding="utf-8")
    listed = {(menu, words) for _, menu, words, _ in desk.window.actions_.listed()}
    for menu, words in (
        ("Chat", "Deleted chats"),
        ("Model", "Local server"),
        ("Help", "Show the data folder"),
    ):
        assert f"{menu}, {words}" in source
        assert (menu, words) in listed
