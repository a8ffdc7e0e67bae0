"""Beam search: several texts for each prompt are kept, the likeliest go on.

Knows logits, texts and scores; no model and no cache. Rows are prompt by prompt, beam by beam.
A text's score is the sum of its tokens' log-probabilities over its length to the power of
length_penalty (SPEC 3.6). A beam that may not go on, for bans or a grammar, drops out: its sum is
-inf, and others may take its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.config import SearchOptions
from app.engine.errors import EngineError
from app.engine.sampling import largest
from app.engine.select import (
    Choice,
    Flags,
    Guide,
    Logits,
    Preferences,
    Tokens,
    check_highest,
    make_steps,
    prepared,
)

Ways = tuple[NDArray[np.int64], NDArray[np.int64], Logits]  # beams, tokens, sums, best first

_DROPPED = -np.inf  # at first all but one, since all of them hold the same text


@dataclass(frozen=True)
class Hypothesis:
    score: float
    tokens: Tokens  # the text without its end-of-text


@dataclass
class _Prompt:
    """What one prompt has come to: its finished texts, the best first."""

    size: int
    finished: list[Hypothesis] = field(default_factory=list)
    is_done: bool = False

    @property
    def is_full(self) -> bool:
        return len(self.finished) == self.size

    def add(self, hypothesis: Hypothesis) -> None:
        if self.is_full and hypothesis.score <= self.finished[-1].score:
            return
        better = [h for h in self.finished if h.score >= hypothesis.score]
        worse = self.finished[len(better) :]
        self.finished = [*better, hypothesis, *worse][: self.size]


class BeamSearch:
    def __init__(
        self,
        options: SearchOptions,
        preferences: Preferences,
        *,
        eos_ids: Sequence[int],
        pad_id: int,
    ) -> None:
        self._batch, self._beams = options.batch_size, options.num_beams
        self._returned = options.num_return_sequences
        self.count = self._batch * self._returned
        self._eos_ids, self._pad_id = eos_ids, pad_id
        self.change(options, preferences)
        self.restart()

    def change(self, options: SearchOptions, preferences: Preferences) -> None:
        self._options = options
        self._chain = make_steps(options, preferences, self._eos_ids)

    def restart(self) -> None:
        self._prompts = [_Prompt(self._beams) for _ in range(self._batch)]
        self._scores = np.full((self._batch, self._beams), _DROPPED, np.float32)
        self._scores[:, 0] = 0.0

    def snapshot(self) -> Callable[[], None]:
        """What is returned brings back the search as it is now."""
        prompts = [replace(prompt, finished=list(prompt.finished)) for prompt in self._prompts]
        scores = self._scores.copy()

        def go_back() -> None:
            self._prompts, self._scores = prompts, scores

        return go_back

    def choose(
        self, logits: Logits, text: Tokens, ended: Flags, guide: Guide | None = None
    ) -> Choice:
        tokens = np.full(len(logits), self._pad_id, np.int32)
        parents = np.arange(len(logits))
        ways = {}  # all of them first: what fails leaves the search as it was
        for item in (i for i, prompt in enumerate(self._prompts) if not prompt.is_done):
            here = slice(item * self._beams, (item + 1) * self._beams)
            rows = {
                beam: prepared(
                    logits[here][beam], text[here][beam], self._chain, here.start + beam, guide
                )
                for beam in np.flatnonzero(self._scores[item] > _DROPPED).tolist()
            }
            ways[item] = here, self._best(item, rows)
        for item, (here, best) in ways.items():
            beams, tokens[here] = self._step(item, best, text[here])
            parents[here] = here.start + beams
        is_done = np.array([prompt.is_done for prompt in self._prompts])
        has_ended = is_done[:, None] | (self._scores == _DROPPED)
        return Choice(tokens, has_ended.ravel(), parents)

    def result(self, index: int, text: Tokens) -> Tokens:
        """The texts that are best as things stand; looking does not end the search."""
        item, rank = divmod(index, self._returned)
        prompt = self._prompts[item]
        standing = _Prompt(self._beams, list(prompt.finished))
        if not prompt.is_done:
            for beam in np.flatnonzero(self._scores[item] > _DROPPED).tolist():
                row = text[item * self._beams + beam]
                standing.add(Hypothesis(self._score(self._scores[item, beam], len(row)), row))
        if rank >= len(standing.finished):
            raise EngineError(
                f"There is no sequence {index}: only {len(standing.finished)} may be written."
            )
        return standing.finished[rank].tokens

    def _step(
        self, item: int, best: Ways, text: Tokens
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """One prompt's beams go on: (beams that are continued, tokens) of the new beams."""
        prompt, length = self._prompts[item], text.shape[1]
        beams, tokens, sums = best
        taken: list[int] = []
        for rank, (beam, token) in enumerate(zip(beams.tolist(), tokens.tolist(), strict=True)):
            if token not in self._eos_ids:
                taken.append(rank)
            elif rank < self._beams:
                prompt.add(Hypothesis(self._score(sums[rank], length), text[beam].copy()))
            if len(taken) == self._beams:
                break
        if not taken:
            prompt.is_done = True
        elif prompt.is_full:
            cannot_improve = self._score(float(sums[0]), length) <= prompt.finished[-1].score
            prompt.is_done = self._options.early_stopping or cannot_improve
        going = len(taken)
        self._scores[item] = _DROPPED
        self._scores[item, :going] = sums[taken]
        parents = np.zeros(self._beams, np.int64)
        parents[:going] = beams[taken]
        chosen = np.full(self._beams, self._pad_id, np.int32)
        chosen[:going] = tokens[taken]
        return parents, chosen

    def _best(self, item: int, rows: Mapping[int, Logits]) -> Ways:
        """The likeliest ways on; no beam gives more of them than are needed."""
        count = (1 + max(1, len(self._eos_ids))) * self._beams
        beams, tokens, sums = [], [], []
        for beam, row in rows.items():
            highest = float(row.max())  # a NaN too
            if highest == -np.inf:
                continue
            check_highest(highest)
            ids = largest(row, count)
            with np.errstate(over="ignore"):  # what was banned twice
                after = _log_probabilities(row, ids) + self._scores[item, beam]
            may_follow = after > _DROPPED
            beams.append(np.full(may_follow.sum(), beam))
            tokens.append(ids[may_follow])
            sums.append(after[may_follow])
        if not sums and not self._prompts[item].finished:
            check_highest(-np.inf)
        if not sums:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, np.empty(0, np.float32)
        together = np.concatenate(sums)
        order = np.argsort(-together, kind="stable")[:count]
        return np.concatenate(beams)[order], np.concatenate(tokens)[order], together[order]

    def _score(self, total: float, length: int) -> float:
        return float(total / float(length) ** self._options.length_penalty)


def _log_probabilities(row: Logits, ids: NDArray[np.intp]) -> Logits:
    """Of these ids only, the likeliest first."""
    highest = row[ids[0]]
    weights = row - highest
    np.exp(weights, out=weights)
    found: Logits = (row[ids] - highest) - np.log(weights.sum())
    return found
