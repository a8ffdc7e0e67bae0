"""The transcript: few widgets, a reader whose line never moves, and what a person can do."""

import random
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QApplication

from app.ui import theme
from app.ui.items import Item, Notice, Way
from app.ui.message import AssistantMessage, UserMessage
from app.ui.transcript import TranscriptView

ANSWER = "## Head\n\nSome words of a paragraph that is long enough to be wrapped. " * 3 + (
    "\n\n- one\n- two `code`\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend"
)


@pytest.fixture
def view(qtbot):
    made = TranscriptView()
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    return made


def conversation(count: int) -> list[Item]:
    generator = random.Random(count)
    items = []
    for key in range(0, count, 2):
        items.append(Item(key, "user", f"Question {key}. " + "word " * generator.randint(0, 90)))
        text = f"Answer {key}.\n\n" + ANSWER * generator.randint(1, 3)
        items.append(Item(key + 1, "assistant", text, model="SmolLM2"))
    return items


def writing(key: int, text: str = "", **more) -> Item:
    return Item(key, "assistant", text, state="writing", model="SmolLM2", is_last=True, **more)


def wheel(view: TranscriptView, delta: int) -> None:
    middle = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        middle,
        view.viewport().mapToGlobal(middle),
        QPoint(0, 0),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.viewport(), event)


def reading_line(view: TranscriptView) -> tuple[int, str, int]:
    """(key, the text of the line at the top of the viewport, its y in the viewport)."""
    anchor = view._anchor()
    body = anchor.body
    block = body.document().findBlock(anchor.position)
    start = anchor.position - block.position()
    return anchor.key, block.text()[start : start + 12], anchor.y


def scroll_into_text(view: TranscriptView, share: float) -> None:
    """A place whose top line is text."""
    bar = view.verticalScrollBar()
    bar.setValue(int(bar.maximum() * share))
    while view._anchor().body is None:
        bar.setValue(bar.value() + 20)


# ---- few widgets
def test_a_thousand_messages_are_few_widgets(view):
    view.set_items(conversation(1000))
    bar = view.verticalScrollBar()
    for share in (1, 0.5, 0.2, 0.8, 0, 0.99):
        bar.setValue(int(bar.maximum() * share))
        assert 0 < len(view.live_widgets()) <= 14
    all_made = view.viewport().findChildren(AssistantMessage)
    all_made += view.viewport().findChildren(UserMessage)
    assert len(all_made) <= 30


def test_what_is_seen_is_what_was_given(view, qapp):
    items = conversation(60)
    view.set_items(items)
    bar = view.verticalScrollBar()
    seen = set()
    for value in range(0, bar.maximum() + 200, 200):
        bar.setValue(value)
        for key, widget in view.live_widgets().items():
            assert widget.item.text == items[key].text
            assert widget.bodies()[-1].text == items[key].text
            seen.add(key)
    assert seen == {item.key for item in items}


def test_neighbours_do_not_overlap(view):
    view.set_items(conversation(40))
    for share in (0, 0.3, 1):
        view.verticalScrollBar().setValue(int(view.verticalScrollBar().maximum() * share))
        places = sorted(w.geometry().getRect() for w in view.live_widgets().values())
        places.sort(key=lambda rect: rect[1])
        for (_, top, _, height), (_, below, _, _) in pairwise(places):
            assert below >= top + height - 20


# ---- following
def test_the_end_is_followed(view):
    view.set_items([*conversation(6), writing(100)])
    text = ""
    for n in range(40):
        text += f"Line {n} of the answer.\n\n"
        view.stream(100, text)
        assert view.is_following
        assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.jump.isHidden()


@pytest.mark.parametrize("how", ["wheel", "key", "drag"])
def test_leaving_the_end_stops_following_at_once(view, qtbot, how):
    view.set_items([*conversation(6), writing(100, "a\n\n" * 30)])
    bar = view.verticalScrollBar()
    assert view.is_following
    if how == "wheel":
        wheel(view, 120)
    elif how == "key":
        qtbot.keyClick(view, Qt.Key.Key_PageUp)
    else:
        bar.setValue(bar.maximum() - 9)
    assert not view.is_following
    assert not view.jump.isHidden()
    line, value = reading_line(view), bar.value()
    view.stream(100, "a\n\n" * 60)
    assert bar.value() == value
    assert reading_line(view) == line


