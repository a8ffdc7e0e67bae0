r"""Formulas in running text: `$…$`, `$$…$$`, `\(…\)`, `\[…\]`, as a rule of the inline parser.

The rule stands before all others, so that Markdown never reads TeX as emphasis or escapes. It
sees one paragraph at a time: a formula that is not closed yet is text. Knows no Qt.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

FORMULA = "formula"  # kind of the token; its markup is the formula as it was written
LONGEST = 1_000  # characters of one formula

_DISPLAY = (("$$", "$$"), ("\\[", "\\]"))
# As Pandoc reads it: "$5 and $6" is money. What is escaped closes nothing.
_SINGLE = re.compile(r"\$(?![\s$])((?:\\.|[^\\$\n`])*?)(?<!\s)\$(?![\d$])")


def _delimited(source: str, start: int, end: int) -> tuple[int, str, bool] | None:
    """(behind it, TeX, whether it is displayed) of a formula that starts at `start`."""
    for opening, closing in (*_DISPLAY, ("\\(", "\\)")):
        if not source.startswith(opening, start):
            continue
        found = source.find(closing, start + 2, min(end, start + LONGEST))
        tex = source[start + 2 : found].strip()
        if found < 0 or not tex:
            return None
        return found + 2, tex, opening != "\\("
    before = source[start - 1 : start]
    if before.isalnum() or before == "$":
        return None
    match = _SINGLE.match(source, start, min(end, start + LONGEST))
    return (match.end(), match.group(1), False) if match and match.group(1) else None


def _rule(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = _delimited(state.src, state.pos, state.posMax)
    if found is None:
        return False
    behind, tex, is_display = found
    if not silent:
        token = state.push(FORMULA, "", 0)
        token.content, token.markup = tex, state.src[state.pos : behind]
        token.meta = {"is_display": is_display}
    state.pos = behind
    return True


def add_formulas(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", FORMULA, _rule)
