"""Where everything is put together: settings, store, engine thread, controllers, window.

The only place that constructs them. The order of a start: the window first, then whatever takes
time; the engine is imported on its own thread after the first frame. The order of an end: what
was typed, the engine, what it still said, the store.
"""

import argparse
import importlib
import itertools
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app import logs, paths
from app import settings as settings_file
from app.settings import Settings
from app.store.store import Store, StoreError, set_aside
from app.ui import icons, log, notices, theme
from app.ui.chat_controller import ChatController
from app.ui.engine_thread import EngineThread, MakeLoop
from app.ui.garbage import Garbage
from app.ui.job import StoreJob
from app.ui.main_window import MainWindow
from app.ui.model_controller import ModelController
from app.ui.quit_signals import QuitSignals
from app.ui.schemes import Tokens
from app.ui.single_instance import SingleInstance

if TYPE_CHECKING:
    from app.chat.loop import EngineLoop
    from app.server.server import LocalServer

VERSION = "0.1.0"
BIN_DAYS = 30
SMOKE_QUESTION = "Say hello in one short sentence."
SMOKE_LIMIT_MS = 180_000
NO_SCREEN = (
    "Inglenook opens a window, and there is no screen here: neither DISPLAY nor WAYLAND_DISPLAY is"
    " set. In a terminal, use inglenook-cli."
)


def real_loop(on_ready: Callable[[], None], /) -> "EngineLoop":
    """Runs on the engine's thread: these imports bring ONNX Runtime."""
    from app.chat.loop import EngineLoop
    from app.chat.session import ChatSession

    return EngineLoop(ChatSession(), on_ready)


