"""Which words of two texts are not in the other one. Pure."""

import difflib
import re
from dataclasses import dataclass

WORD = re.compile(r"\w+|[^\w\s]")
LONG = 2000  # words; beyond, very frequent ones are not looked for, so that it ends in time


@dataclass(frozen=True)
class Differences:
    """`first` and `second`: (start, length) in UTF-16 units of the words that only one has."""

    first: tuple[tuple[int, int], ...]
    second: tuple[tuple[int, int], ...]
    words: int  # that only one of them has
    share: float  # of the words that are the same, 0 to 1


def differences(first: str, second: str) -> Differences:
    one, other = list(WORD.finditer(first)), list(WORD.finditer(second))
    matcher = difflib.SequenceMatcher(
        None,
        [word.group() for word in one],
        [word.group() for word in other],
        autojunk=max(len(one), len(other)) > LONG,
    )
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    words = 0
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        words += (end - start) + (other_end - other_start)
        for text, found, low, high, out in (
            (first, one, start, end, spans[0]),
            (second, other, other_start, other_end, spans[1]),
        ):
            if high > low:
                out.append(_span(text, found[low].start(), found[high - 1].end()))
    share = matcher.ratio() if one or other else 1.0
    return Differences(tuple(spans[0]), tuple(spans[1]), words, share)


def _span(text: str, start: int, end: int) -> tuple[int, int]:
    return _units(text[:start]), _units(text[start:end])


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def in_words(found: Differences) -> str:
    if not found.words:
        return "Both say the same, word for word."
    plural = "s" * (found.words != 1)
    return f"{found.words:,} word{plural} differ, {found.share:.0%} are the same."
