"""Caches of graphs of a fixed size: they take the last positions of a context, with room for the
run's own, and give what is new."""

from collections.abc import Sequence
from typing import Any

from app.engine.caches.tensors import Rows, Take, first, resized
from app.engine.errors import EngineError
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot


class SlidingCache:
    """A buffer of the whole context, whose text ends at its end; what is before it is masked."""

    has_positions = True
    can_take_back = False  # for nothing, as guesses want it; any rewind is possible

    def __init__(self, slots: Sequence[Slot], *, context: int, pad_value: int) -> None:
        self.length = 0
        self._slots, self._context, self._pad_value = slots, context, pad_value
        self._whole: dict[str, Any] = {}
        self._stored = 0  # tokens that the buffers end with; more than length after a rewind
        self._width = self._before = 0
        self._past: dict[str, Any] = {}
        self._present: dict[str, Any] = {}

    def expect(self, width: int, before: int) -> None:
        """The next run has `width` columns, of which the first `before` are pads."""
        self._width, self._before = width, before

    def prepare(self, total: int) -> None:
        for slot in self._slots:
            if slot.past not in self._whole:
                self._whole[slot.past] = self._pads(slot, self._context)
        room = self._context - self._width
        self._past = {slot.past: self._last(slot, room) for slot in self._slots}
        self._present = {
            slot.past: slot.session.tensor(slot.present, slot.sized(1, self._width))
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
        count = self._width - self._before
        whole = {}
        for slot in self._slots:
            new = resized(slot, self._present[slot.past], count, count, first=self._before)
            whole[slot.past] = self._joined(slot, self._last(slot, self._context - count), new)
        self._whole, self._past, self._present = whole, {}, {}
        self.length = self._stored = total

    def takes_back(self, total: int, count: int) -> bool:
        return count == 0

    def rewind_to(self, length: int) -> None:
        self.length = length

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep: any position can be gone back to."""

    def reordered(self, parents: Rows) -> Take:
        raise EngineError("This model reads one text at a time.")

    def assembled(self, parts: Sequence["SlidingCache"], order: Rows, total: int) -> Take:
        raise EngineError("This model reads one text at a time.")

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present) and slot.past in self._whole:
                count = min(self.length, self._context)
                return first(slot, to_numpy(self._last(slot, count)), count)
        return None

    def _last(self, slot: Slot, count: int) -> Any:
        """The last `count` positions of the text, with pads before them where it has fewer."""
        end = self._context - (self._stored - self.length)
        have = min(end, count)
        found = resized(slot, self._whole[slot.past], have, have, first=end - have)
        return found if have == count else self._joined(slot, self._pads(slot, count - have), found)

    def _joined(self, slot: Slot, tensor: Any, other: Any) -> Any:
        assert slot.length_axis is not None
        return slot.session.join(slot.past, tensor, other, axis=slot.length_axis)

    def _pads(self, slot: Slot, count: int) -> Any:
        return slot.session.filled(slot.past, slot.sized(1, count), self._pad_value)
