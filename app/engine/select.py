"""Picks the next token of each row: the chain of steps is put together once, the loop calls it.

Here in numpy, on logits in host memory. A form that runs on the device can take this one's place:
the loop knows only `make_select`.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from app.engine import logits as steps
from app.engine import sampling
from app.engine.config import SearchOptions
from app.engine.errors import EngineError

Logits = NDArray[np.float32]
Tokens = NDArray[np.int32]
Step = Callable[[Logits, Tokens], None]
Choose = Callable[[Logits], int]
Select = Callable[[Logits, Tokens, NDArray[np.bool_]], Tokens]


def is_greedy(options: SearchOptions) -> bool:
    return not options.do_sample or options.top_k == 1 or not np.float32(options.temperature)


def make_select(
    options: SearchOptions, *, eos_ids: Sequence[int], pad_id: int, random: np.random.RandomState
) -> Select:
    """logits (B, V), text so far (B, T), rows that have ended (B,) -> tokens (B,).

    The logits are not changed. A row that has ended gets the pad and draws no random number.
    """
    chain = _make_steps(options, eos_ids)
    choose = _greedy if is_greedy(options) else _make_sampler(options, random)

    def select(logits: Logits, text: Tokens, ended: NDArray[np.bool_]) -> Tokens:
        chosen = np.full(len(logits), pad_id, np.int32)
        for index, row in enumerate(logits):
            if ended[index]:
                continue
            if chain:
                row = row.copy()
                for step in chain:
                    step(row, text[index])
            chosen[index] = choose(row)
        return chosen

    return select


def _make_steps(options: SearchOptions, eos_ids: Sequence[int]) -> list[Step]:
    chain: list[Step] = []
    if options.min_length > 0:
        least = options.min_length

        def hold_open(row: Logits, text: Tokens) -> None:
            if len(text) < least:
                steps.ban(row, eos_ids)

        chain.append(hold_open)
    if options.repetition_penalty != 1.0:
        penalty = options.repetition_penalty
        chain.append(lambda row, text: steps.penalize_repetition(row, text, penalty))
    if options.no_repeat_ngram_size > 0:
        size = options.no_repeat_ngram_size
        chain.append(lambda row, text: steps.ban_repeated_ngrams(row, text, size))
    return chain


def _greedy(row: Logits) -> int:
    """The lowest id among equals. argmax finds a NaN too, so one look is enough."""
    token = int(row.argmax())
    _check(float(row[token]))
    return token


def _make_sampler(options: SearchOptions, random: np.random.RandomState) -> Choose:
    def sample(row: Logits) -> int:
        _check(float(row.max()))
        found = sampling.candidates(
            row, temperature=options.temperature, top_k=options.top_k, top_p=options.top_p
        )
        return sampling.draw(found, random)

    return sample


def _check(highest: float) -> None:
    if highest != highest or highest == float("inf"):
        raise EngineError("The model's output is not a number; no token can be chosen from it.")
    if highest == float("-inf"):
        raise EngineError("Every token is banned; no token can be chosen.")
