"""Twenty thousand tokens as fast as they come: the window stays awake.

Heartbeats of a timer are counted in the same run, over the same time, with and without the flood;
at least half of them must remain. The times themselves are not judged: machines differ.
"""

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Slot

TOKENS = 20_000
BEAT_MS = 10
FLOODS = {
    "one paragraph": lambda i: f"word{i % 97} ",
    "lines": lambda i: f"word{i % 97}" + ("\n" if i % 12 == 11 else " "),
    "paragraphs": lambda i: f"word{i % 97}" + ("\n\n" if i % 40 == 39 else " "),
}


class Heart(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.beats = 0
        self._timer = QTimer(self, interval=BEAT_MS)
        self._timer.timeout.connect(self._beat)

    def start(self) -> None:
        self.beats = 0
        self._timer.start()

    def stop(self) -> int:
        self._timer.stop()
        return self.beats

    @Slot()
    def _beat(self) -> None:
        self.beats += 1


@pytest.mark.parametrize("kind", FLOODS)
def test_heartbeats_remain(desk: Any, kind: str) -> None:
    piece: Callable[[int], str] = FLOODS[kind]
    desk.window.resize(1200, 800)
    desk.session.will_answer(*[piece(i) for i in range(TOKENS)])
    heart, clock = Heart(), QElapsedTimer()
    heart.start()
    clock.start()
    desk.say("Flood me")
    desk.until(lambda: desk.chat.state.has_answer and not desk.chat.state.is_writing)
    lasted = clock.elapsed()
    flooded = heart.stop()

    desk.until_written()
    heart.start()
    clock.restart()
    desk.until(lambda: clock.elapsed() >= lasted)
    quiet = heart.stop()
    print(f"{kind}: {flooded} beats in {lasted} ms, {quiet} without the flood")

    whole = "".join(piece(i) for i in range(TOKENS))
    assert desk.texts()[-1] == whole
    answer = desk.store.messages(desk.chat.state.conversation_id)[-1]
    assert len(answer.token_ids) == TOKENS
    assert answer.parts[-1].text == whole
    assert flooded * 2 >= quiet


def test_stop_in_the_flood_answers_in_the_same_event(desk: Any) -> None:
    desk.session.will_answer(*[f"word{i} " for i in range(TOKENS * 5)])
    desk.say("Flood me")
    desk.until(lambda: len(desk.texts()) == 2 and len(desk.texts()[-1]) > 100)
    desk.composer.send_button.click()
    shown = desk.texts()[-1]
    assert desk.composer.send_button.mode == "stopping"
    desk.until_written()
    assert desk.texts()[-1] == shown
    assert desk.stored()[-1] == ("assistant", shown, "stopped")
