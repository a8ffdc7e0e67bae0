"""What the engine raises on purpose. The text of each is one sentence that a person can act on.

Anything else that leaves the engine is a bug and keeps its traceback.
"""

import reprlib

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
