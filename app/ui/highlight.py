"""Colours of code: Pygments' tokens as roles of the theme. Knows no Qt."""

from functools import lru_cache
from typing import Any

from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound

LONGEST = 20_000  # characters; longer code is shown in one colour

_ROLES = [
    (Token.Comment, "syn_comment"),
    (Token.Literal.String, "syn_string"),
    (Token.Literal.Number, "syn_number"),
    (Token.Operator.Word, "syn_keyword"),
    (Token.Keyword, "syn_keyword"),
    (Token.Name.Function, "syn_name"),
    (Token.Name.Builtin, "syn_name"),
    (Token.Name.Class, "syn_name"),
    (Token.Name.Namespace, "syn_name"),
]


@lru_cache(maxsize=512)
def _role(kind: Any) -> str:
    return next((role for parent, role in _ROLES if kind in parent), "text")


@lru_cache(maxsize=64)
def highlight(code: str, language: str) -> tuple[tuple[str, str], ...]:
    """(text, role) in order; together the texts are the code, whatever the lexer does."""
    plain = ((code, "text"),)
    if not language or len(code) > LONGEST:
        return plain
    try:
        lexer = get_lexer_by_name(language, ensurenl=False, stripnl=False)
    except ClassNotFound:
        return plain
    found = tuple((text, _role(kind)) for kind, text in lexer.get_tokens(code) if text)
    return found if "".join(text for text, _ in found) == code else plain
