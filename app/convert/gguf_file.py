"""Reads GGUF: the facts in front, and rows of tensors as float32.

Only the header is parsed here, because every length in it is checked against the size of the file
before it is believed: the reader of the gguf package loops over whatever count it is told. The
tables of tensor types and their dequantisation are that package's. Knows nothing of models.
"""

import errno
import mmap
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize
from numpy.typing import NDArray

from app.convert.errors import ConvertError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_DIMENSIONS = 4
MAX_PARTS = 1000
_SPLIT = re.compile(r"(?P<name>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
# What the reader can hand out; the gguf package knows more names than it can dequantise.
READABLE_TYPES = frozenset(
    GGMLQuantizationType[name]
    for name in [
        "F32",
        "F16",
        "BF16",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
        "Q2_K",
        "Q3_K",
        "Q4_K",
        "Q5_K",
        "Q6_K",
        "IQ4_NL",
        "IQ4_XS",
        "MXFP4",
    ]
)


@dataclass(frozen=True)
class Tensor:
    """Where a tensor lies. `shape` has the row length last, as numpy has it.

    `part` tells which file of a split model, counted from 0.
    """

    name: str
    shape: tuple[int, ...]
    type: GGMLQuantizationType
    offset: int
    size_bytes: int
    part: int = 0


class _Cut(Exception):
    """A length points behind the end of the file."""


class _Cursor:
    """Reads little-endian values and never looks behind the end."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise _Cut
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, format: str) -> Any:
        return struct.unpack("<" + format, self.take(struct.calcsize(format)))[0]

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def array(self) -> list[Any] | NDArray[Any]:
        kind, count = self.number("I"), self.number("Q")
        if kind in _NUMBERS:
            return np.frombuffer(
                self.take(count * struct.calcsize(_NUMBERS[kind])), "<" + _NUMBERS[kind]
            )
        read = _VALUES[kind]
        if count > len(self.data) - self.at:  # a text or an array takes eight bytes at least
            raise _Cut
        return [read(self) for _ in range(count)]


_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
            10: "Q", 11: "q", 12: "d"}  # fmt: skip
_VALUES: dict[int, Callable[[_Cursor], Any]] = {
    **{kind: partial(_Cursor.number, format=format) for kind, format in _NUMBERS.items()},
    8: _Cursor.text,
    9: _Cursor.array,
}


class GgufFile:
    """An open GGUF file: `metadata`, `tensors`, and their rows. Close it, or use `with`.

    Of a model that is split, as llama.cpp names the files, any part opens all that lie beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paths = split_paths(path)
        self._maps: list[mmap.mmap] = []
        self.metadata: Mapping[str, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        try:
            for part, each in enumerate(self.paths):
                self._add(part, each)
        except BaseException:
            self.close()
            raise

    @property
    def size_bytes(self) -> int:
        return sum(len(data) for data in self._maps)

    def _add(self, part: int, path: Path) -> None:
        self._maps.append(_map(path))
        metadata, tensors = _read_header(self._maps[-1], path.name)
        count, number = metadata.get("split.count", 1), metadata.get("split.no", 0)
        if type(count) is not int or type(number) is not int:
            raise ConvertError(f"“{path.name}” is damaged: it does not say which part it is.")
        if count not in (0, len(self.paths)) or (count and number != part):
            raise ConvertError(
                f"“{path.name}” is part {number + 1} of {count} of a model: give all parts the "
                "names that they had, in one folder."
            )
        if part == 0:
            self.metadata = metadata
        if doubled := self.tensors.keys() & tensors.keys():
            raise ConvertError(f"“{path.name}” is damaged: it has “{doubled.pop()}” again.")
        self.tensors |= {name: replace(tensor, part=part) for name, tensor in tensors.items()}

    def close(self) -> None:
        for data in self._maps:
            data.close()

    def __enter__(self) -> "GgufFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ConvertError(
                f"“{self.path.name}” has no tensor “{name}”: the file is incomplete, or made by "
                "another program than the ones known here."
            )
        return self.tensors[name]

    def blocks(self, tensor: Tensor, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        """The stored bytes of some rows, as they are: (rows, bytes of a row)."""
        row_bytes = tensor.size_bytes // prod(tensor.shape[:-1])
        # Copied out of the map at once, so that nothing keeps the map open.
        data = self._maps[tensor.part]
        stored = np.frombuffer(data, np.uint8, tensor.size_bytes, tensor.offset)
        return stored.reshape(-1, row_bytes)[rows]

    def rows(self, tensor: Tensor, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """The values of some rows of a matrix: (rows, length of a row)."""
        return decoded(self.blocks(tensor, rows), tensor.type)

    def values(self, tensor: Tensor) -> NDArray[np.float32]:
        """All values of a small tensor, in its shape."""
        rows = np.arange(prod(tensor.shape[:-1]))
        return self.rows(tensor, rows).reshape(tensor.shape)


def split_paths(path: Path) -> list[Path]:
    """All files of a split model by the name of one, NAME-00002-of-00003.gguf; else that file."""
    match = _SPLIT.fullmatch(path.name)
    count = int(match["count"]) if match else 1
    if match is None or not 1 <= int(match["number"]) <= count <= MAX_PARTS:
        return [path]
    name, ending = match["name"], path.suffix
    return [
        path.with_name(f"{name}-{number:05}-of-{count:05}{ending}")
        for number in range(1, count + 1)
    ]


def decoded(blocks: NDArray[np.uint8], type: GGMLQuantizationType) -> NDArray[np.float32]:
    """Stored bytes of rows as float32, exactly what the format says they are."""
    if type == GGMLQuantizationType.F32:
        return blocks.view("<f4").astype(np.float32, copy=False)
    if type == GGMLQuantizationType.F16:
        return blocks.view("<f2").astype(np.float32)
    values: NDArray[np.float32] = dequantize(blocks, type)
    return values


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise ConvertError(f"“{path.name}” is not a GGUF file.")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ConvertError(f"The file “{path.name}” is not there (any more).") from error
    except IsADirectoryError as error:
        raise ConvertError(f"“{path.name}” is a folder, not a GGUF file.") from error
    except PermissionError as error:
        sentence = f"“{path.name}” may not be read: check its permissions."
        if path.is_dir():  # what Windows says of a folder
            sentence = f"“{path.name}” is a folder, not a GGUF file."
        raise ConvertError(sentence) from error
    except OSError as error:
        reason = error.strerror or errno.errorcode.get(error.errno or 0, "unknown error")
        raise ConvertError(f"“{path.name}” could not be read: {reason}.") from error


def _read_header(data: mmap.mmap, name: str) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
    cursor = _Cursor(data)
    try:
        cursor.take(len(MAGIC))
        version = cursor.number("I")
        if version not in VERSIONS:
            raise ConvertError(
                f"“{name}” is GGUF version {version}; versions 2 and 3 can be imported."
            )
        tensor_count, value_count = cursor.number("Q"), cursor.number("Q")
        metadata = dict(_key_value(cursor) for _ in range(_believable(value_count, data)))
        found = [_tensor_fields(cursor) for _ in range(_believable(tensor_count, data))]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ConvertError(f"“{name}” is damaged: its alignment is {alignment}.")
        start = -(-cursor.at // alignment) * alignment
        tensors = {t[0]: _placed(t, start, len(data)) for t in found}
    except (_Cut, MemoryError, RecursionError) as error:
        raise ConvertError(
            f"“{name}” is cut or damaged: it ends before its contents do. Get the file again."
        ) from error
    except (KeyError, ValueError, struct.error) as error:
        raise ConvertError(f"“{name}” is damaged: {error}.") from error
    return metadata, tensors


def _believable(count: int, data: mmap.mmap) -> int:
    if count > len(data):
        raise _Cut
    return count


def _key_value(cursor: _Cursor) -> tuple[str, Any]:
    key, kind = cursor.text(), cursor.number("I")
    if kind not in _VALUES:
        raise ValueError(f"“{key}” has the unknown kind {kind}")
    return key, _VALUES[kind](cursor)


def _tensor_fields(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name, dimensions = cursor.text(), cursor.number("I")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ValueError(f"tensor “{name}” has {dimensions} dimensions")
    shape = tuple(cursor.number("Q") for _ in range(dimensions))
    return name, shape[::-1], cursor.number("I"), cursor.number("Q")


def _placed(fields: tuple[str, tuple[int, ...], int, int], start: int, end: int) -> Tensor:
    name, shape, kind, offset = fields
    type = GGMLQuantizationType(kind)  # an unknown number is a ValueError with that number
    block, block_bytes = GGML_QUANT_SIZES[type]
    if shape[-1] % block:
        raise ValueError(f"rows of “{name}” are no multiple of {block}")
    size = prod(shape) // block * block_bytes
    if start + offset + size > end:
        raise _Cut
    return Tensor(name, shape, type, start + offset, size)
