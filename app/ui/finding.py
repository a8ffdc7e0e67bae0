"""Where a text stands in a chat: in what is stored, so that messages that are not alive count too.

Knows no Qt.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.ui.items import Item

MOST = 10_000  # matches that are counted


@dataclass(frozen=True)
class Match:
    key: int  # of the message
    is_thought: bool
    number: int  # the how many'th in its text, from 0


def _count(text: str, wanted: str) -> int:
    return text.casefold().count(wanted)


def find_all(items: Iterable[Item], words: str) -> list[Match]:
    """All places from top to bottom, whatever the case of the letters."""
    wanted, found = words.casefold(), []
    if not wanted:
        return []
    for item in items:
        for text, is_thought in ((item.thought, True), (item.text, False)):
            found += [Match(item.key, is_thought, n) for n in range(_count(text, wanted))]
        if len(found) >= MOST:
            return found[:MOST]
    return found
