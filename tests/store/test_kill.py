"""A process that is killed in the middle of an answer loses nothing of what it had saved."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.store.records import State
from app.store.store import Store

WRITER = """
import sys
from pathlib import Path
from app.store.records import PartRecord
from app.store.store import Store

store = Store(Path(sys.argv[1]))
chat = store.create_conversation("Killed")
question = store.add_user_message(chat, None, [PartRecord("text", "The question")])
store.save_draft(chat, "the next ques")
answer = store.start_answer(chat, question, "tiny")
count = 0
while True:
    count += 1
    store.update_answer(answer, [PartRecord("text", "word " * count)], range(count))
    print(count, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_kill_in_the_middle_of_an_answer(tmp_path):
    path = tmp_path / "chats.sqlite3"
    project = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=project
    )
    saved = 0
    while saved < 50:
        saved = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    saved = max([saved, *map(int, process.stdout.read().split())])
    process.wait()
    process.stdout.close()
    store = Store(path)
    (chat,) = store.conversations()
    question, answer = store.messages(chat.id)
    assert (chat.title, chat.draft, chat.leaf_id) == ("Killed", "the next ques", answer.id)
    assert (question.parts[0].text, question.state) == ("The question", State.DONE)
    assert answer.state == State.INTERRUPTED
    written = len(answer.token_ids)
    assert written in (saved, saved + 1)  # the last one may have come before its line was printed
    assert answer.parts[0].text == "word " * written
    assert answer.token_ids == tuple(range(written))
    store.close()