class Application(QObject):
    """One run of the app over one data folder."""

    began = Signal()  # a model is being loaded or opened, or there is none

    def __init__(
        self,
        app: QApplication,
        folders: paths.Folders,
        *,
        to_open: Sequence[str] = (),
        make_loop: MakeLoop | None = None,
    ) -> None:
        super().__init__()
        self._app, self._folders, self._to_open = app, folders, list(to_open)
        settings = settings_file.load(folders.settings)
        self._are_settings_readable = _is_readable(folders.settings)
        theme.set_text_scale(settings.text_scale_percent)
        theme.apply(app, _scheme(app, settings))
        app.styleHints().colorSchemeChanged.connect(self._dress)
        self._applied = settings
        self.engine = EngineThread(make_loop or real_loop, self)
        self.engine.loop_made.connect(self._on_loop)
        self.window = MainWindow(settings, folders)
        self.store: Store | None = None
        self.job: StoreJob | None = None
        self.chat: ChatController | None = None
        self.models: ModelController | None = None
        self._garbage = Garbage(self)
        self._uncaught = log.Uncaught(self)
        self._uncaught.raised.connect(self.window.show_exception)
        self.window.settings_changed.connect(self._on_settings)
        self.window.store_action.connect(self._on_store_action)
        app.aboutToQuit.connect(self.shut_down)
        self._is_down = False
        self.engine_has_ended = True

    def start(self) -> None:
        """Opens the chats and shows the window; the engine follows the first frame."""
        self._open_store()
        self.window.show()
        QTimer.singleShot(0, self._after_first_frame)

    # ---- opening
    def _open_store(self) -> None:
        try:
            self.store = Store(self._folders.database)
        except StoreError as error:
            self.window.show_problem(
                notices.store_unreadable(notices.sentence(error), is_newer=error.kind == "newer")
            )
            return
        ids = itertools.count(1)
        self.job = StoreJob(self.store, self)
        self.chat = ChatController(self.store, self.job, self.engine, ids, self)
        self.models = ModelController(self._folders.models, self.engine, ids, self)
        self.models.threads = self._applied.threads
        self.models.loaded.connect(self._on_loaded)
        self.engine.events.connect(self.models.on_events)
        self.engine.events.connect(self.chat.on_events)
        self.window.open_chats(self.chat, self.models)
        self.job.run(lambda store: store.purge(BIN_DAYS * 24 * 3600))
        self.job.run(lambda store: store.remove_old_copies(BIN_DAYS * 24 * 3600))
        if not self._are_settings_readable:
            self.chat.show_notice(notices.settings_unreadable())

    @Slot()
    def _after_first_frame(self) -> None:
        self._begin_models()

    def _begin_models(self) -> None:
        """The library's imports (ONNX, GGUF) take a moment, so the window does not wait there.

        The engine's thread starts after them: two threads that import NumPy at once meet a half
        imported one, and neither the engine nor the models would come.
        """
        if self.job is not None:
            self.job.run(
                lambda _: importlib.import_module("app.library.models"),
                lambda _: self._open_or_begin(),
                lambda _: self._on_no_models(),
            )

    def _on_no_models(self) -> None:
        assert self.chat is not None
        self.chat.show_notice(notices.models_cannot_start())

    def _open_or_begin(self) -> None:
        assert self.models is not None
        self.engine.start()
        opened, self._to_open = self._to_open, []
        if opened:
            for path in opened:
                self.models.open(path)
        else:
            self.models.begin(self._applied.last_model)
        self.began.emit()

    @Slot()
    def _on_loop(self) -> None:
        """The engine is there, also for the local server if it is wanted."""
        self.window.server.serve_with(self._make_server)

    def _make_server(
        self, token: str, port: int, on_use: Callable[[int, int], None]
    ) -> "LocalServer":
        from app.server.client import EngineClient
        from app.server.server import LocalServer

        assert self.engine.loop is not None
        assert self.models is not None
        server = LocalServer(
            EngineClient(self.engine.loop, self.models.info), token, port=port, on_use=on_use
        )
        server.start()
        return server

    @Slot(str)
    def _on_store_action(self, name: str) -> None:
        try:
            if name == "set-store-aside":
                set_aside(self._folders.database)
        except StoreError as error:
            self.window.show_problem(
                notices.store_unreadable(notices.sentence(error), is_newer=False)
            )
            return
        self._open_store()
        self._begin_models()

    @Slot(list)
    def open_paths(self, opened: list[str]) -> None:
        """What a second start was given."""
        self.window.come_forward()
        for path in opened:
            self.window.open_model(path)

    # ---- settings
    @Slot(str)
    def _on_loaded(self, path: str) -> None:
        self._garbage.settle()
        self.window.change_settings(replace(self.window.settings(), last_model=path))

    @Slot(object)
    def _on_settings(self, settings: Settings) -> None:
        old, self._applied = self._applied, settings
        if _look_of(old) != _look_of(settings):
            self._dress()
        if self.models is not None:
            self.models.threads = settings.threads
        try:
            settings_file.save(settings, self._folders.settings)
        except OSError as error:
            words = notices.sentence(error)
            if self.chat is not None:
                self.chat.show_notice(notices.change_not_saved(words))

    @Slot()
    def _dress(self) -> None:
        theme.set_text_scale(self._applied.text_scale_percent)
        theme.apply(self._app, _scheme(self._app, self._applied))
        self.window.restyle()

    # ---- ending
    @Slot()
    def shut_down(self) -> None:
        """Keeps what was typed and written, then lets go of everything. Harmless done twice."""
        if self._is_down:
            return
        self._is_down = True
        if self.chat is not None:
            self.chat.prepare_quit()
        self.window.server.close()
        if self.models is not None:
            self.models.close()
        self.engine_has_ended = self.engine.close()
        if self.chat is not None:
            self.chat.settle()
        if self.job is not None:
            self.job.close()
        if self.store is not None:
            self.store.close()
        self._uncaught.remove()
        self._garbage.close()


