"""One window per data folder: a second start hands its arguments to the first and ends.

A lock file decides who is first, a local socket carries the paths. Both survive a kill: the lock
of a dead process is taken over, its socket removed.
"""

import getpass
import hashlib
import json
import logging
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

log = logging.getLogger(__name__)

LOCK_WAIT_MS = 100
TALK_WAIT_MS = 3000
LONGEST_MESSAGE = 64 * 1024


def _server_name(data: Path) -> str:
    who = f"{getpass.getuser()}\n{data.resolve()}"
    return "inglenook-" + hashlib.sha256(who.encode()).hexdigest()[:16]


class SingleInstance(QObject):
    """`opened` brings the paths of a later start; an empty list only asks for the window."""

    opened = Signal(list)

    def __init__(self, data: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = _server_name(data)
        self._lock = QLockFile(str(data / "instance.lock"))
        self._lock.setStaleLockTime(0)  # by process id only: a long run is not stale
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def is_first(self) -> bool:
        """Takes the lock and listens. False: another process has it.

        A folder that allows no lock file does not stop the start: the store then says why.
        """
        if not self._lock.tryLock(LOCK_WAIT_MS):
            if self._lock.error() == QLockFile.LockError.LockFailedError:
                return False
            log.warning("No lock file could be written: %s", self._lock.error())
        QLocalServer.removeServer(self._name)
        if not self._server.listen(self._name):
            log.warning("A second start can't reach this window: %s", self._server.errorString())
        return True

    def hand_over(self, paths: list[str]) -> bool:
        """Tells the first instance what to open. False: it does not answer."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(TALK_WAIT_MS):
            return False
        socket.write(json.dumps(paths).encode() + b"\n")
        socket.flush()
        if not socket.waitForReadyRead(TALK_WAIT_MS):
            return False
        return bytes(socket.readAll().data()) == b"ok\n"

    def close(self) -> None:
        self._server.close()
        self._lock.unlock()

    @Slot()
    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setParent(self)
            socket.readyRead.connect(self._on_ready_read)
            socket.disconnected.connect(socket.deleteLater)

    @Slot()
    def _on_ready_read(self) -> None:
        socket = self.sender()
        assert isinstance(socket, QLocalSocket)
        if not socket.canReadLine():
            if socket.bytesAvailable() > LONGEST_MESSAGE:
                socket.abort()
            return
        try:
            paths = [str(path) for path in json.loads(bytes(socket.readLine().data()))]
        except (ValueError, TypeError):
            log.warning("A second start said something that can't be read")
            socket.abort()
            return
        socket.write(b"ok\n")
        socket.flush()
        self.opened.emit(paths)
