"""The cache of layers that see the last tokens only: their window and some slack, no more.

GroupQueryAttention with sliding_window_cache=1 evicts by itself. In a buffer of `capacity`
positions it keeps, after T tokens, the last T - evicted(T), without gaps from the front on; evicted
grows by capacity - window + 1 positions at a time (the operator's description in ONNX Runtime).
A run that evicts writes into other tensors than it reads: one that fails must change nothing. The
tensors before it are kept, so that the last tokens can be taken back.
"""

from collections.abc import Sequence
from typing import Any

from app.engine.caches.tensors import Rows, Take, all_gathered, first, joined
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot

SLACK = 512  # positions behind the window at least: so many tokens can always be taken back


def capacity_of(window: int) -> int:
    return window + max(SLACK, window // 4) - 1


class WindowCache:
    has_positions = True
    can_take_back = True

    def __init__(self, slots: Sequence[Slot], *, rows: int, window: int) -> None:
        self.length = 0
        self._slots, self._rows = slots, rows
        self._capacity = capacity_of(window)
        self._step = self._capacity - window + 1  # positions that are evicted at a time
        self._now: dict[str, Any] = {}
        self._top = 0  # tokens that were read into `_now`; more than length after a rewind
        self._before: tuple[dict[str, Any], int] | None = None  # as `_now` and `_top`
        self._next: dict[str, Any] = {}  # what the next run writes to
        self._bound: list[Any] = []

    def prepare(self, total: int) -> None:
        if not self._now:
            self._now = {s.past: s.session.zeros(s.past, self._shape(s)) for s in self._slots}
        self._go_back()
        following = self._now
        if self._evicts(total):
            spare = None if self._before is None else self._before[0]
            self._before = None
            following = spare or {
                slot.past: slot.session.tensor(slot.present, self._shape(slot))
                for slot in self._slots
            }
        if following is not self._next:
            self._next = following
            self._bound.clear()

    def bind(self, binding: Any, session: Session) -> None:
        if binding in self._bound:
            return
        for slot in self._slots:
            if slot.past in session.inputs:
                binding.bind_ortvalue_input(slot.past, self._now[slot.past])
            if slot.present in session.outputs:
                binding.bind_ortvalue_output(slot.present, self._next[slot.past])
        self._bound.append(binding)

    def unbind(self) -> None:
        self._bound.clear()

    def commit(self, total: int) -> None:
        if self._next is not self._now:
            self._before = self._now, self.length
            self._now = self._next
            self._bound.clear()
        self.length = self._top = total

    def takes_back(self, total: int, count: int) -> bool:
        """Where none of them makes the cache evict."""
        return self._rows == 1 and self._evicted(total) == self._evicted(total - count)

    def rewind_to(self, length: int) -> None:
        """Within the slack; from further back all is read again."""
        self.length = length if self._tensors_of(length) is not None else 0

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep."""

    def reordered(self, parents: Rows) -> Take:
        self._go_back()
        moved = all_gathered(self._slots, self._now, parents)

        def take() -> None:
            self._rows = len(parents)
            self._replace(moved, self.length)

        return take

    def assembled(self, parts: Sequence["WindowCache"], order: Rows, total: int) -> Take:
        """Each row is laid out by its own number of tokens."""
        tensors = {
            slot.past: joined(slot, [part._now[slot.past] for part in parts], order)
            for slot in self._slots
        }
        return lambda: self._replace(tensors, total)

    def read(self, name: str) -> Array | None:
        """The positions that are left, the last one last."""
        tensors = self._tensors_of(self.length)
        for slot in self._slots:
            if name in (slot.past, slot.present) and tensors:
                kept = self.length - self._evicted(self.length)
                return first(slot, to_numpy(tensors[slot.past]), kept)
        return None

    def _shape(self, slot: Slot) -> tuple[int, ...]:
        return slot.sized(self._rows, self._capacity)

    def _replace(self, tensors: dict[str, Any], length: int) -> None:
        self._now, self._next, self._before = tensors, {}, None
        self.length = self._top = length
        self._bound.clear()

    def _evicted(self, length: int) -> int:
        return self._step * max(0, -(-(length - self._capacity) // self._step))

    def _evicts(self, total: int) -> bool:
        """Rows of a padded batch have fewer tokens than `total`: any run may be the one."""
        if self._rows > 1:
            return total > self._capacity
        return self._evicted(total) != self._evicted(self.length)

    def _tensors_of(self, length: int) -> dict[str, Any] | None:
        """Those that hold what was read of the first `length` tokens."""
        kept = [(self._now, self._top)] + ([] if self._before is None else [self._before])
        for tensors, top in kept:
            if length == 0 or (length <= top and self._keeps(length, top)):
                return tensors
        return None

    def _keeps(self, length: int, top: int) -> bool:
        if self._rows > 1:
            return top <= self._capacity
        return self._evicted(length) == self._evicted(top)

    def _go_back(self) -> None:
        if self.length == self._top:
            return
        tensors = self._tensors_of(self.length)
        assert tensors is not None, "rewind_to goes to what is kept"
        if tensors is not self._now:
            self._now, self._before, self._next = tensors, None, {}
            self._bound.clear()
        self._top = self.length
