"""What made an answer is kept with it, shown, copied, and tried again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication

from app.chat.messages import Options, Stats
from app.chat.options import to_record
from app.paths import Folders
from app.store.records import MessageRecord, PartRecord, State
from app.ui import replay
from app.ui.chat_items import stats_to_details
from app.ui.made_card import MadeCard
from app.ui.statistics import facts_of, options_to_replay


@pytest.fixture
def real_desk(open_desk: Callable[..., Any], folders: Folders) -> Any:
    from app.chat.session import ChatSession

    return open_desk(folders, ChatSession())


def record_of(options: Options, **stats: Any) -> MessageRecord:
    made = Stats(
        prompt_tokens=1240,
        kept_tokens=1180,
        new_tokens=30,
        seed=7,
        fingerprint="f" * 64,
        template_hash="a" * 64,
        chosen=to_record(options),
        **stats,
    )
    details = {"stats": stats_to_details(made), "device": "CPU", "reason": "end"}
    parts = (PartRecord("text", "x"),)
    return MessageRecord(2, 1, 1, "assistant", parts, State.DONE, 0.0, "tiny", (), details)


def test_the_facts_name_all_that_made_it() -> None:
    options = Options(temperature=0.5, top_k=9, banned=("foo",), system_prompt="Be brief.")
    facts = dict(facts_of(record_of(options, avoided=3)))
    assert facts["Fingerprint"] == "f" * 16
    assert facts["Template"] == "a" * 16
    assert facts["Adapter"] == "none"
    assert facts["Seed"] == "7"
    assert (facts["Temperature"], facts["Top-k"]) == ("0.5", "9")
    assert facts["Banned words"] == "'foo'"
    assert facts["System prompt"] == "Be brief."
    assert facts["Kept from before"] == "1,180 of 1,240 tokens"
    assert facts["Banned words avoided"] == "3"
    assert "Answers tried" not in facts  # as it is by itself


def test_the_options_come_back_whole() -> None:
    options = Options(temperature=0.5, stop_strings=("\n\n",), banned=("foo", "bar baz"), beams=3)
    assert options_to_replay(record_of(options)) == replace(options, seed=7)


def test_the_card_is_copied(desk: Any) -> None:
    desk.ask("Go")
    desk.page.transcript.action.emit(desk.keys()[-1], "statistics")
    card = desk.window.findChild(MadeCard)
    card.copy.click()
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied == [f"{what}: {much}" for what, much in card.facts]
    assert copied[0] == "Model: tiny-llama"


def test_an_answer_of_another_model_cannot_be_tried_again(desk: Any) -> None:
    desk.ask("Go")
    record = desk.chat.here.record(desk.keys()[-1])
    stats = {**record.details["stats"], "chosen": to_record(Options())}
    foreign = replace(record, details={**record.details, "stats": stats, "model_path": "/else"})
    assert desk.chat.why_no_replay(foreign) == "Choose tiny-llama as the model to try it again."


def test_a_replay_is_the_same_text(real_desk: Any) -> None:
    """Sampled at a high temperature by the real engine: the same seed, the same tokens."""
    options = Options(temperature=1.5, top_k=50, top_p=1.0, longest_answer=24)
    real_desk.chat.change_options(options)
    real_desk.ask("Tell me something")
    shown = real_desk.chat.state.conversation_id
    first = real_desk.store.messages(shown)[-1]
    real_desk.chat.change_options(replace(options, temperature=0.2, longest_answer=4))
    real_desk.page.transcript.action.emit(first.id, "statistics")
    card = real_desk.window.findChild(MadeCard)
    assert card.replay.isEnabled()
    card.replay.click()
    real_desk.until(lambda: real_desk.notice() is not None)
    real_desk.until_written()
    assert real_desk.notice().title == "The same text"
    second = real_desk.store.messages(shown)[-1]
    assert (second.parent_id, second.token_ids) == (first.parent_id, first.token_ids)
    assert second.details["replay"] == "The same text"
    assert dict(facts_of(second))["Replay"] == "The same text"


def test_a_real_answer_goes_on_as_if_it_had_never_stopped(real_desk: Any) -> None:
    """Greedy: an answer cut at 6 tokens and continued is the one of 16 tokens."""
    greedy = Options(temperature=0.0, repetition_penalty=1.0, longest_answer=16)
    real_desk.chat.change_options(greedy)
    real_desk.ask("Hello there")
    shown = real_desk.chat.state.conversation_id
    whole = real_desk.store.messages(shown)[-1]
    real_desk.chat.change_options(replace(greedy, longest_answer=6))
    real_desk.chat.write_last_again()
    real_desk.until_written()
    cut = real_desk.store.messages(shown)[-1]
    assert (len(cut.token_ids), cut.state) == (6, State.LENGTH)
    real_desk.chat.change_options(replace(greedy, longest_answer=10))
    real_desk.chat.continue_answer(cut.id)
    real_desk.until_written()
    again = real_desk.store.messages(shown)[-1]
    assert again.id == cut.id
    shared = min(len(again.token_ids), len(whole.token_ids))
    assert shared > 6
    assert again.token_ids[:shared] == whole.token_ids[:shared]
    assert real_desk.texts()[-1] == "".join(p.text for p in again.parts)


def test_where_two_texts_differ() -> None:
    assert replay.verdict("a b c", "a b c") == replay.SAME
    words = replay.verdict("The sky is blue today.", "The sky is black today.")
    assert words.startswith("It differs from word 4 on: \u201cblue today.\u201d before")
    assert replay.verdict("One two", "One", is_whole=False).startswith(replay.SAME)
    assert "nothing more now" in replay.verdict("One two", "One ")
