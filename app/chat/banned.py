"""Banned words and phrases: found in text whatever their case and however tokens cut it.

Knows text and counts; no tokenizer, no generator. A banned word is turned away wherever its letters
stand in a row, inside longer words too. Entries of white space alone ban nothing.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

MOST_TRIES = 200  # ways looked at without one letter gained, until there seems to be no way out


class BannedWords:
    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(word for word in words if word.strip())
        self._forms = {
            _fold(unicodedata.normalize(form, word))[0] for word in self.words for form in _FORMS
        }
        self._beginnings = {form[:end] for form in self._forms for end in range(1, len(form))}
        self.longest = max(map(len, self._forms), default=0)

    def __bool__(self) -> bool:
        return bool(self.words)

    def find(self, text: str, after: int = 0) -> int | None:
        """Where the first banned word begins that ends behind the first `after` characters."""
        folded, places = _fold(text)
        begins: list[int] = []
        for form in self._forms:
            at = folded.find(form)
            while at >= 0 and places[at + len(form) - 1] < after:
                at = folded.find(form, at + 1)
            if at >= 0:
                begins.append(places[at])
        return min(begins, default=None)

    def undecided(self, text: str) -> int:
        """How many characters at the end of `text` could still become a banned word."""
        folded, places = _fold(text)
        for length in range(min(self.longest - 1, len(folded)), 0, -1):
            if folded[-length:] in self._beginnings:
                return len(text) - places[len(folded) - length]
        return 0


class DeadEndError(Exception):
    """Whatever was tried, a banned word came of it."""


class Detours:
    """Which tokens led to a banned word, by the place in the answer where they stood."""

    def __init__(self) -> None:
        self.avoided = 0
        self._tried: dict[int, set[int]] = {}
        self._tries = 0
        self._settled = 0

    def barred(self, place: int) -> set[int]:
        """Tokens that must not be chosen at this place again."""
        return self._tried.get(place, set())

    def settle(self, count: int) -> None:
        """The first `count` tokens stand for good: there was a way."""
        if count > self._settled:
            self._settled, self._tries = count, 0
            self._tried = {at: ids for at, ids in self._tried.items() if at >= count}

    def turn_back(self, place: int, token_ids: Sequence[int]) -> int:
        """To which place to go back, when the token at `place` led to a banned word.

        Where that token was barred already nothing else could be chosen: then one place further.
        """
        self.avoided += 1
        self._tries += 1
        while token_ids[place] in self.barred(place):
            place -= 1
            if place < self._settled:
                raise DeadEndError
        if self._tries > MOST_TRIES:
            raise DeadEndError
        self._tried = {at: ids for at, ids in self._tried.items() if at <= place}
        self._tried.setdefault(place, set()).add(token_ids[place])
        return place


_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")


def _fold(text: str) -> tuple[str, list[int]]:
    """Text without case, and for each of its characters the place of the one it came from."""
    folded = [character.casefold() for character in text]
    places = [at for at, letters in enumerate(folded) for _ in letters]
    return "".join(folded), places


def spellings(word: str) -> set[str]:
    """Ways to write a word that may be tokens of their own."""
    cases = {word, word.lower(), word.upper(), word.capitalize(), word.title()}
    return cases | {" " + case for case in cases}
