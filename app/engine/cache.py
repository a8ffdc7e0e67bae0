"""What the model remembers of the text: tensors on the device, by kind of cache.

The loop asks few things: `prepare` and `bind` for a run up to a length, `commit` it, `rewind_to`,
`reorder`, `mark`, `read`. Invariant: a cache holds what the model computed for the first `length`
tokens; a run that fails after prepare changes nothing of that.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.config import DecoderConfig
from app.engine.errors import ContextFullError, ModelError
from app.engine.session import Array, Session, to_numpy

STEP = 256  # positions by which a shared buffer grows at least
MARKS = 8  # states that are kept to go back to, where positions cannot be cut off

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Slot:
    """One tensor that comes out of a run as `present` and goes into the next as `past`.

    `shape` holds 0 for the rows and for the length; a state without positions has no length axis.
    """

    session: Session
    past: str
    present: str
    shape: tuple[int, ...]
    row_axis: int = 0
    length_axis: int | None = 2
    fixed_length: int = 0  # 0: the graph leaves the length free

    def sized(self, rows: int, length: int = 0) -> tuple[int, ...]:
        shape = list(self.shape)
        shape[self.row_axis] = rows
        if self.length_axis is not None:
            shape[self.length_axis] = length
        return tuple(shape)


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
    def reorder(self, parents: Rows) -> None:
        """Row i becomes what row parents[i] was; the number of rows may change."""

    def read(self, name: str) -> Array | None: ...


def find_slots(sessions: Iterable[Session], config: DecoderConfig) -> list[Slot]:
    """The cache tensors by the config's name patterns; gaps are normal in hybrid models."""
    slots: dict[str, Slot] = {}
    for session in sessions:
        for past, present, kind in _patterns(config):
            for slot in _matching(session, config, past, present, kind):
                slots.setdefault(slot.past, slot)
    return list(slots.values())


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
        self._capacity = 0
        self._bound: list[Any] = []

    def prepare(self, total: int) -> None:
        if total > self._capacity:
            self._grow(total)

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

    def reorder(self, parents: Rows) -> None:
        self._rows = len(parents)
        self._bound.clear()
        for slot in self._slots:
            if slot.past in self._tensors:
                self._tensors[slot.past] = _gathered(slot, self._tensors[slot.past], parents)

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present) and slot.past in self._tensors:
                return _first(slot, to_numpy(self._tensors[slot.past]), self.length)
        return None

    def _grow(self, total: int) -> None:
        """Layer by layer, so that the old and the new buffer of one layer only exist together."""
        if total > self._limit:
            raise ContextFullError(
                f"{total} tokens do not fit the model's cache of {self._limit}.",
                needed=total,
                limit=self._limit,
            )
        wanted = max(total, self._capacity + self._capacity // 2)
        capacity = self._fixed or min(self._limit, -(-wanted // STEP) * STEP)
        self._bound.clear()
        for slot in self._slots:
            old = self._tensors.get(slot.past)
            if old is None:
                shape = slot.sized(self._rows, capacity)
                self._tensors[slot.past] = slot.session.zeros(slot.past, shape)
            elif old.shape()[slot.length_axis] < capacity:  # one that failed goes on from there
                self._tensors[slot.past] = _resized(slot, old, self.length, capacity)
        self._capacity = capacity


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

    def reorder(self, parents: Rows) -> None:
        self._rows = len(parents)
        for slot in self._slots:
            self._past[slot.past] = _gathered(slot, self._past[slot.past], parents)

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present):
                return _first(slot, to_numpy(self._past[slot.past]), self.length)
        return None

    def _cut(self) -> None:
        for slot in self._slots:
            tensor = self._past[slot.past]
            if tensor.shape()[slot.length_axis] != self.length:
                self._past[slot.past] = _resized(slot, tensor, self.length, self.length)
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
        self._marks = {at: state for at, state in self._marks.items() if at <= length}
        self.length = max(self._marks, default=0)
        self._now = self._marks.get(self.length) or self._empty()

    def advance_to(self, length: int) -> None:
        assert length == self.length, "nothing is drafted where a rewind reads again"

    def mark(self) -> None:
        """The tensors themselves: a run writes into new ones."""
        self._marks.pop(self.length, None)
        self._marks[self.length] = self._now
        if len(self._marks) > MARKS:
            del self._marks[next(iter(self._marks))]

    def reorder(self, parents: Rows) -> None:
        self._rows = len(parents)
        self._marks.clear()
        self._now = {s.past: _gathered(s, self._now[s.past], parents) for s in self._slots}

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

    def reorder(self, parents: Rows) -> None:
        for part in self._parts:
            part.reorder(parents)

    def read(self, name: str) -> Array | None:
        return next((found for p in self._parts if (found := p.read(name)) is not None), None)


# ---------------------------------------------------------------- tensors


def _gathered(slot: Slot, tensor: Any, parents: Rows) -> Any:
    return slot.session.gather(slot.past, tensor, parents, axis=slot.row_axis)


def _resized(slot: Slot, tensor: Any, length: int, capacity: int) -> Any:
    assert slot.length_axis is not None
    return slot.session.resize(
        slot.past, tensor, length=length, capacity=capacity, axis=slot.length_axis
    )


def _first(slot: Slot, array: Array, length: int) -> Array:
    assert slot.length_axis is not None
    return array[(slice(None),) * slot.length_axis + (slice(length),)]


# ---------------------------------------------------------------- names in the graph


def _patterns(config: DecoderConfig) -> list[tuple[str, str, str]]:
    """(pattern of past, pattern of present, kind) for every kind of cache that a graph may have."""
    inputs, outputs = config.inputs, config.outputs
    past_key, present_key = inputs["past_key_names"], outputs["present_key_names"]
    found = [
        (past_key, present_key, "attention"),
        (inputs["past_value_names"], outputs["present_value_names"], "attention"),
        (inputs["past_conv_names"], outputs["present_conv_names"], "state"),
        (inputs["rnn_states_prev"], outputs["rnn_states"], "layers"),
    ]
    if inputs["past_names"]:
        found.append((inputs["past_names"], outputs["present_names"], "combined"))
    if past_key.endswith("key") and present_key.endswith("key"):
        for word in ("conv_state", "recurrent_state"):
            past, present = past_key.removesuffix("key") + word, present_key.removesuffix("key")
            found.append((past, present + word, "state"))
    for past, present, kind in found:
        if kind != "layers" and not past.count("%d") == present.count("%d") == 1:
            raise ModelError(f"genai_config.json: {past!r} and {present!r} must contain %d once.")
    return found


def _matching(
    session: Session, config: DecoderConfig, past: str, present: str, kind: str
) -> list[Slot]:
    expression = re.compile(re.escape(past).replace("%d", r"(\d+)"))
    found = []
    for name, info in session.inputs.items():
        match = expression.fullmatch(name)
        if match is None:
            continue
        target = present.replace("%d", match[1]) if match.groups() else present
        if target not in session.outputs:
            raise ModelError(f"The graph has the input {name} but no output {target}.")
        found.append(_slot(session, config, name, target, info.shape, kind))
    return found


def _slot(
    session: Session,
    config: DecoderConfig,
    past: str,
    present: str,
    shape: tuple[int, ...],
    kind: str,
) -> Slot:
    if kind in ("state", "layers"):
        row_axis = 1 if kind == "layers" else 0
        for axis, size in enumerate(shape):
            if axis != row_axis:
                _known(size, 0, past)
        return Slot(session, past, present, shape, row_axis=row_axis, length_axis=None)
    row_axis = 1 if kind == "combined" else 0
    if len(shape) != row_axis + 4:
        raise ModelError(f"The cache input {past} has {len(shape)} dimensions, not {row_axis + 4}.")
    heads, length, head_size = shape[row_axis + 1 :]
    sizes = (
        _known(heads, config.num_key_value_heads, past),
        0,
        _known(head_size, config.head_size, past),
    )
    return Slot(
        session,
        past,
        present,
        (*shape[:row_axis], 0, *sizes),
        row_axis=row_axis,
        length_axis=row_axis + 2,
        fixed_length=max(length, 0),
    )


def _known(dimension: int, configured: int, name: str) -> int:
    value = dimension if dimension > 0 else configured
    if value <= 0:
        raise ModelError(f"Neither the graph nor genai_config.json tells the shape of {name}.")
    return value
