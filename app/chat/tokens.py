"""Tokens as the model saw them: how likely, and what else could have stood there.

Probabilities are the model's own: of its logits at temperature 1, before any option. Knows rows of
logits and a tokenizer; no generator.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.chat.messages import Alternative, TokenView
from app.chat.splice import NEWLINE, Encoder, named
from app.chat.splitter import Span
from app.engine.sampling import largest

UNKNOWN = "\ufffd"
_OPEN_TOKENS = 3  # as in the tokenizer's stream: tokens that may wait for the rest of a character


@dataclass(frozen=True)
class Seen:
    """One token at its place, before it is known where in the text it stands. rank -1: not seen."""

    token_id: int
    probability: float = 0.0
    rank: int = -1
    alternatives: tuple[Alternative, ...] = ()


class Eye:
    """Looks at logits. Remembers how tokens are written, since the same ones come up again."""

    def __init__(self, encoder: Encoder, ends: Collection[int] = ()) -> None:
        """`ends` are the tokens that end an answer."""
        self._encoder, self._ends = encoder, frozenset(ends)
        self._texts: dict[int, str] = {}
        self._anchor = [int(token) for token in encoder.encode_plain(NEWLINE)]
        self._before = encoder.decode(self._anchor)

    def see(self, row: NDArray[np.float32], token_id: int, count: int) -> Seen:
        """`row` (V,) are the logits from which `token_id` was chosen."""
        highest = row.max()
        total = np.exp(row - highest).sum(dtype=np.float64)

        def probability(token: int) -> float:
            return math.exp(float(row[token]) - float(highest)) / float(total)

        others = tuple(
            Alternative(token, self.text(token), probability(token), token in self._ends)
            for token in map(int, largest(row, count))
        )
        rank = int((row > row[token_id]).sum())
        return Seen(token_id, probability(token_id), rank, others)

    def text(self, token_id: int) -> str:
        """A token alone, as it is written within a text; control tokens by their names."""
        found = self._texts.get(token_id)
        if found is None:
            found = self._texts[token_id] = self._decode(token_id)
        return found

    def _decode(self, token_id: int) -> str:
        ids = [*self._anchor, token_id]
        is_control = token_id in self._encoder.special_token_ids
        whole = named(self._encoder, ids) if is_control else self._encoder.decode(ids)
        return whole.removeprefix(self._before)


def perplexity(probabilities: Sequence[float]) -> float:
    """0.0 where there is nothing to measure."""
    if not probabilities:
        return 0.0
    logs = [math.log(max(probability, 1e-45)) for probability in probabilities]
    return math.exp(-sum(logs) / len(logs))


@dataclass(frozen=True)
class _Place:
    seen: Seen
    start: int  # characters of the raw text before it
    stop: int


class Places:
    """Where tokens stand in the text that a person sees. Give it tokens and spans in order."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []
        self._open: list[Seen] = []
        self._waiting: list[_Place] = []
        self._length = 0  # of the raw text so far
        self._shown: list[Span] = []
        self._counts = {True: 0, False: 0}  # UTF-16 units of the thought and of the answer
        self._starts: list[int] = []  # in those, of each span

    def add(self, seen: Seen) -> None:
        if seen.token_id in self._tokenizer.special_token_ids:
            self._settle(len(self._open))
            self._waiting.append(_Place(seen, self._length, self._length))
            return
        self._open.append(seen)
        is_open = self._piece(self._open).endswith(UNKNOWN)
        self._settle(len(self._open) - (_OPEN_TOKENS if is_open else 0))

    def show(self, span: Span) -> None:
        self._shown.append(span)
        self._starts.append(self._counts[span.is_thought])
        self._counts[span.is_thought] += _units(span.text)

    def views(self, decided: int, *, is_thought: bool, is_last: bool = False) -> list[TokenView]:
        """Tokens whose text is decided; `is_thought` is what comes next."""
        if is_last:
            self._settle(len(self._open))
        views: list[TokenView] = []
        while self._waiting and (is_last or self._waiting[0].stop <= decided):
            views.append(self._view(self._waiting.pop(0), is_thought=is_thought))
        done = self._waiting[0].start if self._waiting else self._length
        while self._shown and self._shown[0].at + len(self._shown[0].text) <= done:
            del self._shown[0], self._starts[0]
        return views

    def _view(self, place: _Place, *, is_thought: bool) -> TokenView:
        start, text = self._counts[is_thought], ""
        found = False
        for span, units in zip(self._shown, self._starts, strict=True):
            end = span.at + len(span.text)
            if end <= place.start and not (place.start == place.stop == end):
                continue
            cut = max(0, place.start - span.at)
            if not found:
                start, is_thought = units + _units(span.text[:cut]), span.is_thought
                found = True
            if span.at >= place.stop:
                break
            text += span.text[cut : place.stop - span.at]
        seen = place.seen
        return TokenView(
            seen.token_id, text, start, seen.probability, seen.rank, seen.alternatives, is_thought
        )

    def _settle(self, count: int) -> None:
        """Give the first open tokens their places: a part of a character stands where it does."""
        if count <= 0:
            return
        group, self._open = self._open[:count], self._open[count:]
        whole = self._piece(group)
        starts = [_common(whole, self._piece(group[:index])) for index in range(len(group))]
        for seen, start, stop in zip(group, starts, [*starts[1:], len(whole)], strict=True):
            self._waiting.append(_Place(seen, self._length + start, self._length + stop))
        self._length += len(whole)
        self._context = [seen.token_id for seen in group]

    def _piece(self, group: list[Seen]) -> str:
        """The text of tokens behind the ones before them."""
        ids = [seen.token_id for seen in group]
        before = self._tokenizer.decode(self._context)
        whole = str(self._tokenizer.decode(self._context + ids))
        if whole.startswith(before):
            return whole[len(before) :]
        return str(self._tokenizer.decode(ids))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _common(whole: str, beginning: str) -> int:
    for index, (one, other) in enumerate(zip(whole, beginning, strict=False)):
        if one != other:
            return index
    return min(len(whole), len(beginning))
