"""What a graph is fed at each run besides its cache: ids, masks, positions, lengths.

Knows which columns of the text are pads, and no tensors of the device. Rows of a batch are padded
on the right: pads are masked, and a row's positions go on after its last text token (SPEC 5).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.errors import EngineError, ModelError
from app.engine.session import Array, TensorInfo

Tokens = NDArray[np.int32]
Feed = Callable[["Span"], Array]

_MASK_STEP = 1024


@dataclass(frozen=True)
class Span:
    """The tokens (B, L) of one run; `start` tokens were read before them. The first `before` of
    its columns are pads; the last `after` ones too, but they are read like text."""

    tokens: Tokens
    start: int
    before: int = 0
    after: int = 0

    @property
    def total(self) -> int:
        return self.start + int(self.tokens.shape[1]) - self.before


class Feeds:
    """`names` says what the graphs call their inputs (our word -> name)."""

    def __init__(self, names: Mapping[str, str], *, rows: int, pad_id: int) -> None:
        self.rows = rows
        self.prompt_width = 0  # columns of the first run; a batch's pads are only there
        self.text_lengths = np.zeros(rows, np.int64)  # (B,) text tokens in those columns
        self._given = 0, self.text_lengths  # both as the prompt was given
        self._names, self._pad_id = names, pad_id
        self._masks: dict[type[np.generic], Array] = {}

    def make(self, inputs: Mapping[str, TensorInfo]) -> dict[str, Feed]:
        """Graph name -> function of the run, for what the graph declares and we can tell."""
        makers: dict[str, Callable[[TensorInfo], Feed]] = {
            "input_ids": self._ids,
            "attention_mask": self._mask,
            "position_ids": self._positions,
            "seqlens_k": self._last_indices,
            "total_sequence_length": lambda info: _scalar(info, lambda span: span.total),
            "past_sequence_length": lambda info: _scalar(info, lambda span: span.start),
            "past_key_values_length": lambda info: _scalar(info, lambda span: span.start),
            "current_sequence_length": lambda info: _scalar(
                info, lambda span: span.tokens.shape[1]
            ),
            "image_features": _no_features,
            "audio_features": _no_features,
        }
        words = {name: word for word, name in self._names.items() if word in makers}
        feeds = {}
        for name, info in inputs.items():
            if name in words:
                feeds[name] = makers[words[name]](info)
            elif name == "num_logits_to_keep" or name.startswith("onnx::Neg_"):
                feeds[name] = _scalar(info, lambda span: 0)
            elif name == "use_cache_branch":  # of graphs that hold both of Optimum's decoders
                feeds[name] = _scalar(info, lambda span: span.start > 0)
        return feeds

    def measure_prompt(self, tokens: Tokens) -> None:
        """Look for the pads in the columns of the first run."""
        self.prompt_width = tokens.shape[1]
        self.text_lengths = np.full(self.rows, tokens.shape[1], np.int64)
        if self.rows > 1:
            self.text_lengths = text_lengths(tokens, self._pad_id)
        self._given = self.prompt_width, self.text_lengths
        self._masks.clear()

    def cut(self, length: int) -> None:
        """The text ends after `length` columns now; what comes after them is no prompt."""
        width, lengths = self._given
        self._given = min(width, length), np.minimum(lengths, length)

    def compacted(self, tokens: Tokens) -> Tokens:
        """A text that is read again from its start, prompt, pads and what was written after them.

        Pads are only understood at the end of a row: they go there. A pad that was written is text.
        """
        width, lengths = self._given
        total = tokens.shape[1]
        width = min(width, total)
        lengths = np.minimum(lengths, width)
        compact = np.full_like(tokens, self._pad_id)
        for row, length in enumerate(lengths.tolist()):
            text = np.concatenate([tokens[row, :length], tokens[row, width:]])
            compact[row, : len(text)] = text
        self.prompt_width, self.text_lengths = total, lengths + (total - width)
        self._masks.clear()
        return compact

    def reorder(self, parents: NDArray[np.int64]) -> None:
        self.rows = len(parents)
        self.text_lengths = self.text_lengths[parents]
        self._given = self._given[0], self._given[1][parents]
        self._masks.clear()

    # ------------------------------------------------------------ each kind of input

    def _ids(self, info: TensorInfo) -> Feed:
        one = np.zeros((self.rows, 1), info.numpy_type)

        def ids(span: Span) -> Array:
            nonlocal one
            if len(info.shape) == 1:  # one token a row and run
                return span.tokens[:, 0].astype(info.numpy_type)
            if span.tokens.shape[1] > 1:
                return span.tokens.astype(info.numpy_type)
            if len(one) != self.rows:
                one = np.zeros((self.rows, 1), info.numpy_type)
            one[:] = span.tokens
            return one

        return ids

    def _mask(self, info: TensorInfo) -> Feed:
        if len(info.shape) == 2 and info.shape[1] > 0:
            return _fixed_mask(info)

        def mask(span: Span) -> Array:
            kept = self._masks.get(info.numpy_type)
            if kept is None or kept.shape[1] < span.total:
                width = -(-span.total // _MASK_STEP) * _MASK_STEP
                kept = np.ones((self.rows, width), info.numpy_type)
                columns = np.arange(self.prompt_width)
                kept[:, : self.prompt_width] = columns < self.text_lengths[:, None]
                self._masks[info.numpy_type] = kept
            return np.ascontiguousarray(kept[:, : span.total])  # no copy for one row

        return mask

    def _positions(self, info: TensorInfo) -> Feed:
        axes = info.shape[:-2]  # (3,): time, height and width, which are the same for text
        if axes not in ((), (3,)):
            raise ModelError(f"The input {info.name} has the shape {list(info.shape)}.")
        one = np.zeros((*axes, 1, 1), info.numpy_type)

        def positions(span: Span) -> Array:
            if self.rows == 1 and span.tokens.shape[1] == 1:
                one[...] = span.start
                return one
            columns = self._columns(np.arange(span.start, span.total)).astype(info.numpy_type)
            if span.before or span.after:  # pads must not leave the tables of positions
                columns = np.minimum(columns, span.total - span.after - 1)
                columns = np.pad(columns, ((0, 0), (span.before, 0)))
            return np.array(np.broadcast_to(columns, (*axes, *columns.shape)))

        return positions

    def _columns(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, L): a row's text counts on without a hole; its pads stand at 0."""
        text = self.text_lengths[:, None]
        after = text + (columns - self.prompt_width)[None]
        within = np.where(columns < text, columns[None], 0)
        return np.where(columns < self.prompt_width, within, after)

    def _last_indices(self, info: TensorInfo) -> Feed:
        def last(span: Span) -> Array:
            index = self.text_lengths + (span.total - self.prompt_width) - 1
            return index.astype(info.numpy_type).reshape([self.rows] + [1] * (len(info.shape) - 1))

        return last


