"""Chat templates in a Jinja sandbox, with what Hugging Face's own renderer adds to the language.

A template comes with a model from somewhere and is not trusted: it sees only the values given here,
cannot change them, and what it takes of the machine has bounds (template_bounds.py).
"""

import json
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from app.engine.errors import EngineError
from app.engine.template_bounds import BoundedSandbox, TooMuch, bounded

_LONGEST_DATE_FORMAT = 100


_FAILURES = (
    jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError,
    SyntaxError, RecursionError, MemoryError,
)  # fmt: skip
_TEMPLATES = ("<template>", "<unknown>")  # what jinja2 calls the file of a template from a text


class _GenerationTag(Extension):
    """`{% generation %}...{% endgeneration %}` marks text for training; here it is only text."""

    tags = {"generation"}  # noqa: RUF012 - the attribute that jinja2 asks for

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _TemplateRefusal(jinja2.TemplateError):
    """raise_exception was called: the template's own words for a person."""


def render(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Any] | None = None,
    add_generation_prompt: bool = True,
    bos_token: str = "",
    eos_token: str = "",
    **extra: Any,
) -> str:
    """The prompt as text, as transformers' apply_chat_template(tokenize=False) gives it."""
    try:
        with bounded():
            return _compile(template).render(
                messages=messages,
                tools=tools,
                add_generation_prompt=add_generation_prompt,
                bos_token=bos_token,
                eos_token=eos_token,
                **extra,
            )
    except TooMuch as error:
        raise EngineError(f"The model's chat template cannot be used: {error}.") from error
    except _TemplateRefusal as error:
        raise EngineError(f"The model's chat template refuses this: {error.message}") from error
    except _FAILURES as error:
        raise EngineError(f"The model's chat template failed{_place(error)}: {error}") from error


def _place(error: BaseException) -> str:
    """Where in the template, if it is known: the lines of jinja2's code are the template's."""
    line = getattr(error, "lineno", None)
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename in _TEMPLATES:
            line = frame.lineno
    return f" in line {line}" if line else ""


@lru_cache(maxsize=8)
def _compile(template: str) -> jinja2.Template:
    environment = BoundedSandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.add_filter("tojson", _to_json)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(template)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Unlike jinja2's own filter it does not escape HTML characters."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_exception(message: str) -> NoReturn:
    raise _TemplateRefusal(str(message))


def _strftime_now(format: str) -> str:
    if len(format) > _LONGEST_DATE_FORMAT or any(letter.isdigit() for letter in format):
        raise ValueError("strftime_now takes a short format without widths")
    return datetime.now().strftime(format)