def test_the_end_is_followed_again_by_the_button_and_by_going_there(view, qtbot):
    view.set_items(conversation(20))
    bar = view.verticalScrollBar()
    bar.setValue(0)
    view.jump.click()
    assert view.is_following
    assert bar.value() == bar.maximum()
    bar.setValue(0)
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.is_following
    bar.setValue(0)
    bar.setValue(bar.maximum() - 8)
    assert view.is_following


def test_an_answer_elsewhere_does_not_pull_but_sending_does(view):
    view.set_items(conversation(20))
    view.verticalScrollBar().setValue(100)
    view.append(writing(200))
    assert view.verticalScrollBar().value() == 100
    view.append(Item(201, "user", "And now?"))
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_text_above_the_reader_does_not_move_the_line(view):
    items = conversation(40)
    view.set_items(items)
    scroll_into_text(view, 0.6)
    line = reading_line(view)
    first = line[0] - 10
    view.replace(Item(first, "user", "much longer\n" * 60))
    assert reading_line(view) == line
    view.remove(first)
    assert reading_line(view) == line


def test_scrolling_through_unmeasured_messages_moves_by_what_was_scrolled(view):
    """Estimates are wrong, but the lines on the screen move as far as the wheel says."""
    view.set_items(conversation(200))
    bar = view.verticalScrollBar()
    scroll_into_text(view, 0.5)
    for _ in range(60):
        anchor = view._anchor()
        bar.setValue(bar.value() - 60)
        assert view._y_of(anchor) - bar.value() == anchor.y + 60


# ---- resizing, theme, size
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_resizing_keeps_the_line(view, qapp, share):
    view.set_items(conversation(60))
    scroll_into_text(view, share)
    anchor = view._anchor()
    for width in (460, 900, 520, 700):
        view.resize(width, 500)
        qapp.processEvents()
        y = view._y_of(anchor) - view.verticalScrollBar().value()
        assert abs(y - anchor.y) <= 1


def test_resizing_at_the_end_stays_there(view, qapp):
    view.set_items(conversation(60))
    for width in (460, 900):
        view.resize(width, 420)
        qapp.processEvents()
        assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_a_switch_of_scheme_draws_in_its_colours(view, qapp):
    view.set_items(conversation(6))
    view.verticalScrollBar().setValue(60)
    anchor = view._anchor()
    for scheme in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, scheme)
        view.retheme()
        picture = view.viewport().grab().toImage()
        assert picture.pixelColor(2, 2).name() == scheme.canvas.lower()
        body = next(w for w in view.live_widgets().values() if isinstance(w, AssistantMessage)).body
        fragment = body.document().begin().begin().fragment()
        assert fragment.charFormat().foreground().color().name() == scheme.text.lower()
        assert abs(view._y_of(anchor) - view.verticalScrollBar().value() - anchor.y) <= 1


def test_text_scale_changes_reading_text(view):
    view.set_items(conversation(6))
    before = view._tops[-1]
    theme.set_text_scale(200)
    view.retheme()
    assert view._tops[-1] > before * 1.4
    assert len(view.live_widgets()) <= 14


# ---- states
def test_the_status_stands_in_words_before_the_first_one(view):
    view.set_items([Item(1, "user", "q"), writing(2, status="Reading 120 of 400 tokens")])
    widget = view.live_widgets()[2]
    assert widget.state.isVisible()
    assert widget.state.text == "Reading 120 of 400 tokens"
    assert not widget.action_row.isVisible()
    view.replace(writing(2))
    view.stream(2, "Hello")
    assert not widget.state.isVisible()
    assert widget.body.toPlainText() == "Hello"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("stopped", "Stopped"),
        ("interrupted", "Interrupted"),
        ("length", "Reached the longest answer"),
        ("failed", "Failed"),
        ("done", ""),
    ],
)
def test_an_end_is_told_in_words(view, state, words):
    view.set_items([Item(1, "assistant", "text", state=state)])
    assert view.live_widgets()[1].state.text == words
    assert view.live_widgets()[1].state.isVisible() == bool(words)


def test_thoughts_fold_and_stay_open_for_their_message(view, qtbot):
    thought = Item(1, "assistant", "answer", thought="I **think**", thought_seconds=6.2)
    view.set_items([thought, *conversation(40)[2:]])
    view.verticalScrollBar().setValue(0)
    widget = view.live_widgets()[1]
    assert widget.disclosure.text() == "Thought for 6.2 s"
    assert widget.thought is None
    place = widget.disclosure.mapTo(view, QPoint(0, 0))
    widget.disclosure.click()
    assert widget.thought.toPlainText() == "I think"
    assert widget.disclosure.mapTo(view, QPoint(0, 0)) == place
    view.to_end()
    view.verticalScrollBar().setValue(0)
    assert view.live_widgets()[1].thought.isVisible()
    view.live_widgets()[1].disclosure.click()
    assert not view.live_widgets()[1].thought.isVisible()


