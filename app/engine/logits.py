"""Pure functions that change one row of logits (V,) in place, before a token is chosen.

They know the ids of the text so far, not the model. Order of use: minimum length, repetition
penalty, repeated n-grams (SPEC 3.2).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Tokens = NDArray[np.int32]

BANNED = np.finfo(np.float32).min  # not -inf: a row where all is banned still has a softmax


def ban(row: Logits, ids: Sequence[int]) -> None:
    row[list(ids)] = BANNED


def add(row: Logits, ids: NDArray[np.intp], values: Logits) -> None:
    row[ids] += values


def penalize_repetition(row: Logits, seen: Tokens, penalty: float) -> None:
    """Scores of ids in `seen` move away from being chosen; each id counts once."""
    scores = row[seen]  # a copy: an id that occurs twice gets the same value twice
    factor = np.float32(penalty)
    with np.errstate(over="ignore"):  # what is banned already may become -inf
        row[seen] = np.where(scores < 0, scores * factor, scores / factor)


def ban_repeated_ngrams(row: Logits, seen: Tokens, size: int) -> None:
    """Ban each id that would complete a run of `size` ids that is already in `seen`."""
    if size <= 0 or len(seen) < size:
        return
    windows = np.lib.stride_tricks.sliding_window_view(seen, size)  # (T - size + 1, size)
    tail = seen[len(seen) - size + 1 :]
    row[windows[(windows[:, :-1] == tail).all(axis=1), -1]] = BANNED
