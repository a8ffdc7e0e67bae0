"""The only place that words and shows an error.

Three kinds, as a person meets them: a known one has a sentence of its own and ways out, a
cancelled job shows nothing, anything else is a bug of ours: the log has the traceback, the
person reads one sentence. Cards appear in the page; a message box only where no page can.
"""

import errno
import logging
from pathlib import Path

from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

from app.ui.items import Notice, Way

log = logging.getLogger(__name__)

BUG = "Something went wrong in the app. Your chats are saved, and the log says more."
DISK_FULL = "The disk is full. Free some space, then try again."

CHOOSE_MODEL = Way("Choose another model…", "choose-model")
OPEN_MODEL = Way("Open a model file or folder…", "open-model")
OPEN_DATA = Way("Show the data folder", "open-data")
OPEN_LOG = Way("Show the log", "open-log")
NEW_CHAT = Way("Continue in a new chat", "continue-in-new-chat")
RELOAD = Way("Try again", "reload-model")
RETRY_SAVE = Way("Save again", "retry-save")
QUIT = Way("Quit", "quit")


def sentence(error: BaseException) -> str:
    """What a person reads of an error. A traceback goes to the log where it was not expected."""
    # Imported here: these bring the engine, which must not load before the first frame.
    try:
        from app.chat.attachments import AttachmentError
        from app.chat.exchange.errors import ExchangeError
        from app.convert.errors import ConvertError
        from app.engine.errors import EngineError
        from app.store.store import StoreError
    except ImportError:  # an installation that lacks a part; the error may well be that
        log.exception("A part of the app is missing")
        log.error("Not expected", exc_info=error)
        return BUG

    known = AttachmentError | ConvertError | EngineError | ExchangeError | StoreError
    if isinstance(error, known):
        log.warning("%s: %s", type(error).__name__, error)
        return str(error)
    log.error("Not expected", exc_info=error)
    if isinstance(error, OSError):
        return _sentence_of_system(error)
    return BUG


def _sentence_of_system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"The app may not read or write there{where}. Choose another folder."
    if error.errno == errno.ENOENT:
        return f"The file is not there any more{where}."
    return f"A file could not be read or written{where}. The log says more."


# ---- what the pages show
def no_model() -> Notice:
    return Notice(
        "info",
        "No model is loaded",
        "Choose a model first. What you wrote stays in the message field.",
        (Way("Choose a model…", "choose-model"), OPEN_MODEL),
    )


def load_failed(name: str, message: str) -> Notice:
    return Notice(
        "danger",
        f"{name} didn't load",
        f"{message} Your chats are not affected.",
        (CHOOSE_MODEL, RELOAD),
    )


def import_failed(name: str, message: str) -> Notice:
    return Notice(
        "danger",
        f"{name} can't be used",
        message,
        (Way("Open another…", "open-model"),),
    )


def import_busy() -> Notice:
    return Notice(
        "info",
        "One model at a time",
        "Another model is being added. Open this one when that is done.",
    )


def model_is_gone(path: str, used_instead: str) -> Notice:
    name = Path(path).name
    instead = f" {used_instead} is used instead." if used_instead else ""
    return Notice(
        "info",
        f"{name} is not there any more",
        f"Its folder was moved or deleted.{instead} Your chats are not affected.",
        (CHOOSE_MODEL, OPEN_MODEL),
    )


