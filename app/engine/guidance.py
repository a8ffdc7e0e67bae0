"""Guidance: answers that fit a JSON schema, a regular expression or a grammar.

llguidance tells which tokens may come next; a mask takes the others out of the logits. Every row
has a matcher of its own. The grammar begins where the last appended text ends; after a rewind the
matchers read again what is left of the answer. Knows ids and logits; no model.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import llguidance
import llguidance.numpy
import numpy as np
from numpy.typing import NDArray

from app.engine.errors import EngineError, ModelError, shown
from app.engine.model import Model

Tokens = NDArray[np.int32]
Logits = NDArray[np.float32]

_GRAMMARS: dict[str, Callable[[str], str]] = {
    "json_schema": llguidance.LLMatcher.grammar_from_json_schema,
    "regex": llguidance.LLMatcher.grammar_from_regex,
    "lark_grammar": llguidance.LLMatcher.grammar_from_lark,
}
_tokenizers: "weakref.WeakKeyDictionary[Model, Any]" = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class GuidanceOptions:
    """`forces_tokens`: where the grammar leaves one way only, its tokens are taken unseen."""

    kind: str
    data: str
    forces_tokens: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _GRAMMARS:
            raise EngineError(f"Guidance is one of {', '.join(_GRAMMARS)}, not {shown(self.kind)}.")
        if not isinstance(self.data, str) or not self.data.strip():
            raise EngineError(f"The {self.kind} for guidance is empty.")


def check(options: GuidanceOptions) -> None:
    """EngineError where no grammar can be made of it; no model is needed."""
    try:
        grammar = _GRAMMARS[options.kind](options.data)
        problem = llguidance.LLMatcher.validate_grammar(grammar)
    except ValueError as error:
        problem = str(error)
    if problem:
        words = " ".join(problem.split())[:600]
        raise EngineError(f"The {options.kind} for guidance is wrong: {words}")


class Guidance:
    def __init__(self, model: Model, options: GuidanceOptions, *, rows: int) -> None:
        self._tokenizer = _tokenizer_of(model)
        self._eos_ids = model.config.model.eos_token_ids
        self._vocab_size = model.config.model.vocab_size
        self._forces = options.forces_tokens and rows == 1
        self._first = self._new_matcher(options)
        self._matchers = [self._first.deep_copy() for _ in range(rows)]
        self._forced: list[int] = []
        self._bits = llguidance.numpy.allocate_token_bitmask(1, self._vocab_size)

    def forced_token(self, index: int) -> int | None:
        return self._forced[0] if self._forced else None

    def mask(self, index: int, row: Logits) -> None:
        """Takes what may not come next out of a row's logits (V,), in place."""
        matcher = self._matchers[index]
        llguidance.numpy.fill_next_token_bitmask(matcher, self._bits, 0)
        self._check(matcher)
        bits = np.unpackbits(~self._bits[0].view(np.uint8), count=len(row), bitorder="little")
        np.copyto(row, -np.inf, where=bits.view(np.bool_))

    def accept(
        self, tokens: Tokens, *, parents: Sequence[int] | None, ended: Sequence[bool]
    ) -> None:
        """The tokens that were chosen; a row that has ended needs none."""
        if parents is not None:
            self._matchers = [self._matchers[parent].deep_copy() for parent in parents]
        for matcher, token, is_over in zip(self._matchers, tokens.tolist(), ended, strict=True):
            if not is_over:
                matcher.consume_token(token)
                self._check(matcher)
        self._forced = self._forced[1:] or self._look_ahead()

    def forced(self) -> list[int]:
        """What follows the last token that was chosen, where the grammar leaves no choice."""
        return self._forced

    def restart(self, answers: Tokens) -> None:
        """Begin again, and read what is written already: (R, T), of which T is often 0."""
        self._matchers = [self._first.deep_copy() for _ in self._matchers]
        for matcher, row in zip(self._matchers, answers.tolist(), strict=True):
            for token in row:
                if token in self._eos_ids:
                    break
                matcher.consume_token(token)
            self._check(matcher)
        self._forced = self._look_ahead() if answers.shape[1] else []

    def _look_ahead(self) -> list[int]:
        if not self._forces or self._matchers[0].is_stopped():
            return []
        return list(self._matchers[0].compute_ff_tokens())

    def _new_matcher(self, options: GuidanceOptions) -> Any:
        try:
            grammar = _GRAMMARS[options.kind](options.data)
        except ValueError as error:
            raise EngineError(f"The {options.kind} for guidance is wrong: {error}.") from error
        matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            words = " ".join(matcher.get_error().split())[:300]
            raise EngineError(f"The {options.kind} for guidance is wrong: {words}")
        return matcher

    def _check(self, matcher: Any) -> None:
        if matcher.is_error():
            words = " ".join(matcher.get_error().split())[:300]
            raise EngineError(f"The answer cannot be kept to its grammar: {words}")


def _tokenizer_of(model: Model) -> Any:
    """Once a model: reading a large vocabulary takes a while."""
    if model not in _tokenizers:
        path = model.config.tokenizer_folder / "tokenizer.json"
        settings = model.config.model
        try:
            _tokenizers[model] = llguidance.LLTokenizer(
                path.read_text(encoding="utf-8"),
                n_vocab=settings.vocab_size,
                eos_token=list(settings.eos_token_ids),
            )
        except (OSError, ValueError) as error:
            raise ModelError(f"Guidance cannot use {path.name}: {error}.") from error
    return _tokenizers[model]
