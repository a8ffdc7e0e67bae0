"""What callers hand over, checked: arrays of the form that the Generator works with, or a sentence.

Pure functions; they always copy.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.engine.errors import EngineError
from app.engine.feeds import Tokens
from app.engine.tensors import Tensor


def checked_tokens(tokens: "ArrayLike | Tensor", *, rows: int, vocab_size: int) -> Tokens:
    """(B, L) int32, every id within the vocabulary."""
    array = np.asarray(tokens.data() if isinstance(tokens, Tensor) else tokens)
    if array.size == 0:
        raise EngineError("There are no tokens to append.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"Tokens are whole numbers, not {array.dtype}.")
    outside = array[(array < 0) | (array >= vocab_size)]
    if outside.size:
        raise EngineError(f"Token {outside.flat[0]} is outside the vocabulary of {vocab_size}.")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != rows):
        raise EngineError(f"Tokens of shape {list(array.shape)} do not fit a batch_size of {rows}.")
    if array.ndim < 2 and array.size % rows:
        raise EngineError(f"{array.size} tokens do not fill {rows} rows evenly.")
    return np.array(array, np.int32, order="C").reshape(rows, -1)


def checked_logits(logits: ArrayLike, *, rows: int, vocab_size: int) -> NDArray[np.float32]:
    """(R, V) float32 of any shape with as many numbers."""
    array = np.asarray(logits)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"Logits are numbers, not {array.dtype}.")
    wanted = rows * vocab_size
    if array.size != wanted:
        raise EngineError(f"set_logits takes {wanted} numbers, not {array.size}.")
    copy = np.array(array, np.float32, order="C").reshape(rows, -1)
    if np.isnan(copy).any():
        raise ValueError("Logits must not contain NaN.")
    return copy
