"""The window itself: panels and widths, menus and keys, names for everything, what is kept."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QInputMethodEvent, QKeySequence, QTextOption
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPlainTextEdit,
    QScrollBar,
    QWidget,
)

from app.paths import Folders
from app.ui import drops, theme
from app.ui.actions import ENTRIES
from app.ui.chat_list import section_of, trail_of
from app.ui.chat_state import ChatState, ModelState, short_count
from app.ui.model_menu import ModelMenu
from app.ui.panels import Arrangement, arrangement

SIZES = [(720, 480), (900, 600), (1440, 900)]


def children_of(widget: QWidget) -> Iterator[QWidget]:
    for child in widget.findChildren(QWidget):
        if child.isVisible() and child.window() is widget.window():
            yield child


# ---- panels
def test_the_rule_for_narrow_windows() -> None:
    def at(width: int, **more: Any) -> Arrangement:
        values = {"sidebar": True, "inspector": True, "newest": "sidebar", "over": None} | more
        return arrangement(width, **values)

    assert at(1180) == Arrangement(sidebar=True, inspector=True)
    assert at(1179) == Arrangement(sidebar=True)
    assert at(1000, newest="inspector") == Arrangement(inspector=True)
    assert at(1000, sidebar=False) == Arrangement(inspector=True)
    assert at(899) == Arrangement()
    assert at(899, over="inspector") == Arrangement(over="inspector")
    assert at(1440, sidebar=False, inspector=False) == Arrangement()


def test_panels_come_back_with_the_width_and_stay_closed_by_hand(desk: Any) -> None:
    window = desk.window
    window.resize(1300, 800)
    window.panels.set_shown("inspector", True)
    assert window.panels.is_shown("sidebar")
    window.resize(1000, 800)
    desk.until(lambda: not window.panels.is_shown("sidebar"))
    assert window.panels.is_shown("inspector")
    window.resize(800, 600)
    desk.until(lambda: not window.panels.is_shown("inspector"))
    window.resize(1300, 800)
    desk.until(lambda: window.panels.is_shown("sidebar"))
    assert window.panels.is_shown("inspector")
    window.actions_["sidebar"].trigger()
    window.resize(800, 600)
    window.resize(1300, 800)
    desk.until(lambda: window.panels.is_shown("inspector"))
    assert not window.panels.is_shown("sidebar")


def test_in_a_narrow_window_a_panel_lies_over_the_page(desk: Any, qtbot: Any) -> None:
    window = desk.window
    window.resize(800, 600)
    desk.until(lambda: not window.panels.is_shown("sidebar"))
    width = desk.page.width()
    window.actions_["sidebar"].trigger()
    assert window.panels.is_over()
    assert window.sidebar.isVisible()
    assert desk.page.width() == width
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.sidebar.isVisible()
    window.actions_["inspector"].trigger()
    assert window.inspector.isVisible()
    assert window.inspector.geometry().right() == window.panels.rect().right()


@pytest.mark.parametrize("size", SIZES)
def test_everything_fits_at(desk: Any, size: tuple[int, int]) -> None:
    desk.ask("A question whose answer is short")
    desk.window.resize(*size)
    desk.until(lambda: (desk.window.width(), desk.window.height()) == size)
    for widget in (desk.composer.send_button, desk.composer.model_chip, desk.page.head.inspector):
        assert widget.isVisible()
        corner = widget.mapTo(desk.window, widget.rect().bottomRight())
        assert desk.window.rect().contains(corner), widget.accessibleName()
    assert desk.page.transcript.height() > size[1] // 3
    for label in desk.window.findChildren(QLabel):
        if label.isVisible() and not label.wordWrap() and type(label).__name__ == "Label":
            assert label.width() >= label.sizeHint().width(), label.text()


def test_the_smallest_size_is_kept(desk: Any) -> None:
    assert (desk.window.minimumWidth(), desk.window.minimumHeight()) == (720, 480)
    assert desk.window.minimumSizeHint().width() <= 720


# ---- names and keys
def test_every_control_has_a_name_and_icons_have_a_tooltip(desk: Any) -> None:
    desk.ask("Name")
    desk.window.resize(1440, 900)
    desk.window.panels.set_shown("inspector", True)
    controls = (
        QAbstractButton,
        QAbstractSlider,
        QAbstractSpinBox,
        QLineEdit,
        QListView,
        QPlainTextEdit,
    )
    inner = ("qt_spinbox_lineedit",)
    nameless = []
    for widget in children_of(desk.window):
        if isinstance(widget, QScrollBar) or not isinstance(widget, controls):
            continue
        if widget.objectName() in inner or type(widget).__name__ == "QLineEditIconButton":
            continue
        if not (widget.accessibleName() or getattr(widget, "text", lambda: "")()):
            nameless.append(widget)
        if type(widget).__name__ == "IconButton" and not widget.toolTip():
            nameless.append(widget)
    assert nameless == []


def test_every_action_is_in_a_menu_and_no_two_share_a_key(desk: Any) -> None:
    window = desk.window
    in_menus = {
        action.objectName()
        for menu in window.menuBar().findChildren(QMenu)
        for action in menu.actions()
        if not action.isSeparator()
    }
    assert in_menus == {entry.name for entry in ENTRIES}
    keys = [key for entry in ENTRIES for key in entry.keys]
    assert len(keys) == len(set(keys))
    assert all(QKeySequence(key).toString() for key in keys)
    assert {action.text() for action in window.actions_.popup.actions()} == {
        action.text() for action in window.menuBar().actions()
    }


def test_each_action_is_joined_to_something(desk: Any) -> None:
    for entry in ENTRIES:
        action = desk.window.actions_[entry.name]
        assert action.receivers("2triggered(bool)") > 0, entry.name


@pytest.mark.parametrize("hidden", [True, False])
def test_shortcuts_work_whether_or_not_the_menu_bar_is_seen(
    desk: Any, qtbot: Any, hidden: bool
) -> None:
    desk.window.menuBar().setVisible(not hidden)
    desk.window.activateWindow()
    desk.composer.field.setFocus()
    qtbot.waitUntil(lambda: desk.window.isActiveWindow())
    shown = desk.window.panels.is_shown("inspector")
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_I, Qt.KeyboardModifier.ControlModifier)
    assert desk.window.panels.is_shown("inspector") is not shown


def test_escape_stops_and_never_clears_the_draft(desk: Any, qtbot: Any, hold: Any) -> None:
    desk.session.will_answer("a", hold)
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["a"])
    desk.composer.field.setPlainText("a draft")
    desk.composer.field.setFocus()
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_Escape)
    assert desk.composer.send_button.mode == "stopping"
    desk.until_written()
    assert desk.composer.text() == "a draft"
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_Escape)
    assert desk.composer.text() == "a draft"
    assert desk.window.isVisible()


def test_f6_goes_round_the_areas(desk: Any, qtbot: Any) -> None:
    desk.ask("One")
    desk.window.resize(1440, 900)
    desk.window.panels.set_shown("inspector", True)
    desk.window.activateWindow()
    qtbot.waitUntil(lambda: desk.window.isActiveWindow())
    desk.composer.field.setFocus()
    areas = [desk.window.inspector, desk.window.sidebar, desk.page.transcript, desk.composer]
    for area in areas:
        desk.window.actions_["next_area"].trigger()
        focused = desk.window.focusWidget()
        assert focused is area or area.isAncestorOf(focused), area.objectName()
    desk.window.actions_["previous_area"].trigger()
    assert desk.window.focusWidget() is desk.page.transcript


def test_letters_typed_elsewhere_go_to_the_message(desk: Any, qtbot: Any) -> None:
    desk.window.setFocus()
    qtbot.keyClicks(desk.window, "hello")
    assert desk.composer.text() == "hello"


# ---- the field
def test_enter_sends_and_shift_enter_breaks_the_line(desk: Any, qtbot: Any) -> None:
    field = desk.composer.field
    qtbot.keyClicks(field, "one")
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(field, "two")
    assert field.toPlainText() == "one\ntwo"
    qtbot.keyClick(field, Qt.Key.Key_Return)
    desk.until_written()
    assert desk.texts()[0] == "one\ntwo"


def test_enter_belongs_to_an_input_method_that_composes(desk: Any, qtbot: Any) -> None:
    field = desk.composer.field
    field.setPlainText("tea ")
    QApplication.sendEvent(field, QInputMethodEvent("cha", []))
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not desk.chat.state.is_writing
    done = QInputMethodEvent("", [])
    done.setCommitString("\u8336")
    QApplication.sendEvent(field, done)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    desk.until_written()
    assert "\u8336" in desk.texts()[0]


def test_the_field_grows_to_ten_lines(desk: Any) -> None:
    desk.window.resize(1200, 900)
    field = desk.composer.field
    heights = []
    for lines in (1, 2, 5, 10, 30):
        field.setPlainText("\n".join("line" for _ in range(lines)))
        QApplication.processEvents()
        heights.append(field.height())
    assert heights[0] < heights[1] < heights[2] < heights[3]
    assert heights[3] == heights[4]


def test_up_in_the_empty_field_edits_the_last_message(
    desk: Any, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited: list[int] = []
    monkeypatch.setattr(desk.page.transcript, "edit", edited.append)
    desk.ask("Edit me")
    desk.composer.field.setPlainText("x")
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_Up)
    assert edited == []
    desk.composer.field.clear()
    qtbot.keyClick(desk.composer.field, Qt.Key.Key_Up)
    assert edited == [desk.keys()[0]]


def test_an_idea_begins_a_message(desk: Any) -> None:
    desk.page.first_run._ideas[0].click()
    assert desk.composer.text().startswith("Summarise")


# ---- dropping
def drop(desk: Any, paths: list[str]) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths])
    copy, left, none = (
        Qt.DropAction.CopyAction,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    enter = QDragEnterEvent(QPoint(300, 300), copy, data, left, none)
    QApplication.sendEvent(desk.window, enter)
    assert enter.isAccepted()
    assert desk.window.drops.veil.isVisible()
    dropped = QDropEvent(QPointF(300, 300), copy, data, left, none, QEvent.Type.Drop)
    QApplication.sendEvent(desk.window, dropped)
    assert not desk.window.drops.veil.isVisible()
    return dropped.isAccepted()


def test_a_model_dropped_on_the_window_is_opened(
    desk: Any, folders: Folders, tmp_path: Any
) -> None:
    import shutil

    other = tmp_path / "dropped"
    shutil.copytree(folders.models / "tiny-llama", other)
    assert drop(desk, [str(other)])
    desk.until(lambda: desk.chat.state.model.name == "dropped")
    desk.until_ready()


def test_what_is_no_model_is_refused_with_the_reason(desk: Any, tmp_path: Any) -> None:
    note, model = tmp_path / "notes.txt", tmp_path / "m.gguf"
    note.write_text("not a model")
    drop(desk, [str(note)])
    assert desk.chat.state.model.importing is None
    assert drops.verdict([str(note)]).path is None
    found = drops.verdict([str(note), str(model)])
    assert (found.path, found.files, "single model" in found.text) == (None, (), True)
    (tmp_path / "folder").mkdir()
    assert "genai_config.json" in drops.verdict([str(tmp_path / "folder")]).text


# ---- models
def test_the_model_menu_lists_and_loads(desk: Any, folders: Folders, qtbot: Any) -> None:
    import shutil

    shutil.copytree(folders.models / "tiny-llama", folders.models / "second")
    desk.window.actions_["choose_model"].trigger()
    menu = desk.window.findChild(ModelMenu)
    assert menu.isVisible()
    assert [entry.name for entry in desk.models.entries()] == ["second", "tiny-llama"]
    qtbot.keyClicks(menu.finder, "sec")
    qtbot.keyClick(menu.finder, Qt.Key.Key_Return)
    desk.until(lambda: desk.chat.state.model.name == "second")
    desk.until_ready()
    desk.until(lambda: desk.window.findChild(ModelMenu) is None)
    assert desk.window.settings().last_model == str(folders.models / "second")


def test_a_message_sent_while_the_model_loads_waits_for_it(
    open_desk: Callable[..., Any], folders: Folders, session: Any, hold: Any
) -> None:
    session.while_loading = hold
    desk = open_desk(folders, session, wait=False)
    desk.until(hold.is_reached.is_set)
    desk.say("Early")
    desk.until(lambda: desk.page.transcript.items()[-1:] and desk.keys()[-1] > 0)
    assert desk.page.transcript.items()[-1].status == "Loading tiny-llama"
    hold.release()
    desk.until_ready()
    desk.until_written()
    assert desk.texts() == ["Early", "An answer."]


def test_stopping_while_the_model_loads_does_not_wait_for_it(
    open_desk: Callable[..., Any], folders: Folders, session: Any, hold: Any
) -> None:
    session.while_loading = hold
    desk = open_desk(folders, session, wait=False)
    desk.until(hold.is_reached.is_set)
    desk.say("Never mind")
    desk.until(lambda: desk.keys() and desk.keys()[-1] > 0)
    desk.chat.stop()
    desk.until(lambda: desk.composer.text() == "Never mind")
    assert not desk.chat.state.is_writing
    hold.release()
    desk.until_ready()
    assert desk.page.is_empty()


# ---- looks and what is kept
def test_the_theme_follows_the_setting(desk: Any) -> None:
    from dataclasses import replace

    for choice, is_dark in (("dark", True), ("light", False)):
        desk.window.change_settings(replace(desk.window.settings(), theme=choice))
        assert theme.is_dark() is is_dark
    saved = json.loads(desk.running._folders.settings.read_text())
    assert saved["theme"] == "light"


def test_the_text_size_goes_in_steps_and_stays_within_limits(desk: Any) -> None:
    for _ in range(20):
        desk.window.actions_["larger"].trigger()
    assert desk.window.settings().text_scale_percent == 200
    desk.window.actions_["normal"].trigger()
    assert desk.window.settings().text_scale_percent == 100
    desk.window.actions_["smaller"].trigger()
    assert desk.window.settings().text_scale_percent == 90
    desk.window.actions_["normal"].trigger()


def test_the_settings_dialog_has_a_row_for_each_setting(desk: Any) -> None:
    from dataclasses import fields

    from app.settings import Settings
    from app.ui.settings_dialog import SettingsDialog

    desk.window.actions_["settings"].trigger()
    dialog = desk.window.findChild(SettingsDialog)
    names = [f.name for f in fields(Settings) if f.metadata.get("label")]
    for name in names:
        editor = dialog.findChild(QWidget, name)
        assert editor is not None, name
        assert editor.accessibleName()
    choice = dialog.findChild(QWidget, "theme")
    choice.choose("dark")
    assert desk.window.settings().theme == "dark"
    assert theme.is_dark()
    choice.choose("system")
    dialog.accept()


def test_size_and_panels_are_remembered(open_desk: Callable[..., Any], folders: Folders) -> None:
    desk = open_desk(folders)
    desk.window.resize(1250, 700)
    desk.window.actions_["inspector"].trigger()
    desk.window.actions_["sidebar"].trigger()
    desk.window.resize(780, 700)  # the offscreen screen is no larger than 800
    desk.window.close_unasked()
    desk.running.shut_down()
    saved = json.loads(folders.settings.read_text())
    assert base64.b64decode(saved["window_geometry"])
    again = open_desk(folders)
    assert (again.window.width(), again.window.height()) == (780, 700)
    again.window.resize(1250, 700)
    assert again.window.panels.is_shown("inspector")
    assert not again.window.panels.is_shown("sidebar")


# ---- pure parts
def test_dates_of_the_list() -> None:
    from datetime import date, datetime

    today = date(2026, 11, 30)
    cases = {
        date(2026, 12, 1): "Today",
        today: "Today",
        date(2026, 11, 29): "Yesterday",
        date(2026, 11, 23): "Previous 7 days",
        date(2026, 11, 2): "Previous 30 days",
        date(2026, 5, 1): "May",
        date(2025, 12, 24): "December 2025",
    }
    assert {day: section_of(day, today) for day in cases} == cases
    now = datetime(2026, 11, 30, 12)
    assert trail_of(datetime(2026, 11, 30, 9, 5), now) == "09:05"
    assert trail_of(datetime(2026, 11, 28, 9, 5), now) == "Sat"
    assert trail_of(datetime(2026, 11, 2), now) == "2 Nov"
    assert trail_of(datetime(2025, 3, 2), now) == "Mar 2025"


def test_figures_of_the_meter() -> None:
    assert [short_count(n) for n in (0, 999, 2148, 8192, 32768, 131072)] == [
        "0",
        "999",
        "2.1k",
        "8k",
        "32k",
        "128k",
    ]


def test_one_value_decides_what_the_send_button_does() -> None:
    ready = ChatState(model=ModelState(phase="ready", name="M"))
    loading = ChatState(model=ModelState(phase="loading", name="M"))
    none = ChatState()
    assert ready.send_mode(has_text=True) == "send"
    assert ready.send_mode(has_text=False) == "off"
    assert loading.send_mode(has_text=True) == "send"
    assert none.send_mode(has_text=True) == "off"
    writing = ChatState(model=ready.model, writing="here")
    assert writing.send_mode(has_text=True) == "stop"
    assert ChatState(writing="here", is_stopping=True).send_mode(has_text=True) == "stopping"
    assert ChatState(model=ready.model, is_store_open=False).send_mode(has_text=True) == "off"


def test_undo_in_the_empty_field_brings_a_deleted_chat_back(desk: Any, qtbot: Any) -> None:
    """The field has the focus after deleting; what is typed there is undone first."""
    desk.ask("Keep me")
    field = desk.composer.field
    desk.window.activateWindow()
    field.setFocus()
    desk.window.actions_["delete"].trigger()
    desk.until(lambda: desk.titles() == [])
    qtbot.keyClicks(field, "typed")
    qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert desk.titles() == []
    assert desk.composer.text() == ""
    qtbot.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    desk.until(lambda: desk.titles() == ["Keep me"])


def test_a_word_of_a_megabyte_does_not_hold_up_the_field(desk: Any) -> None:
    """It took minutes; here the run's own time limit would tell."""
    word = "x" * 1_000_000
    desk.composer.insert_text(word)
    assert desk.composer.text() == word
    assert desk.composer.field.wordWrapMode() == QTextOption.WrapMode.WrapAnywhere
    desk.composer.set_text("short words again")
    assert desk.composer.field.wordWrapMode() != QTextOption.WrapMode.WrapAnywhere
