"""Picks the next token of each row: the chain of steps is put together once, the loop calls it.

Here in numpy, on logits in host memory. A form that runs on the device can take this one's place:
the loop knows only a Search (this one, or that of beam.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine import logits as steps
from app.engine import nucleus, sampling
from app.engine.config import SearchOptions
from app.engine.errors import EngineError

Logits = NDArray[np.float32]
Tokens = NDArray[np.int32]
Flags = NDArray[np.bool_]
Step = Callable[[Logits, Tokens], None]
Choose = Callable[[Logits], int]


@dataclass(frozen=True)
class Choice:
    """What comes next: a token for each row (R,), and which rows have ended by now (R,)."""

    tokens: Tokens
    ended: Flags
    parents: NDArray[np.int64] | None = None  # the rows they continue; None: each its own


@dataclass(frozen=True)
class Preferences:
    """What a caller wants of single tokens: scores added, and tokens never chosen."""

    bias: Mapping[int, float] = field(default_factory=dict)
    banned: tuple[int, ...] = ()


class Guide(Protocol):
    """A grammar that rows must keep to."""

    def forced_token(self, index: int) -> int | None:
        """The token that row `index` takes without a choice."""

    def mask(self, index: int, row: Logits) -> None:
        """Takes what is forbidden out of a row's logits (V,), in place."""


class Search(Protocol):
    """How texts go on. The loop keeps the texts; a Search keeps what it needs to compare them."""

    count: int  # how many texts come out

    def choose(
        self, logits: Logits, text: Tokens, ended: Flags, guide: Guide | None = None
    ) -> Choice:
        """logits (R, V), which stay as they are; text so far (R, T); rows that have ended (R,)."""

    def snapshot(self) -> Callable[[], None]:
        """What is returned takes back a choice that could not be followed."""

    def change(self, options: SearchOptions, preferences: Preferences) -> None: ...

    def restart(self) -> None:
        """The texts that come next do not go on from those seen before."""

    def result(self, index: int, text: Tokens) -> Tokens: ...


def _nothing() -> None:
    """There is nothing to take back."""


class RowSearch:
    """Every row for itself: the best token, or one drawn."""

    def __init__(
        self,
        options: SearchOptions,
        preferences: Preferences,
        *,
        eos_ids: Sequence[int],
        pad_id: int,
        random: np.random.RandomState,
    ) -> None:
        self.count = options.batch_size
        self._eos_ids, self._pad_id, self._random = eos_ids, pad_id, random
        self._work: Logits = np.empty(0, np.float32)  # a row's logits while steps change them
        self.change(options, preferences)

    def snapshot(self) -> Callable[[], None]:
        """A choice of one's own row can always be followed."""
        return _nothing

    def choose(
        self, logits: Logits, text: Tokens, ended: Flags, guide: Guide | None = None
    ) -> Choice:
        """A row that has ended gets the pad and draws no random number."""
        chosen = np.full(len(logits), self._pad_id, np.int32)
        ended = ended.copy()
        for index, row in enumerate(logits):
            if ended[index]:
                continue
            token = guide.forced_token(index) if guide is not None else None
            if token is None:
                if self._chains[index] or guide is not None:
                    row = self._copied(row)
                    prepare(row, text[index], self._chains[index], index, guide)
                token = self._pick(row)
            chosen[index] = token
            ended[index] = token in self._eos_ids
        return Choice(chosen, ended)

    def change(self, options: SearchOptions, preferences: Preferences) -> None:
        self._options, self._preferences = options, preferences
        self._pick = _greedy if is_greedy(options) else make_sampler(options, self._random)
        self.restart()

    def restart(self) -> None:
        """The texts are no longer those of before at a longer length; random numbers go on."""
        self._chains = [
            make_steps(self._options, self._preferences, self._eos_ids, keeps_text=True)
            for _ in range(self.count)
        ]

    def _copied(self, row: Logits) -> Logits:
        """In memory that is ours already: asking the system for it takes longer than the copy."""
        if len(self._work) != len(row):
            self._work = np.empty_like(row)
        np.copyto(self._work, row)
        return self._work

    def result(self, index: int, text: Tokens) -> Tokens:
        found: Tokens = text[index]
        return found


def is_greedy(options: SearchOptions) -> bool:
    return not options.do_sample or options.top_k == 1 or not np.float32(options.temperature)


def prepared(
    row: Logits, text: Tokens, chain: Sequence[Step], index: int, guide: Guide | None
) -> Logits:
    """A row's logits after all steps, in a copy."""
    row = row.copy()
    prepare(row, text, chain, index, guide)
    return row


def prepare(
    row: Logits, text: Tokens, chain: Sequence[Step], index: int, guide: Guide | None
) -> None:
    """Takes a row's logits through all steps, in place."""
    for step in chain:
        step(row, text)
    if guide is not None:  # last, so that nothing can bring back what a grammar forbids
        guide.mask(index, row)


def make_steps(
    options: SearchOptions,
    preferences: Preferences,
    eos_ids: Sequence[int],
    *,
    keeps_text: bool = False,
) -> list[Step]:
    """`keeps_text`: the steps are given one text only, which grows at its end."""
    chain: list[Step] = []
    if preferences.bias:
        ids = np.array(list(preferences.bias), np.intp)
        values = np.array(list(preferences.bias.values()), np.float32)
        chain.append(lambda row, text: steps.add(row, ids, values))
    if options.min_length > 0:
        least = options.min_length

        def hold_open(row: Logits, text: Tokens) -> None:
            if len(text) < least:
                steps.ban(row, eos_ids)

        chain.append(hold_open)
    if options.repetition_penalty != 1.0:
        penalty = options.repetition_penalty
        chain.append(
            steps.RepetitionPenalty(penalty)
            if keeps_text
            else lambda row, text: steps.penalize_repetition(row, text, penalty)
        )
    if options.no_repeat_ngram_size > 0:
        size = options.no_repeat_ngram_size
        chain.append(
            steps.NgramBan(size)
            if keeps_text
            else lambda row, text: steps.ban_repeated_ngrams(row, text, size)
        )
    if preferences.banned:
        banned = preferences.banned
        chain.append(lambda row, text: steps.ban(row, banned))
    return chain


def check_highest(highest: float) -> None:
    if highest != highest or highest == float("inf"):
        raise EngineError("The model's output is not a number; no token can be chosen from it.")
    if highest == float("-inf"):
        raise EngineError("Every token is banned; no token can be chosen.")


def _greedy(row: Logits) -> int:
    """The lowest id among equals. argmax finds a NaN too, so one look is enough."""
    token = int(row.argmax())
    check_highest(float(row[token]))
    return token


def make_sampler(options: SearchOptions, random: np.random.RandomState) -> Choose:
    temperature, top_k, top_p, min_p = (
        options.temperature, options.top_k, options.top_p, options.min_p
    )  # fmt: skip

    def draw_from_top(row: Logits) -> int:
        check_highest(float(row.max()))
        found = sampling.candidates(row, temperature=temperature, top_k=top_k, top_p=top_p)
        if min_p > 0.0:
            found = sampling.cut_unlikely(found, min_p)
        return sampling.draw(found, random)

    def draw_from_all(row: Logits) -> int:
        check_highest(float(row.max()))
        return nucleus.draw_from_all(row, random, temperature=temperature, top_p=top_p, min_p=min_p)

    if top_k > 0:
        return draw_from_top
    return draw_from_all if top_p > 0.0 else _greedy
