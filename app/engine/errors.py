"""What the engine raises on purpose. The text of each is one sentence that a person can act on.

Anything else that leaves the engine is a bug and keeps its traceback.
"""

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60


def shown(value: object) -> str:
    """What was received, for the text of an error: one line, however large it is."""
    return " ".join(_repr.repr(value).split())


class EngineError(RuntimeError):
    """The engine cannot do what was asked; the text says what to change."""


class ModelError(EngineError):
    """A model folder or one of its files is missing, cut, foreign or wrong."""


class ContextFullError(EngineError):
    """More tokens than the model or max_length allows.

    `needed` and `limit` are counts of tokens, so that a caller can say by how much.
    """

    def __init__(self, message: str, *, needed: int, limit: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.limit = limit


class OutOfMemoryError(EngineError):
    """The device could not give the memory that was asked for."""


class Stopped(Exception):
    """A Stop was set while the model ran. Not an error: the generator stays usable."""


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """A library in Rust that meets data it did not expect panics, which is no Exception to Python,
    or raises an Exception of no kind. Both are the data's fault, which is called `what`."""
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        words = " ".join(str(error).split())[:200]
        raise ModelError(f"{what} cannot be used: {words}") from error
