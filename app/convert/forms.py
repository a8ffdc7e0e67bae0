"""The forms in which a matrix is stored for the runtime's kernels, and values brought into them.

A kernel of MatMulNBits holds each block of a row as step * (q - middle). The file's own blocks are
held exactly by the form that their grid asks for: with a minimum m the block's share of a product
is step * (q - middle) . x + (m + step * middle) * sum(x), so beside the steps a second number a
block is kept, the correction.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

from app.convert.gguf_file import decoded
from app.convert.grids import GRIDS, Floats, Grid

# stored: the file's blocks exactly, floats in 8 bits. int8: all in 8 bits, fastest for long
# prompts. int4: at most 4 bits, the smallest. fp32: exact, products too.
Precision = Literal["stored", "int8", "int4", "fp32"]
BLOCK = 32


@dataclass(frozen=True)
class Form:
    """`bits` is 0 for float32. With corrections the blocks have a minimum of their own."""

    bits: int
    block: int = BLOCK
    has_corrections: bool = False


FLOAT32 = Form(0)
EIGHT_BITS = Form(8)
FOUR_BITS = Form(4, BLOCK, True)


@dataclass(frozen=True)
class Held:
    """Rows in a form: quants (rows, K) unpacked, scales and corrections (rows, K / block)."""

    quants: NDArray[np.uint8]
    scales: Floats
    corrections: Floats | None


def form_of(type: GGMLQuantizationType, k: int, precision: Precision) -> Form:
    """The form for a matrix of this type and row length."""
    if precision == "fp32" or k % BLOCK:
        return FLOAT32
    grid = GRIDS.get(type)
    if grid and (precision == "stored" or (precision == "int4" and grid.bits == 4)):
        return Form(grid.bits, grid.block, grid.has_minimum)
    return FOUR_BITS if precision == "int4" else EIGHT_BITS


def is_exact(type: GGMLQuantizationType, form: Form) -> bool:
    """Whether a form holds every value of a type."""
    grid = GRIDS.get(type)
    return form == FLOAT32 or (
        grid is not None
        and grid.bits <= form.bits
        and grid.block == form.block
        and grid.has_minimum == form.has_corrections
    )


def held(blocks: NDArray[np.uint8], type: GGMLQuantizationType, form: Form) -> Held:
    """Stored bytes of rows in a form of blocks; not finite where the file is damaged."""
    values = decoded(blocks, type)
    values = values.reshape(len(values), -1, form.block)
    grid = GRIDS.get(type)
    steps, minima = (None, None) if grid is None else _grid(blocks, type, grid)
    if grid is not None and steps is not None and is_exact(type, form):
        return _on_grid(values, steps, minima, grid, form)
    if form.has_corrections:
        return _between(values, form)
    if grid is not None and steps is not None and minima is not None and grid.block == form.block:
        return _in_steps(values, _fitting_scales(values, steps, minima, grid.most), form)
    return _in_steps(values, np.abs(values).max(axis=-1) / np.float32(127), form)


def restored(rows: Held, form: Form) -> Floats:
    """The values that a form stands for: (rows, K)."""
    quants = rows.quants.reshape(len(rows.quants), -1, form.block).astype(np.float32)
    values = (quants - (1 << (form.bits - 1))) * rows.scales[..., None]
    if rows.corrections is not None:
        values += rows.corrections[..., None]
    return values.reshape(len(values), -1)


def _grid(
    blocks: NDArray[np.uint8], type: GGMLQuantizationType, grid: Grid
) -> tuple[Floats, Floats | None]:
    """Steps and minima of rows: (rows, K / grid.block)."""
    rows = len(blocks)
    steps, minima = grid.read(blocks.reshape(-1, GGML_QUANT_SIZES[type][1]))
    return steps.reshape(rows, -1), None if minima is None else minima.reshape(rows, -1)


def _on_grid(
    values: Floats, steps: Floats, minima: Floats | None, grid: Grid, form: Form
) -> Held:
    middle = (grid.most + 1) // 2 if grid.has_minimum else 0
    if minima is not None:
        values = values - minima[..., None]
    quants = np.rint(values / _safe(steps)[..., None]).clip(grid.least, grid.most) - middle
    corrections = None if minima is None else minima + steps * np.float32(middle)
    return Held(_shifted(quants, form), steps, corrections)


def _between(values: Floats, form: Form) -> Held:
    """Each block evenly between its least and its greatest value."""
    top, middle = (1 << form.bits) - 1, 1 << (form.bits - 1)
    least = values.min(axis=-1)
    steps = (values.max(axis=-1) - least) / np.float32(top)
    quants = np.rint((values - least[..., None]) / _safe(steps)[..., None]) - middle
    return Held(_shifted(quants, form), steps, least + steps * np.float32(middle))


def _in_steps(values: Floats, steps: Floats, form: Form) -> Held:
    return Held(_shifted(np.rint(values / _safe(steps)[..., None]), form), steps, None)


def _safe(steps: Floats) -> Floats:
    return np.where(steps == 0, np.float32(1), steps)


def _shifted(quants: Floats, form: Form) -> NDArray[np.uint8]:
    middle = 1 << (form.bits - 1)
    shifted = quants.clip(-middle, middle - 1) + np.float32(middle)
    return shifted.astype(np.uint8).reshape(len(quants), -1)


def _fitting_scales(values: Floats, steps: Floats, minima: Floats, top: int) -> Floats:
    """Scales for blocks of step * q + minimum, q = 0..top, that hold the values almost exactly.

    With a scale of step / n every step of q is a whole number of steps of ours, and only the
    minimum is rounded, to round(n * minimum / step). Of the n that fit into eight bits the one that
    rounds it least is taken: the error is less than half of plain rounding's (tests/convert
    measures it).
    """
    plain = np.abs(values).max(axis=-1) / np.float32(127)
    has_step = steps != 0
    ratio = np.divide(minima, steps, out=np.zeros_like(steps), where=has_step)
    best_error = np.full_like(steps, np.inf)
    best = np.ones_like(steps)
    for n in range(1, 255 // top + 1):
        low = np.rint(ratio * n)
        error = np.abs(ratio * n - low) / n
        better = (low >= -128) & (low + n * top <= 127) & (error < best_error)
        best_error = np.where(better, error, best_error)
        best = np.where(better, n, best)
    # Plain rounding has a root mean square error of scale / sqrt(12), as the rounding here has.
    fits = has_step & (best_error * np.abs(steps) < plain * 12**-0.5)
    return np.where(fits, steps / best, plain)
