"""Token ids (B, L) and a cache -> logits (B, V): one run of the model after another.

Makes the inputs that the graph declares (masks, positions, lengths), binds them, and reads the
logits of the wanted columns. Knows nothing of how tokens are chosen. Invariant: `length` tokens of
the text are in the cache, and a run that fails leaves that number as it was.

Rows of a batch are padded on the right. Pads are masked, and a row's positions go on after its
last text token (SPEC 5).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine import graph
from app.engine.cache import make_cache
from app.engine.errors import EngineError
from app.engine.model import Model
from app.engine.session import (
    FLOAT,
    Array,
    TensorInfo,
    element_type_of,
    host_tensor,
    to_numpy,
    widen,
)
from app.engine.stop import Stop

Tokens = NDArray[np.int32]
Logits = NDArray[np.float32]
Feed = Callable[[Tokens, int], Array]

_MASK_STEP = 1024


class Decoder:
    def __init__(self, model: Model, *, rows: int, pad_id: int) -> None:
        self._session = model.session
        self._rows, self._pad_id = rows, pad_id
        self._vocab_size = model.config.model.vocab_size
        self._context_length = model.config.model.context_length
        decoder = model.config.model.decoder
        self._cache = make_cache(
            self._session,
            model.slots,
            rows=rows,
            limit=self._context_length,
            is_shared=model.shares_cache,
        )
        self._cache_inputs = {slot.past for slot in model.slots}
        self._cache_outputs = {slot.present for slot in model.slots}
        self._logits_info = self._session.outputs[decoder.outputs["logits"]]
        self._feeds = self._make_feeds(decoder.inputs)
        self._binding = self._session.io_binding()
        self._others = [
            name
            for name in self._session.outputs
            if name != self._logits_info.name and name not in self._cache_outputs
        ]
        self._given: dict[str, Array] = {}  # set from outside, kept
        self._given_once: dict[str, Array] = {}  # in place of what we feed, for the next run
        self._last_inputs: dict[str, Array] = {}
        self._bound: dict[str, Array] = {}
        self._required = set(self._session.inputs) - self._cache_inputs - {graph.POSITIONS}
        self._first_column = np.zeros(1, np.int64)
        self._raw: Array = np.empty(0, np.float32)  # (B, K, V) of the last run, as the graph's type
        self._bound_shape: tuple[int, ...] = ()
        self._prompt_width = 0  # columns of the first run; a batch's pads are only there
        self._text_lengths = np.zeros(rows, np.int64)  # (B,) text tokens in those columns
        self._mask = np.ones((rows, 0), np.int64)
        self.length = 0
        self.logits_length = -1  # number of tokens after which `logits` stands; -1: worth nothing
        self.logits: Logits = np.zeros((rows, self._vocab_size), np.float32)

    # ------------------------------------------------------------ runs

    def run(self, tokens: Tokens, stop: Stop, *, all_columns: bool = False) -> None:
        """Read `tokens` (B, L) after what was read before; then `logits` (B, V) is current."""
        total = self.length + tokens.shape[1]
        if self.length == 0:
            self._measure_prompt(tokens)
        self.logits_length = -1
        self._bind_inputs(tokens, total)
        self._cache.prepare(self._binding, total)
        columns = self._columns(tokens.shape[1], all_columns=all_columns)
        self._bind_outputs(tokens.shape[1] if columns is None else len(columns))
        self._session.run(self._binding, stop)
        self._cache.commit(total)
        self.length = total
        self._take_logits(columns, width=tokens.shape[1])

    def rewind_to(self, length: int) -> None:
        self._cache.rewind_to(length)
        self.length = length
        self.logits_length = self.logits_length if self.logits_length == length else -1

    def replay_start(self, length: int) -> int:
        """Where reading must begin again for the logits after `length` tokens."""
        in_padded_part = self._rows > 1 and length <= self._prompt_width
        return 0 if in_padded_part else length - 1

    # ------------------------------------------------------------ inputs and outputs by name

    def give(self, name: str, array: Array) -> None:
        """An input's value from outside: for good, or for the next run if we feed it ourselves."""
        known = {**self._session.overridable, **self._session.inputs}
        info = known.get(name)
        if info is None or name in self._cache_inputs or name == graph.POSITIONS:
            raise EngineError(f"The model has no input named {name!r} that can be set.")
        if element_type_of(array) != info.element_type:
            raise EngineError(
                f"The input {name} takes {np.dtype(info.numpy_type)}, not {array.dtype}."
            )
        _check_shape(name, array.shape, info.shape)
        copy = np.array(array, order="C", copy=True)
        (self._given_once if name in self._feeds else self._given)[name] = copy

    def input(self, name: str) -> Array:
        if name in self._last_inputs and name != graph.POSITIONS:
            return self._last_inputs[name].copy()
        found = self._cache.read(name) if name in self._cache_inputs else None
        if found is None:
            raise EngineError(f"Generator input '{name}' was not found.")
        return found

    def output(self, name: str) -> Array:
        found: Array | None = None
        if name == self._logits_info.name and self.logits_length >= 0:
            found = _as_numpy(self._raw, self._logits_info)
        elif name in self._others and self.length:
            position = len(self._cache_outputs) + 1 + self._others.index(name)  # as first bound
            found = to_numpy(self._binding.get_outputs()[position])
        elif name in self._cache_outputs:
            found = self._cache.read(name)
        if found is None:
            raise EngineError(f"Generator output '{name}' was not found.")
        return found

    # ------------------------------------------------------------ what is fed

    def _make_feeds(self, names: Any) -> dict[str, Feed]:
        """Graph name -> function of the run's tokens and the total length, for what is declared."""
        makers: dict[str, Callable[[TensorInfo], Feed]] = {
            names["input_ids"]: self._feed_ids,
            names["attention_mask"]: self._feed_mask,
            names["position_ids"]: self._feed_positions,
            names["seqlens_k"]: self._feed_last_indices,
            names["total_sequence_length"]: lambda i: _scalar(i, lambda _, total: total),
            names["past_sequence_length"]: lambda i: _scalar(i, lambda _, total: self.length),
            names["past_key_values_length"]: lambda i: _scalar(i, lambda _, total: self.length),
            names["current_sequence_length"]: lambda i: _scalar(i, lambda t, _: t.shape[1]),
        }
        feeds = {}
        for name, info in self._session.inputs.items():
            if name in makers:
                feeds[name] = makers[name](info)
            elif name == "num_logits_to_keep" or name.startswith("onnx::Neg_"):
                feeds[name] = _scalar(info, lambda tokens, total: 0)
        return feeds

    def _feed_ids(self, info: TensorInfo) -> Feed:
        one = np.zeros((self._rows, 1), info.numpy_type)

        def ids(tokens: Tokens, total: int) -> Array:
            if tokens.shape[1] > 1:
                return tokens.astype(info.numpy_type)
            one[:] = tokens
            return one

        return ids

    def _feed_mask(self, info: TensorInfo) -> Feed:
        self._mask = np.ones((self._rows, 0), info.numpy_type)

        def mask(tokens: Tokens, total: int) -> Array:
            if self._mask.shape[1] < total:
                width = -(-total // _MASK_STEP) * _MASK_STEP
                self._mask = np.ones((self._rows, width), self._mask.dtype)
                columns = np.arange(self._prompt_width)
                self._mask[:, : self._prompt_width] = columns < self._text_lengths[:, None]
            return np.ascontiguousarray(self._mask[:, :total])  # no copy for one row

        return mask

    def _feed_positions(self, info: TensorInfo) -> Feed:
        if len(info.shape) != 2:
            raise EngineError(f"The input {info.name} has {len(info.shape)} dimensions, not 2.")

        one = np.zeros((1, 1), info.numpy_type)

        def positions(tokens: Tokens, total: int) -> Array:
            if self._rows == 1 and total == self.length + 1:
                one[0, 0] = self.length
                return one
            columns = np.arange(self.length, total)
            return self._positions(columns).astype(info.numpy_type)

        return positions

    def _feed_last_indices(self, info: TensorInfo) -> Feed:
        def last(tokens: Tokens, total: int) -> Array:
            index = self._text_lengths + (total - self._prompt_width) - 1
            return index.astype(info.numpy_type).reshape([self._rows] + [1] * (len(info.shape) - 1))

        return last

    def _positions(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, L): a row's text counts on without a hole; its pads stand at 0."""
        text = self._text_lengths[:, None]
        after = text + (columns - self._prompt_width)[None]
        within = np.where(columns < text, columns[None], 0)
        return np.where(columns < self._prompt_width, within, after)

    def _measure_prompt(self, tokens: Tokens) -> None:
        self._prompt_width = tokens.shape[1]
        self._text_lengths[:] = tokens.shape[1]
        if self._rows > 1:
            is_text = tokens != self._pad_id
            from_right = is_text[:, ::-1].argmax(axis=1)
            self._text_lengths[:] = np.where(
                is_text.any(axis=1), tokens.shape[1] - from_right, tokens.shape[1]
            )
        self._mask = self._mask[:, :0]

    def _bind_inputs(self, tokens: Tokens, total: int) -> None:
        given_once, self._given_once = self._given_once, {}
        values = {name: feed(tokens, total) for name, feed in self._feeds.items()}
        if self._given or given_once:
            values.update(self._given)
            values.update(given_once)
        missing = self._required.difference(values)
        if missing:
            raise EngineError(f"The model needs the input {sorted(missing)[0]}, which is not set.")
        for name, array in values.items():
            self._bind(name, array)
        self._last_inputs = values

    def _bind(self, name: str, array: Array) -> None:
        """An array that is bound already has only got new values (on a device they are copied)."""
        if self._bound.get(name) is array and self._session.is_host(name):
            return
        self._bound[name] = array
        info = self._session.inputs.get(name) or self._session.overridable[name]
        self._binding.bind_ortvalue_input(name, host_tensor(array, info.element_type))

    # ------------------------------------------------------------ logits

    def _columns(self, width: int, *, all_columns: bool) -> NDArray[np.int64] | None:
        """Columns of this run whose logits are computed; None if the graph gives all of them."""
        if not self._session.has_positions:
            return None
        if all_columns:
            columns = np.arange(width)
        elif self.length == 0 and self._rows > 1:
            columns = np.unique(self._text_lengths - 1)
        else:
            columns = self._first_column if width == 1 else np.array([width - 1])
        self._bind(graph.POSITIONS, columns)
        return columns

    def _bind_outputs(self, count: int) -> None:
        _, fixed, vocabulary = self._logits_info.shape
        shape = (
            self._rows,
            fixed if fixed > 0 else count,
            vocabulary if vocabulary > 0 else self._vocab_size,
        )
        if shape != self._bound_shape:
            self._raw = np.empty(shape, self._logits_info.numpy_type)
            self._binding.bind_ortvalue_output(
                self._logits_info.name, host_tensor(self._raw, self._logits_info.element_type)
            )
            self._bound_shape = shape
        for name in self._others:
            self._binding.bind_output(name, "cpu")

    def _take_logits(self, columns: NDArray[np.int64] | None, *, width: int) -> None:
        """Each row's last text token's logits, as float32, in `logits`."""
        count = self._raw.shape[1]
        if self._rows == 1 or self.length != width or count == 1:
            rows = self._raw[:, -1]
        else:
            given = np.arange(count) if columns is None else columns
            at = np.searchsorted(given, self._text_lengths - 1)
            rows = self._raw[np.arange(self._rows), at]
        rows = rows[:, : self._vocab_size]
        is_plain = self._logits_info.element_type == FLOAT
        self.logits = rows if is_plain else widen(rows, self._logits_info.element_type)
        self.logits_length = self.length


def _scalar(info: TensorInfo, value: Callable[[Tokens, int], int]) -> Feed:
    shape = [1] * len(info.shape)
    return lambda tokens, total: np.full(shape, value(tokens, total), info.numpy_type)


def _as_numpy(raw: Array, info: TensorInfo) -> Array:
    is_numpy_type = info.element_type != 16
    return raw.copy() if is_numpy_type else widen(raw, info.element_type)


def _check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if len(shape) != len(wanted) or any(
        w >= 0 and w != s for s, w in zip(shape, wanted, strict=True)
    ):
        pretty = [w if w >= 0 else "any" for w in wanted]
        raise EngineError(f"The input {name} takes the shape {pretty}, not {list(shape)}.")
