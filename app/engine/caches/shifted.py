"""A shared buffer of layers that see the last tokens only, which begins at a later token."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.engine.caches.shared import SharedCache
from app.engine.caches.tensors import Rows, Take, resized
from app.engine.caches.window import capacity_of
from app.engine.session import Session, host_tensor
from app.engine.slots import Slot
from app.engine.window_edits import shift_inputs


class ShiftedCache(SharedCache):
    """Of one text. Rows of a batch have tokens of their own number: their buffers hold all.

    When the buffers are full, what the window needs and half of the slack moves to new ones.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        *,
        rows: int,
        limit: int,
        window: int,
        moves_rows: bool = False,
        keeps_all: bool = False,
    ) -> None:
        super().__init__(slots, rows=rows, limit=limit, moves_rows=moves_rows)
        self._window, self._keeps_all = window, keeps_all
        self._most = capacity_of(window)  # positions, where a run does not bring more of them
        self._shift = 0  # tokens before the first one in the buffers
        self._numbers: list[Any] = []  # what is bound to shift_inputs

    @property
    def _kept(self) -> int:
        return self.length - self._shift

    def prepare(self, total: int) -> None:
        dropped = self._shift_for(total) - self._shift
        if dropped:
            self._drop(dropped, capacity=max(self._most, total - self._shift - dropped))
        super().prepare(total - self._shift)
        first = self._shift
        self._numbers = [
            np.array(first, np.int32),
            np.array(total - first, np.int32),
            np.array([first], np.int64),
            np.array([first + self._capacity], np.int64),
        ]

    def bind(self, binding: Any, session: Session) -> None:
        super().bind(binding, session)
        for name, number in zip(shift_inputs(self._window), self._numbers, strict=True):
            info = session.inputs.get(name)
            if info is not None:
                binding.bind_ortvalue_input(name, host_tensor(number, info.element_type))

    def takes_back(self, total: int, count: int) -> bool:
        return self._holds(total - count, self._shift_for(total))

    def rewind_to(self, length: int) -> None:
        """To where the window is still held; from further back all is read again."""
        if self._holds(length, self._shift):
            self.length = length
        else:
            self.length = self._shift = 0

    def assembled(self, parts: Sequence[SharedCache], order: Rows, total: int) -> Take:
        take_tensors = super().assembled(parts, order, total)

        def take() -> None:
            take_tensors()
            self._shift = 0

        return take

    def _capacity_for(self, total: int) -> int:
        capacity = super()._capacity_for(total)
        return min(capacity, max(total, self._capacity, self._most)) if self._slides else capacity

    @property
    def _slides(self) -> bool:
        return self._rows == 1 and not self._keeps_all

    def _holds(self, length: int, shift: int) -> bool:
        return shift <= max(0, length - (self._window - 1))

    def _shift_for(self, total: int) -> int:
        """That of a run up to `total`."""
        if not self._slides or total - self._shift <= self._most:
            return self._shift
        seen = self._window - 1
        free = self._most - (total - self.length)
        keep = max(seen, min(free, seen + (self._most - seen) // 2))
        return self._shift + max(0, self._kept - keep)

    def _drop(self, count: int, *, capacity: int) -> None:
        """The first positions; all buffers at once, since one number says how many are missing."""
        self._tensors = {
            slot.past: resized(
                slot, self._tensors[slot.past], self._kept - count, capacity, first=count
            )
            for slot in self._slots
        }
        self._capacity, self._is_uneven = capacity, False
        self._bound.clear()
        self._shift += count
