"""Eight bits hold what the source had: exactly where they can, within bounds where they cannot."""

import gguf
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType as Type

from app.convert.families.reader import halves_order
from app.convert.gguf_file import READABLE_TYPES, decoded
from app.convert.weights import BLOCK, STEPPED_TYPES, eight_bit


def stored(type: Type, values: np.ndarray) -> np.ndarray:
    return gguf.quants.quantize(values, type).view(np.uint8).reshape(len(values), -1)


def restored(blocks: np.ndarray, type: Type) -> np.ndarray:
    quants, scales = eight_bit(blocks, type)
    assert quants.dtype == np.uint8
    assert scales.dtype == np.float32
    return (quants.astype(np.float32) - 128) * np.repeat(scales, BLOCK, axis=1)


def weights(rng: np.random.Generator, rows: int = 64, k: int = 256) -> np.ndarray:
    return (rng.standard_normal((rows, k)) * rng.uniform(0.01, 3, (rows, 1))).astype(np.float32)


@pytest.mark.parametrize("type", [Type.Q4_0, Type.Q5_0, Type.Q8_0])
def test_symmetric_formats_lose_nothing(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(1)))
    np.testing.assert_array_equal(restored(blocks, type), decoded(blocks, type))


@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.BF16])
def test_rounding_stays_within_half_a_step(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(2)))
    values = decoded(blocks, type)
    steps = np.abs(values.reshape(64, -1, BLOCK)).max(-1) / 127
    error = np.abs(restored(blocks, type) - values)
    assert (error <= np.repeat(steps, BLOCK, axis=1) * 0.5001).all()


@pytest.mark.parametrize("type", sorted(STEPPED_TYPES))
def test_formats_with_a_minimum_are_held_better_than_by_rounding(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(3), rows=256))
    values = decoded(blocks, type)
    plain = restored(values.view(np.uint8), Type.F32)
    error = np.sqrt(((restored(blocks, type) - values) ** 2).mean())
    limit = {Type.Q4_1: 0.5, Type.Q5_1: 0.85}[type]
    assert error < limit * np.sqrt(((plain - values) ** 2).mean())


@pytest.mark.parametrize("type", sorted(READABLE_TYPES & {Type.Q4_0, Type.Q4_1, Type.Q8_0}))
def test_a_row_of_zeros_stays_zero(type: Type) -> None:
    blocks = stored(type, np.zeros((2, 64), np.float32))
    assert (restored(blocks, type) == 0).all()


def test_constant_and_one_sided_blocks() -> None:
    """Q4_1 with d = 0 (all values equal m) and with a minimum far from zero."""
    values = np.concatenate(
        [np.full((1, 64), 0.7), np.full((1, 64), -3.0), 5 + np.linspace(0, 0.1, 64)[None]]
    ).astype(np.float32)
    blocks = stored(Type.Q4_1, values)
    kept = decoded(blocks, Type.Q4_1)
    assert np.abs(restored(blocks, Type.Q4_1) - kept).max() <= 5.2 / 127 / 2


@pytest.mark.parametrize("rotated", [16, 8])
def test_the_order_of_rows_undoes_what_converters_do(rotated: int) -> None:
    """llama.cpp's converter reshapes (heads, 2, half) to (heads, half, 2)."""
    heads, size = 3, 16
    ours = np.arange(heads * size).reshape(heads, size)
    theirs = ours.copy()
    theirs[:, :rotated] = (
        ours[:, :rotated].reshape(heads, 2, rotated // 2).swapaxes(1, 2).reshape(heads, -1)
    )
    assert (theirs.ravel()[halves_order(heads, size, rotated)] == ours.ravel()).all()
