"""A GGUF file's numbers and tensors, believed only when they fit each other."""

from math import inf, prod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from app.convert.decoder import Linear, Vector
from app.convert.errors import ConvertError
from app.convert.gguf_file import READABLE_TYPES, GgufFile
from app.convert.weights import Matrix, Part

MAX_SIZE = 1 << 24  # of any one dimension: a damaged number must not become gigabytes of indices
Rows = NDArray[np.intp]


class Facts:
    """Reads by name, remembers which tensors were used, refuses with the file's name."""

    def __init__(self, source: GgufFile) -> None:
        self.source = source
        self.architecture = source.metadata.get("general.architecture")
        self.used: set[str] = set()

    # ---- numbers

    def has(self, key: str) -> bool:
        return self.source.metadata.get(f"{self.architecture}.{key}") is not None

    def fact(self, key: str, otherwise: Any = None) -> Any:
        value = self.source.metadata.get(f"{self.architecture}.{key}", otherwise)
        if isinstance(value, np.ndarray):  # one for each layer
            if len(set(value.tolist())) != 1:
                self.refuse(f"a model whose layers differ ({key}), which cannot be imported yet")
            value = value.tolist()[0]
        if value is None:
            self.refuse(f"an incomplete file: it does not say its “{self.architecture}.{key}”")
        return value

    def number(self, key: str, otherwise: int | None = None) -> int:
        value = self.fact(key, otherwise)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(f"a damaged file: its “{self.architecture}.{key}” is no whole number")
        return int(value)

    def size(self, key: str, otherwise: int | None = None) -> int:
        value = self.number(key, otherwise)
        if not 1 <= value <= MAX_SIZE:
            self.refuse("a model with impossible sizes: the file is damaged")
        return value

    def real(self, key: str, otherwise: float | None = None) -> float:
        value = self.fact(key, otherwise)
        if not isinstance(value, int | float) or not 0 < value < inf:
            self.refuse(f"a damaged file: its “{self.architecture}.{key}” is no number above 0")
        return float(value)

    # ---- tensors

    def holds(self, name: str) -> bool:
        return name in self.source.tensors

    def vector(self, name: str, *sizes: int) -> Vector:
        """Of one of these sizes."""
        tensor = self.source.tensor(name)
        size = prod(tensor.shape)
        if size not in sizes:
            due = " or ".join(map(str, sizes))
            self.refuse(f"a damaged file: “{name}” has {size} values, not {due}")
        self.used.add(name)
        return self.source.values(tensor).ravel()

    def optional_vector(self, name: str, *sizes: int) -> Vector | None:
        return self.vector(name, *sizes) if self.holds(name) else None

    def matrix(
        self, source: str, n: int | None, k: int, rows: Rows | None = None, name: str = ""
    ) -> Matrix:
        tensor = self.source.tensor(f"{source}.weight")
        n = tensor.shape[0] if n is None else n
        if tensor.shape != (n, k):
            self.refuse(
                f"a damaged file: “{tensor.name}” is {' x '.join(map(str, tensor.shape))} "
                f"where {n} x {k} is due"
            )
        if tensor.type not in READABLE_TYPES:
            self.refuse(f"stored as {tensor.type.name}, a kind that cannot be imported yet")
        self.used.add(tensor.name)
        return Matrix(name, (Part(tensor, np.arange(n) if rows is None else rows),))

    def linear(self, name: str, k: int, parts: dict[str, Rows]) -> Linear:
        """Matrices one above the other, their rows in the given order, with their biases."""
        matrices = [self.matrix(source, len(rows), k, rows, name) for source, rows in parts.items()]
        matrix = Matrix(name, tuple(part for m in matrices for part in m.parts))
        if not any(self.holds(f"{source}.bias") for source in parts):
            return Linear(matrix)
        pieces = []
        for source, rows in parts.items():
            bias = self.optional_vector(f"{source}.bias", len(rows))
            pieces.append(np.zeros(len(rows), np.float32) if bias is None else bias[rows])
        return Linear(matrix, np.concatenate(pieces))

    def refuse(self, what: str) -> NoReturn:
        raise ConvertError(f"“{self.source.path.name}” is {what}.")