class Smoke(QObject):
    """`--smoke`: does this build open a window and, with a model, answer? Ends the app with 0."""

    def __init__(self, running: Application) -> None:
        super().__init__(running)
        self._running = running
        self._has_begun = self._is_asked = False
        self._code = 0
        self._limit = QTimer(self, singleShot=True, interval=SMOKE_LIMIT_MS)
        self._limit.timeout.connect(self._too_late)
        self._limit.start()
        assert running.chat is not None
        running.chat.state_changed.connect(self._look)
        running.chat.notice_changed.connect(self._on_notice)
        running.began.connect(self._on_begun)

    @Slot()
    def _on_begun(self) -> None:
        self._has_begun = True
        self._look()

    @Slot()
    def _look(self) -> None:
        chat = self._running.chat
        assert chat is not None
        state = chat.state
        if not self._limit.isActive():
            return
        if not self._is_asked and state.model.phase == "ready":
            self._is_asked = True
            chat.change_options(replace(chat.options, longest_answer=16, temperature=0.0))
            chat.send(SMOKE_QUESTION)
        elif self._is_asked and state.has_answer and not state.is_writing:
            self._end(0, f"{state.model.name} answered: {chat.here.last_answer_text()!r}")
        elif self._has_begun and state.model.phase == "none" and state.model.importing is None:
            self._end(0, "The window opened. There is no model to ask.")

    @Slot(object)
    def _on_notice(self, notice: object) -> None:
        if notice is not None and getattr(notice, "tone", "") == "danger":
            self._end(1, f"{notice.title}. {notice.text}")  # type: ignore[attr-defined]

    @Slot()
    def _too_late(self) -> None:
        self._end(1, "No answer in time.")

    def _end(self, code: int, words: str) -> None:
        if self._limit.isActive():
            self._limit.stop()
            self._code = code
            if sys.stdout is not None:  # a windowed build on Windows has none
                print(words, flush=True)
            # exit() lets go of everything at once, and this is somebody else's signal.
            QTimer.singleShot(0, self._exit)

    @Slot()
    def _exit(self) -> None:
        QApplication.exit(self._code)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parse(argv)
    with tempfile.TemporaryDirectory(prefix="inglenook-") as scratch:
        if arguments.smoke:
            os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        folders = _folders(arguments, Path(scratch))
        return _run(folders, arguments)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("inglenook", description="A private, offline chat.")
    parser.add_argument("paths", nargs="*", help="a model file or folder to open")
    parser.add_argument("--data", type=Path, help="keep chats, models and settings here")
    parser.add_argument(
        "--smoke", action="store_true", help="open the window, answer one prompt and end"
    )
    parser.add_argument("--version", action="version", version=VERSION)
    return parser.parse_args(argv)


def _folders(arguments: argparse.Namespace, scratch: Path) -> paths.Folders:
    if arguments.data is not None:
        return paths.Folders(arguments.data.expanduser().resolve())
    return paths.Folders(scratch) if arguments.smoke else paths.Folders.default()


def _run(folders: paths.Folders, arguments: argparse.Namespace) -> int:
    if _has_no_screen():
        print(NO_SCREEN, file=sys.stderr)
        return 1
    app = QApplication.instance() or QApplication([sys.argv[0]])
    assert isinstance(app, QApplication)
    app.setApplicationName("Inglenook")
    app.setApplicationVersion(VERSION)
    app.setDesktopFileName("inglenook")
    app.setWindowIcon(QIcon(icons.icon("mark", "accent")))
    opened = [str(Path(path).expanduser().resolve()) for path in arguments.paths]
    try:
        folders.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        notices.cannot_start(
            f"The data folder {folders.data} can't be made: {error.strerror}. Start with --data "
            "and another folder."
        )
        return 1
    logs.start(folders.logs)
    log.route_qt_messages()
    logging.getLogger("app").info("Inglenook %s starts", VERSION)
    instance = SingleInstance(folders.data)
    if not instance.is_first():
        if not instance.hand_over(opened):
            notices.cannot_start("Inglenook is running already, but it doesn't answer. End it.")
            return 1
        return 0
    running = Application(app, folders, to_open=opened)
    instance.opened.connect(running.open_paths)
    signals = QuitSignals()
    signals.received.connect(running.window.close_unasked)
    running.start()
    if arguments.smoke and running.chat is not None:
        Smoke(running)
    code = app.exec()
    running.shut_down()
    signals.close()
    instance.close()
    if not running.engine_has_ended:
        # Everything is saved, but native code still runs: Python must not wait for it.
        logs.stop()
        os._exit(code)
    return code


def _has_no_screen() -> bool:
    """Qt would end the process by abort, with a page of its own words."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return sys.platform.startswith("linux") and not any(os.environ.get(name) for name in names)


def _scheme(app: QApplication, settings: Settings) -> Tokens:
    return theme.scheme_for(app, settings.theme, is_strong=settings.high_contrast)


def _look_of(settings: Settings) -> tuple[object, ...]:
    return settings.theme, settings.high_contrast, settings.text_scale_percent


def _is_readable(path: Path) -> bool:
    """False: there are settings, but not as this app writes them."""
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(main())
