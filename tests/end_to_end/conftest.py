"""A desktop of its own for the tests, and the real application in a real window on it.

The desktop is an X server, a window manager and a session bus, all without a network. The
application runs in a network namespace with nothing in it where the system allows one. Tests
reach it as a person does: keys, mouse, clipboard; they read it as a screen reader does, and they
look into the database with SQLite alone.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from PIL import Image, ImageGrab

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PYTHON = "/usr/bin/python3"
SCREEN = (1600, 1000)
PATIENCE_S = 60.0  # long: the machine may be busy; a test that works never waits that long
PROGRAMS = ("Xvfb", "openbox", "xdotool", "xclip", "dbus-daemon")
# The pictures look as on a common desktop where these fonts are installed.
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
<alias><family>monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
</fontconfig>"""


# ---- the desktop
class Desktop:
    """X server, window manager, session bus and the screen reader's eyes. Closed by its stack."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        runtime = folder / "run"
        runtime.mkdir(mode=0o700)
        fonts = folder / ".config" / "fontconfig" / "fonts.conf"
        fonts.parent.mkdir(parents=True)
        fonts.write_text(FONTS)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_SESSION_TYPE": "x11",
            "QT_QPA_PLATFORM": "xcb",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
        }
        self.display = self.environment["DISPLAY"] = self._start_screen()
        bus = self.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={runtime}/bus"
        ready = self._spawn(
            *("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"),
            f"--address={bus}",
        )
        assert ready.stdout is not None
        assert ready.stdout.readline().startswith("unix:"), "the session bus did not start"
        self._spawn("openbox", "--sm-disable")
        self._reader = self._spawn(SYSTEM_PYTHON, str(Path(__file__).with_name("accessible.py")))

    def _start_screen(self) -> str:
        """The X server chooses a free number and tells it when it is ready."""
        reading, writing = os.pipe()
        size = f"{SCREEN[0]}x{SCREEN[1]}x24"
        command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp"]
        self._spawn(*command, "-noreset", pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as pipe:
            number = pipe.readline().strip()
        assert number, "the X server did not start"
        return f":{number}"

    def _spawn(self, *command: str, **options: Any) -> "subprocess.Popen[str]":
        log = self._stack.enter_context((self.folder / f"{Path(command[0]).name}.log").open("w"))
        process = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            **options,
        )
        self._stack.callback(end, process)
        return process

    def ask(self, request: dict[str, Any]) -> Any:
        """Of accessible.py; None when the window changed under its eyes."""
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write(json.dumps(request) + "\n")
        self._reader.stdin.flush()
        line = self._reader.stdout.readline()
        assert line, "accessible.py ended: " + (self.folder / "python3.log").read_text()
        return json.loads(line).get("ok")

    def do(self, *words: object) -> str:
        """xdotool; every command under a time limit, because some wait for ever."""
        command = ["timeout", "20", "xdotool", *map(str, words)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def picture(self) -> Image.Image:
        return ImageGrab.grab(xdisplay=self.display)


def end(process: "subprocess.Popen[Any]") -> None:
    """The process and what it started."""
    with ExitStack() as stack:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                stack.callback(pipe.close)
        for way in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, way)
                process.wait(10)
            except ProcessLookupError:
                process.wait()
            except subprocess.TimeoutExpired:
                continue


# ---- the application
@dataclass(frozen=True)
class Element:
    """One thing in the window, as a screen reader is told of it."""

    path: list[int]
    role: str
    name: str
    description: str
    id: str  # object names from the application down to the widget, joined by dots
    text: str
    value: float | None
    box: list[int]
    states: list[str]

    @property
    def object_name(self) -> str:
        return self.id.rpartition(".")[2]


class Window:
    """The running application. `data` is its folder; a test may start a second one on the same."""

    def __init__(self, desktop: Desktop, data: Path, *arguments: object, log: IO[bytes]) -> None:
        self.desktop, self.data, self.log = desktop, data, Path(log.name)
        words = [sys.executable, "-m", "app", "--data", str(data), *map(str, arguments)]
        self.process = subprocess.Popen(
            [*without_network(), *words],
            cwd=ROOT,
            env=desktop.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    # ---- waiting
    def wait_until(self, condition: Callable[[], Any], what: str) -> Any:
        """The first true value of `condition`. Fails when the application ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if value := condition():
                return value
            try:
                status = self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                assert time.monotonic() < deadline, self._report(f"never: {what}")
            else:
                raise AssertionError(self._report(f"ended with {status} before: {what}"))

    def _report(self, fault: str) -> str:
        place = self.log.with_suffix(".png")
        self.desktop.picture().save(place)
        seen = [f"{e.role} {e.object_name!r} {e.name!r} {e.text[:200]!r}" for e in self.elements()]
        output = self.log.read_text(errors="replace")[-4000:]
        return "\n".join([fault, f"picture: {place}", *seen, "output:", output])

    def appear(self) -> "Window":
        """Waits for the window, and gives it the keyboard."""
        search = ["xdotool", "search", "--onlyvisible", "--name", "Inglenook$"]

        def shown() -> str:
            done = subprocess.run(
                search, env=self.desktop.environment, capture_output=True, text=True
            )
            return done.stdout.strip()

        self.id = self.wait_until(shown, "a window named Inglenook").splitlines()[0]
        self.desktop.do("windowactivate", "--sync", self.id)
        self.wait_until(lambda: self.find(id="message"), "the composer")
        return self

    # ---- reading
    def elements(self) -> list[Element]:
        found = self.desktop.ask({"pid": self.process.pid}) or []
        return [Element(**one) for one in found]

    def find(self, **wanted: str) -> Element | None:
        """The first element that is showing with these fields; `id` is its object name."""
        for one in self.elements():
            fields = {"id": one.object_name, "name": one.name, "role": one.role}
            if "showing" in one.states and all(fields[k] == v for k, v in wanted.items()):
                return one
        return None

    def the(self, **wanted: str) -> Element:
        return self.wait_until(lambda: self.find(**wanted), f"something with {wanted}")

    def reads(self, words: str) -> bool:
        """Whether these words stand anywhere in the window."""
        return any(
            words in text
            for one in self.elements()
            if "showing" in one.states
            for text in (one.name, one.text, one.description)
        )

    # ---- acting
    def click(self, **wanted: str) -> None:
        left, top, width, height = self.the(**wanted).box
        self.desktop.do("mousemove", left + width // 2, top + height // 2, "click", 1)

    def key(self, *keys: str) -> None:
        self.desktop.do("key", "--clearmodifiers", *keys)

    def type(self, text: str) -> None:
        """ASCII, as a fast typist."""
        self.desktop.do("type", "--clearmodifiers", "--delay", 15, text)

    def paste(self, text: str) -> None:
        """Any script: X has no key for most of it."""
        clipboard = subprocess.Popen(
            ["xclip", "-selection", "clipboard", "-in", "-quiet"],
            env=self.desktop.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert clipboard.stdin is not None
        clipboard.stdin.write(text.encode())
        clipboard.stdin.close()
        self.wait_until(lambda: self._clipboard() == text, "the clipboard")
        self.key("ctrl+v")
        self.wait_until(lambda: text in self.the(id="message").text, "the pasted text")
        end(clipboard)

    def _clipboard(self) -> str:
        command = ["timeout", "5", "xclip", "-selection", "clipboard", "-out"]
        done = subprocess.run(command, env=self.desktop.environment, capture_output=True)
        return done.stdout.decode()

    def resize(self, width: int, height: int) -> None:
        self.desktop.do("windowmove", self.id, 20, 40)
        self.desktop.do("windowsize", self.id, width, height)
        self.wait_until(lambda: self.the(role="frame").box[2:] == [width, height], "the new size")

    def picture(self) -> Image.Image:
        """The inside of the window."""
        left, top, width, height = self.the(role="frame").box
        return self.desktop.picture().crop((left, top, left + width, top + height))

    # ---- ending
    def kill(self) -> None:
        """As a crash or a power cut: nothing of the application runs after this."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def quit(self) -> int:
        """As a person closes it."""
        self.key("ctrl+q")
        return self.process.wait(30)

    # ---- what it left on the disk
    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """Of the database, read by SQLite alone; nothing while there is no such table yet."""
        path = self.data / "chats.sqlite3"
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            try:
                return [dict(row) for row in connection.execute(statement, values)]
            except sqlite3.OperationalError:
                return []

    def messages(self) -> list[dict[str, Any]]:
        """All messages in the order they were made: role, state, text, token ids, details."""
        found = self.rows(
            "SELECT id, conversation_id, parent_id, role, state, token_ids, details,"
            " (SELECT group_concat(text, '') FROM part WHERE message_id = message.id"
            "  AND kind = 'text') AS text FROM message ORDER BY id"
        )
        for row in found:
            row["token_ids"] = array("i", row["token_ids"]).tolist()
            row["details"] = json.loads(row["details"])
            row["text"] = row["text"] or ""
        return found


def without_network() -> list[str]:
    """The words before a command that take its network away; none where the system refuses."""
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--net"]
    allowed = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True)
    return words if allowed and allowed.returncode == 0 else []


# ---- fixtures
@pytest.fixture(scope="session")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    if not sys.platform.startswith("linux"):
        pytest.skip("the window is driven by tools of X11")
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    with ExitStack() as stack:
        yield Desktop(tmp_path_factory.mktemp("desktop"), stack)


@pytest.fixture(scope="session")
def starter_data(tmp_path_factory: pytest.TempPathFactory, starter_gguf: Path) -> Path:
    """A data folder with the starter model, converted by the command that make uses."""
    data = tmp_path_factory.mktemp("starter")
    command = [sys.executable, "-m", "app.cli", "import", str(starter_gguf), "--data", str(data)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return data


@pytest.fixture
def data(tmp_path: Path, starter_data: Path) -> Path:
    """A fresh data folder with the starter model; its files are links, so it costs nothing."""
    folder = tmp_path / "data"
    shutil.copytree(starter_data, folder, copy_function=os.link)
    return folder


@pytest.fixture
def open_window(desktop: Desktop, tmp_path: Path) -> Iterator[Callable[..., Window]]:
    """Starts the application on a data folder. What still runs at the end is ended."""
    with ExitStack() as stack:

        def start(data: Path, *arguments: object) -> Window:
            number = len(list(tmp_path.glob("output-*.log")))
            log = stack.enter_context((tmp_path / f"output-{number}.log").open("wb"))
            window = Window(desktop, data, *arguments, log=log)
            stack.callback(end, window.process)
            return window

        yield start


@pytest.fixture
def save_picture(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Renews a picture in docs/screenshots, in both sizes; only with --screenshots."""

    def save(window: Window, name: str, *, is_still: bool = True) -> None:
        if not request.config.getoption("--screenshots"):
            return
        folder = ROOT / "docs" / "screenshots"
        folder.mkdir(parents=True, exist_ok=True)
        window.desktop.do("mousemove", 0, 0)
        for width, height in ((900, 600), (1440, 900)):
            window.resize(width, height)
            path = folder / f"{name}-{width}x{height}.png"
            picture = settled(window) if is_still else window.picture()
            picture.save(path, optimize=True)

    return save


def settled(window: Window) -> Image.Image:
    """The picture once it has stopped changing, or the last of a few when it never does."""
    before = window.picture()
    for _ in range(20):
        with suppress(subprocess.TimeoutExpired):
            window.process.wait(0.15)
        after = window.picture()
        if after.tobytes() == before.tobytes():
            break
        before = after
    return before
