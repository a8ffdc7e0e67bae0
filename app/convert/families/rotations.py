"""How positions turn queries and keys, by the words that GGUF files have for it."""

import math

import numpy as np
from numpy.typing import NDArray

from app.convert.decoder import Rotation
from app.convert.families.facts import Facts

Frequencies = NDArray[np.float64]


def plain(base: float, rotated: int) -> Frequencies:
    frequencies: Frequencies = base ** -(np.arange(0, rotated, 2) / rotated)
    return frequencies


def rotation(facts: Facts, rotated: int, context_length: int) -> Rotation:
    """That of the layers that see all of the text."""
    base = facts.real("rope.freq_base", 10000.0)
    size = facts.real("rope.scaling.attn_factor", 1.0)
    frequencies = plain(base, rotated)
    pairs = len(frequencies)
    if facts.holds("rope_factors_long.weight"):
        return _long_rope(facts, frequencies, size, context_length)
    kind = str(facts.fact("rope.scaling.type", "none"))
    if kind == "linear":
        frequencies = frequencies / facts.real("rope.scaling.factor")
    elif kind == "yarn":
        factor = facts.real("rope.scaling.factor")
        frequencies = _yarn(facts, frequencies, base, factor, rotated, context_length)
        size *= 1 + 0.1 * math.log(factor)
    elif kind != "none":
        facts.refuse(f"a model with “{kind}” position scaling, which cannot be imported yet")
    if facts.holds("rope_freqs.weight"):  # Llama 3.1 and later
        frequencies = frequencies / facts.vector("rope_freqs.weight", pairs)
    return Rotation(frequencies, size)


def _long_rope(
    facts: Facts, frequencies: Frequencies, size: float, context_length: int
) -> Rotation:
    """Factors for texts within the length of the training, and for longer ones."""
    pairs = len(frequencies)
    near = frequencies / facts.vector("rope_factors_short.weight", pairs)
    far = frequencies / facts.vector("rope_factors_long.weight", pairs)
    length = facts.size("rope.scaling.original_context_length", context_length)
    if length >= context_length:
        return Rotation(near, size)
    return Rotation(near, size, far, size, length)


def _yarn(
    facts: Facts, frequencies: Frequencies, base: float, factor: float, rotated: int,
    context_length: int,
) -> Frequencies:  # fmt: skip
    """Fast pairs turn as they did, slow ones are slowed down, between them a ramp (2309.00071)."""
    length = facts.size("rope.scaling.original_context_length", context_length)

    def pair_that_turns(times: float) -> float:
        turns = length / (times * 2 * math.pi)
        return rotated * math.log(turns) / (2 * math.log(base))

    first = max(0.0, math.floor(pair_that_turns(facts.real("rope.scaling.yarn_beta_fast", 32.0))))
    last = min(
        rotated - 1.0, math.ceil(pair_that_turns(facts.real("rope.scaling.yarn_beta_slow", 1.0)))
    )
    share = (np.arange(len(frequencies)) - first) / max(0.001, last - first)
    kept = 1 - np.clip(share, 0, 1)
    mixed: Frequencies = frequencies * kept + frequencies / factor * (1 - kept)
    return mixed
