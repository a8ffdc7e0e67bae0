"""States without positions, of convolutions and state spaces."""

from collections.abc import Sequence
from typing import Any

from app.engine.caches.tensors import Rows, Take, all_gathered, joined
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot

MARKS = 8  # states that are kept to go back to


class RecurrentState:
    """Convolutions and state spaces: what was read cannot be taken out of the state again.

    Going back means to the last mark before, or to the empty text; from there the rest is read
    again.
    """

    has_positions = False
    can_take_back = False

    def __init__(self, slots: Sequence[Slot], *, rows: int) -> None:
        self.length = 0
        self._slots, self._rows = slots, rows
        self._now = self._empty()
        self._next: dict[str, Any] = {}
        self._marks: dict[int, dict[str, Any]] = {}

    def prepare(self, total: int) -> None:
        self._next = {
            slot.past: slot.session.tensor(slot.present, slot.sized(self._rows))
            for slot in self._slots
        }

    def bind(self, binding: Any, session: Session) -> None:
        for slot in self._slots:
            if slot.past in session.inputs:
                binding.bind_ortvalue_input(slot.past, self._now[slot.past])
            if slot.present in session.outputs:
                binding.bind_ortvalue_output(slot.present, self._next[slot.past])

    def unbind(self) -> None:
        """Nothing to do: every run binds."""

    def commit(self, total: int) -> None:
        self._now, self._next = self._next, {}
        self.length = total

    def takes_back(self, total: int, count: int) -> bool:
        return count == 0

    def rewind_to(self, length: int) -> None:
        if length >= self.length:
            return
        marks = {at: state for at, state in self._marks.items() if at <= length}
        reached = max(marks, default=0)
        self._now = marks.get(reached) or self._empty()  # may fail: nothing has changed before
        self._marks, self.length = marks, reached

    def advance_to(self, length: int) -> None:
        assert length == self.length, "nothing is drafted where a rewind reads again"

    def mark(self) -> None:
        """The tensors themselves: a run writes into new ones."""
        self._marks.pop(self.length, None)
        self._marks[self.length] = self._now
        if len(self._marks) > MARKS:
            del self._marks[next(iter(self._marks))]

    def reordered(self, parents: Rows) -> Take:
        moved = all_gathered(self._slots, self._now, parents)

        def take() -> None:
            self._now, self._rows = moved, len(parents)
            self._marks.clear()

        return take

    def assembled(self, parts: Sequence["RecurrentState"], order: Rows, total: int) -> Take:
        states = {
            slot.past: joined(slot, [part._now[slot.past] for part in parts], order)
            for slot in self._slots
        }

        def take() -> None:
            self._now, self.length = states, total
            self._marks.clear()

        return take

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present):
                return to_numpy(self._now[slot.past])
        return None

    def _empty(self) -> dict[str, Any]:
        return {s.past: s.session.zeros(s.past, s.sized(self._rows)) for s in self._slots}
