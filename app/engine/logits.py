"""Pure functions that change one row of logits (V,) in place, before a token is chosen.

They know the ids of the text so far, not the model. The two classes do what the functions named in
them do, for one text, in a time that does not grow with it. Order of use: minimum length,
repetition penalty, repeated n-grams (SPEC 3.2).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Tokens = NDArray[np.int32]

BANNED = np.finfo(np.float32).min  # not -inf: a row where all is banned still has a softmax


def ban(row: Logits, ids: Sequence[int]) -> None:
    if ids:
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


class RepetitionPenalty:
    """penalize_repetition for one text that only grows: what was seen is not looked at again."""

    def __init__(self, penalty: float) -> None:
        self._penalty, self._length, self._count = penalty, 0, 0
        self._known: set[int] = set()
        self._ids = np.empty(256, np.int32)

    def __call__(self, row: Logits, text: Tokens) -> None:
        for token in text[self._length :].tolist():
            if token not in self._known:
                self._add(token)
        self._length = len(text)
        penalize_repetition(row, self._ids[: self._count], self._penalty)

    def _add(self, token: int) -> None:
        self._known.add(token)
        if self._count == len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
        self._ids[self._count] = token
        self._count += 1


class NgramBan:
    """ban_repeated_ngrams for one text that only grows."""

    def __init__(self, size: int) -> None:
        self._size, self._length = size, 0
        self._followers: dict[tuple[int, ...], list[int]] = {}  # of each run of `size` - 1

    def __call__(self, row: Logits, text: Tokens) -> None:
        before = self._size - 1
        start = max(self._length - before, 0)
        fresh = text[start:].tolist()
        for index in range(before, len(fresh)):
            if start + index >= self._length:
                followers = self._followers.setdefault(tuple(fresh[index - before : index]), [])
                followers.append(fresh[index])
        self._length = len(text)
        tail = tuple(text[max(len(text) - before, 0) :].tolist())
        ban(row, self._followers.get(tail, []))