def test_thoughts_are_live_while_open(view):
    view.set_items([writing(1, thought="One", is_thinking=True, thought_seconds=4)])
    widget = view.live_widgets()[1]
    assert widget.disclosure.text() == "Thinking, 4 s"
    widget.disclosure.click()
    view.stream(1, "", "One two")
    assert widget.thought.toPlainText() == "One two"


def test_buttons_that_must_wait_are_off_while_an_answer_is_written(view):
    view.set_items([Item(1, "user", "q", branch=(1, 2)), Item(2, "assistant", "a"), writing(3)])
    user, done = view.live_widgets()[1], view.live_widgets()[2]
    assert not user.edit.isEnabled()
    assert not user.branch.next.isEnabled()
    assert not done.action_row.regenerate.isEnabled()
    view.replace(Item(3, "assistant", "b", is_last=True))
    assert user.edit.isEnabled()
    assert user.branch.next.isEnabled()
    assert not user.branch.previous.isEnabled()
    assert done.action_row.regenerate.isEnabled()


# ---- what a person does
def test_actions_carry_their_key_and_name(view):
    stats = "42 tok/s  ·  3 tokens"
    view.set_items([Item(7, "assistant", "a", branch=(2, 3), stats=stats, is_last=True)])
    seen = []
    view.action.connect(lambda key, name: seen.append((key, name)))
    row = view.live_widgets()[7].action_row
    for control in (row.copy, row.regenerate, row.statistics, row.branch.previous, row.branch.next):
        control.click()
    names = ["copy", "regenerate", "statistics", "previous", "next"]
    assert seen == [(7, name) for name in names]
    assert view.control(7, "statistics") is row.statistics


def test_a_notice_offers_its_ways(view):
    ways = (Way("Import again…", "import"), Way("Use another", "choose"))
    notice = Notice("danger", "It didn't load", "The file is cut off.", ways, "Expected 3 bytes")
    view.set_items([Item(1, "notice", notice=notice)])
    seen = []
    view.action.connect(lambda key, name: seen.append((key, name)))
    card = view.live_widgets()[1]
    buttons = {b.text(): b for b in card.findChildren(QAbstractButton)}
    height = card.height()
    buttons["Show details"].click()
    assert card.height() > height
    buttons["Use another"].click()
    assert seen == [(1, "choose")]


def test_a_message_is_edited_in_its_place(view, qtbot):
    view.set_items([Item(1, "user", "first"), Item(2, "assistant", "a")])
    view.edit(1)
    widget = view.live_widgets()[1]
    field = widget.editor.field
    assert field.toPlainText() == "first"
    assert QApplication.focusWidget() is field
    qtbot.keyClicks(field, " and more")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    with qtbot.waitSignal(view.edited) as caught:
        qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert caught.args == [1, "first and more\n"]
    assert widget.editor is None


def test_escape_gives_the_message_back_as_it_was(view, qtbot):
    view.set_items([Item(1, "user", "first"), Item(2, "assistant", "a")])
    view.edit(1)
    widget = view.live_widgets()[1]
    qtbot.keyClicks(widget.editor.field, "x")
    with qtbot.assertNotEmitted(view.edited):
        qtbot.keyClick(widget.editor.field, Qt.Key.Key_Escape)
    assert widget.editor is None
    assert widget.body.isVisible()
    assert widget.body.toPlainText() == "first"
    assert widget.hasFocus()


def test_an_edit_survives_scrolling_away(view, qtbot):
    view.set_items(conversation(100))
    view.edit(0)
    qtbot.keyClicks(view.live_widgets()[0].editor.field, "kept")
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    view.verticalScrollBar().setValue(0)
    assert "kept" in view.live_widgets()[0].editor.field.toPlainText()


def test_links_are_only_signalled(view, qtbot):
    view.set_items([Item(1, "assistant", "[a](https://a.b)")])
    body = view.live_widgets()[1].body
    with qtbot.waitSignal(view.link_activated) as caught:
        body.anchorClicked.emit("https://a.b")
    assert caught.args == ["https://a.b"]


