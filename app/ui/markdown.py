"""Markdown as tokens: what a model wrote, cut into blocks. Knows no Qt.

Only CommonMark with tables and strikethrough is read; HTML is text like any other. Blocks and
inline text are parsed apart, so that a stream pays for the block that it draws and no more, and
so that no single paragraph can cost more than PIECE characters of inline parsing.

Formulas are one more rule of the inline parser: formula_rule.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from app.ui.formula_rule import add_formulas

PIECE = 4_000  # characters of one paragraph that are parsed and laid out as one
WORD = 1_000  # characters of a word that are laid out as one
MAX_NESTING = 60  # levels of quotes and lists; deeper text is shown as it was written
MAX_COLUMNS, MAX_CELLS = 24, 3_000  # of a table; larger ones are shown as they were written
MAX_BRACKETS = 200  # of one piece that are looked at as links
SOURCE = "source"  # kind of our own token: text to be shown as written

_LINK = re.compile(r"(?i)(https?|mailto):")
# What Qt takes for the frame of a table, for a paragraph or for a picture, and what it can't hold.
_FOREIGN = re.compile("[\x00\ud800-\udfff\ufdd0\ufdd1\ufffc\u2029]")
_REFERENCE = re.compile(r"(?m)^[ >\t]*(?:[-*+]|\d+[.)])?[ \t]*\[[^\]\n]+\]:")


def is_safe_link(url: str) -> bool:
    """Only these ever become links, and even they are only signalled, never followed."""
    return _LINK.match(url) is not None


def _parser(*left_out: str) -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    made.enable(["table", "strikethrough"])
    made.core.ruler.disable(["inline", "text_join"])  # inline() does it when a block is drawn
    add_formulas(made)
    made.disable(list(left_out))
    made.validateLink = is_safe_link  # type: ignore[method-assign]
    return made


_MD = _parser()
_MD_WITHOUT_LINKS = _parser("link", "image")


def clean(text: str) -> str:
    """The text as it can be shown, one character for one; line ends become line feeds."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _FOREIGN.sub("\ufffd", text)


def may_hold_references(text: str) -> bool:
    """Link definitions act backwards: a text that may hold one is drawn once more at its end."""
    return _REFERENCE.search(text) is not None


@dataclass
class References:
    """Link definitions met so far. A tick reads with a copy: its last line may be half there."""

    found: dict[str, Any] = field(default_factory=dict)

    def environment(self) -> dict[str, Any]:
        return {"references": dict(self.found)}


def blocks(text: str, references: References) -> tuple[list[Token], dict[str, Any]]:
    """Block tokens, `inline` ones unparsed, and the environment that inline() needs."""
    environment = references.environment()
    tokens = _MD.parse(text, environment)
    if any(token.level >= MAX_NESTING - 2 for token in tokens):
        tokens = list(_without_depths(tokens, text))
    return tokens, environment


def _without_depths(tokens: list[Token], text: str) -> Iterator[Token]:
    """Replaces blocks that are nested deeper than the parser reads, so that nothing is lost."""
    lines = text.split("\n")
    for first, last in top_blocks(tokens):
        part = tokens[first:last]
        if max(token.level for token in part) < MAX_NESTING - 2:
            yield from part
            continue
        start, end = part[0].map or (0, len(lines))
        content = "\n".join(lines[start:end]).rstrip("\n")
        yield Token(SOURCE, "", 0, content=content, map=[start, end], block=True)


def top_blocks(tokens: list[Token]) -> list[tuple[int, int]]:
    """(first, behind last) index of every block that stands at the top."""
    starts = [i for i, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
    return list(zip(starts, [*starts[1:], len(tokens)], strict=True)) if starts else []


def inline(content: str, environment: dict[str, Any]) -> list[Token]:
    """Tokens of one piece. Brackets beyond any real text are no links: looking for the ends of
    thousands of them would take longer than all else."""
    parser = _MD if content.count("[") <= MAX_BRACKETS else _MD_WITHOUT_LINKS
    found: list[Token] = []
    parser.inline.parse(content, parser, environment, found)
    return found


def cut(content: str) -> tuple[int, int] | None:
    """Where the first piece of a long paragraph ends and the next begins; None if it is short.

    A word without end is a piece as well: Qt takes long to wrap one. What is cut depends on the
    first PIECE characters alone, so a paragraph that grows is cut the same way.
    """
    run = _ENDLESS_WORD.search(content, 0, PIECE)
    if run is not None and run.end() < len(content):
        return run.end(), run.end()
    if len(content) <= PIECE:
        return None
    for at in range(PIECE, PIECE // 2, -1):
        if content[at].isspace():
            return at, at + 1
    return PIECE, PIECE


# Scripts from U+2E80 on break between any two letters: nothing there is endless.
_ENDLESS_WORD = re.compile(rf"[^\s\u2e80-\U0010ffff]{{{WORD}}}")


def pieces(content: str) -> Iterator[str]:
    place = cut(content)
    while place is not None:
        yield content[: place[0]]
        content = content[place[1] :]
        place = cut(content)
    yield content


@dataclass(frozen=True)
class Table:
    """Cells as unparsed inline text, row by row; the first row is the head."""

    rows: list[list[str]]
    alignments: list[str]  # "", "left", "center", "right"


def table(tokens: list[Token], source_lines: list[str]) -> Table | None:
    """The table that these tokens spell; None if it is too large to be laid out as one.

    Cells beyond the head's columns, which CommonMark drops, are kept in the last cell.
    """
    rows: list[list[str]] = []
    alignments: list[str] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(tokens[i + 1].content)
            if token.type == "th_open":
                style = str(token.attrGet("style") or "")
                alignments.append(style.rpartition(":")[2])
        elif token.type == "tr_close" and len(rows) > 1:
            _keep_surplus(rows[-1], _row_line(tokens, i, source_lines))
    if len(alignments) > MAX_COLUMNS or sum(map(len, rows)) > MAX_CELLS:
        return None
    return Table(rows, alignments)


def _row_line(tokens: list[Token], close: int, source_lines: list[str]) -> str:
    for token in reversed(tokens[:close]):
        if token.type == "tr_open":
            return source_lines[token.map[0]] if token.map else ""
    return ""


def _keep_surplus(row: list[str], line: str) -> None:
    cells = [cell.strip() for cell in escapedSplit(line.strip().lstrip(">").strip())]
    if cells and cells[0] == "":
        cells.pop(0)
    if cells and cells[-1] == "":
        cells.pop()
    if len(cells) > len(row) and row:
        row[-1] = " | ".join([row[-1], *cells[len(row) :]])


# ---- bare addresses in running text
_ADDRESS = re.compile(r"https?://[^\s<>\"]+")


def split_addresses(text: str) -> Iterator[tuple[str, str]]:
    """(text, address or "") in order; together the texts are the text."""
    at = 0
    for match in _ADDRESS.finditer(text):
        address = (
            match.group().rstrip(".,;:!?'*_)]}")
            if ")" in match.group()
            else (match.group().rstrip(".,;:!?'*_]}"))
        )
        if address.count("(") > address.count(")") and match.group()[len(address) :][:1] == ")":
            address += ")"
        if match.start() > at:
            yield text[at : match.start()], ""
        yield address, address
        at = match.start() + len(address)
    if at < len(text):
        yield text[at:], ""
