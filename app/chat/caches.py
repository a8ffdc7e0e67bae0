"""The Generators of one model, each with the cache of what it read. Hands out the fitting one.

Two at most, so that going back to another branch or chat reads nothing again. Knows token ids and
generators; no messages.
"""

from collections.abc import Sequence
from typing import Any

from app import engine as og
from app.chat.context import common_prefix
from app.engine.stop import Stop

MOST_BYTES = 512 << 20  # of both caches, as far as tokens tell
_FEW = 64  # tokens that are not worth a cache of their own


class Caches:
    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._generators: list[og.Generator] = []  # the one used last is last

    @property
    def current(self) -> og.Generator | None:
        return self._generators[-1] if self._generators else None

    def prepared(
        self,
        model: og.Model,
        wanted: Sequence[int],
        search: dict[str, Any],
        speculation: dict[str, Any],
    ) -> og.Generator:
        """For reading `wanted`, with these options and free text. An option that is refused raises
        EngineError and costs no cache."""
        generator = self._fitting(model, list(wanted))
        if generator is None:
            one = {"num_beams": 1, "num_return_sequences": 1, "batch_size": 1}
            generator = self.with_beams(model, search | one)
            self._generators.append(generator)
        else:
            generator.set_search_options(**search)
            self._generators.remove(generator)
            self._generators.append(generator)
        generator.set_guidance("", "")
        generator.set_speculative_options(**speculation)
        return generator

    def with_beams(self, model: og.Model, search: dict[str, Any]) -> og.Generator:
        """For one answer; whoever asked closes it."""
        params = self._engine.GeneratorParams(model)
        params.set_search_options(**search)
        generator: og.Generator = self._engine.Generator(model, params)
        return generator

    def close(self) -> None:
        for generator in self._generators:
            generator.close()
        self._generators = []

    def _fitting(self, model: og.Model, wanted: list[int]) -> og.Generator | None:
        """The one that holds most of `wanted`, unless it would lose a lot that another would not.

        None: a new one is worth its memory.
        """
        if not self._generators:
            return None
        common = {g: common_prefix(g.get_sequence(0).tolist(), wanted) for g in self._generators}
        best = max(self._generators, key=common.__getitem__)
        other = next((g for g in self._generators if g is not best), None)
        lost = best.token_count() - common[best]
        again = common[best] - (common[other] if other is not None else 0)
        if lost <= 2 * again + _FEW:
            return best
        if other is not None:
            return self._generators[0]  # not used for longer
        size = _bytes_a_token(model) * (best.token_count() + len(wanted))
        return None if size <= MOST_BYTES else best


def _bytes_a_token(model: og.Model) -> int:
    """At most: some models keep less, in half precision."""
    facts = model.config.model.decoder
    return 8 * facts.num_hidden_layers * facts.num_key_value_heads * facts.head_size


def keep_common(generator: og.Generator, wanted: tuple[int, ...]) -> int:
    """Rewind to what the cache and the prompt share. If that is all of the prompt, and no more is
    in the cache, nothing is to be read; otherwise at least one token, whose logits are needed."""
    kept = common_prefix(generator.get_sequence(0).tolist(), list(wanted))
    if kept == len(wanted) == generator.token_count():
        return kept
    kept = min(kept, len(wanted) - 1)
    if kept < generator.token_count():
        generator.rewind_to(kept)
    return kept


class Reading:
    """A generator lent to one request: every run in it ends when `stop` is set."""

    def __init__(self, generator: og.Generator, stop: Stop) -> None:
        self._generator = generator
        generator.use_stop(stop)

    def __enter__(self) -> og.Generator:
        return self._generator

    def __exit__(self, *_: object) -> None:
        self._generator.use_stop(None)
