"""Weights on their way from a GGUF file into model.onnx.data, a few rows at a time.

A Matrix says which source rows it is made of; a form says which arrays it becomes. Places in the
data file are known before the first byte is read, so nothing larger than STEP_VALUES is ever held.
Knows nothing of graphs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.convert.errors import ConvertError
from app.convert.forms import FLOAT32, Form, Precision, form_of, held, is_exact, restored
from app.convert.gguf_file import GgufFile, Tensor, decoded

STEP_VALUES = 1 << 21
ALIGNMENT = 4096  # a page: onnxruntime maps the file instead of reading it


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
    """A matrix and its places: float32 values alone, or quants with numbers for each block."""

    matrix: Matrix
    form: Form
    values: Place
    scales: Place | None = None
    corrections: Place | None = None


@dataclass
class Loss:
    """How far the values that had to be rounded are from the file's, so far."""

    error: float = 0.0  # sums of squares
    values: float = 0.0

    @property
    def relative(self) -> float:
        """Root mean square of the error beside that of the values; 0 where all is exact."""
        return float((self.error / self.values) ** 0.5) if self.values else 0.0

    def add(self, found: NDArray[np.float32], due: NDArray[np.float32]) -> None:
        self.error += float(np.square(found - due, dtype=np.float64).sum())
        self.values += float(np.square(due, dtype=np.float64).sum())


def store(layout: Layout, matrix: Matrix, precision: Precision) -> list[Stored]:
    """One for each run of parts of the same form: files mix formats within what is packed here."""

    def form(part: Part) -> Form:
        return form_of(part.tensor.type, matrix.k, precision)

    runs = [(form, tuple(parts)) for form, parts in groupby(matrix.parts, form)]
    names = [matrix.name] if len(runs) == 1 else [f"{matrix.name}.{i}" for i in range(len(runs))]
    return [
        _placed(layout, Matrix(name, parts), form)
        for name, (form, parts) in zip(names, runs, strict=True)
    ]


def _placed(layout: Layout, matrix: Matrix, form: Form) -> Stored:
    n, k, name = matrix.n, matrix.k, matrix.name
    if form == FLOAT32:
        return Stored(matrix, form, layout.place(f"{name}.weight", np.float32, (n, k)))

    def per_block(kind: str) -> Place:
        return layout.place(f"{name}.{kind}", np.float32, (n, k // form.block))

    return Stored(
        matrix,
        form,
        layout.place(f"{name}.weight_q{form.bits}", np.uint8, (n, k * form.bits // 8)),
        per_block("scales"),
        per_block("corrections") if form.has_corrections else None,
    )


def write(file: BinaryIO, source: GgufFile, stored: Stored, loss: Loss) -> Iterator[int]:
    """Writes one matrix; yields how many source bytes each step took."""
    at = 0
    for part in stored.matrix.parts:
        step = max(1, STEP_VALUES // stored.matrix.k)
        for start in range(0, len(part.order), step):
            blocks = source.blocks(part.tensor, part.order[start : start + step])
            if stored.scales is None:
                _put(file, stored.values, at, decoded(blocks, part.tensor.type))
            else:
                _put_held(file, source, stored, stored.scales, part.tensor, at, blocks, loss)
            at += len(blocks)
            yield blocks.nbytes


def _put_held(
    file: BinaryIO, source: GgufFile, stored: Stored, scales: Place, tensor: Tensor, at: int,
    blocks: NDArray[np.uint8], loss: Loss,
) -> None:  # fmt: skip
    with np.errstate(invalid="ignore", over="ignore"):
        rows = held(blocks, tensor.type, stored.form)
    corrections = rows.scales if rows.corrections is None else rows.corrections
    if not np.isfinite(rows.scales).all() or not np.isfinite(corrections).all():
        raise ConvertError(
            f"“{source.path.name}” is damaged: “{tensor.name}” holds values that "
            "are no numbers. Get the file again."
        )
    quants = rows.quants
    if stored.form.bits == 4:  # the first of two in the low half of a byte
        quants = quants[:, 0::2] | quants[:, 1::2] * np.uint8(16)
    _put(file, stored.values, at, quants)
    _put(file, scales, at, rows.scales)
    if stored.corrections is not None and rows.corrections is not None:
        _put(file, stored.corrections, at, rows.corrections)
    if is_exact(tensor.type, stored.form):
        return
    loss.add(restored(rows, stored.form), decoded(blocks, tensor.type))


def _put(file: BinaryIO, place: Place, row: int, values: NDArray[np.generic]) -> None:
    row_bytes = place.size_bytes // place.shape[0]
    file.seek(place.offset + row * row_bytes)
    file.write(np.ascontiguousarray(values, place.dtype).data)
