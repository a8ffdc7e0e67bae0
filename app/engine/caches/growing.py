"""A cache of graphs that return past and new positions together."""

from collections.abc import Sequence
from typing import Any

from app.engine.caches.tensors import Rows, Take, all_gathered, first, joined, resized
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot


class GrowingCache:
    """The graph returns past and new positions together: one run's present is the next's past."""

    has_positions = True
    can_take_back = True

    def __init__(self, slots: Sequence[Slot], *, rows: int, limit: int) -> None:
        self.length = 0
        self._slots = slots
        self._past = {slot.past: slot.session.tensor(slot.past, slot.sized(rows)) for slot in slots}
        self._present: dict[str, Any] = {}
        self._rows = rows
        self._stored = 0  # positions in the tensors; more than length after a rewind

    def prepare(self, total: int) -> None:
        if self._stored != self.length:
            self._cut()
        self._present = {
            slot.past: slot.session.tensor(slot.present, slot.sized(self._rows, total))
            for slot in self._slots
        }

    def bind(self, binding: Any, session: Session) -> None:
        for slot in self._slots:
            if slot.past in session.inputs:
                binding.bind_ortvalue_input(slot.past, self._past[slot.past])
            if slot.present in session.outputs:
                binding.bind_ortvalue_output(slot.present, self._present[slot.past])

    def unbind(self) -> None:
        """Nothing to do: every run binds."""

    def commit(self, total: int) -> None:
        self._past, self._present = self._present, {}
        self.length = self._stored = total

    def takes_back(self, total: int, count: int) -> bool:
        return True

    def rewind_to(self, length: int) -> None:
        self.length = length

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep: any position can be gone back to."""

    def reordered(self, parents: Rows) -> Take:
        moved = all_gathered(self._slots, self._past, parents)

        def take() -> None:
            self._past, self._rows = moved, len(parents)

        return take

    def assembled(self, parts: Sequence["GrowingCache"], order: Rows, total: int) -> Take:
        tensors = {
            slot.past: joined(
                slot, [resized(slot, p._past[slot.past], p.length, total) for p in parts], order
            )
            for slot in self._slots
        }

        def take() -> None:
            self._past = tensors
            self.length = self._stored = total

        return take

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present):
                return first(slot, to_numpy(self._past[slot.past]), self.length)
        return None

    def _cut(self) -> None:
        self._past = {
            slot.past: resized(slot, self._past[slot.past], self.length, self.length)
            for slot in self._slots
        }
        self._stored = self.length
