"""A start in a process of its own, where nothing is imported yet."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

START = """
import sys
from pathlib import Path
from PySide6.QtCore import QMetaObject, Qt
from PySide6.QtWidgets import QApplication
from app.__main__ import Application
from app.paths import Folders

def make(on_ready):
    print("engine starts:", "numpy" in sys.modules, "app.library.models" in sys.modules)
    from app.chat.loop import EngineLoop
    from app.chat.session import ChatSession
    QMetaObject.invokeMethod(app, "quit", Qt.ConnectionType.QueuedConnection)
    return EngineLoop(ChatSession(), on_ready)

app = QApplication([])
folders = Folders(Path(sys.argv[1]))
running = Application(app, folders, make_loop=make)
print("before:", "numpy" in sys.modules)
running.start()
app.exec()
running.shut_down()
"""


def test_two_threads_never_import_numpy_at_once(tmp_path: Path) -> None:
    """The second would find it half imported; the window then had no engine or no models."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", START, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["before: False", "engine starts: True True"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere there is a screen")
def test_without_a_screen_one_sentence_says_so(tmp_path: Path) -> None:
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: text for name, text in os.environ.items() if name not in screens}
    command = [sys.executable, "-m", "app", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no screen" in done.stderr


def test_an_installation_that_lacks_a_part_says_so(
    open_desk: Any, folders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a frozen app that missed a module: no window may wait for ever."""
    monkeypatch.setitem(sys.modules, "app.library.models", None)
    monkeypatch.setitem(sys.modules, "app.convert.errors", None)
    desk = open_desk(folders, wait=False)
    desk.until(desk.notice)
    assert "didn't start" in desk.notice().title
    assert any(way.action == "open-log" for way in desk.notice().ways)
