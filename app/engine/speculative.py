"""Speculation: guess the next tokens from the text itself, read all guesses in one run, keep what
the model would have chosen anyway.

A guess is what followed the last few tokens where they occurred before. Each guessed token is
compared with the one that is chosen from the model's own logits, so that the text is the same
without, sampled texts too. Knows token ids and counts; no model.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.errors import EngineError, shown

Tokens = NDArray[np.int32]

_LONGEST_PAUSE = 16  # steps without a guess after guesses that failed


@dataclass(frozen=True)
class SpeculativeOptions:
    """ngram_size 0: no speculation. min_adaptive_k 0: always max_draft_tokens."""

    max_draft_tokens: int = 4
    ngram_size: int = 0
    ngram_chained_lookup: bool = False
    min_adaptive_k: int = 0
    cooldown: bool = False


_RANGES = {"max_draft_tokens": (1, 16), "ngram_size": (0, 16), "min_adaptive_k": (0, 16)}


def changed(options: SpeculativeOptions, values: Mapping[str, Any]) -> SpeculativeOptions:
    known = {f.name: f.type for f in fields(SpeculativeOptions)}
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise EngineError(
                f"Unknown speculative option {shown(name)}; known are {', '.join(known)}."
            )
        plain = value.item() if hasattr(value, "item") else value
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        if type(plain) is not known[name]:
            wanted = "True or False" if known[name] is bool else "a whole number"
            raise TypeError(f"{name} must be {wanted}, not {shown(value)}.")
        least, most = _RANGES.get(name, (0, 1))
        if not least <= plain <= most or (name == "ngram_size" and plain == 1):
            kind = "0 or from 2 to 16" if name == "ngram_size" else f"from {least} to {most}"
            raise EngineError(f"{name} must be {kind}, not {shown(value)}.")
        checked[name] = plain
    return replace(options, **checked)


def look_up(text: Tokens, size: int, count: int) -> Tokens:
    """Up to `count` tokens that followed the last `size` ones where they occurred last."""
    end = len(text) - size  # a place before the last `size` tokens themselves
    if size <= 0 or end < 1:
        return text[:0]
    tail = text[end:]
    places = np.flatnonzero(text[size - 1 : -1] == tail[-1])  # starts of what may be equal
    for place in places[::-1].tolist():
        if (text[place : place + size] == tail).all():
            return text[place + size : place + size + count]
    return text[:0]


@dataclass
class _Counts:
    rounds: int = 0
    completed_rounds: int = 0
    interrupted_rounds: int = 0
    draft_tokens_proposed: int = 0
    draft_tokens_evaluated: int = 0
    draft_tokens_accepted: int = 0
    correction_tokens: int = 0
    full_accept_rounds: int = 0
    partial_accept_rounds: int = 0
    zero_accept_rounds: int = 0
    standard_fallback_steps: int = 0
    ngram_lookup_hits: int = 0
    ngram_lookup_misses: int = 0
    ngram_lookup_tokens_proposed: int = 0
    ngram_chained_tokens_proposed: int = 0
    adaptive_k_increases: int = 0
    adaptive_k_decreases: int = 0
    cooldown_entries: int = 0
    cooldown_steps: int = 0


class Speculation:
    """The guesses of one Generator, and how they fared."""

    def __init__(self, options: SpeculativeOptions) -> None:
        self._options = options
        self._count = options.max_draft_tokens
        self._counts = _Counts()
        self._waiting: list[int] = []  # guesses that are read, and not yet compared
        self._accepted = 0
        self._pause = self._next_pause = 0

    @property
    def is_on(self) -> bool:
        return self._options.ngram_size > 0

    def propose(self, text: Tokens, *, room: int) -> Tokens:
        """Guesses for what follows `text` (T,), at most `room`; often none."""
        self.drop()
        counts, count = self._counts, min(self._count, room)
        if not self.is_on or count <= 0:
            return text[:0]
        if self._pause > 0:
            self._pause -= 1
            counts.cooldown_steps += 1
            return text[:0]
        guess = look_up(text, self._options.ngram_size, count)
        counts.ngram_lookup_tokens_proposed += len(guess)
        if not len(guess):
            counts.ngram_lookup_misses += 1
            counts.standard_fallback_steps += 1
            return guess
        counts.ngram_lookup_hits += 1
        if self._options.ngram_chained_lookup:
            guess = self._chained(text, guess, count)
        return guess

    def start(self, guess: Tokens) -> None:
        """These were read; judge tells of each whether it was right."""
        self._waiting, self._accepted = guess.tolist(), 0
        self._counts.rounds += 1
        self._counts.draft_tokens_proposed += len(guess)

    def judge(self, token: int) -> bool:
        """Whether the token that was chosen is the one guessed, so that it is read already."""
        if not self._waiting:
            return False
        self._counts.draft_tokens_evaluated += 1
        is_right = self._waiting.pop(0) == token
        if is_right:
            self._accepted += 1
            self._counts.draft_tokens_accepted += 1
        else:
            self._counts.correction_tokens += 1
        if not is_right or not self._waiting:
            self._finish(is_full=is_right)
        return is_right

    def drop(self) -> None:
        """The text goes on otherwise; what is not compared yet is worth nothing."""
        if self._waiting:
            self._waiting = []
            self._counts.interrupted_rounds += 1

    def stats(self) -> dict[str, Any]:
        """Named as in onnxruntime-genai, as far as the words fit."""
        counts = self._counts
        rounds = max(1, counts.completed_rounds)
        return {
            **asdict(counts),
            "tokens_buffered": len(self._waiting),
            "effective_k": self._count,
            "acceptance_rate": counts.draft_tokens_accepted / max(1, counts.draft_tokens_evaluated),
            "avg_draft_tokens_per_round": counts.draft_tokens_proposed / max(1, counts.rounds),
            "mean_emitted_tokens_per_round": 1 + counts.draft_tokens_accepted / rounds,
        }

    def _chained(self, text: Tokens, guess: Tokens, count: int) -> Tokens:
        """Where a guess reaches the end of the text, look up what follows the guess too."""
        while len(guess) < count:
            further = look_up(
                np.concatenate([text, guess]), self._options.ngram_size, count - len(guess)
            )
            if not len(further):
                break
            self._counts.ngram_chained_tokens_proposed += len(further)
            guess = np.concatenate([guess, further])
        return guess

    def _finish(self, *, is_full: bool) -> None:
        self._waiting = []
        counts = self._counts
        counts.completed_rounds += 1
        if is_full:
            counts.full_accept_rounds += 1
        elif self._accepted:
            counts.partial_accept_rounds += 1
        else:
            counts.zero_accept_rounds += 1
        if self._options.min_adaptive_k:
            self._adapt(is_full=is_full)
        if self._options.cooldown:
            self._cool_down()

    def _adapt(self, *, is_full: bool) -> None:
        least = min(self._options.min_adaptive_k, self._options.max_draft_tokens)
        if is_full and self._count < self._options.max_draft_tokens:
            self._count += 1
            self._counts.adaptive_k_increases += 1
        elif not self._accepted and self._count > least:
            self._count -= 1
            self._counts.adaptive_k_decreases += 1

    def _cool_down(self) -> None:
        if self._accepted:
            self._next_pause = 0
            return
        self._next_pause = min(_LONGEST_PAUSE, max(1, 2 * self._next_pause))
        self._pause = self._next_pause
        self._counts.cooldown_entries += 1
