"""A cache where past and present are one buffer."""

from collections.abc import Sequence
from typing import Any

from app.engine.caches.tensors import Rows, Take, all_gathered, first, joined, resized
from app.engine.errors import ContextFullError
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot

STEP = 256  # positions by which a buffer grows at least
SMALL_STEP = 32  # where rows move after each token, all of a buffer is copied


class SharedCache:
    """Past and present are one buffer, made larger in steps as the text grows, never up front."""

    has_positions = True
    can_take_back = True

    def __init__(
        self, slots: Sequence[Slot], *, rows: int, limit: int, moves_rows: bool = False
    ) -> None:
        self.length = 0
        self._slots, self._rows, self._moves_rows = slots, rows, moves_rows
        fixed = [slot.fixed_length for slot in slots if slot.fixed_length]
        self._fixed = min(fixed, default=0)
        self._limit = self._fixed or limit
        self._tensors: dict[str, Any] = {}
        self._capacity, self._is_uneven = 0, False
        self._bound: list[Any] = []

    @property
    def _kept(self) -> int:
        """Positions of the text in the buffers."""
        return self.length

    def prepare(self, total: int) -> None:
        capacity = self._capacity_for(total)
        if capacity != self._capacity or self._is_uneven:
            self._resize(capacity)

    def bind(self, binding: Any, session: Session) -> None:
        if binding in self._bound:
            return
        for slot in self._slots:
            tensor = self._tensors[slot.past]
            if slot.past in session.inputs:
                binding.bind_ortvalue_input(slot.past, tensor)
            if slot.present in session.outputs:
                binding.bind_ortvalue_output(slot.present, tensor)
        self._bound.append(binding)

    def unbind(self) -> None:
        self._bound.clear()

    def commit(self, total: int) -> None:
        self.length = total

    def takes_back(self, total: int, count: int) -> bool:
        return True

    def rewind_to(self, length: int) -> None:
        self.length = length

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep: any position can be gone back to."""

    def reordered(self, parents: Rows) -> Take:
        moved = all_gathered(self._slots, self._tensors, parents)

        def take() -> None:
            self._tensors, self._rows = moved, len(parents)
            self._bound.clear()

        return take

    def assembled(self, parts: Sequence["SharedCache"], order: Rows, total: int) -> Take:
        capacity = self._capacity_for(total)
        tensors = {
            slot.past: joined(
                slot,
                [resized(slot, p._tensors[slot.past], p.length, capacity) for p in parts],
                order,
            )
            for slot in self._slots
        }

        def take() -> None:
            self._tensors, self._capacity, self._is_uneven = tensors, capacity, False
            self._bound.clear()
            self.length = total

        return take

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present) and slot.past in self._tensors:
                return first(slot, to_numpy(self._tensors[slot.past]), self._kept)
        return None

    def _capacity_for(self, total: int) -> int:
        if total <= self._capacity:
            return self._capacity
        if total > self._limit:
            raise ContextFullError(
                f"{total} tokens do not fit the model's cache of {self._limit}.",
                needed=total,
                limit=self._limit,
            )
        if self._fixed:
            return self._fixed
        wanted, step = max(total, self._capacity + self._capacity // 2), STEP
        if self._moves_rows:
            wanted, step = total, SMALL_STEP
        return min(self._limit, -(-wanted // step) * step)

    def _resize(self, capacity: int) -> None:
        """Layer by layer, so that the old and the new buffer of one layer only exist together.

        Buffers of both sizes may be left when it fails: the next run makes them even first.
        """
        self._is_uneven = True
        self._bound.clear()
        for slot in self._slots:
            old = self._tensors.get(slot.past)
            if old is None:
                shape = slot.sized(self._rows, capacity)
                self._tensors[slot.past] = slot.session.zeros(slot.past, shape)
            elif old.shape()[slot.length_axis] != capacity:
                self._tensors[slot.past] = resized(slot, old, self._kept, capacity)
        self._capacity, self._is_uneven = capacity, False
