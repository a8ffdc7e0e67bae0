"""Weights on their way from a GGUF file into model.onnx.data, a few rows at a time.

A Matrix says which source rows it is made of; a form (8-bit blocks or float32) says which arrays
it becomes. Places in the data file are known before the first byte is read, so nothing larger
than STEP_VALUES is ever held. Knows nothing of graphs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from gguf.constants import GGMLQuantizationType
from numpy.typing import NDArray

from app.convert.errors import ConvertError
from app.convert.gguf_file import GgufFile, Tensor, decoded

BLOCK = 32
STEP_VALUES = 1 << 21
ALIGNMENT = 4096  # a page: onnxruntime maps the file instead of reading it
# Formats whose blocks of 32 are scale * integer with the scale in front: kept as they are.
EXACT_TYPES = frozenset(
    {GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q5_0, GGMLQuantizationType.Q8_0}
)
# Formats whose blocks of 32 are d * q + m with float16 d and m in front: {type: largest q}.
STEPPED_TYPES = {GGMLQuantizationType.Q4_1: 15, GGMLQuantizationType.Q5_1: 31}


@dataclass(frozen=True)
class Part:
    """Rows of one source tensor in the order in which they are wanted."""

    tensor: Tensor
    order: NDArray[np.intp]


@dataclass(frozen=True)
class Matrix:
    """(rows N, row length K): parts one above the other, so that one product does for all."""

    name: str
    parts: tuple[Part, ...]

    @property
    def n(self) -> int:
        return sum(len(part.order) for part in self.parts)

    @property
    def k(self) -> int:
        return self.parts[0].tensor.shape[-1]

    @property
    def source_bytes(self) -> int:
        return sum(part.tensor.size_bytes for part in self.parts)


@dataclass(frozen=True)
class Place:
    """An array in the data file."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    offset: int

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize


class Layout:
    """Gives each array its place in the data file, in the order of the calls."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.size_bytes = 0

    def place(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> Place:
        offset = -(-self.size_bytes // ALIGNMENT) * ALIGNMENT
        place = Place(name, np.dtype(dtype), shape, offset)
        self.places.append(place)
        self.size_bytes = offset + place.size_bytes
        return place


@dataclass(frozen=True)
class Stored:
    """A matrix and its places: quants and scales in 8-bit form, values alone in float32 form."""

    matrix: Matrix
    values: Place
    scales: Place | None


def store(layout: Layout, matrix: Matrix, *, in_blocks: bool) -> Stored:
    n, k = matrix.n, matrix.k
    if in_blocks and k % BLOCK == 0:
        return Stored(
            matrix,
            layout.place(f"{matrix.name}.weight_q8", np.uint8, (n, k)),
            layout.place(f"{matrix.name}.scales", np.float32, (n, k // BLOCK)),
        )
    return Stored(matrix, layout.place(f"{matrix.name}.weight", np.float32, (n, k)), None)


def write(file: BinaryIO, source: GgufFile, stored: Stored) -> Iterator[int]:
    """Writes one matrix; yields how many source bytes each step took."""
    at = 0
    for part in stored.matrix.parts:
        step = max(1, STEP_VALUES // stored.matrix.k)
        for start in range(0, len(part.order), step):
            blocks = source.blocks(part.tensor, part.order[start : start + step])
            if stored.scales is None:
                _put(file, stored.values, at, decoded(blocks, part.tensor.type))
            else:
                with np.errstate(invalid="ignore", over="ignore"):
                    quants, scales = eight_bit(blocks, part.tensor.type)
                if not np.isfinite(scales).all():
                    raise ConvertError(
                        f"“{source.path.name}” is damaged: “{part.tensor.name}” holds values that "
                        "are no numbers. Get the file again."
                    )
                _put(file, stored.values, at, quants)
                _put(file, stored.scales, at, scales)
            at += len(blocks)
            yield blocks.nbytes


def _put(file: BinaryIO, place: Place, row: int, values: NDArray[np.generic]) -> None:
    row_bytes = place.size_bytes // place.shape[0]
    file.seek(place.offset + row * row_bytes)
    file.write(np.ascontiguousarray(values, place.dtype).data)


def eight_bit(
    blocks: NDArray[np.uint8], type: GGMLQuantizationType
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Rows as 8-bit blocks around 128: quants (rows, K/32 * 32) and scales (rows, K/32)."""
    values = decoded(blocks, type)
    values = values.reshape(len(values), -1, BLOCK)
    if type in EXACT_TYPES:
        scales = _halves(blocks, values.shape[1])[..., 0]
    elif type in STEPPED_TYPES:
        halves = _halves(blocks, values.shape[1])
        scales = _fitting_scales(values, halves, STEPPED_TYPES[type])
    else:
        scales = np.abs(values).max(axis=-1) / np.float32(127)
    safe = np.where(scales == 0, np.float32(1), scales)[..., None]
    quants = np.clip(np.rint(values / safe), -128, 127) + np.float32(128)
    return quants.astype(np.uint8).reshape(len(values), -1), scales


def _halves(blocks: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
    """The first two float16 numbers of each of `count` blocks in a row: (rows, count, 2)."""
    heads = blocks.reshape(len(blocks), count, -1)[..., :4]
    return np.ascontiguousarray(heads).view("<f2").astype(np.float32)


def _fitting_scales(
    values: NDArray[np.float32], halves: NDArray[np.float32], top: int
) -> NDArray[np.float32]:
    """Scales for blocks of d * q + m, q = 0..top, that hold the values almost exactly.

    With a scale of d / n every step of q is a whole number of steps of ours, and only m is
    rounded, to round(n * m / d). Of the n that fit into eight bits the one that rounds m least is
    taken: the error is less than half of plain rounding's (tests/convert measures it). An integer
    zero point beside a 4-bit q has n = 1: a perplexity of 74 instead of 63 on the starter model.
    """
    step, minimum = halves[..., 0], halves[..., 1]
    plain = np.abs(values).max(axis=-1) / np.float32(127)
    has_step = step != 0
    ratio = np.divide(minimum, step, out=np.zeros_like(step), where=has_step)
    best_error = np.full_like(step, np.inf)
    best = np.ones_like(step)
    for n in range(1, 255 // top + 1):
        low = np.rint(ratio * n)
        error = np.abs(ratio * n - low) / n
        better = (low >= -128) & (low + n * top <= 127) & (error < best_error)
        best_error = np.where(better, error, best_error)
        best = np.where(better, n, best)
    # Plain rounding has a root mean square error of scale / sqrt(12), as the rounding of m has.
    fits = has_step & (best_error * np.abs(step) < plain * 12**-0.5)
    return np.where(fits, step / best, plain)
