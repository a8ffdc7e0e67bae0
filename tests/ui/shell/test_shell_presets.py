"""Presets of one's own, from the menu in the options."""

from typing import Any

from PySide6.QtWidgets import QInputDialog, QMenu

from app.chat.messages import Options


def joint(desk: Any) -> Any:
    return next(each for each in desk.window.joints if type(each).__name__ == "PresetsJoint")


def choices(menu: QMenu) -> dict[str, Any]:
    return {action.text(): action for action in menu.actions() if action.text()}


def set_options(desk: Any, **values: Any) -> None:
    options = desk.window.inspector.options
    options.apply(Options(**values))
    desk.until(lambda: desk.chat.options == options.options())


def test_options_are_saved_chosen_in_another_chat_and_deleted(desk: Any) -> None:
    desk.ask("First")
    set_options(desk, temperature=0.33, system_prompt="Be brief.")
    choices(joint(desk).menu())["Save these options as a preset…"].trigger()
    dialog = desk.window.findChild(QInputDialog, "preset-name")
    dialog.textValueSelected.emit("Terse & dry")
    dialog.reject()
    shown = choices(joint(desk).menu())
    assert shown["Terse && dry"].isChecked()
    desk.window.actions_["new"].trigger()
    assert desk.chat.options.temperature is None
    assert not choices(joint(desk).menu())["Terse && dry"].isChecked()
    choices(joint(desk).menu())["Terse && dry"].trigger()
    desk.until(lambda: desk.chat.options.temperature == 0.33)
    assert desk.chat.options.system_prompt == "Be brief."
    assert desk.window.inspector.options.prompt.toPlainText() == "Be brief."
    deleting = choices(joint(desk).menu())["Delete"].menu()
    choices(deleting)["Terse && dry"].trigger()
    assert "Terse && dry" not in choices(joint(desk).menu())
    assert desk.chat.options.temperature == 0.33  # the chat keeps what it was given


def test_a_seed_of_the_chat_stays(desk: Any) -> None:
    desk.ask("First")
    joint(desk).save("Plain")
    desk.chat.change_options(Options(seed=11, temperature=1.5))
    desk.window.inspector.set_options(desk.chat.options)
    choices(joint(desk).menu())["Plain"].trigger()
    desk.until(lambda: desk.chat.options == Options(seed=11))


def test_a_damaged_file_is_told_and_a_name_is_needed(desk: Any) -> None:
    joint(desk).folder.mkdir(parents=True)
    (joint(desk).folder / "bad.json").write_text("{")
    shown = choices(joint(desk).menu())
    assert not shown["1 of the files could not be read"].isEnabled()
    joint(desk).save("   ")
    assert "needs a name" in desk.chat.notice.text


def test_the_button_is_named_and_reached_by_keys(desk: Any) -> None:
    button = desk.window.inspector.options.own_presets
    assert button.text() == "Your presets…"
    assert button.focusPolicy()


def test_the_options_are_no_wider_than_their_panel(desk: Any) -> None:
    desk.window.show()
    desk.window.resize(1440, 900)
    desk.window.actions_["options"].trigger()
    inspector = desk.window.inspector
    desk.until(lambda: inspector.isVisible())
    assert inspector.options.minimumSizeHint().width() <= 330
    desk.until(lambda: inspector.options.width() <= inspector.width())
