"""Who has the chats file open: one small lock file per open store, numbered.

The system drops a lock when its process ends, however it ends. So a row that names a writer whose
lock is free was left behind by a dead process, and a row whose lock is held is being written now.
"""

import os
import sys
from pathlib import Path
from typing import IO

MOST_OPEN = 64

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class WriterLock:
    """Holds the lowest free number until close or the end of the process."""

    def __init__(self, database: Path) -> None:
        self._database = database
        for number in range(MOST_OPEN):
            file = self._open(number)
            if _is_taken(file):
                file.close()
                continue
            self.number, self._file = number, file
            return
        raise BlockingIOError("too many programs have the chats open")

    def is_alive(self, number: int) -> bool:
        """Whether an open store, this one or another, holds that number."""
        if number == self.number:
            return True
        with self._open(number) as file:
            return _is_taken(file)

    def close(self) -> None:
        self._file.close()

    def _open(self, number: int) -> IO[bytes]:
        path = self._database.with_name(f"{self._database.name}.lock-{number}")
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


def _is_taken(file: IO[bytes]) -> bool:
    """Try to take the lock. A file system without locks counts as free: one user, one program."""
    try:
        _lock(file)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    return False
