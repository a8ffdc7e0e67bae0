"""Tensor and NamedTensors: arrays handed to a Generator by name. They always copy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.engine.errors import shown


class Tensor:
    """A copy of an array, in row order whatever the array's own order was."""

    def __init__(self, array: NDArray[Any]) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor takes a numpy array, not {type(array).__name__}.")
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise TypeError(f"Tensor cannot hold {array.dtype}; numbers and bool are possible.")
        self._array = np.array(array, order="C", copy=True)

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def type(self) -> np.dtype[Any]:
        return self._array.dtype

    def data(self) -> NDArray[Any]:
        return self._array

    def as_numpy(self) -> NDArray[Any]:
        return self._array.copy()


class NamedTensors:
    """Tensors by name, in the order in which they were set."""

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self:
            raise KeyError(f"There is no tensor named {shown(name)}.")
        return self._tensors[name]

    def __setitem__(self, name: str, value: Tensor | ArrayLike) -> None:
        if not isinstance(name, str):
            raise TypeError(f"Tensors are named by text, not {type(name).__name__}.")
        self._tensors[name] = value if isinstance(value, Tensor) else Tensor(np.asarray(value))

    def __delitem__(self, name: str) -> None:
        if name in self:
            del self._tensors[name]

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._tensors

    def keys(self) -> list[str]:
        return list(self._tensors)
