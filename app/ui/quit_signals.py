"""SIGTERM, SIGINT and SIGHUP end the app as the menu does: nothing gets lost.

Python runs a signal handler only between two of its own instructions, and none runs while Qt
waits. A socket that the signal writes to wakes Qt up; no timer is needed.
"""

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class QuitSignals(QObject):
    received = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._near, self._far = socket.socketpair()
        for end in (self._near, self._far):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
        self._handlers = {}
        for name in NAMES:
            if (number := getattr(signal, name, None)) is not None:
                self._handlers[number] = signal.signal(number, self._ignore)
        self._notifier = QSocketNotifier(self._near.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_activated)

    @staticmethod
    def _ignore(_number: int, _frame: object) -> None:
        """Replaces the default, which would end the process at once."""

    @Slot()
    def _on_activated(self) -> None:
        try:
            self._near.recv(64)
        except BlockingIOError:
            return
        self.received.emit()

    def close(self) -> None:
        self._notifier.setEnabled(False)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before)
        self._near.close()
        self._far.close()
