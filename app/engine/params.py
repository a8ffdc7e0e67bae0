"""GeneratorParams: search options, types checked when set, ranges when a Generator is made."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from app.engine.config import Configuration, SearchOptions, coerce_option
from app.engine.errors import EngineError

if TYPE_CHECKING:
    from app.engine.model import Model

MAX_BATCH = 32


class GeneratorParams:
    """Starts from the model's own `search` section. A Generator keeps a copy of the values."""

    def __init__(self, model: "Model") -> None:
        self._configuration = model.config
        self._options = model.config.search

    def set_search_options(self, **options: Any) -> None:
        self._options = changed(self._options, options)

    def get_search_options(self) -> dict[str, Any]:
        return asdict(self._options)

    def freeze(self) -> SearchOptions:
        return check(self._options, self._configuration)


def changed(options: SearchOptions, values: dict[str, Any]) -> SearchOptions:
    known = asdict(options)
    for name in values:
        if name not in known:
            raise EngineError(f"Unknown search option {name!r}; known are {', '.join(known)}.")
    return replace(options, **{name: coerce_option(name, v) for name, v in values.items()})


def check(options: SearchOptions, configuration: Configuration) -> SearchOptions:
    """`options` in range for the model, max_length filled in; the text names option and value."""
    model = configuration.model
    if options.max_length == 0:
        options = replace(options, max_length=model.context_length)
    _within(options, "max_length", 1, model.context_length, "the model's context_length")
    _within(options, "batch_size", 1, MAX_BATCH)
    _within(options, "num_beams", 1, MAX_BATCH)
    _within(options, "num_return_sequences", 1, options.num_beams, "num_beams")
    if options.num_beams > 1:
        raise EngineError("Beam search (num_beams above 1) is not supported yet.")
    if options.do_sample:
        _within(options, "top_k", 0, model.vocab_size, "the vocabulary's size")
        _within(options, "top_p", 0.0, 1.0)
        _within(options, "temperature", 0.0, 1e6)
    _within(options, "repetition_penalty", 1e-6, 1e6)  # beyond, scores leave float32's range
    return options


def _within(options: SearchOptions, name: str, least: float, most: float, named: str = "") -> None:
    value = getattr(options, name)
    if not least <= value <= most:
        limit = f"{most} ({named})" if named else f"{most}"
        raise EngineError(f"{name} must be between {least} and {limit}, not {value!r}.")
