"""What a person does with chats: through the real window, store and loop, with a scripted model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLineEdit

from app.chat.messages import Options, Stats
from app.paths import Folders
from app.ui.chat_items import stats_line
from app.ui.made_card import MadeCard


def test_a_question_is_stored_before_the_model_is_asked(desk: Any) -> None:
    seen: list[list[tuple[str, str]]] = []
    original = desk.session._reply

    def looking(request: Any, stop: Any) -> Any:
        conversation = desk.store.conversations()[0]
        records = desk.store.messages(conversation.id)
        seen.append([(r.role, str(r.state)) for r in records])
        yield from original(request, stop)

    desk.session._reply = looking
    desk.session.will_answer("Paris", ".")
    desk.ask("What is the capital of France?")
    assert seen == [[("user", "done"), ("assistant", "writing")]]
    assert desk.stored() == [
        ("user", "What is the capital of France?", "done"),
        ("assistant", "Paris.", "done"),
    ]
    assert desk.texts() == ["What is the capital of France?", "Paris."]
    assert desk.titles() == ["What is the capital of France?"]
    assert desk.composer.text() == ""


def test_the_tokens_and_figures_of_an_answer_are_kept(desk: Any) -> None:
    desk.session.will_answer("a", "b", "c")
    desk.ask("Go")
    answer = desk.store.messages(desk.chat.state.conversation_id)[1]
    assert answer.token_ids == (0, 1, 2)
    assert answer.details["stats"]["new_tokens"] == 3
    assert answer.model == "tiny-llama"
    assert "3 tokens" in desk.page.transcript.items()[1].stats
    assert desk.chat.state.context_used == 4


def test_the_model_hears_the_whole_branch(desk: Any) -> None:
    desk.session.will_answer("Hello.")
    desk.ask("Hi")
    desk.session.will_answer("Fine.")
    desk.ask("How are you?")
    heard = [(m.role, m.text) for m in desk.session.replies[-1].messages]
    assert heard == [("user", "Hi"), ("assistant", "Hello."), ("user", "How are you?")]


def test_thoughts_are_apart_and_stored(desk: Any, thought: Any) -> None:
    desk.session.will_answer(thought("Let me see. "), thought("Yes."), "42")
    desk.ask("The answer?")
    parts = desk.store.messages(desk.chat.state.conversation_id)[1].parts
    assert [(part.kind, part.text) for part in parts] == [
        ("thought", "Let me see. Yes."),
        ("text", "42"),
    ]
    item = desk.page.transcript.items()[1]
    assert (item.thought, item.text) == ("Let me see. Yes.", "42")


def test_stop_answers_in_the_same_event_and_keeps_the_text(desk: Any, hold: Any) -> None:
    desk.session.will_answer("As far as ", "this.", hold, " Not this.")
    desk.say("Tell me")
    desk.until(lambda: desk.texts()[-1:] == ["As far as this."])
    assert desk.composer.send_button.mode == "stop"
    desk.composer.send_button.click()
    assert desk.composer.send_button.mode == "stopping"
    assert desk.page.transcript.items()[-1].status == "Stopping"
    desk.until_written()
    assert desk.stored()[-1] == ("assistant", "As far as this.", "stopped")
    assert desk.composer.send_button.mode == "off"


def test_stop_before_the_first_token_brings_the_message_back(desk: Any, hold: Any) -> None:
    desk.session.before_reading = hold
    desk.say("A long question")
    desk.until(hold.is_reached.is_set)
    desk.chat.stop()
    desk.until(lambda: desk.composer.text() == "A long question")
    desk.until_written()
    assert desk.page.is_empty()
    assert desk.titles() == []
    desk.session.before_reading = None
    desk.ask(desk.composer.text())
    assert desk.texts() == ["A long question", "An answer."]


def test_stop_before_the_first_token_of_a_follow_up(desk: Any, hold: Any) -> None:
    desk.ask("One")
    desk.session.before_reading = hold
    desk.say("Two")
    desk.until(hold.is_reached.is_set)
    desk.chat.stop()
    desk.until(lambda: desk.composer.text() == "Two")
    desk.until_written()
    assert desk.texts() == ["One", "An answer."]
    assert [text for _, text, _ in desk.stored()] == ["One", "An answer."]


def test_stop_before_the_question_is_even_stored(desk: Any) -> None:
    desk.say("Never mind")
    desk.chat.stop()  # in the same event: the store has not answered yet
    desk.until(lambda: desk.composer.text() == "Never mind")
    desk.until_written()
    assert desk.session.replies == []


def test_a_text_typed_meanwhile_is_not_overwritten_by_what_comes_back(desk: Any, hold: Any) -> None:
    desk.session.before_reading = hold
    desk.say("First")
    desk.until(hold.is_reached.is_set)
    desk.composer.field.setPlainText("Second, being typed")
    desk.chat.stop()
    desk.until_written()
    assert desk.composer.text() == "Second, being typed"
    assert desk.stored() == [("user", "First", "done"), ("assistant", "", "stopped")]


def test_enter_while_an_answer_is_written_sends_nothing(desk: Any, hold: Any) -> None:
    desk.session.will_answer("a", hold)
    desk.say("First")
    desk.until(lambda: desk.texts()[-1:] == ["a"])
    desk.say("Second")
    assert desk.composer.text() == "Second"
    hold.release()
    desk.until_written()
    assert len(desk.session.replies) == 1


def test_write_again_makes_a_sibling(desk: Any) -> None:
    desk.session.will_answer("First try")
    desk.ask("A poem")
    desk.session.will_answer("Second try")
    desk.page.transcript.action.emit(desk.keys()[-1], "regenerate")
    desk.until(lambda: len(desk.session.replies) == 2)
    desk.until_written()
    assert desk.texts() == ["A poem", "Second try"]
    assert desk.page.transcript.items()[-1].branch == (2, 2)
    assert [m.text for m in desk.session.replies[-1].messages] == ["A poem"]

    desk.page.transcript.action.emit(desk.keys()[-1], "previous")
    assert desk.texts() == ["A poem", "First try"]
    desk.page.transcript.action.emit(desk.keys()[-1], "next")
    desk.page.transcript.action.emit(desk.keys()[-1], "next")  # there is none: nothing happens
    assert desk.texts() == ["A poem", "Second try"]


def test_a_branch_keeps_what_followed_it(desk: Any) -> None:
    desk.session.will_answer("First")
    desk.ask("Question")
    desk.session.will_answer("Deeper")
    desk.ask("More")
    first = desk.keys()[1]
    desk.session.will_answer("Other")
    desk.page.transcript.action.emit(first, "regenerate")
    desk.until(lambda: len(desk.session.replies) == 3)
    desk.until_written()
    assert desk.texts() == ["Question", "Other"]
    desk.chat.switch_branch(desk.keys()[-1], -1)
    assert desk.texts() == ["Question", "First", "More", "Deeper"]


def test_an_edited_question_is_a_sibling_with_its_own_answer(desk: Any) -> None:
    desk.ask("Whats up")
    question = desk.keys()[0]
    desk.session.will_answer("The sky.")
    desk.page.transcript.edited.emit(question, "What is up?")
    desk.until(lambda: len(desk.session.replies) == 2)
    desk.until_written()
    assert desk.texts() == ["What is up?", "The sky."]
    assert desk.page.transcript.items()[0].branch == (2, 2)
    assert [m.text for m in desk.session.replies[-1].messages] == ["What is up?"]
    desk.chat.switch_branch(desk.keys()[0], -1)
    assert desk.texts() == ["Whats up", "An answer."]


def test_an_edit_that_changes_nothing_asks_nothing(desk: Any) -> None:
    desk.ask("Same")
    desk.page.transcript.edited.emit(desk.keys()[0], "Same")
    assert len(desk.session.replies) == 1
    assert not desk.chat.state.is_writing


def test_delete_goes_at_once_and_comes_back(desk: Any) -> None:
    desk.ask("Keep me")
    shown = desk.chat.state.conversation_id
    desk.window.actions_["delete"].trigger()
    desk.until(lambda: desk.titles() == [])
    assert desk.page.is_empty()
    assert desk.window.actions_["undo"].isEnabled()
    desk.window.actions_["undo"].trigger()
    desk.until(lambda: desk.titles() == ["Keep me"])
    assert desk.chat.state.conversation_id == shown
    assert desk.texts() == ["Keep me", "An answer."]
    assert not desk.window.actions_["undo"].isEnabled()


def test_deletes_are_undone_last_first(desk: Any) -> None:
    for text in ("One", "Two"):
        desk.chat.new_chat()
        desk.ask(text)
    for row in list(desk.window.sidebar.chats()):
        desk.chat.delete_chat(row.id)
    desk.until(lambda: desk.titles() == [])
    desk.chat.undo_delete()
    desk.until(lambda: len(desk.titles()) == 1)
    desk.chat.undo_delete()
    desk.until(lambda: len(desk.titles()) == 2)


def test_the_toast_undoes(desk: Any) -> None:
    desk.ask("Back again")
    desk.chat.delete_chat(desk.chat.state.conversation_id)
    toast = desk.window.undo.toast
    assert toast is not None
    toast.acted.emit()
    desk.until(lambda: desk.titles() == ["Back again"])


def test_deleting_the_chat_that_is_written_stops_it(desk: Any, hold: Any) -> None:
    desk.session.will_answer("a", hold, "b")
    desk.say("Gone")
    desk.until(lambda: desk.texts()[-1:] == ["a"])
    shown = desk.chat.state.conversation_id
    desk.chat.delete_chat(shown)
    desk.until_written()
    assert desk.titles() == []
    desk.chat.undo_delete()
    desk.until(lambda: desk.texts() == ["Gone", "a"])
    assert desk.stored()[-1][2] == "stopped"


def test_rename_in_place(desk: Any, qtbot: Any) -> None:
    desk.ask("A title made from this")
    desk.window.actions_["rename"].trigger()
    view = desk.window.sidebar.list
    assert view.is_renaming()
    editor = view.findChild(QLineEdit, "rename")
    editor.setText("Better title")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    desk.until(lambda: desk.titles() == ["Better title"])
    assert desk.page.head.title.text() == "Better title"


def test_an_empty_title_changes_nothing(desk: Any, qtbot: Any) -> None:
    desk.ask("Named")
    desk.window.sidebar.rename_current()
    editor = desk.window.sidebar.list.findChild(QLineEdit, "rename")
    editor.setText("   ")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    desk.until_written()
    assert desk.titles() == ["Named"]


def test_an_answer_goes_on_in_a_chat_that_is_not_shown(desk: Any, hold: Any) -> None:
    desk.session.will_answer("Half", hold, " and half")
    desk.say("Background")
    desk.until(lambda: desk.texts()[-1:] == ["Half"])
    written = desk.chat.state.conversation_id
    desk.window.actions_["new"].trigger()
    assert desk.chat.state.writing == "elsewhere"
    desk.until(lambda: [row.is_live for row in desk.window.sidebar.chats()] == [True])
    hold.release()
    desk.until_written()
    assert desk.page.is_empty()
    desk.chat.open_chat(written)
    assert desk.texts() == ["Background", "Half and half"]


def test_a_chat_that_is_written_can_be_left_and_found_again(desk: Any, hold: Any) -> None:
    desk.session.will_answer("So far", hold, ", so good")
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["So far"])
    written = desk.chat.state.conversation_id
    desk.chat.new_chat()
    desk.chat.open_chat(written)
    assert desk.texts() == ["Go", "So far"]
    assert desk.composer.send_button.mode == "stop"
    hold.release()
    desk.until_written()
    assert desk.texts() == ["Go", "So far, so good"]


def test_drafts_belong_to_their_chats_and_outlive_the_window(
    open_desk: Callable[..., Any], folders: Folders
) -> None:
    desk = open_desk(folders)
    desk.ask("First chat")
    first = desk.chat.state.conversation_id
    desk.composer.field.setPlainText("half a follow-up")
    desk.chat.new_chat()
    assert desk.composer.text() == ""
    desk.composer.field.setPlainText("half a new chat")
    desk.until(lambda: [row.has_draft for row in desk.window.sidebar.chats()] == [True])
    desk.chat.open_chat(first)
    assert desk.composer.text() == "half a follow-up"
    desk.chat.new_chat()
    desk.window.close_unasked()
    desk.running.shut_down()

    again = open_desk(folders)
    assert again.composer.text() == "half a new chat"
    again.chat.open_chat(first)
    assert again.composer.text() == "half a follow-up"


def test_the_draft_is_saved_every_second_without_being_asked(desk: Any) -> None:
    desk.composer.field.setPlainText("do not lose me")
    desk.until(lambda: desk.store.draft(None) == "do not lose me")


def test_what_is_typed_while_a_chat_is_made_becomes_its_draft(
    desk: Any, holds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = holds()
    original = desk.store.create_conversation

    class Never:
        def is_set(self) -> bool:
            return False

    def slow(*values: Any) -> int:
        hold.wait(Never())
        return int(original(*values))

    monkeypatch.setattr(desk.store, "create_conversation", slow)
    desk.say("First")
    desk.until(hold.is_reached.is_set)
    desk.composer.field.setPlainText("typed meanwhile")
    desk.chat._drafts.timer.timeout.emit()  # a second has passed, and the disk is slow
    hold.release()
    desk.until_written()
    shown = desk.chat.state.conversation_id
    desk.until(lambda: desk.store.draft(shown) == "typed meanwhile")
    assert desk.store.draft(None) == ""


def test_what_was_sent_is_no_draft_any_more(desk: Any) -> None:
    desk.composer.field.setPlainText("Sent")
    desk.until(lambda: desk.store.draft(None) == "Sent")
    desk.ask("Sent")
    assert desk.store.draft(None) == ""
    assert desk.store.draft(desk.chat.state.conversation_id) == ""


def test_an_answer_is_saved_while_it_is_written(desk: Any, hold: Any) -> None:
    desk.session.will_answer("Saved ", "already", hold)
    desk.say("Go")
    desk.until(lambda: desk.stored()[-1:] == [("assistant", "Saved already", "writing")])
    hold.release()
    desk.until_written()


def test_quitting_in_the_middle_keeps_the_text(
    open_desk: Callable[..., Any], folders: Folders, session: Any, hold: Any
) -> None:
    desk = open_desk(folders, session)
    session.will_answer("Up to ", "here", hold, " and not further")
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["Up to here"])
    shown = desk.chat.state.conversation_id
    desk.composer.field.setPlainText("and my draft")
    desk.window.close_unasked()
    desk.running.shut_down()
    assert session.is_closed

    again = open_desk(folders)
    assert again.chat.state.conversation_id == shown  # it has a draft, so it is shown again
    assert again.stored() == [("user", "Go", "done"), ("assistant", "Up to here", "stopped")]
    assert again.composer.text() == "and my draft"


def test_quitting_in_the_middle_asks_first(
    desk: Any, hold: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def keep_writing(parent: object) -> bool:
        asked.append(parent)
        return False

    monkeypatch.setattr("app.ui.notices.confirm_quit", keep_writing)
    desk.session.will_answer("a", hold)
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["a"])
    assert not desk.window.close()
    assert asked == [desk.window]
    assert desk.window.isVisible()
    hold.release()
    desk.until_written()


def test_options_act_on_the_next_answer_and_belong_to_the_chat(desk: Any) -> None:
    row = desk.window.inspector.options.numbers["temperature"]
    row.field.setValue(1.25)
    desk.window.inspector.options.prompt.setPlainText("Be brief.")
    desk.ask("One")
    asked = desk.session.replies[-1].options
    assert (asked.temperature, asked.system_prompt) == (1.25, "Be brief.")
    assert asked.top_k is None  # untouched: the model's own
    first = desk.chat.state.conversation_id

    desk.chat.new_chat()
    assert row.field.value() == 0.6
    desk.ask("Two")
    assert desk.session.replies[-1].options == Options()
    desk.chat.open_chat(first)
    assert row.field.value() == 1.25
    assert desk.window.inspector.options.prompt.toPlainText() == "Be brief."


def test_options_act_while_an_answer_is_written(desk: Any, hold: Any) -> None:
    desk.session.will_answer("a", hold, "b")
    desk.say("Go")
    desk.until(lambda: desk.texts()[-1:] == ["a"])
    desk.window.inspector.options.numbers["top_k"].field.setValue(5)
    hold.release()
    desk.until_written()
    assert desk.session.live_options == [Options(top_k=5)]


def test_changed_options_show_a_way_back(desk: Any) -> None:
    desk.window.actions_["options"].trigger()
    row = desk.window.inspector.options.numbers["temperature"]
    assert row.reset.isHidden()
    row.slider.setValue(150)
    assert row.field.value() == 1.5
    assert not row.reset.isHidden()
    row.reset.click()
    assert row.field.value() == 0.6
    assert desk.chat.options == Options()


def test_the_seed_can_be_thrown_and_is_random_again_by_reset(desk: Any) -> None:
    seed = desk.window.inspector.options.seed
    assert seed.field.text() == "random"
    seed.dice.click()
    assert isinstance(desk.chat.options.seed, int)
    seed.reset.click()
    assert desk.chat.options.seed is None
    assert seed.field.text() == "random"


def test_search_looks_at_titles_and_messages(desk: Any) -> None:
    desk.session.will_answer("Ropes and lanterns")
    desk.ask("What is in a lighthouse")
    desk.chat.new_chat()
    desk.session.will_answer("Soup")
    desk.ask("What to cook")
    sidebar = desk.window.sidebar
    sidebar.search.setText("lantern")
    desk.until(lambda: desk.titles() == ["What is in a lighthouse"])
    sidebar.search.setText("cook")
    desk.until(lambda: desk.titles() == ["What to cook"])
    sidebar.search.setText("kelp")
    desk.until(lambda: desk.titles() == [])
    assert "kelp" in sidebar.empty_words()
    sidebar.search.clear()
    desk.until(lambda: len(desk.titles()) == 2)


def test_copy_takes_the_source(desk: Any) -> None:
    source = "A *list*:\n\n- one\n- two `<b>` \\(x\\)\n"
    desk.session.will_answer(source)
    desk.ask("List")
    desk.page.transcript.action.emit(desk.keys()[-1], "copy")
    assert QGuiApplication.clipboard().text() == source
    QGuiApplication.clipboard().clear()
    desk.window.actions_["copy"].trigger()
    assert QGuiApplication.clipboard().text() == source


def test_a_copy_is_rich_too_and_has_no_styles(desk: Any) -> None:
    source = "A **word** <b>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx < 1\n```\n"
    desk.session.will_answer(source)
    desk.ask("Table")
    desk.window.actions_["copy"].trigger()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == source
    assert "<strong>word</strong> &lt;b&gt;" in data.html()
    assert "<td>2</td>" in data.html()
    assert not any(word in data.html() for word in ("style", "color", "<script", "<img"))
    desk.page.transcript.action.emit(desk.keys()[-1], "copy-plain")
    plain = QGuiApplication.clipboard().text()
    assert "A word <b>" in plain
    assert not QGuiApplication.clipboard().mimeData().hasHtml()
    assert "*" not in plain
    desk.page.transcript.action.emit(desk.keys()[0], "copy")  # a person's own words are no Markdown
    assert not QGuiApplication.clipboard().mimeData().hasHtml()


def test_the_last_code_is_copied_by_a_key(desk: Any) -> None:
    listed = "- in a list\n\n  ```\n  b\n   c\n  ```\n"
    desk.session.will_answer(f"```py\na = 1\n```\nand\n\n{listed}\nEnd.")
    desk.ask("Code")
    desk.window.actions_["copy_code"].trigger()
    assert QGuiApplication.clipboard().text() == "b\n c\n"
    said: list[str] = []
    desk.window.chats.messages.announced.connect(said.append)
    desk.session.will_answer("No code.")
    desk.ask("More")
    desk.window.actions_["copy_code"].trigger()
    assert QGuiApplication.clipboard().text() == "b\n c\n"
    assert said == ["The last answer has no code"]


def test_a_new_chat_takes_along_what_is_typed(desk: Any) -> None:
    desk.ask("Long chat")
    desk.composer.field.setPlainText("And now?")
    desk.chat.continue_in_new_chat()
    assert desk.chat.state.conversation_id is None
    assert desk.composer.text() == "And now?"


def test_settings_swap_enter(desk: Any, qtbot: Any) -> None:
    from dataclasses import replace

    desk.window.change_settings(replace(desk.window.settings(), send_with="ctrl_enter"))
    field = desk.composer.field
    field.setPlainText("line")
    field.moveCursor(field.textCursor().MoveOperation.End)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert field.toPlainText() == "line\n"
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    desk.until_written()
    assert desk.texts()[0] == "line"


def test_statistics_open_at_their_button_wherever_the_pointer_is(desk: Any) -> None:
    desk.ask("Hello")
    key = desk.keys()[-1]
    desk.window.sidebar.search.setFocus()
    desk.page.transcript.action.emit(key, "statistics")
    card = desk.window.findChild(MadeCard)
    assert card is not None
    card.close()
    assert desk.window.focusWidget() is desk.page.transcript.control(key, "statistics")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0004, "1 ms"), (0.04, "40 ms"), (0.0996, "0.1 s"), (1.26, "1.3 s")]
)
def test_a_short_time_is_told_in_milliseconds(seconds: float, words: str) -> None:
    line = stats_line(Stats(new_tokens=3, tokens_per_second=10.0, first_token_s=seconds))
    assert line.endswith(f"{words} first token")


def test_a_new_number_of_threads_acts_when_a_model_is_loaded_next(desk: Any) -> None:
    assert desk.session.requests[-1].threads == 0
    desk.window.change_settings(replace(desk.window.settings(), threads=3))
    desk.models.reload()
    desk.until_ready()
    assert desk.session.requests[-1].threads == 3
