"""Measures the transcript against the budgets of the design: open, scroll, stream, resize.

    QT_QPA_PLATFORM=offscreen python tests/bench/transcript.py

Prints figures only; a slow machine is no failure.
"""

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_SCALE_FACTOR", "2")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PySide6.QtCore import QTimer
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QApplication

from app.ui import theme
from app.ui.items import Item
from app.ui.transcript import TranscriptView

SHORT = "Your three readings give **g = 9.92 m/s²** when you fit a line to T² against L.\n\n" * 2
LONG = """## Estimating *g* from your readings

These are the rows I can read. The last one is smudged, so please check it:

| Length (m) | Period (s) | g (m/s²) |
|---:|---:|---:|
| 0.40 | 1.27 | 9.79 |
| 0.60 | 1.56 | 9.73 |

- **Fit a line** to T² against L instead of averaging; its slope is 4π²/g.
- **Keep the swing under 10°.** The formula is then off by less than 0.2 %.
- Time ten swings with `perf_counter()`, not one, and divide.

```python
import numpy as np

L = np.array([0.40, 0.60, 0.80])
T = np.array([1.27, 1.56, 1.79])
slope, _ = np.polyfit(L, T**2, 1)
print(f"g = {4 * np.pi**2 / slope:.2f} m/s²")
```

On your numbers this prints **g = 9.92 m/s²**, about 1 % above the accepted value.

"""
LONG_LIST = "".join(
    f"{n}. **Point {n}.** Some words about it that go on for a line or so, with `code` in them.\n"
    for n in range(1, 190)
)


def ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def show(name: str, times: list[float], budget: float) -> None:
    times = sorted(times)
    p95 = times[int(len(times) * 0.95)]
    print(
        f"{name:44} median {statistics.median(times):6.1f}  p95 {p95:6.1f}  max {times[-1]:6.1f} ms"
        f"  (budget p95 {budget:g} ms, {p95 / budget:.2f} of it)"
    )


def conversation() -> list[Item]:
    items = []
    for i in range(500):
        words = "Some more words to wrap the line. " * (i % 5)
        items.append(Item(2 * i, "user", f"Question {i}. {words}"))
        text = LONG if i % 3 == 0 else SHORT
        items.append(Item(2 * i + 1, "assistant", text, model="SmolLM2", branch=(1, 2)))
    return items


def bench_open_and_scroll(view: TranscriptView, items: list[Item], picture: QPixmap) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"open 1,000 messages {ms(lambda: view.set_items(items)):24.1f} ms  (budget 200)")
    print(f"  first paint {ms(lambda: view.render(picture)):.1f} ms, ", end="")
    print(f"{len(view.live_widgets())} widgets, ", end="")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{(after - before) / 1024:.1f} MB more")
    bar = view.verticalScrollBar()
    placed, painted = [], []
    for _ in range(300):
        placed.append(ms(lambda: bar.setValue(bar.value() - 120)))
        painted.append(ms(lambda: view.render(picture)))
    show("scroll 120 px, place and realise", placed, 12)
    show("paint the whole view at 200 %", painted, 16)
    jumps = [ms(lambda v=v: bar.setValue(int(bar.maximum() * v))) for v in (0, 0.5, 0.1, 0.9, 1)]
    show("jump anywhere", jumps, 50)


def bench_stream(view: TranscriptView, items: list[Item], name: str, text: str) -> None:
    key = len(items)
    view.set_items([*items, Item(key, "assistant", "", state="writing", is_last=True)])
    QApplication.processEvents()
    ticks = []
    for end in range(8, len(text), 8):
        view._draw_again_at = 0.0  # every tick draws, as if none were dear
        ticks.append(ms(lambda end=end: view.stream(key, text[:end])))
    show(name, ticks, 12)
    print(f"  after it: {len(text):,} characters, height {view._heights[-1]} px")


def bench_resize(view: TranscriptView) -> None:
    view.resize(900, 800)
    QApplication.processEvents()
    took = ms(lambda: (view.resize(700, 800), QApplication.processEvents()))
    print(f"resize by 200 px {took:27.1f} ms  (budget 33)")
    took = ms(view.retheme)
    print(f"retheme {took:36.1f} ms")


def heartbeats(view: TranscriptView, seconds: float, text: str) -> int:
    """Beats of a 10 ms timer while a flood goes through stream() every 33 ms."""
    beats, ticks = [0], [0]
    started = time.monotonic()

    def beat() -> None:
        beats[0] += 1

    def tick() -> None:
        ticks[0] += 1
        share = min(1.0, (time.monotonic() - started) / (seconds * 0.8))
        if text:
            view.stream(1, text[: int(len(text) * share)])

    beating, ticking = QTimer(interval=10), QTimer(interval=33)
    beating.timeout.connect(beat)
    ticking.timeout.connect(tick)
    view.set_items([Item(1, "assistant", "", state="writing", is_last=True)])
    beating.start()
    ticking.start()
    while time.monotonic() - started < seconds:
        QApplication.processEvents()
        time.sleep(0.001)
    beating.stop()
    ticking.stop()
    if text:
        took = ms(lambda: view.replace(Item(1, "assistant", text, is_last=True)))
        print(f"  (finish: {took:.0f} ms)", end="")
    return beats[0]


def bench_floods(view: TranscriptView) -> None:
    floods = {
        "20,000 tokens without newline": "word " * 20_000,
        "20,000 tokens, one a line": "word\n" * 20_000,
        "20,000 tokens, one a paragraph": "word\n\n" * 20_000,
        "20,000 tokens in a code block": "```python\n" + "x = 1  # y\n" * 10_000,
        "20,000 tokens of emphasis": "**wo** *rd* `x` [y " * 5_000,
        "20,000 tokens in a list": "- word word **x**\n" * 5_000,
        "20,000 tokens in a table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 4_000,
        "one line of 1 MB": "x" * 1_000_000,
    }
    quiet = heartbeats(view, 3.0, "")
    for name, text in floods.items():
        beats = heartbeats(view, 3.0, text)
        print(f"  {name}: {beats} of {quiet} heartbeats, {beats / quiet:.2f}")


def main() -> None:
    app = QApplication(sys.argv)
    theme.apply(app, theme.LIGHT)
    view = TranscriptView()
    view.resize(900, 800)
    view.show()
    app.processEvents()
    picture = QPixmap(1800, 1600)
    picture.setDevicePixelRatio(2)
    items = conversation()
    bench_open_and_scroll(view, items, picture)
    bench_resize(view)
    bench_stream(view, items, "stream tick, a 4,000-token answer", LONG * 18)
    bench_stream(view, items, "stream tick, a 4,000-token list", LONG_LIST)
    bench_floods(view)


if __name__ == "__main__":
    main()
