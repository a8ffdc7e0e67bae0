"""Versions and single messages: changed, deleted, brought back, copied into a chat of their own."""

from typing import Any

from app.chat.messages import Stats
from app.ui.chat_items import kept_line


def act(desk: Any, key: int, name: str) -> None:
    desk.page.transcript.action.emit(key, name)
    desk.until(lambda: desk.running.job.is_idle)


def two_turns(desk: Any) -> None:
    for question, answer in (("One?", "First."), ("Two?", "Second.")):
        desk.session.will_answer(answer)
        desk.ask(question)


def test_a_changed_answer_is_a_version_and_asks_nothing(desk: Any) -> None:
    desk.session.will_answer("Blue, I think.")
    desk.ask("The sky?")
    desk.page.transcript.edited.emit(desk.keys()[-1], "Blue.")
    desk.until(lambda: desk.texts() == ["The sky?", "Blue."])
    item = desk.page.transcript.items()[-1]
    assert (item.is_edited, item.branch, item.state) == (True, (2, 2), "done")
    assert len(desk.session.replies) == 1
    act(desk, item.key, "previous")
    assert desk.texts()[-1] == "Blue, I think."
    assert not desk.page.transcript.items()[-1].is_edited


def test_the_model_takes_a_changed_answer_for_its_own(desk: Any) -> None:
    desk.ask("The sky?")
    desk.page.transcript.edited.emit(desk.keys()[-1], "Green.")
    desk.until(lambda: desk.texts()[-1] == "Green.")
    desk.ask("Why?")
    assert [m.text for m in desk.session.replies[-1].messages] == ["The sky?", "Green.", "Why?"]


def test_an_answer_is_edited_in_its_place(desk: Any, qtbot: Any) -> None:
    desk.ask("The sky?")
    key = desk.keys()[-1]
    desk.window.actions_["edit_answer"].trigger()
    widget = desk.page.transcript.live_widgets()[key]
    assert widget.editor is not None
    assert widget.editor.field.toPlainText() == "An answer."
    assert widget.body.isHidden()
    widget.editor.field.setPlainText("Mine.")
    widget.editor.field.saved.emit()
    desk.until(lambda: desk.texts()[-1] == "Mine.")


def test_a_deleted_version_shows_the_one_beside_it_and_comes_back(desk: Any) -> None:
    desk.session.will_answer("First")
    desk.ask("A poem")
    desk.session.will_answer("Second")
    act(desk, desk.keys()[-1], "regenerate")
    desk.until_written()
    act(desk, desk.keys()[-1], "delete")
    assert desk.texts() == ["A poem", "First"]
    assert desk.page.transcript.items()[-1].branch is None
    assert desk.window.undo.toast.accessibleName().startswith("Version deleted")
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.texts() == ["A poem", "Second"])
    assert desk.page.transcript.items()[-1].branch == (2, 2)


def test_a_deleted_turn_takes_what_followed_and_brings_it_back(desk: Any) -> None:
    two_turns(desk)
    act(desk, desk.keys()[2], "delete")
    assert desk.texts() == ["One?", "First."]
    desk.composer.field.setPlainText("a draft")
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.texts() == ["One?", "First.", "Two?", "Second."])
    assert desk.composer.text() == "a draft"


def test_one_stack_of_what_can_be_undone(desk: Any) -> None:
    two_turns(desk)
    shown = desk.chat.state.conversation_id
    act(desk, desk.keys()[-1], "delete")
    desk.chat.delete_chat(shown)
    desk.until(lambda: desk.titles() == [])
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.texts() == ["One?", "First.", "Two?"])
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.texts() == ["One?", "First.", "Two?", "Second."])
    assert not desk.window.actions_["undo"].isEnabled()


