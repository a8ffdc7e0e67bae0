"""Blocks hold what the source had: exactly where they can, within bounds where they cannot."""

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES
from gguf.constants import GGMLQuantizationType as Type

from app.convert.families.reader import halves_order
from app.convert.forms import BLOCK, FLOAT32, Precision, form_of, held, is_exact, restored
from app.convert.gguf_file import READABLE_TYPES, decoded
from app.convert.grids import GRIDS


def stored(type: Type, values: np.ndarray) -> np.ndarray:
    return gguf.quants.quantize(values, type).view(np.uint8).reshape(len(values), -1)


def kept(blocks: np.ndarray, type: Type, precision: Precision = "int8") -> np.ndarray:
    """What is left of the values in the form for a precision."""
    values = decoded(blocks, type)
    form = form_of(type, values.shape[1], precision)
    rows = held(blocks, type, form)
    assert rows.quants.dtype == np.uint8
    assert rows.quants.max() < 1 << form.bits
    assert rows.scales.dtype == np.float32
    return restored(rows, form)


def weights(rng: np.random.Generator, rows: int = 64, k: int = 256) -> np.ndarray:
    return (rng.standard_normal((rows, k)) * rng.uniform(0.01, 3, (rows, 1))).astype(np.float32)


def random_blocks(type: Type, rows: int = 64) -> np.ndarray:
    """Any bytes are a block; only the float16 numbers in it are kept to those of real files."""
    block, size = GGML_QUANT_SIZES[type]
    rng = np.random.default_rng(4)
    count = 512 // block
    blocks = rng.integers(0, 256, (rows * count, size)).astype(np.uint8)
    if type == Type.MXFP4:
        blocks[:, 0] = rng.integers(110, 140, len(blocks))
    for at in HALVES.get(type, (0,)):
        values = rng.uniform(-0.1, 0.1, len(blocks)).astype("<f2")
        blocks[:, at : at + 2] = values.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


HALVES = {
    Type.Q4_1: (0, 2), Type.Q5_1: (0, 2), Type.Q2_K: (80, 82), Type.Q3_K: (108,),
    Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,), Type.MXFP4: (),
}  # fmt: skip


@pytest.mark.parametrize("type", sorted(GRIDS))
def test_the_files_own_blocks_lose_nothing(type: Type) -> None:
    blocks = random_blocks(type)
    values = decoded(blocks, type)
    steps = np.abs(values).max() * 2e-7  # a correction adds its minimum in another order
    np.testing.assert_allclose(kept(blocks, type, "stored"), values, rtol=0, atol=steps)
    assert is_exact(type, form_of(type, 512, "stored"))


def test_every_format_is_held_exactly_or_is_floats() -> None:
    assert set(GRIDS) | {Type.F32, Type.F16, Type.BF16} == READABLE_TYPES


@pytest.mark.parametrize("type", [Type.Q4_0, Type.Q5_0, Type.Q8_0])
def test_symmetric_formats_lose_nothing_in_eight_bits(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(1)))
    np.testing.assert_array_equal(kept(blocks, type), decoded(blocks, type))


@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.BF16])
@pytest.mark.parametrize("precision", ["int8", "stored"])
def test_rounding_stays_within_half_a_step(type: Type, precision: Precision) -> None:
    blocks = stored(type, weights(np.random.default_rng(2)))
    values = decoded(blocks, type)
    steps = np.abs(values.reshape(64, -1, BLOCK)).max(-1) / 127
    error = np.abs(kept(blocks, type, precision) - values)
    assert (error <= np.repeat(steps, BLOCK, axis=1) * 0.5001).all()


@pytest.mark.parametrize("type", [Type.F32, Type.BF16, Type.Q8_0, Type.Q5_1])
def test_four_bits_stay_within_half_a_step(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(5)))
    values = decoded(blocks, type)
    grouped = values.reshape(64, -1, BLOCK)
    steps = (grouped.max(-1) - grouped.min(-1)) / 15
    error = np.abs(kept(blocks, type, "int4") - values)
    assert (error <= np.repeat(steps, BLOCK, axis=1) * 0.5001).all()


@pytest.mark.parametrize("type", [Type.Q4_1, Type.Q5_1])
def test_formats_with_a_minimum_are_held_better_than_by_rounding(type: Type) -> None:
    blocks = stored(type, weights(np.random.default_rng(3), rows=256))
    values = decoded(blocks, type)
    plain = kept(values.view(np.uint8), Type.F32)
    error = np.sqrt(((kept(blocks, type) - values) ** 2).mean())
    limit = {Type.Q4_1: 0.5, Type.Q5_1: 0.85}[type]
    assert error < limit * np.sqrt(((plain - values) ** 2).mean())


@pytest.mark.parametrize("precision", ["stored", "int8", "int4"])
@pytest.mark.parametrize("type", sorted(READABLE_TYPES & {Type.Q4_0, Type.Q4_1, Type.Q8_0}))
def test_a_row_of_zeros_stays_zero(type: Type, precision: Precision) -> None:
    blocks = stored(type, np.zeros((2, 64), np.float32))
    assert (kept(blocks, type, precision) == 0).all()


def test_constant_and_one_sided_blocks() -> None:
    """Q4_1 with d = 0 (all values equal m) and with a minimum far from zero."""
    values = np.concatenate(
        [np.full((1, 64), 0.7), np.full((1, 64), -3.0), 5 + np.linspace(0, 0.1, 64)[None]]
    ).astype(np.float32)
    blocks = stored(Type.Q4_1, values)
    due = decoded(blocks, Type.Q4_1)
    assert np.abs(kept(blocks, Type.Q4_1) - due).max() <= 5.2 / 127 / 2
    assert np.abs(kept(blocks, Type.Q4_1, "stored") - due).max() <= 1e-6


def test_rows_that_fill_no_block_stay_floats() -> None:
    assert form_of(Type.F16, 48, "int4") == FLOAT32


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
