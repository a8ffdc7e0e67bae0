"""What the model remembers: seen, never silently cut, chosen by the person."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.chat.events import Forgot, Notice, Piece, Trying
from app.chat.messages import ContextUse, Message, Options, Stats
from app.paths import Folders
from app.ui import context_notices
from app.ui.chat_items import stats_line
from app.ui.context_notices import Cut, cut_of, turns_of

SHORT = 60


@pytest.fixture
def short(open_desk: Callable[..., Any], folders: Folders, session: Any) -> Any:
    """A model that reads 60 words, and a chat with three turns of 15 words."""
    session.context_length = SHORT
    desk = open_desk(folders, session)
    for number in range(3):
        desk.session.will_answer("five words are in this")
        desk.say(f"question {number} " + "word " * 8)
        desk.until(lambda number=number: len(desk.session.replies) == number + 1)
        desk.until_written()
    return desk


def words(count: int) -> str:
    return " ".join(["long"] * count)


def until_counted(desk: Any, total: int) -> None:
    desk.until(lambda: desk.chat.state.context and desk.chat.state.context.total == total)


def by_action(notice: Any) -> dict[str, str]:
    return {way.action: way.text for way in notice.ways}


def test_what_is_typed_is_counted_and_shown(short: Any) -> None:
    until_counted(short, 45)
    short.composer.field.setPlainText("four more words now")
    until_counted(short, 49)
    assert short.chat.state.draft_tokens == 4
    meter = short.composer.meter
    assert meter.accessibleName() == (
        "49 of 60 tokens that the model can read are used, 4 of them by what you are typing"
    )
    shares = [round(share * SHORT) for share, _ in meter._meter.segments()]
    assert shares == [0, 45, 4]
    short.chat.change_options(replace(short.chat.options, system_prompt="be brief"))
    until_counted(short, 51)
    assert [round(share * SHORT) for share, _ in meter._meter.segments()] == [2, 45, 4]


def test_a_message_that_does_not_fit_is_not_sent_and_said_by_how_much(short: Any) -> None:
    short.say(words(30))
    short.until(lambda: short.notice() is not None)
    assert short.notice().title == context_notices.FULL
    assert "75 tokens, 16 tokens more than fit into 60" in short.notice().text
    assert by_action(short.notice()) == {
        "forget-oldest": "Forget the oldest 6",
        "continue-in-new-chat": "Continue in a new chat",
        "choose-messages": "Choose messages…",
    }
    assert len(short.session.replies) == 3
    assert short.composer.text() == words(30)


def test_the_notice_goes_when_it_fits_again(short: Any) -> None:
    short.composer.field.setPlainText(words(30))
    short.until(lambda: short.notice() is not None)
    short.composer.field.setPlainText(words(3))
    short.until(lambda: short.notice() is None)


def test_the_oldest_are_forgotten_and_a_line_says_where(short: Any) -> None:
    short.say(words(20))
    short.until(lambda: short.notice() is not None)
    text = by_action(short.notice())["forget-oldest"]
    assert text == "Forget the oldest 6"
    short.window.act("forget-oldest")
    short.until(lambda: len(short.session.replies) == 4)
    short.until_written()
    assert short.session.replies[-1].first == 6
    marks = [item.begins_memory for item in short.page.transcript.items()]
    assert marks == [False] * 6 + [True, False]
    assert short.texts()[0].startswith("question 0")  # it stays to be read
    assert short.notice() is None


def test_memory_is_remembered_and_given_back(short: Any) -> None:
    second = short.keys()[2]
    short.page.transcript.action.emit(short.keys()[3], "begin-memory")
    short.until(lambda: short.page.transcript.items()[2].begins_memory)
    shown = short.chat.state.conversation_id
    assert short.store.conversation(shown).memory_start == second
    widget = short.page.transcript.live_widgets()[second]
    assert widget.memory_line.isVisible()
    assert short.window.actions_["remember_all"].isEnabled()
    until_counted(short, 30)
    short.window.actions_["remember_all"].trigger()
    until_counted(short, 45)
    assert not any(item.begins_memory for item in short.page.transcript.items())


def test_a_pinned_turn_stays_in_memory(short: Any) -> None:
    first = short.keys()[0]
    short.page.transcript.action.emit(first, "pin")
    short.until(lambda: short.page.transcript.items()[0].is_pinned)
    short.say(words(20))
    short.until(lambda: short.notice() is not None)
    assert by_action(short.notice())["forget-oldest"] == "Forget the oldest 4"
    short.window.act("forget-oldest")
    short.until(lambda: len(short.session.replies) == 4)
    short.until_written()
    asked = short.session.replies[-1]
    assert [message.is_pinned for message in asked.messages] == [True] + [False] * 6


def test_the_policy_stop_does_not_offer_to_forget(short: Any) -> None:
    short.chat.change_options(replace(short.chat.options, overflow="stop"))
    short.say(words(30))
    short.until(lambda: short.notice() is not None)
    assert set(by_action(short.notice())) == {"continue-in-new-chat", "choose-messages"}
    assert len(short.session.replies) == 3


def test_the_policy_forget_says_so_before_and_after(short: Any, say: Any) -> None:
    short.chat.change_options(replace(short.chat.options, overflow="forget"))
    short.composer.field.setPlainText(words(20))
    short.until(lambda: short.notice() is not None)
    assert "send-anyway" in by_action(short.notice())
    short.session.will_answer(say(lambda number: Forgot(number, 4, 30)), "Fine.")
    short.window.act("send-anyway")
    short.until(lambda: short.texts()[-1] == "Fine.")
    short.until_written()
    assert short.notice().title == "The model forgot the oldest 4 messages"
    marks = [item.begins_memory for item in short.page.transcript.items()]
    assert marks == [False] * 4 + [True] + [False] * 3
    shown = short.chat.state.conversation_id
    short.until(lambda: short.store.conversation(shown).memory_start == short.keys()[4])
    short.say("And now?")
    short.until(lambda: len(short.session.replies) == 5)
    short.until_written()
    assert short.session.replies[-1].first == 4


def test_the_card_lists_what_fills_it_and_pins_turns(short: Any) -> None:
    until_counted(short, 45)
    short.composer.meter.click()
    card = short.window.findChild(type(short.window).__mro__[0])  # none of that kind inside
    assert card is None
    joint = next(j for j in short.window.joints if type(j).__name__ == "ContextJoint")
    card = joint.card
    assert [fact[1:] for fact in card.facts] == [
        ("System prompt", "0 tokens"),
        ("Messages", "45 tokens"),
        ("What you are typing", "0 tokens"),
        ("Free for the answer", "15 tokens"),
    ]
    assert card.turns.count() == 3
    card.turns.item(1).setCheckState(Qt.CheckState.Checked)
    short.until(lambda: [i.is_pinned for i in short.page.transcript.items()].count(True) == 1)
    assert short.page.transcript.items()[2].is_pinned
    card.close()


def test_beams_say_that_the_text_comes_at_the_end(desk: Any, say: Any, hold: Any) -> None:
    desk.session.will_answer(say(lambda number: Trying(number, 4, 0)), hold, "Done.")
    desk.say("Try")
    desk.until(
        lambda: (
            desk.page.transcript.items()[-1].status == "Trying 4 answers, text appears at the end"
        )
    )
    hold.release()
    desk.until_written()
    assert desk.texts()[-1] == "Done."


def test_a_change_that_cannot_act_now_is_said(desk: Any, say: Any) -> None:
    refused = "This change acts from the next answer on."
    desk.session.will_answer("a", say(lambda number: Notice(number, refused)), "b")
    desk.ask("Go")
    assert desk.notice().text == refused
    desk.window.act("dismiss-notice")
    assert desk.notice() is None


@pytest.mark.parametrize(
    ("kind", "needed", "words"),
    [
        ("context", 2100, "needs 2,100 tokens, 52 more than fit into 2,048"),
        ("options", 0, "Top-k must be whole."),
    ],
)
def test_failures_say_what_is_wrong(
    desk: Any, failure: Any, kind: str, needed: int, words: str
) -> None:
    desk.session.will_answer(failure("Top-k must be whole.", kind, needed, 2048))
    desk.say("Go")
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert words in desk.notice().text
    assert desk.composer.text() == "Go"


def test_the_cut_is_the_engines(short: Any) -> None:
    """What the window offers to forget fits, by the very rules of the engine."""
    from app.chat.context import is_remembered

    roles = ("user", "assistant") * 6 + ("user",)
    messages = [Message.of(role, "x") for role in roles]
    turns = tuple([10] * len(roles))
    use = ContextUse(0, turns, sum(turns), 100)
    cut = cut_of(messages, use)
    assert cut == Cut(8, 8)
    kept = is_remembered(messages, cut.first)
    assert sum(tokens for tokens, is_kept in zip(turns, kept, strict=True) if is_kept) == 50
    assert turns_of(messages)[-1] == range(12, 13)


def test_the_files_of_a_message_reach_the_model(desk: Any) -> None:
    from app.chat.conversations import to_message
    from app.store.records import PartRecord

    chat = desk.store.create_conversation("Files")
    file = PartRecord("file", "a = 1", {"name": "code.py", "size_bytes": 5, "tokens": 3})
    desk.store.add_user_message(chat, None, (file, PartRecord("text", "What is a?")))
    desk.chat.open_chat(chat)
    text = to_message(desk.store.messages(chat)[0]).text
    assert text == "File: code.py\n```\na = 1\n```\n\nWhat is a?"
    shown = desk.page.transcript.items()[0]
    assert shown.text == "What is a?"
    assert [(a.name, a.size, a.note) for a in shown.attachments] == [
        ("code.py", "5 bytes", "3 tokens")
    ]
    assert Options().overflow == "ask"


def test_a_message_that_comes_back_forgets_nothing(short: Any, holds: Any) -> None:
    short.say(words(30))
    short.until(lambda: short.notice() is not None)
    short.session.before_reading = hold = holds()
    short.window.act("forget-oldest")
    short.until(hold.is_reached.is_set)
    short.chat.stop()
    short.until(lambda: short.composer.text() == words(30))
    short.until_written()
    assert short.store.conversation(short.chat.state.conversation_id).memory_start is None
    assert len(short.texts()) == 6
    assert not any(item.begins_memory for item in short.page.transcript.items())


@pytest.fixture
def real_desk(open_desk: Callable[..., Any], folders: Folders) -> Any:
    from app.chat.session import ChatSession

    return open_desk(folders, ChatSession())


def test_what_is_counted_before_is_what_the_model_reads(real_desk: Any) -> None:
    """The meter with the draft, against the prompt that the real engine was given for it."""
    real_desk.chat.change_options(Options(temperature=0.0, longest_answer=8, system_prompt="Hm."))
    real_desk.ask("Hello there")
    real_desk.composer.field.setPlainText("And then, what happened?")
    real_desk.until(lambda: real_desk.chat.state.draft_tokens > 0)
    counted = real_desk.chat.state.context.total
    real_desk.say("And then, what happened?")
    real_desk.until_written()
    stats = real_desk.store.messages(real_desk.chat.state.conversation_id)[-1].details["stats"]
    assert counted == stats["prompt_tokens"]


def test_the_real_engine_forgets_aloud_and_goes_on(real_desk: Any) -> None:
    length = real_desk.chat.state.model.context_length
    options = Options(temperature=0.0, longest_answer=4, overflow="forget")
    real_desk.chat.change_options(options)
    real_desk.ask("Hello")
    filler = "word " * (length // 12)  # a quarter of the context, in the tokens of this model
    for _ in range(4):
        real_desk.ask(filler)
    assert "forgot the oldest" in real_desk.notice().title
    marked = [item.key for item in real_desk.page.transcript.items() if item.begins_memory]
    assert len(marked) == 1
    shown = real_desk.chat.state.conversation_id
    assert real_desk.store.conversation(shown).memory_start == marked[0]
    assert len(real_desk.texts()) == 10
    last = real_desk.store.messages(shown)[-1].details["stats"]
    assert last["prompt_tokens"] < length


def test_another_chat_has_a_count_of_its_own(short: Any) -> None:
    until_counted(short, 45)
    short.chat.new_chat()
    assert short.chat.state.context is None
    assert short.chat.state.context_used == 0
    until_counted(short, 0)


def test_a_pinned_question_says_so(desk: Any) -> None:
    desk.ask("Remember me")
    key = desk.keys()[0]
    desk.page.transcript.action.emit(key, "pin")
    desk.until(lambda: desk.page.transcript.items()[0].is_pinned)
    widget = desk.page.transcript.live_widgets()[key]
    assert widget.marks.isVisible()
    assert widget.accessibleName() == "You, pinned"


def test_banned_words_that_were_turned_away_are_counted(desk: Any, say: Any, hold: Any) -> None:
    desk.session.will_answer(
        "One ", say(lambda number: Piece(number, "two", False, (7,), (), 2)), hold
    )
    desk.say("Count")
    desk.until(lambda: desk.texts()[-1] == "One two")
    desk.until(lambda: desk.page.transcript.items()[-1].stats == "2 avoided")
    hold.release()
    desk.until_written()
    assert stats_line(Stats(new_tokens=3, avoided=2)) == "2 avoided  \u00b7  3 tokens"


def test_the_exact_prompt_is_shown_with_what_is_typed(desk: Any) -> None:
    from app.ui.prompt_preview import PromptView

    desk.ask("What is a fen?")
    desk.chat.change_options(Options(system_prompt="Be brief."))
    desk.composer.field.setPlainText("And a bog?")
    desk.window.actions_["prompt"].trigger()
    view = desk.window.findChild(PromptView)
    desk.until(view.copy.isEnabled)
    assert view.text.toPlainText() == (
        "<turn>Be brief.<turn>What is a fen?<turn>An answer.<turn>And a bog?"
    )
    assert view.words.text().startswith("4 tokens.")
    view.copy.click()
    assert QGuiApplication.clipboard().text() == view.text.toPlainText()
    view.close()
    desk.chat.preview.failed.emit("Too long.")  # nobody listens any more


def test_a_prompt_that_cannot_be_made_says_why(desk: Any) -> None:
    from app.ui.prompt_preview import PromptView

    desk.window.actions_["prompt"].trigger()
    view = desk.window.findChild(PromptView)
    desk.chat.preview.failed.emit("The template of this model fails in line 3.")
    assert "line 3" in view.words.text()
    view.close()
