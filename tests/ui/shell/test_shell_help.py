"""The log, licences, and settings by groups, in the window."""

import logging
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog

from app import logs
from app.logs import LOG_FILE
from app.paths import Folders
from app.settings import Settings
from app.ui.licences_view import LicencesView
from app.ui.link_card import LinkCard
from app.ui.log_view import WARNINGS, LogView
from app.ui.settings_dialog import SettingsDialog

SECRET = "the zebra sings at midnight"


def opened(desk: Any, action: str, kind: type[QDialog]) -> Any:
    desk.window.show()
    desk.window.actions_[action].trigger()
    return desk.window.findChild(kind)


def write(folder: Path, *lines: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG_FILE).open("a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def test_the_log_is_seen_as_it_grows(desk: Any, folders: Folders) -> None:
    write(folders.logs, "2026-01-01 10:00:00,0 INFO main app: started")
    view = opened(desk, "log", LogView)
    assert "started" in view.text.toPlainText()
    trace = ["Traceback (most recent call last):", '  File "x.py", line 1']
    write(folders.logs, "2026-01-01 10:00:01,0 ERROR main app: it failed", *trace)
    view.look()
    assert "it failed" in view.text.toPlainText()
    view.levels.set_current(WARNINGS)
    view.levels.changed.emit(WARNINGS)
    assert "started" not in view.text.toPlainText()
    assert "Traceback" in view.text.toPlainText()
    view.close()


def test_the_report_has_versions_and_nothing_of_a_chat(desk: Any, folders: Folders) -> None:
    logs.start(folders.logs)
    try:
        logging.getLogger("app").warning("something of the app itself started")
        desk.session.will_answer(f"I know: {SECRET}")
        desk.ask(f"Do you know that {SECRET}?")
        desk.until_written()
    finally:
        logs.stop()
    view = opened(desk, "log", LogView)
    view.copy.click()
    text = QGuiApplication.clipboard().text()
    assert "PySide6" in text
    assert "started" in text
    assert SECRET not in text
    view.close()


def test_no_log_yet(desk: Any, folders: Folders) -> None:
    (folders.logs / LOG_FILE).unlink(missing_ok=True)
    view = opened(desk, "log", LogView)
    assert view.text.toPlainText() == "Nothing was logged yet."
    view.close()


def test_licences_are_listed_with_their_texts(desk: Any) -> None:
    view = opened(desk, "licences", LicencesView)
    names = [view.list.item(row).text() for row in range(view.list.count())]
    assert names[0] == "Inglenook"
    assert "MIT License" in view.text.toPlainText()
    qt = next(row for row, name in enumerate(names) if name.startswith("PySide6"))
    view.list.setCurrentRow(qt)
    assert "LESSER GENERAL PUBLIC" in view.text.toPlainText()
    for row in range(view.list.count()):
        view.list.setCurrentRow(row)
        assert view.text.toPlainText().strip()
    view.close()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("contrast", ["high_contrast"]),
        ("port", ["server_port"]),
        ("other programs", ["server_enabled", "server_port"]),
        ("dark", ["theme", "high_contrast"]),
        ("zzz", []),
    ],
)
def test_a_setting_is_found_by_any_word_of_it(desk: Any, words: str, found: list[str]) -> None:
    dialog = opened(desk, "settings", SettingsDialog)
    dialog.finder.setText(words)
    assert [name for name, row in dialog.rows.items() if not row.isHidden()] == found
    assert dialog.nothing.isHidden() == bool(found)
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not any(row.isHidden() for row in dialog.rows.values())
    assert dialog.isVisible()
    dialog.close()


def test_what_was_changed_goes_back_alone_or_all_at_once(desk: Any) -> None:
    dialog = opened(desk, "settings", SettingsDialog)
    assert not dialog.reset_all.isEnabled()
    for name, value in (("high_contrast", True), ("text_scale_percent", 120), ("threads", 2)):
        from app.ui.settings_dialog import _show_value

        _show_value(dialog._editors[name], value)
    assert desk.window.settings().high_contrast
    assert dialog._resets["threads"].isVisible()
    assert not dialog._resets["send_with"].isVisible()
    dialog._resets["threads"].click()
    assert desk.window.settings().threads == 0
    dialog.reset_all.click()
    assert dialog.offered(dialog.settings()) == dialog.offered(Settings())
    assert dialog.offered(desk.window.settings()) == dialog.offered(Settings())
    assert not dialog.reset_all.isEnabled()
    dialog.close()


def test_the_settings_fit_a_small_window(desk: Any) -> None:
    dialog = opened(desk, "settings", SettingsDialog)
    assert dialog.sizeHint().height() <= 600
    dialog.close()


def test_a_link_is_shown_whole_before_it_is_opened(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: seen.append(url.toString()))
    desk.window.show()
    desk.session.will_answer("See [the site](https://example.org/a/very/long/path?query=1).")
    desk.ask("Where?")
    address = "https://example.org/a/very/long/path?query=1"
    desk.page.transcript.link_activated.emit(address)
    card = desk.window.findChild(LinkCard)
    assert card.address.accessibleName() == address
    assert card.address.text().replace("\u200b", "") == address
    assert seen == []
    QTest.keyClick(card, Qt.Key.Key_Escape)
    desk.until(lambda: desk.window.findChild(LinkCard) is None)
    desk.page.transcript.link_activated.emit(address)
    desk.window.findChild(LinkCard).copy.click()
    assert QGuiApplication.clipboard().text() == address
    desk.until(lambda: desk.window.findChild(LinkCard) is None)
    desk.page.transcript.link_activated.emit(address)
    desk.window.findChild(LinkCard).open_button.click()
    assert seen == [address]