# ---- keyboard and names
def test_keys_move_from_message_to_message(view, qtbot):
    view.set_items(conversation(100))
    alt = Qt.KeyboardModifier.AltModifier
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Up, alt)
    for key in (99, 98, 97):
        focused = QApplication.focusWidget()
        assert focused is view.live_widgets()[key]
        qtbot.keyClick(focused, Qt.Key.Key_Up, alt)
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Down, alt)
    assert QApplication.focusWidget() is view.live_widgets()[97]  # where the focus was, and on
    view.setFocus()
    view.verticalScrollBar().setValue(0)
    qtbot.keyClick(view, Qt.Key.Key_Down, alt)
    assert QApplication.focusWidget() is view.live_widgets()[0]


def test_keys_scroll(view, qtbot):
    view.set_items(conversation(100))
    bar = view.verticalScrollBar()
    for key, moves in (
        (Qt.Key.Key_Home, lambda before: bar.value() == 0),
        (Qt.Key.Key_PageDown, lambda before: bar.value() > before),
        (Qt.Key.Key_PageUp, lambda before: bar.value() < before),
        (Qt.Key.Key_End, lambda before: bar.value() == bar.maximum()),
    ):
        before = bar.value()
        qtbot.keyClick(view, key)
        assert moves(before)


def test_everything_has_a_name(view):
    notice = Notice("info", "Title", "Text", (Way("Do it", "do"),), "More")
    view.set_items(
        [
            Item(1, "user", "q", branch=(1, 2)),
            Item(
                2, "assistant", ANSWER, thought="t", model="SmolLM2", stats="1 tok/s", is_last=True
            ),
            Item(3, "notice", notice=notice),
        ]
    )
    view.verticalScrollBar().setValue(0)
    names = [widget.accessibleName() for widget in view.live_widgets().values()]
    assert names == ["You", "Answer from SmolLM2", "Title. Text"]
    for control in view.findChildren(QAbstractButton):
        assert control.accessibleName() or control.text()
        if not control.text():
            assert control.toolTip()
            assert min(control.width(), control.height()) >= 24


def test_copy_of_a_focused_message_is_asked_for(view, qtbot):
    view.set_items([Item(1, "user", "q"), Item(2, "assistant", "**a**")])
    view.live_widgets()[2].setFocus()
    with qtbot.waitSignal(view.action) as caught:
        qtbot.keyClick(view.live_widgets()[2], Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert caught.args == [2, "copy"]


def test_the_source_is_copied_from_a_whole_selection(view, qtbot):
    view.set_items([Item(1, "assistant", "**a** and <b>")])
    body = view.live_widgets()[1].body
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(body, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "**a** and <b>"


def test_selection_survives_the_growth_of_its_message(view):
    view.set_items([*conversation(4), writing(100, "Some words to select")])
    body = view.live_widgets()[100].body
    body.setTextCursor(body.document().find("words"))
    for n in range(1, 20):
        view.stream(100, "Some words to select" + " and\n\nmore" * n)
        assert body.textCursor().selectedText() == "words"
    view.replace(Item(100, "assistant", "Some words to select" + " and\n\nmore" * 19))
    assert view.live_widgets()[100].body.textCursor().selectedText() == "words"


def test_an_answer_says_its_adapter_and_that_it_was_changed_and_what_the_cache_kept(view):
    kept = "kept 1,180 of 1,240 tokens from the cache"
    item = Item(
        1,
        "assistant",
        "a",
        model="SmolLM2",
        adapter="poems",
        is_edited=True,
        is_pinned=True,
        stats="42 tok/s",
        kept=kept,
        is_last=True,
    )
    view.set_items([item])
    widget = view.live_widgets()[1]
    assert widget.header.text() == "SmolLM2  ·  poems  ·  Edited  ·  Pinned"
    assert widget.accessibleName() == "Answer from SmolLM2"
    stats = widget.action_row.stats
    assert stats.toolTip() == stats.accessibleName() == f"42 tok/s, {kept}"


def test_marks_of_an_answer_without_a_model_have_their_own_line(view):
    view.set_items([Item(1, "assistant", "a"), Item(2, "assistant", "a", is_edited=True)])
    plain, edited = view.live_widgets()[1], view.live_widgets()[2]
    assert plain.header.isHidden()
    assert not edited.header.isHidden()
    assert edited.height() - plain.height() == 26
    assert edited.header.geometry().bottom() < edited.body.y()
