"""Options of a person and defaults of a model -> search options of the engine. Pure functions."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from app.chat.banned import BannedWords
from app.chat.messages import AnswerFormat, Options

ANY_JSON = '{"anyOf": [{"type": "object"}, {"type": "array"}]}'

_OF_THE_MODEL = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "no_repeat_ngram_size",
)  # fmt: skip


class OptionError(Exception):
    """An option cannot be used; a sentence for a person."""


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


def conflicts(options: Options, defaults: Options) -> dict[str, str]:
    """Options that do nothing as the others stand, each with a sentence that says why."""
    options = filled(options, defaults)
    found: dict[str, str] = {}

    def rule_out(sentence: str, *names: str) -> None:
        for name in names:
            found.setdefault(name, sentence)

    if options.beams > 1 and BannedWords(options.banned):
        rule_out("Off: with banned words one answer is written at a time.", "beams")
    if options.beams > 1 and options.answer_format != "text":
        rule_out("Off: an answer of a fixed form is written alone.", "beams")
    if _has_beams(options):
        why = f"Off: {options.beams} answers are tried, and the likeliest is taken without chance."
        rule_out(why, "temperature", "top_p", "top_k", "min_p", "seed")
        rule_out("Off: guesses help only while one answer is written.", "guesses_ahead")
    else:
        rule_out("Off: it chooses between several answers that are tried.", "length_penalty")
        if not options.temperature:
            why = "Off: at temperature 0 the likeliest token is always taken."
            rule_out(why, "top_p", "top_k", "min_p", "seed")
        elif options.top_k == 1:
            why = "Off: with top-k at 1 the likeliest token is always taken."
            rule_out(why, "temperature", "top_p", "min_p", "seed")
    if options.answer_format in ("text", "json"):
        rule_out("Off: only a JSON schema or an expression is written here.", "answer_grammar")
    if options.answer_format != "text":
        rule_out("Off: the answer ends where its form is complete.", "shortest_answer")
        rule_out("Off: an answer of a fixed form has no thinking before it.", "thinks")
    elif options.shortest_answer > options.longest_answer:
        why = f"Off: it is more than the longest answer, {options.longest_answer:,} tokens."
        rule_out(why, "shortest_answer")
    if defaults.thinks is None:
        rule_out("Off: this model has no switch for thinking.", "thinks")
    return found


def _has_beams(options: Options) -> bool:
    is_free = options.answer_format == "text" and not BannedWords(options.banned)
    return options.beams > 1 and is_free


def settled(options: Options, defaults: Options) -> Options:
    """Filled, and without what others rule out: what an answer is really written with."""
    options = filled(options, defaults)
    off = conflicts(options, defaults)
    changes: dict[str, Any] = {"beams": options.beams if _has_beams(options) else 1}
    if "shortest_answer" in off:
        changes["shortest_answer"] = 0
    if "thinks" in off:
        has_form = options.answer_format != "text" and defaults.thinks is not None
        changes["thinks"] = False if has_form else None
    if "guesses_ahead" in off:
        changes["guesses_ahead"] = False
    return replace(options, **changes)


def search_options(options: Options) -> dict[str, Any]:
    """For settled options: those that may change from token to token.

    Temperature 0 always takes the likeliest token.
    """
    is_sampling = bool(options.temperature) and options.beams == 1
    return {
        "do_sample": is_sampling,
        "temperature": options.temperature if is_sampling else 1.0,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "min_p": options.min_p,
        "repetition_penalty": options.repetition_penalty,
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
    }


def beam_options(options: Options) -> dict[str, Any]:
    """Those that are chosen once for an answer."""
    return {
        "num_beams": options.beams,
        "num_return_sequences": 1,
        "length_penalty": options.length_penalty,
    }


def speculative_options(options: Options) -> dict[str, Any]:
    if not options.guesses_ahead:
        return {"ngram_size": 0}
    return {"ngram_size": 3, "min_adaptive_k": 1, "cooldown": True}


def guidance_of(options: Options) -> tuple[str, str]:
    """Kind and text of the grammar, both "" for free text. Raises OptionError."""
    form, text = options.answer_format, options.answer_grammar
    if form == "text":
        return "", ""
    if form == "json":
        return "json_schema", ANY_JSON
    if not text.strip():
        what = "JSON schema" if form == "json_schema" else "expression"
        raise OptionError(f"There is no {what} yet. Write one, or let the answer be free text.")
    if form == "json_schema":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise OptionError(f"The JSON schema is not JSON: {error}.") from error
    return form, text


def grammar_problem(options: Options) -> str:
    """What is wrong with the schema or the expression, in a sentence; "" for nothing."""
    from app.engine.errors import EngineError  # brings the runtime, which no window waits for
    from app.engine.guidance import GuidanceOptions, check

    try:
        kind, text = guidance_of(options)
        if kind:
            check(GuidanceOptions(kind, text))
    except OptionError as error:
        return str(error)
    except EngineError as error:
        return str(refusal(options.answer_format, error))
    return ""


def refusal(form: AnswerFormat, error: Exception) -> OptionError:
    """Why a grammar cannot be used, in a sentence: the library's message without its excerpts."""
    reason = str(error).partition(" is wrong: ")[2] or str(error)
    reason = reason.rpartition("error: ")[2].partition(" 1 | ")[0].strip().rstrip(".")
    what = "expression" if form == "regex" else "JSON schema"
    return OptionError(f"The {what} cannot be used: {reason}.")


def to_record(options: Options) -> dict[str, Any]:
    """For keeping with an answer, as JSON."""
    return asdict(options)


def from_record(record: Mapping[str, Any]) -> Options:
    """The same options again; what this version lacks, or has of another kind, is left out."""
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(Options).items():
        value = record.get(name)
        value = tuple(value) if isinstance(value, list) else value
        if name in record and _fits(value, hint):
            values[name] = value
    return Options(**values)


def _fits(value: object, hint: Any) -> bool:
    kinds = get_args(hint)
    if get_origin(hint) is Literal:
        return value in kinds if isinstance(value, str) else False
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    if kinds:  # a kind, or None
        return any(_fits(value, kind) for kind in kinds)
    if hint in (int, float):
        if type(value) is bool or not isinstance(value, int | float):
            return False
        return (hint is float or type(value) is int) and -(2**31) < value < 2**31
    return type(value) is hint


def drawn_seed() -> int:
    """A seed for an answer without one; kept with the answer, so that it can be repeated."""
    return secrets.randbelow(2**31)
