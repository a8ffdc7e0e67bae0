"""Two settings, one question, the same seed: written one after the other, compared, one kept."""

import difflib
import random
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QWidget

from app.chat.messages import Options
from app.paths import Folders
from app.ui.differences import WORD, differences, in_words
from app.ui.presets import PRESETS


def joint(desk: Any) -> Any:
    return next(each for each in desk.window.joints if type(each).__name__ == "CompareJoint")


def open_page(desk: Any) -> Any:
    desk.window.actions_["compare"].trigger()
    page = joint(desk).page
    assert desk.window.center.currentWidget() is page
    return page


def until_compared(desk: Any) -> None:
    compare = desk.chat.compare
    desk.until(lambda: not compare.is_running and not desk.chat.state.is_comparing)


def test_both_are_asked_with_the_same_seed_and_their_own_options(desk: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    page.sides[0].chosen.choose(0)
    page.sides[1].chosen.choose(2)
    page.seed.setValue(77)
    desk.session.will_answer("A fen is a wetland.")
    desk.session.will_answer("A fen is a kind of marsh.")
    page.run.click()
    assert page.stop.isEnabled()
    until_compared(desk)
    first, second = (reply.options for reply in desk.session.replies[-2:])
    assert (first.seed, second.seed) == (77, 77)
    for options, preset in ((first, PRESETS[0]), (second, PRESETS[2])):
        assert (options.temperature, options.top_p, options.top_k) == (
            preset.temperature,
            preset.top_p,
            preset.top_k,
        )
    asked = [[m.text for m in reply.messages] for reply in desk.session.replies[-2:]]
    assert asked == [["What is a fen?"]] * 2
    assert [view.text.toPlainText() for view in page.sides] == [
        "A fen is a wetland.",
        "A fen is a kind of marsh.",
    ]
    assert page.summary.text().startswith("4 words differ")
    marked = [
        [mark.cursor.selectedText() for mark in view.text.extraSelections()] for view in page.sides
    ]
    assert marked == [["wetland"], ["kind of marsh"]]
    assert page.sides[1].only_here.text() == "Only here: \u201ckind of marsh\u201d"
    assert len(desk.stored()) == 2  # nothing is stored until one is kept


def test_what_is_kept_is_a_version_and_the_branch(desk: Any) -> None:
    desk.session.will_answer("Mine")
    desk.ask("What is a fen?")
    page = open_page(desk)
    desk.session.will_answer("One")
    desk.session.will_answer("Two")
    page.run.click()
    until_compared(desk)
    page.sides[1].keep.click()
    desk.until(lambda: desk.texts() == ["What is a fen?", "Two"])
    assert desk.window.center.currentWidget() is desk.page
    item = desk.page.transcript.items()[-1]
    assert (item.branch, item.state) == ((2, 2), "done")
    record = desk.store.messages(desk.chat.state.conversation_id)[-1]
    assert record.details["stats"]["new_tokens"] == 1
    assert record.token_ids == (0,)


def test_stop_ends_both_and_keeps_what_came(desk: Any, hold: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    desk.session.will_answer("Half of ", "it", hold, "never")
    page.run.click()
    desk.until(lambda: page.sides[0].text.toPlainText() == "Half of it")
    QTest.keyClick(page, Qt.Key.Key_Escape)
    until_compared(desk)
    assert page.sides[0].text.toPlainText() == "Half of it"
    assert page.sides[1].status.text() == "Not written"
    assert page.sides[0].keep.isEnabled()
    assert not page.sides[1].keep.isEnabled()
    assert len(desk.session.replies) == 2
    page.sides[0].keep.click()
    desk.until(lambda: desk.stored()[-1] == ("assistant", "Half of it", "stopped"))


def test_while_it_runs_nothing_else_is_written(desk: Any, hold: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    desk.session.will_answer("a", hold)
    page.run.click()
    desk.until(hold.is_reached.is_set)
    assert not desk.chat.state.can_send
    desk.chat.send("Another question")
    assert desk.window.actions_["stop"].isEnabled()
    desk.window.actions_["stop"].trigger()
    until_compared(desk)
    assert len(desk.stored()) == 2
    assert desk.chat.state.can_send


def test_leaving_the_chat_ends_it(desk: Any, hold: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    desk.session.will_answer("a", hold)
    page.run.click()
    desk.until(hold.is_reached.is_set)
    desk.chat.new_chat()
    assert desk.window.center.currentWidget() is desk.page
    until_compared(desk)
    assert len(desk.session.replies) == 2


def test_a_failure_is_told_on_its_side(desk: Any, failure: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    desk.session.will_answer(failure("Top-k must be whole.", "options"))
    desk.session.will_answer("Fine")
    page.run.click()
    until_compared(desk)
    assert page.sides[0].status.text() == "Top-k must be whole."
    assert page.sides[1].text.toPlainText() == "Fine"
    assert not page.sides[0].keep.isEnabled()


def test_without_a_question_there_is_nothing_to_compare(desk: Any) -> None:
    assert not desk.window.actions_["compare"].isEnabled()


@pytest.mark.parametrize(("width", "is_stacked"), [(900, True), (1440, False)])
def test_in_a_narrow_window_they_are_stacked(desk: Any, width: int, is_stacked: bool) -> None:
    desk.ask("What is a fen?")
    desk.window.panels.set_shown("sidebar", True)
    desk.window.resize(width, 600 if width == 900 else 900)
    page = open_page(desk)
    desk.until(lambda: page.is_stacked == is_stacked)
    assert all(view.text.height() >= 40 for view in page.sides)


def test_any_number_of_ones_own_is_custom(desk: Any) -> None:
    desk.ask("What is a fen?")
    chosen = open_page(desk).sides[0].chosen
    chosen.choose(1)
    assert chosen.options(Options()).temperature == 0.7
    chosen.temperature.setValue(0.75)
    assert chosen.preset.current() == len(PRESETS)
    chosen.temperature.setValue(0.7)
    assert chosen.preset.current() == 1


def test_the_same_seed_and_options_give_the_same_answer(
    open_desk: Callable[..., Any], folders: Folders
) -> None:
    """The real engine, sampled: both sides alike are word for word the same."""
    from app.chat.session import ChatSession

    desk = open_desk(folders, ChatSession())
    desk.chat.change_options(Options(longest_answer=24))
    desk.ask("Tell me something")
    page = open_page(desk)
    for view in page.sides:
        view.chosen.choose(2)
    page.run.click()
    until_compared(desk)
    first, second = (view.text.toPlainText() for view in page.sides)
    assert first
    assert first == second
    assert page.summary.text() == "Both say the same, word for word."


def test_marks_cover_exactly_the_words_that_differ() -> None:
    """Against the words themselves, with letters outside the first plane: units are UTF-16."""
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    for _ in range(200):
        first, second = (
            " ".join(
                draw.choices(["a", "b\U0001f600", "c", "\u0434\u0430", ","], k=draw.randrange(12))
            )
            for _ in range(2)
        )
        found = differences(first, second)
        for text, spans in ((first, found.first), (second, found.second)):
            data = text.encode("utf-16-le")
            marked = [data[2 * s : 2 * (s + n)].decode("utf-16-le") for s, n in spans]
            rest, at = [], 0
            for start, length in spans:
                rest.append(data[2 * at : 2 * start].decode("utf-16-le"))
                at = start + length
            rest.append(data[2 * at :].decode("utf-16-le"))
            assert all(WORD.match(words) for words in marked)
            kept = WORD.findall(" ".join(rest))
            text_words = [WORD.findall(first), WORD.findall(second)]
            same = sum(
                block.size
                for block in difflib.SequenceMatcher(
                    None, *text_words, autojunk=False
                ).get_matching_blocks()
            )
            assert len(kept) == same
    assert in_words(differences("a b", "a b")) == "Both say the same, word for word."


def test_every_control_of_the_page_has_a_name_and_can_be_reached_by_keys(desk: Any) -> None:
    desk.ask("What is a fen?")
    page = open_page(desk)
    controls = [
        widget
        for widget in page.findChildren(QWidget)
        if widget.isVisible() and isinstance(widget, QAbstractButton | QAbstractSpinBox)
    ]
    assert len(controls) > 10
    for widget in controls:
        named = widget.accessibleName() or getattr(widget, "text", str)()
        assert named, widget
    page.seed.setFocus()
    reached = set()
    for _ in range(40):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        reached.add(QApplication.focusWidget())
    enabled = {page.seed, page.run, page.close_button}
    enabled |= {view.chosen.temperature for view in page.sides}
    enabled |= {view.chosen.top_k for view in page.sides}
    assert enabled <= reached


def test_the_button_in_the_head_opens_it(desk: Any) -> None:
    assert not desk.page.head.compare.isEnabled()
    desk.ask("What is a fen?")
    desk.page.head.compare.click()
    assert desk.window.center.currentWidget() is joint(desk).page
