"""Which tensors of a graph are its memory of the text: found by the config's name patterns.

Knows names and shapes; the tensors themselves are the business of caches/.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.engine.config import DecoderConfig
from app.engine.errors import ModelError
from app.engine.session import Session
from app.engine.window_edits import shift_inputs


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
    window: int = 0  # 0: all positions are kept
    gives_new_only: bool = False  # what comes out are the run's positions, without the past

    @property
    def names(self) -> tuple[str, ...]:
        """All inputs and outputs that a cache binds."""
        is_shifted = self.window and self.session.shifts_windows
        return self.past, self.present, *(shift_inputs(self.window) if is_shifted else ())

    def sized(self, rows: int, length: int = 0) -> tuple[int, ...]:
        shape = list(self.shape)
        if not self.gives_new_only:  # its graphs are made for one row, whatever they call it
            shape[self.row_axis] = rows
        if self.length_axis is not None:
            shape[self.length_axis] = length
        return tuple(shape)


def find_slots(
    sessions: Iterable[Session], config: DecoderConfig, context_length: int
) -> list[Slot]:
    """The cache tensors by the config's name patterns; gaps are normal in hybrid models."""
    slots: dict[str, Slot] = {}
    for session in sessions:
        for past, present, kind in _patterns(config):
            for slot in _matching(session, config, past, present, kind, context_length):
                slots.setdefault(slot.past, slot)
    return list(slots.values())


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
    session: Session,
    config: DecoderConfig,
    past: str,
    present: str,
    kind: str,
    context_length: int,
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
        axis = _split_axis(info.shape, session.outputs[target].shape, context_length)
        if kind == "attention" and axis is not None:
            found.append(
                Slot(session, name, target, info.shape, length_axis=axis, gives_new_only=True)
            )
        else:
            found.append(_slot(session, config, name, target, info.shape, kind))
    return found


def _split_axis(past: tuple[int, ...], present: tuple[int, ...], whole: int) -> int | None:
    """The axis along which the past and what is new are a whole context; None: none is."""
    if len(past) != len(present) or min((*past, *present), default=0) <= 0:
        return None
    axes = [axis for axis in range(len(past)) if past[axis] + present[axis] == whole]
    rest = {axis: past[:axis] + past[axis + 1 :] for axis in axes}
    return next((a for a in axes if rest[a] == present[:a] + present[a + 1 :]), None)


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
        window=session.windows.get(past, 0),
    )


def _known(dimension: int, configured: int, name: str) -> int:
    value = dimension if dimension > 0 else configured
    if value <= 0:
        raise ModelError(f"Neither the graph nor genai_config.json tells the shape of {name}.")
    return value
