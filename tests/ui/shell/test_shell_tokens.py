"""The tokens of an answer: seen as it is written, read afterwards, gone on from one of them."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.chat.events import Inspect
from app.paths import Folders
from app.ui.token_popover import AlternativeRow

WORDS = ("A", " fen", " is", " a", " wetland", ".")


def tab(desk: Any) -> Any:
    return desk.window.inspector.tokens


def joint(desk: Any) -> Any:
    return next(each for each in desk.window.joints if type(each).__name__ == "TokensJoint")


def inspections(desk: Any) -> list[Inspect]:
    return [each for each in desk.session.requests if isinstance(each, Inspect)]


def open_tab(desk: Any) -> None:
    desk.window.show()
    desk.window.actions_["tokens"].trigger()


def until_shown(desk: Any, count: int) -> None:
    desk.until(lambda: len(tab(desk).flow.tokens) == count)
    desk.until(lambda: desk.chat.tokens.state.phase == "ready")


def ask(desk: Any, *words: str) -> None:
    desk.session.will_answer(*words)
    desk.ask("What is a fen?")


# ---- reading
def test_an_answer_is_read_only_when_the_tab_is_opened(desk: Any) -> None:
    ask(desk, *WORDS)
    desk.chat.change_draft("and so on")
    desk.until(lambda: desk.running.job.is_idle)
    assert inspections(desk) == []
    open_tab(desk)
    until_shown(desk, len(WORDS))
    (asked,) = inspections(desk)
    assert asked.token_ids == tuple(range(len(WORDS)))
    assert [message.text for message in asked.messages] == ["What is a fen?"]
    assert asked.first == 0
    desk.window.inspector.tabs.group.button(0).click()
    desk.window.inspector.tabs.group.button(1).click()
    until_shown(desk, len(WORDS))
    assert len(inspections(desk)) == 1  # it is known by now


def test_it_is_read_with_the_options_and_the_memory_that_it_was_written_with(desk: Any) -> None:
    prompt = desk.window.inspector.options.prompt
    ask(desk, "first")
    key = desk.keys()[0]
    desk.session.will_answer("second")
    desk.ask("And?")
    begins = desk.keys()[2]
    desk.chat.branches.begin_memory(begins)
    desk.until(lambda: desk.chat.here.memory_start == begins)
    desk.session.will_answer("third")
    desk.ask("More?")
    prompt.setPlainText("Be brief.")
    open_tab(desk)
    until_shown(desk, 1)
    assert inspections(desk)[-1].first == 2
    assert len(inspections(desk)[-1].messages) == 5
    assert key not in (None, begins)


def test_while_it_is_written_the_flow_grows_and_nothing_is_read_again(
    desk: Any, holds: Callable[[], Any]
) -> None:
    open_tab(desk)
    hold = holds()
    desk.session.will_answer(*WORDS[:3], hold, *WORDS[3:])
    desk.say("What is a fen?")
    desk.until(hold.is_reached.is_set)
    desk.until(lambda: len(tab(desk).flow.tokens) == 3)
    assert desk.session.replies[-1].watches_tokens
    assert desk.chat.tokens.state.phase == "live"
    hold.release()
    desk.until_written()
    until_shown(desk, len(WORDS))
    assert "".join(token.text for token in tab(desk).flow.tokens) == "".join(WORDS)
    assert inspections(desk) == []


def test_closed_it_costs_nothing(desk: Any) -> None:
    ask(desk, *WORDS)
    assert not desk.session.replies[-1].watches_tokens
    open_tab(desk)
    until_shown(desk, len(WORDS))
    desk.window.actions_["inspector"].trigger()
    ask(desk, "again")
    assert not desk.session.replies[-1].watches_tokens
    assert len(inspections(desk)) == 1


def test_an_answer_that_began_unwatched_is_read_when_it_is_finished(desk: Any, hold: Any) -> None:
    desk.session.will_answer(*WORDS[:3], hold, *WORDS[3:])
    desk.say("What is a fen?")
    desk.until(hold.is_reached.is_set)
    open_tab(desk)
    desk.until(lambda: desk.chat.tokens.state.phase == "waiting")
    assert "being written" in tab(desk).page.words.text()
    hold.release()
    desk.until_written()
    until_shown(desk, len(WORDS))
    assert len(inspections(desk)) == 1


def test_reading_shows_how_far_it_is_and_can_be_cancelled(desk: Any, hold: Any) -> None:
    ask(desk, *WORDS)
    desk.session.while_inspecting = hold
    open_tab(desk)
    desk.until(hold.is_reached.is_set)
    desk.until(lambda: tab(desk).page.words.text() == "Reading 0 of 6 tokens")
    assert tab(desk).page.way.text() == "Cancel"
    tab(desk).page.way.click()
    assert tab(desk).page.words.text() == "Stopped."
    desk.session.while_inspecting = None
    tab(desk).page.way.click()
    until_shown(desk, len(WORDS))


def test_reading_gives_way_to_a_message(desk: Any, hold: Any) -> None:
    ask(desk, *WORDS)
    desk.session.while_inspecting = hold
    open_tab(desk)
    desk.until(hold.is_reached.is_set)
    desk.session.will_answer("Next", ".")
    desk.ask("And a bog?")  # nobody releases the hold: only a stop ends it
    assert desk.texts()[-1] == "Next."
    until_shown(desk, 2)


def test_a_failure_is_told_in_its_place(desk: Any) -> None:
    ask(desk, *WORDS)
    desk.session.inspect_failure = "There is not enough memory. Close other programs."
    open_tab(desk)
    desk.until(lambda: tab(desk).page.words.text().startswith("There is not enough memory"))
    desk.chat.change_draft("x")
    assert tab(desk).page.words.text().startswith("There is not enough memory")
    assert desk.notice() is None
    desk.session.inspect_failure = ""
    tab(desk).page.way.click()
    until_shown(desk, len(WORDS))


def test_what_no_model_wrote_says_so(desk: Any) -> None:
    open_tab(desk)
    assert "Write an answer" in tab(desk).page.words.text()
    ask(desk, *WORDS)
    desk.chat.edit(desk.keys()[-1], "A fen is wet.")
    desk.until(lambda: "changed by you" in tab(desk).page.words.text())


def test_the_answer_of_another_model_says_which(desk: Any) -> None:
    ask(desk, *WORDS)
    store, key = desk.store, desk.keys()[-1]
    record = desk.chat.here.record(key)
    details = {**record.details, "model_path": "/elsewhere/tiny-llama"}
    store.finish_answer(key, record.parts, record.token_ids, record.state, details)
    desk.chat.show_chat_again(desk.chat.shown)
    open_tab(desk)
    desk.until(lambda: desk.chat.tokens.state.phase == "blocked")
    assert "written by tiny-llama" in tab(desk).page.words.text()
    assert tab(desk).page.way.text() == "Choose a model…"
    assert inspections(desk) == []


def test_the_button_of_a_message_shows_that_one(desk: Any) -> None:
    ask(desk, "One", " two", " three")
    desk.session.will_answer("Four")
    desk.ask("And?")
    desk.page.message_action.emit(desk.keys()[1], "tokens")
    until_shown(desk, 3)
    assert desk.chat.tokens.state.key == desk.keys()[1]
    ask(desk, "Five", " six")  # the chat goes on: its newest answer is shown
    until_shown(desk, 2)


# ---- what is seen
def test_figures_and_chart_say_what_the_tokens_say(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    chances = [token.probability for token in tab(desk).flow.tokens]
    expected = math.exp(-sum(map(math.log, chances)) / len(chances))
    assert tab(desk).count.value.text() == "6"
    assert tab(desk).perplexity.value.text() == f"{expected:.2f}"
    assert tab(desk).unsure.value.text() == str(sum(chance < 0.4 for chance in chances))
    assert "6 tokens, 2 of them unsure" in tab(desk).chart.accessibleName()
    QTest.mouseClick(tab(desk).chart, Qt.MouseButton.LeftButton, pos=QPoint(int(4.5 * 8), 20))
    assert tab(desk).flow.current == 4


def test_a_screen_reader_finds_each_token_with_its_probability(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    flow = tab(desk).flow
    interface = QAccessible.queryAccessibleInterface(flow)
    said = [interface.child(n).text(QAccessible.Text.Name) for n in range(interface.childCount())]
    assert said[1] == "fen, 30 %, third choice"
    assert len(said) == len(WORDS)
    flow.go_to(1)
    assert interface.focusChild().text(QAccessible.Text.Name) == said[1]


def test_keys_walk_through_the_tokens(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    flow = tab(desk).flow
    flow.setFocus()

    def press(key: Qt.Key, *modifiers: Qt.KeyboardModifier) -> int:
        QTest.keyClick(flow, key, *modifiers)
        return int(flow.current)

    assert press(Qt.Key.Key_Home) == 0
    assert press(Qt.Key.Key_Right) == 1
    assert press(Qt.Key.Key_U) == 4
    assert press(Qt.Key.Key_U) == 4  # there is no other
    assert press(Qt.Key.Key_U, Qt.KeyboardModifier.ShiftModifier) == 1
    assert press(Qt.Key.Key_End) == len(WORDS) - 1
    assert press(Qt.Key.Key_Right) == len(WORDS) - 1
    assert press(Qt.Key.Key_Left) == len(WORDS) - 2
    press(Qt.Key.Key_Return)
    assert joint(desk).popover.accessibleName() == "Token 5 of 6"
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert joint(desk).popover is None
    assert QApplication.focusWidget() is flow


# ---- going on from a token
def choose(desk: Any, place: int, row: int) -> None:
    joint(desk).show_alternatives(place)
    popover = joint(desk).popover
    popover.rows[row].click()
    popover.go_on.click()


def test_an_alternative_goes_on_as_a_version_of_its_own(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    desk.session.will_answer(*WORDS[:2], " other", " way")
    choose(desk, 2, 0)
    desk.until_written()
    reply = desk.session.replies[-1]
    assert (reply.start, reply.start_text) == ((0, 1, 1002), "")
    assert [message.text for message in reply.messages] == ["What is a fen?"]
    assert desk.texts()[-1] == "A fen other way"
    assert desk.page.transcript.items()[-1].branch == (2, 2)
    # What stood is known without being read: also of the one that was chosen.
    until_shown(desk, 4)
    assert [token.token_id for token in tab(desk).flow.tokens] == [0, 1, 1002, 3]
    assert tab(desk).flow.tokens[2].probability == 0.5
    assert inspections(desk) == []
    assert [text for role, text, _ in desk.stored() if role == "assistant"] == [
        "".join(WORDS),
        "A fen other way",
    ]


def test_any_text_can_stand_there(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    joint(desk).show_alternatives(1)
    popover = joint(desk).popover
    popover.other.click()
    assert not popover.go_on.isEnabled()
    popover.field.setText(" bog \U0001f600")
    desk.session.will_answer("A", " bog \U0001f600", " too")
    QTest.keyClick(popover.field, Qt.Key.Key_Return)
    desk.until_written()
    reply = desk.session.replies[-1]
    assert (reply.start, reply.start_text) == ((0,), " bog \U0001f600")
    assert desk.texts()[-1] == "A bog \U0001f600 too"


def test_where_the_model_would_have_ended_it_can_end(desk: Any, thought: Any) -> None:
    open_tab(desk)
    desk.session.will_answer(thought("Hm."), *WORDS)
    desk.ask("What is a fen?")
    until_shown(desk, len(WORDS) + 1)
    start = 0
    for token in tab(desk).flow.tokens[1:]:  # the script knows no places
        object.__setattr__(token, "start", start)
        start += len(token.text)
    joint(desk).show_alternatives(3)
    popover = joint(desk).popover
    popover.rows[1].click()
    assert popover.go_on.text() == "End the answer here"
    popover.go_on.click()
    desk.until(lambda: desk.texts()[-1] == "A fen")
    record = desk.store.messages(desk.chat.shown)[-1]
    assert record.token_ids == (0, 1, 2)
    assert [part.text for part in record.parts] == ["Hm.", "A fen"]
    assert len(desk.session.replies) == 1


def test_nothing_can_go_on_while_the_model_writes(desk: Any, hold: Any) -> None:
    open_tab(desk)
    desk.session.will_answer(*WORDS[:3], hold)
    desk.say("What is a fen?")
    desk.until(lambda: len(tab(desk).flow.tokens) == 3)
    joint(desk).show_alternatives(1)
    popover = joint(desk).popover
    assert not popover.go_on.isEnabled()
    assert "finished" in popover.note.text()
    popover.close()


def test_all_of_the_popover_is_named_and_reached_by_keys(desk: Any) -> None:
    open_tab(desk)
    ask(desk, *WORDS)
    until_shown(desk, len(WORDS))
    desk.session.will_answer("A", " other")
    tab(desk).flow.go_to(1)
    QTest.keyClick(tab(desk).flow, Qt.Key.Key_Return)
    assert isinstance(QApplication.focusWidget(), AlternativeRow)
    names = [row.accessibleName() for row in joint(desk).popover.rows]
    assert names[0] == "other, 50 %"
    assert names[2] == "fen, 30 %, in the answer now"
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    desk.until_written()
    assert desk.texts()[-1] == "A other"


# ---- the tab belongs to the chat
def test_the_tab_is_remembered_with_its_chat(
    desk: Any, open_desk: Callable[..., Any], folders: Folders
) -> None:
    ask(desk, "One")
    first = desk.chat.shown
    desk.window.actions_["tokens"].trigger()
    desk.window.actions_["new"].trigger()
    assert desk.window.inspector.tab == "options"
    desk.session.will_answer("Two")
    desk.ask("Another")
    second = desk.chat.shown
    desk.chat.open_chat(first)
    assert desk.window.inspector.tab == "tokens"
    desk.chat.open_chat(second)
    assert desk.window.inspector.tab == "options"
    desk.until(lambda: desk.running.job.is_idle)
    assert desk.store.conversation(first).view["tab"] == "tokens"


def test_the_tab_of_a_new_chat_stays_with_it(desk: Any) -> None:
    desk.window.actions_["tokens"].trigger()
    ask(desk, "One")
    assert desk.window.inspector.tab == "tokens"
    desk.until(lambda: desk.running.job.is_idle)
    assert desk.store.conversation(desk.chat.shown).view["tab"] == "tokens"


def test_tokens_have_more_room_unless_a_person_chose_the_width(desk: Any) -> None:
    desk.window.resize(1440, 900)
    desk.window.show()
    panels = desk.window.panels
    open_tab(desk)
    assert panels.width_of("inspector") == 400
    desk.window.actions_["options"].trigger()
    assert panels.width_of("inspector") == 344
    panels.set_width("inspector", 360)
    open_tab(desk)
    assert panels.width_of("inspector") == 360


# ---- the flow itself
def test_growing_is_the_same_as_being_there_at_once(desk: Any, token: Callable[..., Any]) -> None:
    """Any tokens, in any batches, at any width: the same lines at the same places."""
    from app.ui.token_lines import TokenLines

    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    alphabet = ("a", " word", "\n", "\n\n", " ", "  x", "\U0001f600", "", "\u0645\u0631", "m" * 90)
    for _ in range(30):
        tokens = [
            token(n, draw.choice(alphabet), is_thought=n < 20) for n in range(draw.randrange(80))
        ]
        whole, grown = TokenLines(), TokenLines()
        for lines in (whole, grown):
            lines.lay_out(draw.choice([80, 200, 400]) if lines is whole else whole.width)
        whole.set_tokens(tokens)
        at = 0
        while at < len(tokens):
            step = draw.randrange(1, 9)
            grown.append(tokens[at : at + step])
            at += step
        assert grown.height == pytest.approx(whole.height)
        for place in range(len(tokens)):
            one, other = whole.rects(place), grown.rects(place)
            assert one, (place, tokens[place])
            assert [r.getRect() for r in one] == [pytest.approx(r.getRect()) for r in other]
            middle = one[0].center()
            if one[0].width() > 2:
                assert whole.token_at(middle.x(), middle.y()) == place


def test_a_batch_redraws_only_what_changed(desk: Any, token: Callable[..., Any]) -> None:
    desk.window.resize(1440, 900)
    open_tab(desk)
    flow = tab(desk).flow
    ask(desk, *[" word"] * 40)
    until_shown(desk, 40)
    flow.viewport().repaint()
    QApplication.processEvents()
    drawn: list[QRect] = []

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Paint:
                drawn.append(event.rect())
            return False

    watch = Watch()
    flow.viewport().installEventFilter(watch)
    flow.append([token(40, " more")])
    desk.until(lambda: drawn)
    flow.viewport().removeEventFilter(watch)
    last = flow.rect_of(40)
    assert all(rect.top() >= last.top() - 20 for rect in drawn)
