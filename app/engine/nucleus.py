"""Draws a token from a whole row of logits (V,), without sorting more of it than it must.

Exact: the token is the one that a full sort, likeliest first and equally likely ones by id, would
give. Three things make that quick: what is too light for the nucleus is left out unsorted, weights
fall into buckets whose masses tell which of them matter, and only those are looked at closer.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.sampling import Logits, point, weights_of

Ids = NDArray[np.intp]

_SORTED_AT_ONCE = 1024
_BUCKETS = 2048
_PART = 16_384
_LIGHT = np.float32(1e-3)
_JUST_BELOW_ONE = 1 - 1e-6  # comparisons are in float32


class Ranking:
    """Weights (N,), the largest first, of which only what is asked for is sorted.

    `ids` are what they belong to, ascending; None: their indices. `before` is the mass of what
    ranks above all of them.
    """

    def __init__(self, ids: Ids | None, weights: Logits, before: float = 0.0) -> None:
        self._ids, self._weights, self._before = ids, weights, before
        self._order: Ids = np.empty(0, np.intp)
        self._buckets: NDArray[np.uint16] | None = None
        self._cumulative = np.empty(0)
        low, high = weights.min(), weights.max()
        if len(weights) <= _SORTED_AT_ONCE:
            self._order = np.argsort(-weights, kind="stable")
            self._cumulative = before + np.cumsum(weights[self._order], dtype=np.float64)
        elif low < high:
            light = weights.mean() * _LIGHT  # what is lighter may share a bucket: it matters little
            self._buckets, masses = _in_buckets(weights, max(low, light), high)
            self._cumulative = before + np.cumsum(masses)

    def reach(self, mass: float) -> tuple[int, float]:
        """The id at which the sum has come to `mass`, and the sum with it; else the last id."""
        if not len(self._cumulative):
            return self._reach_equal(mass)
        at = int(np.searchsorted(self._cumulative, min(mass, self._cumulative[-1])))
        if self._buckets is None:
            return self._id(int(self._order[at])), float(self._cumulative[at])
        before = float(self._cumulative[at - 1]) if at else self._before
        ids, weights = _only(self._buckets == at, self._ids, self._weights)
        return Ranking(ids, weights, before).reach(mass)

    def _reach_equal(self, mass: float) -> tuple[int, float]:
        weight = float(self._weights[0])
        count = math.ceil((mass - self._before) / weight)
        count = min(max(count, 1), len(self._weights))
        return self._id(count - 1), self._before + count * weight

    def _id(self, index: int) -> int:
        return index if self._ids is None else int(self._ids[index])


def _in_buckets(
    weights: Logits, low: np.float32, high: np.float32
) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
    """The bucket of each weight, the heaviest in bucket 0, and what each bucket weighs.

    What is lighter than `low` is in the last. The eighth root spreads what is light over more
    buckets; in a narrow range it would make unequal weights equal. Part by part: what is in work
    stays in the processor's cache.
    """
    root = _itself if low > high / 2 else _eighth_root
    top = root(high)
    scale = _BUCKETS / float(top - root(low))
    buckets, masses = np.empty(len(weights), np.uint16), np.zeros(_BUCKETS + 2)
    for start in range(0, len(weights), _PART):
        part = weights[start : start + _PART]
        depths = np.maximum(part, low)
        np.subtract(top, root(depths), out=depths)
        depths *= scale
        numbers = depths.astype(np.intp)
        buckets[start : start + _PART] = numbers
        masses += np.bincount(numbers, part, len(masses))
    return buckets, masses


def draw_from_all(
    row: Logits,
    random: np.random.RandomState,
    *,
    temperature: float,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> int:
    """top_p cuts only between 0 and 1; min_p cuts what it leaves."""
    weights = weights_of(row, row.max(), temperature)
    highest = int(weights.argmax())
    has_nucleus = 0.0 < top_p < 1.0
    wanted = top_p * float(weights.sum(dtype=np.float64)) if has_nucleus else math.inf
    if wanted <= 1.0:  # the likeliest weighs 1
        return highest
    ids: Ids | None = None
    if min_p > 0.0:
        is_likely = weights >= min_p
        if _are_few(is_likely):
            ids, weights = _only(is_likely, ids, weights)
        else:
            weights *= is_likely
    ids, weights, mass = _without_the_light(ids, weights, wanted)
    if np.count_nonzero(weights) == 1:
        return highest
    ranking = Ranking(ids, weights)
    if wanted < mass:
        mass = ranking.reach(wanted)[1]
    return ranking.reach(point(random) * mass)[0]


def _without_the_light(
    ids: Ids | None, weights: Logits, wanted: float
) -> tuple[Ids | None, Logits, float]:
    """The same but for weights that the largest ones, up to a sum of `wanted`, do without.

    Weights below (sum - wanted) / count are less than sum - wanted together.
    """
    while True:
        mass = float(weights.sum(dtype=np.float64))
        if wanted >= mass or len(weights) <= _SORTED_AT_ONCE:
            return ids, weights, mass
        is_heavy = weights >= (mass - wanted) / len(weights) * _JUST_BELOW_ONE
        if not _are_few(is_heavy):
            return ids, weights, mass
        ids, weights = _only(is_heavy, ids, weights)


def _are_few(flags: NDArray[np.bool_]) -> bool:
    """So few that copying them pays."""
    return 8 * int(np.count_nonzero(flags)) <= len(flags)


def _only(flags: NDArray[np.bool_], ids: Ids | None, weights: Logits) -> tuple[Ids, Logits]:
    inside = np.flatnonzero(flags)
    return inside if ids is None else ids[inside], weights[inside]


def _itself(numbers: Any) -> Any:
    return numbers


def _eighth_root(numbers: Any) -> Any:
    root = np.sqrt(numbers)
    return np.sqrt(np.sqrt(root))
