"""Pure functions from one row of logits (V,) to candidates, and from candidates to a token.

The random numbers are those of std::mt19937, two words a token, so that a seed gives the same text
as in onnxruntime-genai. Drawing from the whole vocabulary (top_k 0) is in nucleus.py.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]

_BLOCK = 128


@dataclass(frozen=True)
class Candidates:
    """Ids with their probabilities (float32, adding up to 1), the likeliest first."""

    ids: NDArray[np.intp]
    probabilities: NDArray[np.float32]


def candidates(row: Logits, *, temperature: float, top_k: int, top_p: float = 0.0) -> Candidates:
    """The `top_k` likeliest; top_p cuts only between 0 and 1."""
    ids = largest(row, top_k)
    weights = weights_of(row[ids], row[ids[0]], temperature)
    found = Candidates(ids, weights / weights.sum())
    return cut(found, top_p) if 0.0 < top_p < 1.0 else found


def largest(row: Logits, count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest values in descending order, equal ones by index.

    A threshold from block maxima leaves few values to sort: as many blocks as `count` have their
    maximum at or above it, so it is never above the value sought. A block is every so manieth
    value: that way the maxima of many blocks are taken at once.
    """
    size = len(row)
    count = min(count, size)
    blocks = size // _BLOCK
    pool = None
    if blocks > count:
        maxima = row[: blocks * _BLOCK].reshape(_BLOCK, blocks).max(axis=0)
        threshold = np.partition(maxima, blocks - count)[blocks - count]
        pool = np.flatnonzero(row >= threshold)
    elif size > 4 * count:
        threshold = np.partition(row, size - count)[size - count]
        pool = np.flatnonzero(row >= threshold)
    if pool is None:
        return np.argsort(-row, kind="stable")[:count]
    return pool[np.argsort(-row[pool], kind="stable")[:count]]


def cut(found: Candidates, top_p: float) -> Candidates:
    """The smallest head whose probabilities reach top_p; the one that crosses is kept."""
    keep = _head(found.probabilities, top_p)
    head = found.probabilities[:keep]
    return Candidates(found.ids[:keep], head / head.sum())


def cut_unlikely(found: Candidates, min_p: float) -> Candidates:
    """Those at least `min_p` times as likely as the likeliest."""
    least = found.probabilities[0] * np.float32(min_p)
    keep = int((found.probabilities >= least).sum())
    head = found.probabilities[:keep]
    return Candidates(found.ids[:keep], head / head.sum())


def draw(found: Candidates, random: np.random.RandomState) -> int:
    """One id. A single candidate uses no random numbers (SPEC 3.4)."""
    if len(found.ids) == 1:
        return int(found.ids[0])
    cumulative = np.cumsum(found.probabilities, dtype=np.float64)
    index = int(np.searchsorted(cumulative, point(random) * cumulative[-1]))
    return int(found.ids[index])


def point(random: np.random.RandomState) -> float:
    """From 0 to 1, of two words of the generator, the low one first."""
    low, high = random.randint(0, 2**32, size=2, dtype=np.uint32).tolist()
    return float((low + high * 2**32) / 2**64)


def weights_of(scores: Logits, highest: np.float32, temperature: float) -> Logits:
    """In proportion to the probabilities; `highest` weighs 1."""
    weights = scores - highest
    with np.errstate(over="ignore"):  # a banned score may become -inf, which weighs nothing
        weights /= np.float32(temperature)
    np.exp(weights, out=weights)
    return weights


def _head(probabilities: NDArray[np.float32], top_p: float) -> int:
    cumulative = np.cumsum(probabilities)
    return min(len(probabilities), int(np.searchsorted(cumulative, np.float32(top_p))) + 1)
