"""Finding in a chat: what is stored is searched, and a match is gone to wherever it is."""

import pytest

from app.ui.find_bar import FindBar
from app.ui.finding import find_all
from app.ui.items import Item
from app.ui.transcript import TranscriptView


@pytest.fixture
def view(qtbot):
    made = TranscriptView()
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    return made


@pytest.fixture
def bar(view, qtbot):
    made = FindBar(view)
    qtbot.addWidget(made)
    return made


def thousand() -> list[Item]:
    items = [Item(n, "user" if n % 2 == 0 else "assistant", f"Words {n}.") for n in range(1_000)]
    items[10] = Item(10, "user", "A Kelp forest, kelp again")
    items[701] = Item(701, "assistant", "Answer", thought="I think of **kelp** here")
    return items


def test_all_places_are_counted_in_order():
    found = find_all(thousand(), "KELP")
    assert [(match.key, match.is_thought, match.number) for match in found] == [
        (10, False, 0),
        (10, False, 1),
        (701, True, 0),
    ]
    assert find_all(thousand(), "") == []


def test_a_match_far_away_is_gone_to_and_marked(view, bar):
    view.set_items(thousand())
    bar.open_bar()
    bar.field.setText("kelp")
    assert bar.count.text() == "1 of 3"
    assert 10 in view.live_widgets()
    bar.go_back()
    assert bar.count.text() == "3 of 3"
    widget = view.live_widgets()[701]
    assert not widget.thought.isHidden()
    marked = widget.thought.extraSelections()
    assert [each.cursor.selectedText() for each in marked] == ["kelp"]
    y = widget.thought.mapTo(view.viewport(), widget.thought.rect().center()).y()
    assert 0 <= y <= view.viewport().height()
    bar.go_on()
    assert bar.count.text() == "1 of 3"


def test_closing_takes_the_marks_away(view, bar, qtbot):
    view.set_items(thousand()[:12])
    bar.open_bar()
    bar.field.setText("kelp")
    assert view.live_widgets()[10].body.extraSelections()
    with qtbot.waitSignal(bar.closed):
        bar.close_bar()
    assert not view.live_widgets()[10].body.extraSelections()


def test_what_is_not_there_is_told(view, bar):
    view.set_items(thousand()[:4])
    bar.open_bar()
    bar.field.setText("nowhere")
    assert bar.count.text() == "Not found"
