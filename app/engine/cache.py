"""Key-value caches: tensors on the device that hold what the model has read.

The loop asks four things: `prepare` a run up to a length, `commit` it, `rewind_to`, `read`.
Invariant: positions below `length` are what the model computed for the tokens read so far; a run
that fails after prepare changes nothing of that.
"""

import re
from dataclasses import dataclass
from typing import Any, Protocol

from app.engine.config import DecoderConfig
from app.engine.errors import ContextFullError, ModelError
from app.engine.session import Array, Session, to_numpy

STEP = 256  # positions by which a shared buffer grows at least


@dataclass(frozen=True)
class Slot:
    """One key or value tensor: its names in the graph, and its shape (B, heads, T, head_size)."""

    past: str
    present: str
    heads: int
    head_size: int
    fixed_length: int  # 0: the graph leaves the length free


class Cache(Protocol):
    length: int

    def prepare(self, binding: Any, total: int) -> None: ...
    def commit(self, total: int) -> None: ...
    def rewind_to(self, length: int) -> None: ...
    def read(self, name: str) -> Array | None: ...


def find_slots(session: Session, config: DecoderConfig) -> list[Slot]:
    """The cache tensors by the config's name patterns; gaps are normal in hybrid models."""
    slots = []
    pairs = (("past_key_names", "present_key_names"), ("past_value_names", "present_value_names"))
    for past_word, present_word in pairs:
        pattern = config.inputs[past_word]
        if pattern.count("%d") != 1:
            raise ModelError(f"genai_config.json: inputs.{past_word} must contain %d once.")
        expression = re.compile(re.escape(pattern).replace("%d", r"(\d+)"))
        for name, info in session.inputs.items():
            match = expression.fullmatch(name)
            if match is None:
                continue
            present = config.outputs[present_word].replace("%d", match[1])
            if present not in session.outputs:
                raise ModelError(f"The graph has the input {name} but no output {present}.")
            if len(info.shape) != 4:
                raise ModelError(f"The cache input {name} has {len(info.shape)} dimensions, not 4.")
            _, heads, length, head_size = info.shape
            slots.append(
                Slot(
                    past=name,
                    present=present,
                    heads=_known(heads, config.num_key_value_heads, name),
                    head_size=_known(head_size, config.head_size, name),
                    fixed_length=max(length, 0),
                )
            )
    return slots


def make_cache(
    session: Session, slots: list[Slot], *, rows: int, limit: int, is_shared: bool
) -> Cache:
    kind = SharedCache if is_shared or any(s.fixed_length for s in slots) else GrowingCache
    return kind(session, slots, rows=rows, limit=limit)


class SharedCache:
    """Past and present are one buffer, made larger in steps as the text grows, never up front."""

    def __init__(self, session: Session, slots: list[Slot], *, rows: int, limit: int) -> None:
        self.length = 0
        self._session, self._slots, self._rows = session, slots, rows
        fixed = [slot.fixed_length for slot in slots if slot.fixed_length]
        self._fixed = min(fixed, default=0)
        self._limit = self._fixed or limit
        self._tensors: dict[str, Any] = {}
        self._capacity = 0
        self._bound: Any = None

    def prepare(self, binding: Any, total: int) -> None:
        if total > self._capacity:
            self._grow(total)
        if self._bound is not binding:
            for slot in self._slots:
                tensor = self._tensors[slot.past]
                binding.bind_ortvalue_input(slot.past, tensor)
                binding.bind_ortvalue_output(slot.present, tensor)
            self._bound = binding

    def commit(self, total: int) -> None:
        self.length = total

    def rewind_to(self, length: int) -> None:
        self.length = length

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present) and slot.past in self._tensors:
                return to_numpy(self._tensors[slot.past])[:, :, : self.length]
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
        self._bound = None
        for slot in self._slots:
            old = self._tensors.get(slot.past)
            if old is None:
                shape = self._rows, slot.heads, capacity, slot.head_size
                self._tensors[slot.past] = self._session.zeros(slot.past, shape)
            elif old.shape()[2] < capacity:  # a growth that failed half way goes on from there
                self._tensors[slot.past] = self._session.resize(
                    slot.past, old, length=self.length, capacity=capacity
                )
        self._capacity = capacity


class GrowingCache:
    """The graph returns past and new positions together: one run's present is the next's past."""

    def __init__(self, session: Session, slots: list[Slot], *, rows: int, limit: int) -> None:
        self.length = 0
        self._session, self._slots = session, slots
        self._past = {
            slot.past: session.tensor(slot.past, (rows, slot.heads, 0, slot.head_size))
            for slot in slots
        }
        self._present: dict[str, Any] = {}
        self._stored = 0  # positions in the tensors; more than length after a rewind

    def prepare(self, binding: Any, total: int) -> None:
        if self._stored != self.length:
            self._cut()
        for slot in self._slots:
            past = self._past[slot.past]
            rows, heads, _, head_size = past.shape()
            present = self._session.tensor(slot.present, (rows, heads, total, head_size))
            binding.bind_ortvalue_input(slot.past, past)
            binding.bind_ortvalue_output(slot.present, present)
            self._present[slot.past] = present

    def commit(self, total: int) -> None:
        self._past, self._present = self._present, {}
        self.length = self._stored = total

    def rewind_to(self, length: int) -> None:
        self.length = length

    def read(self, name: str) -> Array | None:
        for slot in self._slots:
            if name in (slot.past, slot.present):
                return to_numpy(self._past[slot.past])[:, :, : self.length]
        return None

    def _cut(self) -> None:
        self._past = {
            name: self._session.resize(name, tensor, length=self.length, capacity=self.length)
            for name, tensor in self._past.items()
        }
        self._stored = self.length


def _known(dimension: int, configured: int, name: str) -> int:
    value = dimension if dimension > 0 else configured
    if value <= 0:
        raise ModelError(f"Neither the graph nor genai_config.json tells the shape of {name}.")
    return value
