"""Models that read a text whole, in an encoder, and write another, in a decoder (marian).

To the outside the written text follows the source text, as in every other model. Within, the
decoder starts from a token of its own, and reads one token a run. What is said of audio instead of
text (whisper) needs none of this: there the encoder is a graph like others, run once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.engine.caches import Rows
from app.engine.decoder import Decoder
from app.engine.errors import EngineError
from app.engine.feeds import Tokens, text_lengths
from app.engine.logits_output import Logits
from app.engine.model import Model
from app.engine.session import Array
from app.engine.stop import Stop


def make_decoder(
    model: Model, *, rows: int, pad_id: int, moves_rows: bool = False
) -> "Decoder | Translator":
    encoder = model.config.model.encoder
    reads_text = encoder is not None and any(
        part.runs_once and encoder.inputs["input_ids"] in part.session.inputs
        for part in model.parts
    )
    if reads_text:
        return Translator(model, rows=rows, pad_id=pad_id)
    return Decoder(model, rows=rows, pad_id=pad_id, moves_rows=moves_rows)


class Translator:
    """A Decoder's words; `_width` source tokens stand for the one token that the inner one starts
    from."""

    can_draft = False

    def __init__(self, model: Model, *, rows: int, pad_id: int) -> None:
        config = model.config.model
        assert config.encoder is not None
        self._names = config.encoder.inputs
        self._mask_name = config.decoder.inputs["encoder_attention_mask"]
        self._pad_id, self._rows = pad_id, rows
        self._start_id, self._end_id = config.bos_token_id, config.eos_token_ids[0]
        self._inner = Decoder(model, rows=rows, pad_id=pad_id)
        self._mask: Array = np.zeros((rows, 0), np.int64)
        self._width = 0

    @property
    def fixed_rows(self) -> int:
        return self._inner.fixed_rows

    @property
    def length(self) -> int:
        return self._outer(self._inner.length)

    @property
    def logits(self) -> Logits:
        return self._inner.logits

    @property
    def logits_length(self) -> int:
        return self._outer(self._inner.logits_length) or -1

    def run(
        self,
        tokens: Tokens,
        stop: Stop,
        *,
        all_columns: bool = False,
        wants_logits: bool = True,
        is_again: bool = False,
    ) -> None:
        if self._inner.length == 0:
            width = self._width or tokens.shape[1]
            self._read_source(tokens[:, :width])
            start = np.full((self._rows, 1), self._start_id, np.int32)
            tokens = np.concatenate([start, tokens[:, width:]], axis=1)
            self._width = width
        for column in range(tokens.shape[1]):
            self._inner.run(np.ascontiguousarray(tokens[:, column : column + 1]), stop)

    def rewind_to(self, length: int) -> None:
        if length < self._width:
            self._width = 0
            self._inner.rewind_to(0)
        else:
            self._inner.rewind_to(length - self._width + 1)

    def cut(self, length: int) -> None:
        """Its one token a run has no pads."""

    def can_try_out(self, count: int) -> bool:
        return False

    def start_for(self, total: int, length: int) -> int:
        if length < total:
            return length
        return 0 if total <= self._width else total - 1

    def must_read_at_once(self, total: int) -> bool:
        return True

    def mark(self) -> None:
        self._inner.mark()

    def reorder(self, parents: Rows) -> None:
        self._inner.reorder(parents)
        self._rows = len(parents)
        if self._width:
            self._mask = self._mask[parents]
            self._inner.give_to("decoder", self._mask_name, self._mask)

    def try_out(self, tokens: Tokens, guess: Tokens, stop: Stop) -> None:
        raise EngineError("This kind of model does not guess ahead.")

    def accept(self) -> None:
        raise EngineError("This kind of model does not guess ahead.")

    def give(self, name: str, array: Array) -> None:
        self._inner.give(name, array)

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        self._inner.set_parameters(parameters)

    def input(self, name: str) -> Array:
        return self._inner.input(name)

    def output(self, name: str) -> Array:
        return self._inner.output(name)

    def _outer(self, inner: int) -> int:
        return inner - 1 + self._width if inner > 0 else 0

    def _read_source(self, tokens: Tokens) -> None:
        """Each row's end-of-text comes after its last token that is no pad."""
        lengths = text_lengths(tokens, self._pad_id)
        columns = np.arange(tokens.shape[1] + 1)
        source = np.pad(tokens, ((0, 0), (0, 1)), constant_values=self._pad_id)
        source[columns >= lengths[:, None]] = self._pad_id
        source[np.arange(len(source)), lengths] = self._end_id
        self._mask = columns <= lengths[:, None]
        self._inner.give_to("encoder", self._names["input_ids"], source)
        self._inner.give_to("encoder", self._names["attention_mask"], self._mask)
        self._inner.give_to("decoder", self._mask_name, self._mask)