def text_lengths(tokens: Tokens, pad_id: int) -> NDArray[np.int64]:
    """(B,): columns up to each row's last token that is no pad; all of them if there is none."""
    is_text = tokens != pad_id
    from_right = is_text[:, ::-1].argmax(axis=1)
    found: NDArray[np.int64] = tokens.shape[1] - np.where(is_text.any(axis=1), from_right, 0)
    return found


def _scalar(info: TensorInfo, value: Callable[[Span], int]) -> Feed:
    kept = np.zeros([1] * len(info.shape), info.numpy_type)  # one array: it stays bound

    def scalar(span: Span) -> Array:
        kept[...] = value(span)
        return kept

    return scalar


def _fixed_mask(info: TensorInfo) -> Feed:
    """Of all positions that the graph knows, the run's last: its text, and before it the past."""

    def mask(span: Span) -> Array:
        width = info.shape[1]
        given = np.zeros((len(span.tokens), width), info.numpy_type)
        text = span.tokens.shape[1] - span.before
        given[:, width - text :] = 1
        end = width - text - span.before
        given[:, max(0, end - span.start) : end] = 1
        return given

    return mask


def _no_features(info: TensorInfo) -> Feed:
    """Nothing to see or hear, unless it is set for the run."""
    if any(size <= 0 for size in info.shape[1:]):
        raise EngineError(f"The graph does not tell the width of {info.name}.")
    empty = np.zeros((0, *info.shape[1:]), info.numpy_type)
    return lambda span: empty
