"""What the model remembers of the text: tensors on the device, by kind of cache.

The loop asks few things: `prepare` and `bind` for a run up to a length, `commit` it, `rewind_to`,
`reordered`, `mark`, `read`. Invariant: a cache holds what the model computed for the first `length`
tokens; a run that fails after prepare changes nothing of that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.errors import ContextFullError
from app.engine.session import Array, Session, to_numpy
from app.engine.slots import Slot

STEP = 256  # positions by which a shared buffer grows at least
MARKS = 8  # states that are kept to go back to, where positions cannot be cut off

Rows = NDArray[np.int64]
Take = Callable[[], None]


class Cache(Protocol):
    can_rewind: bool  # False: only to what was marked, so that more must be read again

    @property
    def length(self) -> int: ...

    def prepare(self, total: int) -> None: ...
    def bind(self, binding: Any, session: Session) -> None: ...
    def unbind(self) -> None:
        """Bindings have lost what was bound to them."""

    def commit(self, total: int) -> None: ...
    def rewind_to(self, length: int) -> None:
        """Go back to `length` tokens or, where that is not possible, to fewer; see `length`."""

    def advance_to(self, length: int) -> None:
        """Take back a rewind, as far as the last run went. Before the next run only."""

    def mark(self) -> None: ...
    def reordered(self, parents: Rows) -> Take:
        """Row i becomes what row parents[i] was; the number of rows may change.

        All tensors are made first: until what is returned is called nothing has changed, and the
        call itself cannot fail.
        """

    def assembled(self, parts: Sequence[Any], order: Rows, total: int) -> Take:
        """As `reordered`: row i becomes row order[i] of the rows of `parts`, caches of this kind
        that hold `total` tokens at most; what they lack is zero."""

    def read(self, name: str) -> Array | None: ...


def make_cache(slots: Sequence[Slot], *, rows: int, limit: int, is_shared: bool) -> Cache:
    with_length = [slot for slot in slots if slot.length_axis is not None]
    without = [slot for slot in slots if slot.length_axis is None]
    kind = SharedCache if is_shared or any(s.fixed_length for s in slots) else GrowingCache
    if not without:
        return kind(with_length, rows=rows, limit=limit)
    parts: list[Cache] = [RecurrentState(without, rows=rows)]
    if with_length:
        parts.append(kind(with_length, rows=rows, limit=limit))
    return MixedCache(parts)


class SharedCache:
    """Past and present are one buffer, made larger in steps as the text grows, never up front."""

    can_rewind = True

    def __init__(self, slots: Sequence[Slot], *, rows: int, limit: int) -> None:
        self.length = 0
        self._slots, self._rows = slots, rows
        fixed = [slot.fixed_length for slot in slots if slot.fixed_length]
        self._fixed = min(fixed, default=0)
        self._limit = self._fixed or limit
        self._tensors: dict[str, Any] = {}
        self._capacity, self._is_uneven = 0, False
        self._bound: list[Any] = []

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

    def rewind_to(self, length: int) -> None:
        self.length = length

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep: any position can be gone back to."""

    def reordered(self, parents: Rows) -> Take:
        moved = _all_gathered(self._slots, self._tensors, parents)

        def take() -> None:
            self._tensors, self._rows = moved, len(parents)
            self._bound.clear()

        return take

    def assembled(self, parts: Sequence["SharedCache"], order: Rows, total: int) -> Take:
        capacity = self._capacity_for(total)
        tensors = {
            slot.past: _joined(
                slot,
                [_resized(slot, p._tensors[slot.past], p.length, capacity) for p in parts],
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
                return _first(slot, to_numpy(self._tensors[slot.past]), self.length)
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
        wanted = max(total, self._capacity + self._capacity // 2)
        return self._fixed or min(self._limit, -(-wanted // STEP) * STEP)

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
                self._tensors[slot.past] = _resized(slot, old, self.length, capacity)
        self._capacity, self._is_uneven = capacity, False


class GrowingCache:
    """The graph returns past and new positions together: one run's present is the next's past."""

    can_rewind = True

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

    def rewind_to(self, length: int) -> None:
        self.length = length

    def advance_to(self, length: int) -> None:
        self.length = length

    def mark(self) -> None:
        """Nothing to keep: any position can be gone back to."""

    def reordered(self, parents: Rows) -> Take:
        moved = _all_gathered(self._slots, self._past, parents)

        def take() -> None:
            self._past, self._rows = moved, len(parents)

        return take

    def assembled(self, parts: Sequence["GrowingCache"], order: Rows, total: int) -> Take:
        tensors = {
            slot.past: _joined(
                slot, [_resized(slot, p._past[slot.past], p.length, total) for p in parts], order
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
                return _first(slot, to_numpy(self._past[slot.past]), self.length)
        return None

    def _cut(self) -> None:
        self._past = {
            slot.past: _resized(slot, self._past[slot.past], self.length, self.length)
            for slot in self._slots
        }
        self._stored = self.length


class RecurrentState:
    """Convolutions and state spaces: what was read cannot be taken out of the state again.

    Going back means to the last mark before, or to the empty text; from there the rest is read
    again.
    """

    can_rewind = False

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
        moved = _all_gathered(self._slots, self._now, parents)

        def take() -> None:
            self._now, self._rows = moved, len(parents)
            self._marks.clear()

        return take

    def assembled(self, parts: Sequence["RecurrentState"], order: Rows, total: int) -> Take:
        states = {
            slot.past: _joined(slot, [part._now[slot.past] for part in parts], order)
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


class MixedCache:
    """Several kinds side by side, as in hybrid models; the first goes back least."""

    def __init__(self, parts: Sequence[Cache]) -> None:
        self._parts = parts
        self.can_rewind = all(part.can_rewind for part in parts)

    @property
    def length(self) -> int:
        return self._parts[0].length

    def prepare(self, total: int) -> None:
        for part in self._parts:
            part.prepare(total)

    def bind(self, binding: Any, session: Session) -> None:
        for part in self._parts:
            part.bind(binding, session)

    def unbind(self) -> None:
        for part in self._parts:
            part.unbind()

    def commit(self, total: int) -> None:
        for part in self._parts:
            part.commit(total)

    def rewind_to(self, length: int) -> None:
        self._parts[0].rewind_to(length)
        for part in self._parts[1:]:
            part.rewind_to(self.length)

    def advance_to(self, length: int) -> None:
        for part in self._parts:
            part.advance_to(length)

    def mark(self) -> None:
        for part in self._parts:
            part.mark()

    def reordered(self, parents: Rows) -> Take:
        takes = [part.reordered(parents) for part in self._parts]

        def take() -> None:
            for each in takes:
                each()

        return take

    def assembled(self, parts: Sequence["MixedCache"], order: Rows, total: int) -> Take:
        own = zip(*(part._parts for part in parts), strict=True)
        takes = [
            cache.assembled(same, order, total)
            for cache, same in zip(self._parts, own, strict=True)
        ]

        def take() -> None:
            for each in takes:
                each()

        return take

    def read(self, name: str) -> Array | None:
        return next((found for p in self._parts if (found := p.read(name)) is not None), None)


# ---------------------------------------------------------------- tensors


def _all_gathered(
    slots: Sequence[Slot], tensors: Mapping[str, Any], parents: Rows
) -> dict[str, Any]:
    """Of the tensors that there are, in new ones."""
    return {
        slot.past: slot.session.gather(slot.past, tensors[slot.past], parents, axis=slot.row_axis)
        for slot in slots
        if slot.past in tensors
    }


def _joined(slot: Slot, tensors: Sequence[Any], order: Rows) -> Any:
    """The rows of all of them, in another order."""
    joined = tensors[0]
    for tensor in tensors[1:]:
        joined = slot.session.join(slot.past, joined, tensor, axis=slot.row_axis)
    return slot.session.gather(slot.past, joined, order, axis=slot.row_axis)


def _resized(slot: Slot, tensor: Any, length: int, capacity: int) -> Any:
    assert slot.length_axis is not None
    return slot.session.resize(
        slot.past, tensor, length=length, capacity=capacity, axis=slot.length_axis
    )


def _first(slot: Slot, array: Array, length: int) -> Array:
    assert slot.length_axis is not None
    return array[(slice(None),) * slot.length_axis + (slice(length),)]
