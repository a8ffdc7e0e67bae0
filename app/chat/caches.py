"""The Generators of one model, each with the cache of what it read. Hands out the fitting one.

Knows token ids and generators; no messages.
"""

from typing import Any

from app import engine as og
from app.chat.context import common_prefix
from app.engine.stop import Stop


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
        search: dict[str, Any],
        speculation: dict[str, Any],
    ) -> og.Generator:
        """With these options, and free text; one that is refused raises EngineError and costs no
        cache."""
        generator = self.current
        if generator is None:
            generator = self._made(model, search)
        else:
            generator.set_search_options(**search)
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

    def _made(self, model: og.Model, search: dict[str, Any]) -> og.Generator:
        one = {"num_beams": 1, "num_return_sequences": 1, "batch_size": 1}
        generator = self.with_beams(model, search | one)
        self._generators.append(generator)
        return generator


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
