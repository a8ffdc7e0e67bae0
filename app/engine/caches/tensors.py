"""What all kinds of caches do with their tensors, each time into new ones on the same device."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.session import Array, Session
from app.engine.slots import Slot

Rows = NDArray[np.int64]
Take = Callable[[], None]


def all_gathered(
    slots: Sequence[Slot], tensors: Mapping[str, Any], parents: Rows
) -> dict[str, Any]:
    """Of the tensors that there are, in new ones."""
    groups: dict[tuple[Session, int], list[str]] = {}
    for slot in slots:
        if slot.past in tensors:
            groups.setdefault((slot.session, slot.row_axis), []).append(slot.past)
    moved: dict[str, Any] = {}
    for (session, axis), names in groups.items():
        moved |= session.gather({name: tensors[name] for name in names}, parents, axis=axis)
    return moved


def joined(slot: Slot, tensors: Sequence[Any], order: Rows) -> Any:
    """The rows of all of them, in another order."""
    whole = tensors[0]
    for tensor in tensors[1:]:
        whole = slot.session.join(slot.past, whole, tensor, axis=slot.row_axis)
    return slot.session.gather({slot.past: whole}, order, axis=slot.row_axis)[slot.past]


def resized(slot: Slot, tensor: Any, length: int, capacity: int, *, first: int = 0) -> Any:
    """`length` positions from `first` on, in room for `capacity`."""
    assert slot.length_axis is not None
    return slot.session.resize(
        slot.past, tensor, first=first, length=length, capacity=capacity, axis=slot.length_axis
    )


def first(slot: Slot, array: Array, length: int) -> Array:
    assert slot.length_axis is not None
    return array[(slice(None),) * slot.length_axis + (slice(length),)]
