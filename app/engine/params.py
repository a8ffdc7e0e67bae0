"""GeneratorParams: search options, types checked when set, ranges when a Generator is made."""

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from app.engine import speculative
from app.engine.config import Configuration, SearchOptions, coerce_option
from app.engine.errors import EngineError, shown
from app.engine.guidance import GuidanceOptions
from app.engine.log import note
from app.engine.model import Model
from app.engine.select import Preferences
from app.engine.speculative import SpeculativeOptions

MAX_BATCH = 32


class GeneratorParams:
    """Starts from the model's own `search` section. A Generator keeps a copy of the values."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"Parameters are made for a Model, not for {type(model).__name__}.")
        self._configuration = model.config
        self._options = model.config.search
        self._preferences = Preferences()
        self._speculative = model.config.speculative
        self._guidance: GuidanceOptions | None = None

    def set_search_options(self, **options: Any) -> None:
        self._options = changed(self._options, options)

    def get_search_options(self) -> dict[str, Any]:
        return asdict(self._options)

    def set_logit_bias(self, bias: Mapping[int, float]) -> None:
        """Added to the logits of these tokens, before every other step; {} takes it back."""
        self._preferences = replace(
            self._preferences, bias=checked_bias(bias, self._configuration.model.vocab_size)
        )

    def set_banned_tokens(self, ids: Iterable[int]) -> None:
        """Tokens that are never chosen; () takes it back."""
        self._preferences = replace(
            self._preferences, banned=checked_ids(ids, self._configuration.model.vocab_size)
        )

    def set_guidance(self, type: str, data: str, enable_ff_tokens: bool = False) -> None:
        """Answers fit `data`, a json_schema, regex or lark_grammar; it is read by the Generator.

        enable_ff_tokens: where only one text is possible, it is taken over without a choice, and
        its tokens are read in one run.
        """
        self._guidance = GuidanceOptions(type, data, enable_ff_tokens)

    @property
    def guidance(self) -> "GuidanceOptions | None":
        return self._guidance

    def set_speculative_options(self, **options: Any) -> None:
        """Guess tokens from the text: ngram_size of 2 or more. The text is the same without."""
        self._speculative = speculative.changed(self._speculative, options)

    def get_speculative_options(self) -> dict[str, Any]:
        return asdict(self._speculative)

    def freeze_speculative(self) -> SpeculativeOptions:
        options = self._speculative
        if options.ngram_size and (self._options.batch_size > 1 or self._options.num_beams > 1):
            raise EngineError("Speculation (ngram_size) needs batch_size 1 and num_beams 1.")
        return options

    def freeze(self) -> SearchOptions:
        options = check(self._options, self._configuration)
        if options.do_sample and (options.top_k == 1 or options.temperature == 0.0):
            what = "top_k is 1" if options.top_k == 1 else "temperature is 0"
            note("warning", f"do_sample has no effect: {what}, so the likeliest token is taken.")
        return options

    @property
    def preferences(self) -> Preferences:
        return self._preferences


def checked_bias(bias: Mapping[int, float], vocab_size: int) -> dict[int, float]:
    if not isinstance(bias, Mapping):
        raise TypeError(f"A logit bias is a dict of token and number, not {shown(bias)}.")
    ids = checked_ids(bias, vocab_size)
    values = [float(value) for value in bias.values()]
    if not all(map(math.isfinite, values)):
        raise EngineError("A logit bias must be a finite number; see set_banned_tokens.")
    return dict(zip(ids, values, strict=True))


def checked_ids(ids: Iterable[int], vocab_size: int) -> tuple[int, ...]:
    """Whole numbers within the vocabulary: -1, to_token_id's "unknown", is an error here."""
    numbers = tuple(operator.index(number) for number in ids)
    for number in numbers:
        if not 0 <= number < vocab_size:
            raise EngineError(f"Token {number} is outside the vocabulary of {vocab_size}.")
    return numbers


def changed(options: SearchOptions, values: dict[str, Any]) -> SearchOptions:
    known = asdict(options)
    for name in values:
        if name not in known:
            raise EngineError(f"Unknown search option {shown(name)}; known are {', '.join(known)}.")
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
        _check_beams(options, model.vocab_size)
    elif options.do_sample:
        _within(options, "top_k", 0, model.vocab_size, "the vocabulary's size")
        _within(options, "top_p", 0.0, 1.0)
        _within(options, "temperature", 0.0, 1e6)
        _within(options, "min_p", 0.0, 1.0)
    _within(options, "repetition_penalty", 1e-6, 1e6)  # beyond, scores leave float32's range
    return options


def _check_beams(options: SearchOptions, vocab_size: int) -> None:
    if options.do_sample and options.top_k != 1 and options.temperature != 0.0:
        raise EngineError("Beam search does not sample: set do_sample=False or num_beams=1.")
    if vocab_size < 2:
        raise EngineError("Beam search needs a vocabulary of at least 2 tokens.")
    if not math.isfinite(options.length_penalty):
        raise EngineError(f"length_penalty must be a number, not {shown(options.length_penalty)}.")


def _within(options: SearchOptions, name: str, least: float, most: float, named: str = "") -> None:
    value = getattr(options, name)
    if not least <= value <= most:
        limit = f"{most} ({named})" if named else f"{most}"
        raise EngineError(f"{name} must be between {least} and {limit}, not {shown(value)}.")
