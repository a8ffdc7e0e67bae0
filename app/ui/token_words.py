"""Tokens and their probabilities in words and in the steps of the ramp. Pure."""

import math
from dataclasses import dataclass

from app.chat.messages import TokenView

UNSURE = 0.4  # tokens below it are counted, and U goes from one to the next
LEAST = 1e-45
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
SIGNS = {"\n": "\u21b5", "\r": "\u240d", "\t": "\u2192", " ": "\u2423"}


@dataclass(frozen=True)
class Step:
    """One step of doubt: its tint, and how heavy the line under a token is, which says the same."""

    floor: float
    tint: str  # "": none
    weight: int
    label: str


RAMP = (
    Step(0.90, "", 0, "90 % +"),
    Step(0.70, "p1", 1, "70\u201390"),
    Step(0.40, "p2", 2, "40\u201370"),
    Step(0.15, "p3", 3, "15\u201340"),
    Step(0.0, "p4", 4, "under 15"),
)


def step_of(probability: float) -> Step:
    return next((step for step in RAMP if probability >= step.floor), RAMP[-1])


def percent(probability: float) -> str:
    """0.414 as "41 %", 0.004 as "0.4 %"."""
    share = probability * 100
    if share >= 99.5:
        return "100 %" if share >= 99.95 else f"{share:.1f} %"
    if share >= 9.95:
        return f"{share:.0f} %"
    return f"{share:.1f} %" if share >= 0.05 else "under 0.1 %"


def choice_words(rank: int) -> str:
    """0 as "first choice"."""
    return f"{ORDINALS[rank]} choice" if rank < len(ORDINALS) else f"choice {rank + 1:,}"


def visible(text: str) -> str:
    """With signs for what could not be seen: a row of its own shows blanks too."""
    return "".join(SIGNS.get(letter, letter) for letter in text)


def quoted(text: str) -> str:
    """A token in a sentence."""
    if not text:
        return "a part of a character"
    return f"\u201c{text.strip() or visible(text)}\u201d"


def spoken(token: TokenView) -> str:
    """What a screen reader says of a token."""
    name = quoted(token.text).strip("\u201c\u201d")
    thought = ", thought" if token.is_thought else ""
    return f"{name}, {percent(token.probability)}, {choice_words(token.rank)}{thought}"


def hint(token: TokenView) -> str:
    """The same for the pointer, with the likeliest others."""
    lines = [f"{visible(token.text) or quoted('')}   {percent(token.probability)}"]
    lines[0] += f", {choice_words(token.rank)}"
    others = [other for other in token.alternatives if other.token_id != token.token_id][:3]
    lines += [f"{visible(other.text)}   {percent(other.probability)}" for other in others]
    return "\n".join(lines)


class Figures:
    """Count, perplexity and doubt of tokens as they come."""

    def __init__(self) -> None:
        self.tokens = 0
        self.unsure = 0
        self._logs = 0.0

    def add(self, token: TokenView) -> None:
        self.tokens += 1
        self.unsure += token.probability < UNSURE
        self._logs += math.log(max(token.probability, LEAST))

    @property
    def perplexity(self) -> float:
        """0.0 where there is nothing to measure."""
        return math.exp(-self._logs / self.tokens) if self.tokens else 0.0


def units(text: str) -> int:
    """How long a text is for Qt."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, start: int, end: int | None = None) -> str:
    """From one place to another, as Qt counts them."""
    if text.isascii():
        return text[start:end]
    data = text.encode("utf-16-le", "surrogatepass")
    return data[2 * start : None if end is None else 2 * end].decode("utf-16-le", "surrogatepass")
