"""Records, messages and the tree of branches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.conversations import (
    LONGEST_TITLE,
    AnswerInProgress,
    branch,
    newest_leaf,
    siblings,
    title_of,
    to_message,
    to_parts,
)
from app.chat.events import Piece
from app.chat.messages import Message, TextPart, ThoughtPart
from app.store.records import MessageRecord, PartRecord, State


def record(id, parent_id, role="user"):
    return MessageRecord(id, 1, parent_id, role, (PartRecord("text", str(id)),), State.DONE, 0.0)


TREE = [
    record(1, None),
    record(2, 1, "assistant"),
    record(3, 1, "assistant"),  # a second answer
    record(4, 2),
    record(5, 4, "assistant"),
    record(6, 3),
    record(7, None),  # the first question, edited
]


def test_a_branch_is_the_way_to_its_leaf():
    assert [r.id for r in branch(TREE, 5)] == [1, 2, 4, 5]
    assert [r.id for r in branch(TREE, 3)] == [1, 3]
    assert [r.id for r in branch(TREE, None)] == [7]
    assert [r.id for r in branch(TREE, 99)] == [7]
    assert branch([], None) == []


def test_siblings_and_where_a_version_goes_on():
    assert siblings(TREE, 2) == siblings(TREE, 3) == [2, 3]
    assert siblings(TREE, 7) == [1, 7]
    assert siblings(TREE, 5) == [5]
    assert siblings(TREE, 99) == []
    assert [newest_leaf(TREE, start) for start in (1, 2, 3, 7)] == [6, 5, 6, 7]


@given(st.lists(st.integers(0, 30), max_size=30))
def test_every_message_is_on_its_own_branch_and_among_its_siblings(parents):
    tree = [record(1, None)] + [
        record(number, parent % (number - 1) + 1) for number, parent in enumerate(parents, start=2)
    ]
    for each in tree:
        way = branch(tree, each.id)
        assert way[-1] == each
        assert [r.parent_id for r in way] == [None, *(r.id for r in way[:-1])]
        assert each.id in siblings(tree, each.id)
        assert each in branch(tree, newest_leaf(tree, each.id))


def test_messages_survive_the_store():
    message = Message("assistant", (ThoughtPart("hm", 1.5), TextPart("yes")))
    stored = MessageRecord(1, 1, None, "assistant", to_parts(message), State.DONE, 0.0)
    assert to_message(stored) == message
    assert to_message(record(1, None)).role == "user"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n\n  # A   heading\nmore", "A heading"),
        ("", ""),
        ("###", "###"),
        ("Why is the sky blue, and why does it turn red in the evening, please?",
         "Why is the sky blue, and why does it turn red in the…"),
        ("x" * 100, "x" * LONGEST_TITLE + "…"),
    ],
)  # fmt: skip
def test_titles(text, title):
    assert title_of(text) == title


@given(st.text())
def test_a_title_is_one_short_line(text):
    title = title_of(text)
    assert len(title) <= LONGEST_TITLE + 1
    assert len(title.splitlines()) <= 1
    assert bool(title) == bool(text.strip())


def test_an_answer_in_progress_joins_its_pieces():
    answer = AnswerInProgress()
    answer.add(Piece(1, "let ", True, (1,)), thought_seconds=0.5)
    answer.add(Piece(1, "me see", True, (2, 3)), thought_seconds=1.0)
    answer.add(Piece(1, "Yes", False, (4,)), thought_seconds=9.0)
    assert (answer.thought, answer.text, answer.token_ids) == ("let me see", "Yes", [1, 2, 3, 4])
    assert answer.message == Message("assistant", (ThoughtPart("let me see", 1.0), TextPart("Yes")))
    assert answer.parts == to_parts(answer.message)
