"""Reads an answer that stands once more, and looks at every token of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app import engine as og
from app.chat.caches import Caches, Reading, keep_common
from app.chat.events import Event, Finished, Inspected, Prefill
from app.chat.loaded import LoadedModel
from app.chat.messages import TokenView
from app.chat.prompt import Prompt
from app.chat.tokens import Seen, perplexity
from app.chat.writing import Writing
from app.engine.errors import Stopped
from app.engine.stop import Stop

ALTERNATIVES = 10
_STEP = 32  # tokens whose logits are in memory at once


def inspect(
    request_id: int, prompt: Prompt, loaded: LoadedModel, caches: Caches, stop: Stop
) -> Iterator[Event]:
    """`prompt.start` is the answer. Its last events are Inspected and Finished."""
    limits: dict[str, Any] = {"max_length": loaded.info.context_length, "do_sample": False}
    writing = Writing(request_id, loaded.tokenizer, prompt, watches=True)
    views: list[TokenView] = []
    probabilities: list[float] = []
    wanted = prompt.token_ids + prompt.start
    generator = caches.prepared(loaded.model, wanted, limits, {"ngram_size": 0})
    with Reading(generator, stop) as found:
        try:
            yield from _prefill(request_id, found, prompt)
            for seen in _look(found, prompt.start, loaded):
                probabilities.append(seen.probability)
                writing.add(seen.token_id, seen)
                for piece in writing.pieces():
                    views += piece.tokens
                yield Prefill(request_id, len(prompt.token_ids) + len(writing), len(prompt), 0)
        except Stopped:
            yield Finished(request_id, "stopped")
            return
    for piece in writing.rest():
        views += piece.tokens
    yield Inspected(request_id, tuple(views), perplexity(probabilities))
    yield Finished(request_id)


def _prefill(request_id: int, generator: og.Generator, prompt: Prompt) -> Iterator[Event]:
    wanted = prompt.token_ids
    kept = min(keep_common(generator, wanted), len(wanted) - 1)
    if generator.token_count() > kept:
        generator.rewind_to(kept)
    yield Prefill(request_id, kept, len(prompt), kept)
    for done in generator.prefill(list(wanted[kept:])):
        yield Prefill(request_id, kept + done, len(prompt), kept)


def _look(
    generator: og.Generator, token_ids: tuple[int, ...], loaded: LoadedModel
) -> Iterator[Seen]:
    """All tokens of a step are read in one run; each is looked at in the logits before it."""
    name = loaded.model.config.model.decoder.outputs["logits"]
    row: NDArray[np.float32] = generator.get_logits()[0]
    for start in range(0, len(token_ids), _STEP):
        step = token_ids[start : start + _STEP]
        generator.append_tokens(list(step))
        rows = np.concatenate([row[None], generator.get_output(name)[0].astype(np.float32)])
        for index, token in enumerate(step):
            yield loaded.eye.see(rows[index], token, ALTERNATIVES)
        row = rows[-1]
