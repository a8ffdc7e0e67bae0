"""The logits that a run gives: bound to memory of ours, then read as float32 rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.engine import graph
from app.engine.feeds import Span
from app.engine.session import BFLOAT16, FLOAT, Array, TensorInfo, host_tensor, widen
from app.engine.stage import Stage

Logits = NDArray[np.float32]


class LogitsOutput:
    """Several graphs may have this output, of which one gives it in a run.

    `raw` (B, K, V) is of the last run, as the graph's type: of all columns of its text, or of
    those that were wanted.
    """

    def __init__(self, stages: Sequence[Stage], name: str, vocab_size: int) -> None:
        self.name, self._vocab_size = name, vocab_size
        self._heads = [stage for stage in stages if name in stage.session.outputs]
        self.head = self._heads[0]  # the one that ran last, or is about to
        self.raw: Array = np.empty(0, np.float32)
        self._bound_shape: tuple[int, ...] = ()
        self._columns: NDArray[np.int64] | None = None
        self._first_column = np.zeros(1, np.int64)

    @property
    def info(self) -> TensorInfo:
        return self.head.session.outputs[self.name]

    @property
    def gives_all(self) -> bool:
        """Whether it has as many rows as are wanted."""
        return len(self.info.shape) == 3 and self.info.shape[1] <= 0

    @property
    def width(self) -> int:
        return self._shape(1, 1)[-1]

    def bind(
        self, stage: Stage, span: Span, text_lengths: NDArray[np.int64], *, all_columns: bool
    ) -> None:
        """If `stage` gives it. Of the columns only those are computed whose logits are wanted,
        where the graph can do that."""
        if stage not in self._heads:
            return
        if stage is not self.head:
            self.head, self._bound_shape = stage, ()
        rows, width = span.tokens.shape
        self._columns = None
        if stage.session.has_positions:
            if all_columns:
                self._columns = np.arange(width)
            elif span.start == 0 and rows > 1:
                self._columns = np.unique(text_lengths - 1)
            else:
                last = width - span.after - 1
                self._columns = np.array([last]) if last else self._first_column
            stage.bind(graph.POSITIONS, self._columns)
        self._bind_memory(rows, width if self._columns is None else len(self._columns))

    def take(self, span: Span, text_lengths: NDArray[np.int64]) -> Logits:
        """Each row's last text token's logits. float32 already: no copy, and so worth something
        until the next run."""
        rows, width = span.tokens.shape
        count = self.raw.shape[1]
        if rows == 1 or span.start or count == 1:
            found = self.raw[:, -1 - span.after if count == width else -1]
        else:
            given = np.arange(count) if self._columns is None else self._columns
            found = self.raw[np.arange(rows), np.searchsorted(given, text_lengths - 1)]
        if (span.before or span.after) and count == width:
            self.replace(self.raw[:, span.before : width - span.after])
        return self.as_float(found)

    def replace(self, raw: Array) -> None:
        self.raw, self._bound_shape = raw, ()

    def as_float(self, raw: Array) -> Logits:
        """Of the vocabulary, as float32."""
        raw = raw[..., : self._vocab_size]
        return raw if self.info.element_type == FLOAT else widen(raw, self.info.element_type)

    def output(self, columns: int) -> Array:
        """A copy of the first `columns`, as the graph gave them if numpy has the type."""
        raw = self.raw[:, :columns]
        return widen(raw, BFLOAT16) if self.info.element_type == BFLOAT16 else raw.copy()

    def _bind_memory(self, rows: int, count: int) -> None:
        shape = self._shape(rows, count)
        if shape != self._bound_shape:
            raw = np.empty(shape, self.info.numpy_type)
            self.head.binding.bind_ortvalue_output(
                self.name, host_tensor(raw, self.info.element_type)
            )
            self.raw = raw.reshape(rows, -1, shape[-1])
            self._bound_shape = shape

    def _shape(self, rows: int, count: int) -> tuple[int, ...]:
        shape = self.info.shape
        vocabulary = shape[-1] if shape[-1] > 0 else self._vocab_size
        if len(shape) == 2:
            return rows, vocabulary
        return rows, shape[1] if shape[1] > 0 else count, vocabulary
