"""What an import raises on purpose: one sentence that a person can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ConvertError(RuntimeError):
    """The source cannot be converted, or the result cannot be written; the text says why."""


_REASONS = {
    errno.ENOSPC: "The disk is full: free some space and import again.",
    errno.EDQUOT: "Your disk quota is used up: free some space and import again.",
    errno.EROFS: "The models folder is on a read-only disk: choose another folder.",
    errno.EACCES: "The models folder cannot be written to: check its permissions.",
    errno.EPERM: "The models folder cannot be written to: check its permissions.",
    errno.EFBIG: "The model is too large for this kind of disk: choose another disk.",
}


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns what the file system says while the block writes into a ConvertError."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}.")
        raise ConvertError(f"“{folder.name}” could not be written. {reason}") from error
