"""A flood of tokens leaves the window alive: beats of a timer are counted with and without it,
turn by turn in the same run, so that whatever else the machine does weighs on both."""

import time

import pytest
from PySide6.QtCore import QObject, QTimer, Slot

from app.ui.items import Item
from app.ui.transcript import TranscriptView

TURN_S = 0.5
FLOODS = {
    "without newlines": "word " * 20_000,
    "with newlines": "word\n" * 20_000,
    "with paragraphs": "word\n\n" * 20_000,
    "of emphasis": "**wo** *rd* `x` [y " * 5_000,
    "of code": "```python\n" + "x = 1  # y\n" * 10_000,
}


class Pump(QObject):
    """Sends the text so far every 33 ms, as the window does, and counts beats of 10 ms."""

    def __init__(self, view: TranscriptView, text: str) -> None:
        super().__init__()
        self._view, self._text = view, text
        self.beats = self.sent = 0
        self._beat = QTimer(self, interval=10)
        self._beat.timeout.connect(self._count)
        self._tick = QTimer(self, interval=33)
        self._tick.timeout.connect(self._send)
        self._beat.start()

    @Slot()
    def _count(self) -> None:
        self.beats += 1

    @Slot()
    def _send(self) -> None:
        self.sent = min(len(self._text), self.sent + len(self._text) // 60)
        self._view.stream(1, self._text[: self.sent])

    def flow(self, flows: bool) -> None:
        (self._tick.start if flows else self._tick.stop)()


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_leaves_half_of_the_beats(name, qtbot):
    text = FLOODS[name]
    view = TranscriptView()
    qtbot.addWidget(view)
    view.resize(900, 600)
    view.show()
    view.set_items([Item(1, "assistant", "", state="writing", is_last=True)])
    pump = Pump(view, text)
    seconds = {False: 0.0, True: 0.0}
    beats = {False: 0, True: 0}
    while pump.sent < len(text):
        for flows in (False, True):
            pump.flow(flows)
            before, start = pump.beats, time.monotonic()
            until = start + TURN_S
            qtbot.waitUntil(lambda until=until: time.monotonic() >= until, timeout=20_000)
            pump.flow(False)  # what is still to be drawn belongs to the flood as well
            qtbot.waitUntil(lambda: view.is_drawn, timeout=60_000)
            beats[flows] += pump.beats - before
            seconds[flows] += time.monotonic() - start
    with_it, without = (beats[flows] / seconds[flows] for flows in (True, False))
    print(f"flood {name}: {with_it:.0f} beats a second with it, {without:.0f} without")
    assert with_it >= without / 2
    view.replace(Item(1, "assistant", text, is_last=True))
    body = view.live_widgets()[1].body
    qtbot.waitUntil(lambda: view.is_drawn, timeout=60_000)
    shown = body.toPlainText().replace("word", "")
    assert not set(shown) - set("\n *`[x=1#yrdwo")
    assert body.toPlainText().count("wo") == text.count("wo")
