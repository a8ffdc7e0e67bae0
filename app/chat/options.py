"""Options of a person and defaults of a model -> search options of the engine. Pure functions."""

import secrets
from dataclasses import replace
from typing import Any, Protocol

from app.chat.messages import Options

_OF_THE_MODEL = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "no_repeat_ngram_size",
)  # fmt: skip


class Search(Protocol):
    """What is read of the model's own defaults (`Config.search`)."""

    @property
    def do_sample(self) -> bool: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def repetition_penalty(self) -> float: ...
    @property
    def min_p(self) -> float: ...
    @property
    def no_repeat_ngram_size(self) -> int: ...


def defaults_of(search: Search) -> Options:
    """The model's own way to write, without None.

    Exporters write top_k 1 and top_p 0 for "not said": taken at their word they would make the
    temperature do nothing. A model that does not sample has temperature 0.
    """
    return Options(
        temperature=float(search.temperature) if search.do_sample else 0.0,
        top_p=float(search.top_p) if 0 < search.top_p <= 1 else 1.0,
        top_k=int(search.top_k) if search.top_k > 1 else 50,
        repetition_penalty=float(search.repetition_penalty) or 1.0,
        min_p=float(search.min_p),
        no_repeat_ngram_size=int(search.no_repeat_ngram_size),
    )


def filled(options: Options, defaults: Options) -> Options:
    """The options with the model's default wherever nothing was chosen; the seed stays as it is."""
    return replace(
        options,
        **{
            name: getattr(defaults, name)
            for name in _OF_THE_MODEL
            if getattr(options, name) is None
        },
    )


def search_options(options: Options) -> dict[str, Any]:
    """For options without None. Temperature 0 always takes the likeliest token."""
    is_sampling = bool(options.temperature)
    return {
        "do_sample": is_sampling,
        "temperature": options.temperature if is_sampling else 1.0,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "repetition_penalty": options.repetition_penalty,
    }


def drawn_seed() -> int:
    """A seed for an answer without one; kept with the answer, so that it can be repeated."""
    return secrets.randbelow(2**31)
