"""What the model remembers of the text: tensors on the device, by kind of cache.

The loop asks few things: `prepare` and `bind` for a run up to a length, `commit` it, `rewind_to`,
`reordered`, `mark`, `read`. Invariant: a cache holds what the model computed for the first `length`
tokens; a run that fails after prepare changes nothing of that.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from app.engine.caches.growing import GrowingCache
from app.engine.caches.shared import SharedCache
from app.engine.caches.shifted import ShiftedCache
from app.engine.caches.sliding import SlidingCache
from app.engine.caches.state import RecurrentState
from app.engine.caches.tensors import Rows, Take
from app.engine.caches.window import WindowCache
from app.engine.session import Array, Session
from app.engine.slots import Slot

__all__ = ["Cache", "Rows", "SlidingCache", "Take", "make_cache"]


class Cache(Protocol):
    has_positions: bool  # pads of a batch can be masked, or are overwritten
    can_take_back: bool  # what the last run read; see takes_back

    @property
    def length(self) -> int: ...

    def prepare(self, total: int) -> None: ...
    def bind(self, binding: Any, session: Session) -> None: ...
    def unbind(self) -> None:
        """Bindings have lost what was bound to them."""

    def commit(self, total: int) -> None: ...
    def takes_back(self, total: int, count: int) -> bool:
        """Whether after a run up to `total` each of the last `count` tokens can be taken back."""

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


def make_cache(
    slots: Sequence[Slot],
    *,
    rows: int,
    limit: int,
    is_shared: bool,
    moves_rows: bool,
    is_part: bool = False,
    pad_value: int = 0,
) -> Cache:
    """`moves_rows`: `reordered` is called after each token; `is_part`: another one's `assembled`
    takes it up; `pad_value`: what is in an empty one of fixed size."""
    if any(slot.gives_new_only for slot in slots):
        return SlidingCache(slots, context=limit, pad_value=pad_value)
    states = [slot for slot in slots if slot.length_axis is None]
    windows = sorted({slot.window for slot in slots if slot.window})
    whole = [slot for slot in slots if slot.length_axis is not None and not slot.window]
    parts: list[Cache] = []
    if states:
        parts.append(RecurrentState(states, rows=rows))
    for window in windows:
        same = [slot for slot in slots if slot.window == window]
        if same[0].session.shifts_windows:
            parts.append(
                ShiftedCache(
                    same,
                    rows=rows,
                    limit=limit,
                    window=window,
                    moves_rows=moves_rows,
                    keeps_all=is_part,
                )
            )
        else:
            parts.append(WindowCache(same, rows=rows, window=window))
    if whole and (is_shared or any(slot.fixed_length for slot in whole)):
        parts.append(SharedCache(whole, rows=rows, limit=limit, moves_rows=moves_rows))
    elif whole or not parts:
        parts.append(GrowingCache(whole, rows=rows, limit=limit))
    return parts[0] if len(parts) == 1 else MixedCache(parts)


class MixedCache:
    """Several kinds side by side, as in hybrid models."""

    def __init__(self, parts: Sequence[Cache]) -> None:
        self._parts = parts
        self.has_positions = all(part.has_positions for part in parts)
        self.can_take_back = all(part.can_take_back for part in parts)

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

    def takes_back(self, total: int, count: int) -> bool:
        return all(part.takes_back(total, count) for part in self._parts)

    def rewind_to(self, length: int) -> None:
        """To where all of them can go: each may go further back than it was told."""
        while any(part.length != length for part in self._parts):
            for part in self._parts:
                part.rewind_to(length)
                length = part.length

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
