"""An answer that was cut off goes on, and nothing that stood is ever lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.store.records import PartRecord, State
from app.store.store import Store


def cut_answer(desk: Any, hold: Any, *steps: Any) -> int:
    """A stopped answer; its key."""
    desk.session.will_answer(*steps, hold)
    desk.say("Tell me")
    text = "".join(step for step in steps if isinstance(step, str))
    desk.until(lambda: desk.texts()[-1:] == [text])
    desk.chat.stop()
    desk.until_written()
    return int(desk.keys()[-1])


def test_a_stopped_answer_goes_on_in_its_place(desk: Any, hold: Any) -> None:
    key = cut_answer(desk, hold, "One ", "two ")
    stood = desk.store.messages(desk.chat.state.conversation_id)[-1].token_ids
    desk.session.will_answer("One ", "two ", "three")  # the pieces repeat what stands
    desk.page.transcript.action.emit(key, "continue")
    desk.until(lambda: len(desk.session.replies) == 2)
    desk.until_written()
    assert desk.session.replies[-1].start == stood
    assert desk.session.replies[-1].start_text == ""
    assert desk.keys()[-1] == key
    assert desk.stored() == [("user", "Tell me", "done"), ("assistant", "One two three", "done")]
    assert desk.store.messages(desk.chat.state.conversation_id)[-1].token_ids == (0, 1, 2)


def test_what_stands_is_shown_while_the_model_repeats_it(desk: Any, hold: Any, holds: Any) -> None:
    key = cut_answer(desk, hold, "One ", "two ")
    second = holds()
    desk.session.will_answer("One ", second, "two ", "three")
    desk.chat.continue_answer(key)
    desk.until(second.is_reached.is_set)
    desk.until(lambda: desk.texts()[-1] == "One two ")
    desk.until(lambda: desk.stored()[-1] == ("assistant", "One two ", "writing"))
    second.release()
    desk.until_written()
    assert desk.texts()[-1] == "One two three"


def test_a_failure_before_the_first_piece_keeps_the_answer(
    desk: Any, hold: Any, failure: Any
) -> None:
    key = cut_answer(desk, hold, "One ", "two ")
    desk.session.will_answer(failure("The model is gone.", "model"))
    desk.chat.continue_answer(key)
    desk.until(lambda: desk.notice() is not None)
    desk.until_written()
    assert desk.stored()[-1] == ("assistant", "One two ", "stopped")
    assert desk.store.messages(desk.chat.state.conversation_id)[-1].token_ids == (0, 1)
    assert desk.texts()[-1] == "One two "


def test_stop_before_it_goes_on_keeps_the_answer(desk: Any, hold: Any, holds: Any) -> None:
    key = cut_answer(desk, hold, "One ", "two ")
    desk.session.before_reading = reading = holds()
    desk.chat.continue_answer(key)
    desk.until(reading.is_reached.is_set)
    desk.chat.stop()
    desk.until_written()
    assert desk.stored()[-1] == ("assistant", "One two ", "stopped")


def test_of_another_model_the_text_is_continued(desk: Any, hold: Any) -> None:
    cut_answer(desk, hold, "One ", "two ")
    shown, key = desk.chat.state.conversation_id, desk.keys()[-1]
    record = desk.store.messages(shown)[-1]
    details = {**record.details, "model_path": "/another/model"}
    desk.store.finish_answer(key, record.parts, record.token_ids, record.state, details)
    desk.chat.open_chat(shown)
    desk.session.will_answer("One two ", "three")
    desk.chat.continue_answer(key)
    desk.until(lambda: len(desk.session.replies) == 2)
    desk.until_written()
    assert (desk.session.replies[-1].start, desk.session.replies[-1].start_text) == (
        (),
        "One two ",
    )
    assert desk.texts()[-1] == "One two three"


def test_a_whole_answer_is_not_continued(desk: Any) -> None:
    desk.ask("Done?")
    desk.chat.continue_answer(desk.keys()[-1])
    assert not desk.chat.state.is_writing
    assert len(desk.session.replies) == 1


KILLED = """
import sys, time
from pathlib import Path
from app.store.store import Store
store = Store(Path(sys.argv[1]))
store.reopen_answer(int(sys.argv[2]))
print("reopened", flush=True)
time.sleep(600)
"""


def test_a_process_killed_while_it_goes_on_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = Store(path)
    chat = store.create_conversation("Killed")
    asked = store.add_user_message(chat, None, (PartRecord("text", "Go"),))
    answer = store.start_answer(chat, asked, "m")
    store.finish_answer(answer, (PartRecord("text", "As far"),), (1, 2), State.STOPPED)
    store.close()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), str(answer)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "reopened"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = Store(path)
    record = again.messages(chat)[-1]
    assert (record.state, record.parts[0].text, record.token_ids) == (
        State.INTERRUPTED,
        "As far",
        (1, 2),
    )
    again.close()
