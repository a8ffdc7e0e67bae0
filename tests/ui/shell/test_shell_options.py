"""Every option of an answer can be set, acts, is kept, and says when it does nothing."""

from dataclasses import fields
from typing import Any

import pytest
from PySide6.QtCore import Qt

from app.chat.messages import Options
from app.ui.options_tab import CHOICES, MORE_CHOICES
from app.ui.presets import CUSTOM, PRESETS, preset_of
from app.ui.tag_edit import TagEdit, meant, shown


@pytest.fixture
def tab(desk: Any) -> Any:
    return desk.window.inspector.options


def test_there_is_a_row_for_every_option(tab: Any) -> None:
    shown_names = {choice.name for choice in (*CHOICES, *MORE_CHOICES)}
    others = {"seed", "system_prompt", "stop_strings", "banned", "answer_format"}
    others |= {"answer_grammar", "overflow", "guesses_ahead", "thinks"}
    assert shown_names | others == {field.name for field in fields(Options)}


def test_each_row_reaches_the_next_answer_and_the_store(desk: Any, tab: Any, qtbot: Any) -> None:
    tab.numbers["min_p"].field.setValue(0.05)
    tab.numbers["no_repeat_ngram_size"].field.setValue(3)
    tab.numbers["shortest_answer"].field.setValue(16)
    for row, words in ((tab.stops, "END\\n"), (tab.banned, "kelp")):
        row.tags.field.setText(words)
        qtbot.keyClick(row.tags.field, Qt.Key.Key_Return)
    tab.guesses.switch.click()
    tab.overflow.segments.group.button(1).click()
    desk.ask("Hi")
    options = desk.session.replies[-1].options
    assert options.min_p == pytest.approx(0.05)
    assert (options.no_repeat_ngram_size, options.shortest_answer) == (3, 16)
    assert (options.stop_strings, options.banned) == (("END\n",), ("kelp",))
    assert (options.guesses_ahead, options.overflow) == (True, "forget")
    first = desk.chat.state.conversation_id
    desk.window.actions_["new"].trigger()
    assert tab.stops.tags.texts() == ()
    desk.chat.open_chat(first)
    assert tab.stops.tags.texts() == ("END\n",)
    assert tab.banned.tags.texts() == ("kelp",)
    assert tab.guesses.switch.isChecked()
    tab.reset_all()
    desk.ask("Again")
    assert desk.session.replies[-1].options == Options()


def test_a_preset_sets_its_numbers_and_any_other_number_is_custom(desk: Any, tab: Any) -> None:
    assert tab.preset.current() == CUSTOM
    tab.preset.group.button(0).click()
    assert desk.chat.options.temperature == PRESETS[0].temperature
    assert tab.numbers["top_k"].field.value() == PRESETS[0].top_k
    tab.numbers["temperature"].field.setValue(0.9)
    assert tab.preset.current() == CUSTOM
    assert preset_of(desk.chat.options) == CUSTOM
    tab.preset.group.button(CUSTOM).click()  # changes nothing by itself
    assert desk.chat.options.temperature == 0.9


def test_what_is_ruled_out_says_by_what(tab: Any) -> None:
    row = tab.numbers["top_p"]
    assert row.help.isHidden()
    tab.numbers["temperature"].field.setValue(0)
    assert not row.help.isHidden()
    assert "temperature 0" in row.help.text()
    tab.numbers["temperature"].field.setValue(0.7)
    assert row.help.isHidden()
    tab.explain(True)
    assert "share" in row.help.text()


def test_a_form_asks_for_its_schema_and_nothing_else_does(desk: Any, tab: Any) -> None:
    assert tab.grammar.isHidden()
    tab.form.segments.group.button(2).click()
    assert not tab.grammar.isHidden()
    tab.grammar.setPlainText('{"type": "object"}')
    assert desk.chat.options.answer_format == "json_schema"
    assert desk.chat.options.answer_grammar == '{"type": "object"}'
    tab.form.segments.group.button(0).click()
    assert tab.grammar.isHidden()


def test_more_options_are_folded_and_say_what_they_hide(tab: Any) -> None:
    assert tab._more.isHidden()
    tab.numbers["beams"].field.setValue(4)
    assert tab.more.text() == "More options, 1 changed"
    tab.more.click()
    assert not tab._more.isHidden()


@pytest.mark.parametrize("text", ["a", "\n", "\t", "\\n", "a\\\nb", "\\\\", "x" * 30])
def test_a_tag_can_be_typed_as_it_is_shown(text: str) -> None:
    assert meant(shown(text)) == text


def test_tags_are_added_and_taken_back_by_keys(qtbot: Any) -> None:
    edit = TagEdit("Words", "Add")
    qtbot.addWidget(edit)
    for words in ("one", "two", "one", " "):
        edit.field.setText(words)
        qtbot.keyClick(edit.field, Qt.Key.Key_Return)
    assert edit.texts() == ("one", "two")
    qtbot.keyClicks(edit.field, "three,")
    assert edit.texts() == ("one", "two", "three")
    qtbot.keyClick(edit.field, Qt.Key.Key_Backspace)
    assert (edit.texts(), edit.field.text()) == (("one", "two"), "three")


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("json_schema", '{"type": "integer"}', ""),
        ("json_schema", '{"type": ', "is not JSON"),
        ("json_schema", '{"type": "objct"}', "objct"),
        ("regex", "[a-c]+", ""),
        ("regex", "[a-z", "unclosed"),
        ("regex", "(?=a)b", "look-around"),
        ("text", "[a-z", ""),
    ],
)
def test_a_schema_or_expression_is_checked_as_it_is_typed(
    desk: Any, form: str, text: str, words: str
) -> None:
    tab = desk.window.inspector.options
    desk.window.show()
    desk.window.actions_["options"].trigger()
    tab.apply(Options(answer_format=form))
    tab.grammar.setPlainText(text)
    desk.until(lambda: not tab._grammar_timer.isActive())
    assert words in tab.grammar_problem.text()
    assert tab.grammar_problem.isHidden() == (not words)
    assert "\n" not in tab.grammar_problem.text()


def test_the_system_prompt_says_how_many_tokens_it_is(desk: Any) -> None:
    tab = desk.window.inspector.options
    assert tab.prompt_tokens.text() == ""
    tab.prompt.setPlainText("Answer in five words only")
    desk.until(lambda: tab.prompt_tokens.text() != "")
    assert tab.prompt_tokens.text() == f"{desk.chat.context.use.system:,} tokens"
    tab.prompt.clear()
    desk.until(lambda: tab.prompt_tokens.text() == "")
