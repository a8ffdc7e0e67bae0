"""The page of all models: what is listed, used, renamed, removed, and told."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QFile, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.paths import Folders
from app.ui.chat_state import ImportState


def page(desk: Any) -> Any:
    return joint(desk).page


def joint(desk: Any) -> Any:
    return next(each for each in desk.window.joints if type(each).__name__ == "LibraryJoint")


def opened(desk: Any) -> Any:
    desk.window.show()
    desk.window.actions_["library"].trigger()
    assert desk.window.center.currentWidget() is page(desk)
    return page(desk)


@pytest.fixture
def two(folders: Folders, data_folder: Path) -> tuple[Path, Path]:
    """Another model, and a folder that is none."""
    other, broken = folders.models / "Letters", folders.models / "cut-export"
    shutil.copytree(data_folder / "tiny-llama-gqa", other)
    broken.mkdir(parents=True)
    shutil.copy(data_folder / "tiny-llama" / "genai_config.json", broken)
    return other, broken


def test_all_models_are_listed_with_what_they_are(desk: Any, two: Any) -> None:
    (two[0] / "import.json").write_text(json.dumps({"source": "letters.gguf"}))
    shown = opened(desk)
    assert [row.entry.name for row in shown.rows] == ["Letters", "tiny-llama"]
    letters, current = (row.entry for row in shown.rows)
    assert (letters.family, letters.weights, letters.context) == ("Llama", "FP32", "256")
    assert letters.source == "Text, from letters.gguf"
    assert letters.fit == "Fits"
    assert current.is_current
    assert not shown.rows[1].use.isVisible()
    assert "2 models" in shown.total.text()
    assert len(shown.broken) == 1
    assert "tokenizer.json" in shown.broken[0].accessibleName()
    assert "free" in shown.device_words.text()


def test_another_model_is_used_and_the_chat_stays(desk: Any, two: Any) -> None:
    desk.ask("Hello")
    shown = opened(desk)
    shown.rows[0].use.click()
    desk.until(lambda: desk.chat.state.model.path == str(two[0]))
    desk.until(lambda: shown.rows[0].entry.is_current)
    assert not shown.rows[1].entry.is_current
    QTest.keyClick(shown, Qt.Key.Key_Escape)
    assert desk.window.center.currentWidget() is desk.page
    assert desk.texts()[0] == "Hello"


def test_one_field_finds_by_name_and_facts(desk: Any, two: Any) -> None:
    shown = opened(desk)
    both = ["Letters", "tiny-llama"]
    for words, found in (("lett", ["Letters"]), ("llama fp32", both), ("zz", [])):
        shown.finder.setText(words)
        assert [row.entry.name for row in shown.rows if not row.isHidden()] == found
    assert "zz" in shown.nothing.text()
    QTest.keyClick(shown, Qt.Key.Key_Escape)
    assert shown.finder.text() == ""
    assert shown.broken[0].isVisible()


def test_a_model_is_renamed_in_its_place(desk: Any, two: Any) -> None:
    shown = opened(desk)
    row = shown.rows[0]
    row.begin_rename()
    row.field.setText("Old letters")
    QTest.keyClick(row.field, Qt.Key.Key_Return)
    assert [each.entry.name for each in shown.rows] == ["Old letters", "tiny-llama"]
    assert (two[0].parent / "Old letters").is_dir()
    row = shown.rows[0]
    row.begin_rename()
    row.field.setText("tiny-llama")
    QTest.keyClick(row.field, Qt.Key.Key_Return)
    assert "already" in shown.problem.text()
    assert [each.entry.name for each in shown.rows] == ["Old letters", "tiny-llama"]
    row = shown.rows[0]
    row.begin_rename()
    row.field.setText("Never")
    QTest.keyClick(row.field, Qt.Key.Key_Escape)
    assert row.field.isHidden()
    assert [each.entry.name for each in shown.rows] == ["Old letters", "tiny-llama"]


def test_removed_ones_go_to_the_wastebasket_but_for_the_one_in_use(
    desk: Any, two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[str] = []

    def trash(path: str) -> bool:
        gone.append(Path(path).name)
        shutil.rmtree(path)
        return True

    monkeypatch.setattr(QFile, "moveToTrash", trash)
    shown = opened(desk)
    actions = {action.text(): action for action in shown.rows[1].menu().actions()}
    assert not actions["Move to the wastebasket (not while it is in use)"].isEnabled()
    shown.acted.emit(shown.rows[1].entry.path, "remove")
    assert "in use" in shown.problem.text()
    shown.acted.emit(str(two[0].parent.parent), "remove")  # no model's folder: left alone
    next(a for a in shown.rows[0].menu().actions() if "wastebasket" in a.text()).trigger()
    shown.broken[0].remove.click()
    assert gone == ["Letters", "cut-export"]
    assert [row.entry.name for row in shown.rows] == ["tiny-llama"]
    assert shown.broken == []


def test_where_there_is_no_wastebasket_it_says_so(
    desk: Any, two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFile, "moveToTrash", lambda path: False)
    shown = opened(desk)
    shown.acted.emit(str(two[0]), "remove")
    assert "by hand" in shown.problem.text()
    assert two[0].is_dir()


def test_folders_and_licences_are_shown(
    desk: Any, two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (two[0] / "LICENSE").write_text("MIT")
    seen: list[str] = []
    monkeypatch.setattr(
        QDesktopServices, "openUrl", lambda url: seen.append(Path(url.toLocalFile()).name)
    )
    shown = opened(desk)
    for action in shown.rows[0].menu().actions():
        if action.text().startswith("Show"):
            action.trigger()
    shown.open_folder.click()
    assert seen == ["Letters", "LICENSE", "models"]
    assert not any("licence" in a.text() for a in shown.rows[1].menu().actions())


def test_a_folder_that_was_mended_is_a_model_after_another_look(
    desk: Any, two: Any, data_folder: Path
) -> None:
    shown = opened(desk)
    for file in (data_folder / "tiny-llama").iterdir():
        shutil.copy(file, two[1])
    shown.broken[0].check.click()
    assert [row.entry.name for row in shown.rows] == ["cut-export", "Letters", "tiny-llama"]
    assert shown.broken == []


def test_an_import_is_a_row_that_can_be_cancelled(desk: Any) -> None:
    shown = opened(desk)
    shown.set_importing(ImportState("big.gguf", "Converting big.gguf", 0.42))
    assert shown.importing.isVisible()
    assert shown.importing.words.text() == "Converting big.gguf, 42%"
    assert not shown.import_button.isEnabled()
    shown.set_importing(None)
    assert not shown.importing.isVisible()


def test_no_column_is_cut_in_a_small_window(desk: Any, two: Any) -> None:
    shown = opened(desk)
    for width, is_wide in ((1440, True), (900, False)):
        desk.window.resize(width, 600)
        row = shown.rows[0]
        desk.until(lambda row=row, is_wide=is_wide: row.wide[0].isVisible() == is_wide)
        assert all(cell.isVisible() == is_wide for cell in row.wide)
        desk.until(
            lambda row=row: row.more.mapTo(shown, row.more.rect().topRight()).x() <= shown.width()
        )
    assert row.second.text() == "FP32, 256 context"


def test_everything_is_named_and_reached_by_keys(desk: Any, two: Any) -> None:
    shown = opened(desk)
    reached: set[QWidget] = set()
    at = shown.finder
    at.setFocus()
    for _ in range(60):
        focused = QApplication.focusWidget()
        if focused is None or focused in reached:
            break
        reached.add(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    wanted = [
        shown.finder, shown.rows[0].use, shown.rows[0].more, shown.rows[1].more,
        shown.broken[0].check, shown.broken[0].remove,
    ]  # fmt: skip
    assert all(widget in reached for widget in wanted)
    assert all(widget.accessibleName() for widget in wanted)