def answer_failed(
    kind: str, message: str, *, written_tokens: int, needed: int = 0, limit: int = 0
) -> Notice:
    """`kind` as in app.chat.events.Failed. The text that was written is always kept."""
    kept = f" Writing stopped after {written_tokens:,} tokens, and they are kept." * bool(
        written_tokens
    )
    again = Way("Write again", "write-again")
    if kind == "context":
        if needed > limit > 0:
            over = needed - limit
            message = f"It needs {needed:,} tokens, {over:,} more than fit into {limit:,}."
        return Notice(
            "warning",
            "This chat is as long as the model can read",
            f"{message}{kept} Everything stays here for you to read.",
            (NEW_CHAT, Way("Choose messages…", "choose-messages"), CHOOSE_MODEL),
        )
    if kind == "memory":
        return Notice(
            "warning",
            "The memory ran out",
            f"{message}{kept}",
            (again, CHOOSE_MODEL),
        )
    if kind == "model":
        return Notice(
            "danger",
            "The model can't answer now",
            f"{message}{kept} Your chats are not affected.",
            (CHOOSE_MODEL, RELOAD),
        )
    if kind == "options":
        ways = (Way("Go to the options", "go-to-options"), again)
        return Notice("warning", "An option can't be used", f"{message}{kept}", ways)
    if kind == "no model":
        return no_model()
    return Notice(
        "danger",
        "Something went wrong in the app",
        f"Your chats are saved.{kept} The log says what happened.",
        (again, OPEN_LOG),
        details=message if message != BUG else "",
    )


def change_refused(message: str) -> Notice:
    """An option that was changed while an answer is written, and that cannot act in it."""
    return Notice("info", "Not in this answer", message, (Way("Close", "dismiss-notice"),))


def message_not_saved(message: str) -> Notice:
    return Notice(
        "danger",
        "Your message wasn't sent",
        f"It couldn't be saved, and it is in the message field again. {message}",
        (Way("Send again", "send-again"), OPEN_DATA),
    )


def answer_not_saved(message: str) -> Notice:
    return Notice(
        "danger",
        "The answer isn't saved yet",
        f"You can read and copy it here. {message}",
        (RETRY_SAVE, OPEN_DATA),
    )


def change_not_saved(message: str) -> Notice:
    return Notice("danger", "This change isn't saved", message, (OPEN_DATA,))


def store_unreadable(message: str, *, is_newer: bool) -> Notice:
    """In place of the chats when their file can't be opened. Nothing is written to it."""
    aside = Way("Put the file aside and start empty", "set-store-aside")
    ways = (OPEN_DATA, QUIT) if is_newer else (Way("Try again", "retry-store"), aside, OPEN_DATA)
    return Notice("danger", "Your chats can't be opened", message, ways)


def app_bug() -> Notice:
    return Notice(
        "danger",
        "Something went wrong in the app",
        "Your chats are saved. The log says what happened.",
        (OPEN_LOG,),
    )


def server_cannot_start(port: int, error: OSError) -> Notice:
    log.warning("The local server did not start: %s", error)
    words = (
        f"Port {port} is used by another program. Choose another one, or 0 for any that is free."
        if error.errno in (errno.EADDRINUSE, errno.EACCES)
        else f"The system did not allow it: {error.strerror}."
    )
    return Notice(
        "warning", "The local server didn't start", words, (Way("Open the settings", "settings"),)
    )


def models_cannot_start() -> Notice:
    return Notice(
        "danger",
        "The part of the app that runs models didn't start",
        "Your chats are here to read. Restart the app; if that doesn't help, install it again.",
        (OPEN_LOG, QUIT),
    )


def uncaught(error: Exception) -> Notice:
    """Of an exception that reached the top; the hook has logged it."""
    words = sentence(error)
    return app_bug() if words == BUG else change_not_saved(words)


def settings_unreadable() -> Notice:
    return Notice(
        "info",
        "The settings couldn't be read",
        "The app started with its own settings. Your chats are not affected.",
        (Way("Open the settings", "settings"),),
    )


# ---- where no page can show it
def cannot_start(text: str) -> None:
    """The window itself can't be shown."""
    log.critical("Cannot start: %s", text)
    if QApplication.platformName() != "offscreen":
        QMessageBox.critical(None, QApplication.applicationName(), text)


def confirm_quit(parent: QWidget) -> bool:
    """Asked only while an answer is written."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setText("Stop writing and quit?")
    box.setInformativeText("The text so far is kept.")
    stop = box.addButton("Stop and quit", QMessageBox.ButtonRole.AcceptRole)
    box.addButton("Keep writing", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stop)
    box.exec()
    return box.clickedButton() is stop