def test_a_chat_comes_out_of_the_bin(desk: Any) -> None:
    two_turns(desk)
    shown = desk.chat.state.conversation_id
    desk.chat.delete_chat(shown)
    desk.until(lambda: desk.titles() == [] and desk.running.job.is_idle)
    assert [record.id for record in desk.store.deleted_conversations()] == [shown]
    desk.chat.restore_chat(shown)
    desk.until(lambda: desk.titles() == ["One?"])
    assert not desk.window.actions_["undo"].isEnabled()
    assert desk.store.deleted_conversations() == []


def test_a_branch_becomes_a_chat_of_its_own(desk: Any) -> None:
    two_turns(desk)
    shown = desk.chat.state.conversation_id
    act(desk, desk.keys()[1], "branch")
    desk.until(lambda: desk.chat.state.conversation_id != shown)
    assert desk.texts() == ["One?", "First."]
    desk.ask("Elsewhere?")
    desk.chat.open_chat(shown)
    assert desk.texts() == ["One?", "First.", "Two?", "Second."]


def test_the_menu_of_a_message_offers_what_can_be_done(desk: Any, hold: Any) -> None:
    desk.session.will_answer("Half", hold)
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1] == "Half")
    desk.chat.stop()
    desk.until_written()
    question, answer = desk.keys()
    menu = desk.window.chats.messages.menu(answer)
    offered = {choice.objectName(): choice.isEnabled() for choice in menu.actions()}
    assert offered == {
        "continue": True,
        "branch": True,
        "pin": True,
        "begin-memory": True,
        "delete": True,
        "copy-plain": True,
    }
    names = [choice.objectName() for choice in desk.window.chats.messages.menu(question).actions()]
    assert names == ["branch", "pin", "begin-memory", "delete"]


def test_the_row_of_a_cut_answer_has_continue(desk: Any, hold: Any) -> None:
    desk.session.will_answer("Half", hold)
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1] == "Half")
    desk.chat.stop()
    desk.until_written()
    row = desk.page.transcript.live_widgets()[desk.keys()[-1]].action_row
    assert row.go_on.isVisible()
    desk.session.will_answer("Half", " and half")
    row.go_on.click()
    desk.until(lambda: desk.texts()[-1] == "Half and half")
    desk.until_written()
    assert not row.go_on.isVisible()


def test_what_the_cache_kept_is_said() -> None:
    stats = Stats(prompt_tokens=1240, kept_tokens=1180, new_tokens=3)
    assert kept_line(stats) == "kept 1,180 of 1,240 tokens"
    assert kept_line(Stats(prompt_tokens=12)) == ""


def bin_card(desk: Any) -> Any:
    desk.window.actions_["bin"].trigger()
    return next(j for j in desk.window.joints if type(j).__name__ == "BinJoint").card


def test_the_bin_lists_deleted_chats_and_restores_one(desk: Any) -> None:
    two_turns(desk)
    desk.chat.new_chat()
    desk.ask("Another")
    for row in list(desk.window.sidebar.chats()):
        desk.chat.delete_chat(row.id)
    desk.until(lambda: desk.titles() == [] and desk.running.job.is_idle)
    card = bin_card(desk)
    titles = [card.list.item(at).text().split("   ")[0] for at in range(card.list.count())]
    assert titles == ["One?", "Another"]
    card.restore.click()
    desk.until(lambda: desk.titles() == ["One?"])
    assert desk.texts() == ["One?", "First.", "Two?", "Second."]


def test_for_good_asks_in_the_button_and_leaves_nothing_to_undo(desk: Any) -> None:
    two_turns(desk)
    shown = desk.chat.state.conversation_id
    act(desk, desk.keys()[-1], "delete")
    desk.chat.delete_chat(shown)
    desk.until(lambda: desk.titles() == [] and desk.running.job.is_idle)
    card = bin_card(desk)
    card.for_good.click()
    assert card.list.count() == 1
    card.for_good.click()
    desk.until(lambda: desk.store.conversation(shown) is None)
    assert not desk.window.actions_["undo"].isEnabled()
    assert card.list.count() == 0
    card.close()
    assert bin_card(desk).list.count() == 0
