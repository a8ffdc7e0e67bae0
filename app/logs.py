"""The log: one small file that turns over, with every traceback that a person is spared.

No text of a conversation is logged, anywhere. Knows nothing of windows.
"""

import faulthandler
import logging
import logging.handlers
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

LOG_FILE = "inglenook.log"
FAULT_FILE = "crash.log"

log = logging.getLogger("app")
_fault_file: IO[str] | None = None


def start(folder: Path) -> Path | None:
    """Send the log, uncaught exceptions and crashes to files in the folder.

    Returns the log file, or None when the folder cannot be written: then there is no log.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False  # a log on a full disk would fill the terminal with tracebacks
    _hook_exceptions()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            folder / LOG_FILE,
            maxBytes=1_000_000,
            backupCount=3,
            encoding="utf-8",
            errors="backslashreplace",  # file names need not be text
            delay=True,
        )
        _catch_crashes(folder / FAULT_FILE)
    except OSError:
        root.addHandler(logging.NullHandler())  # else the last resort prints to the terminal
        return None
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s")
    )
    root.addHandler(handler)
    return folder / LOG_FILE


def stop() -> None:
    """Close the files, for tests and for a clean end."""
    global _fault_file
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, logging.handlers.RotatingFileHandler):
            root.removeHandler(handler)
            with suppress(OSError):  # what is left of the log has no room on the disk
                handler.close()
    if _fault_file is not None:
        faulthandler.disable()
        _fault_file.close()
        _fault_file = None


def _catch_crashes(path: Path) -> None:
    """Where native code failed, written by the dying process itself."""
    global _fault_file
    _fault_file = path.open("a", encoding="utf-8")
    faulthandler.enable(_fault_file)


def _hook_exceptions() -> None:
    def uncaught(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            log.critical("uncaught exception", exc_info=(kind, error, trace))

    def uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
        if found.exc_value is not None and found.exc_type is not SystemExit:
            uncaught(found.exc_type, found.exc_value, found.exc_traceback)

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
