"""Qt's messages into the log, and what no one caught to the window.

Python calls sys.excepthook for an exception in a slot and goes on; a person must hear of it once,
in words, while the log keeps the traceback.
"""

import logging
import sys
from types import TracebackType

from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QThread,
    QtMsgType,
    Signal,
    qInstallMessageHandler,
)

log = logging.getLogger("qt")

LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def _to_log(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    log.log(LEVELS.get(kind, logging.WARNING), "%s", message)


def route_qt_messages() -> None:
    qInstallMessageHandler(_to_log)


class Uncaught(QObject):
    """`raised` brings the exception; what was there before (the log) is called first."""

    raised = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._before = sys.excepthook
        sys.excepthook = self._hook

    def _hook(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self._before(kind, error, trace)
        if isinstance(error, Exception) and QThread.currentThread() is self.thread():
            self.raised.emit(error)

    def remove(self) -> None:
        sys.excepthook = self._before
