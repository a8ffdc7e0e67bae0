"""Is it the same text again, and if not, where does it differ? Pure."""

from app.ui.items import Notice, Way

AROUND = 24  # letters shown of each text
SAME = "The same text"


def verdict(old: str, new: str, *, is_whole: bool = True) -> str:
    """`is_whole` False: the new one was stopped, and may be shorter."""
    place = next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )
    if place == len(old) == len(new):
        return SAME
    if place == len(new) and not is_whole:
        return f"{SAME}, as far as it was written"
    start = max(old.rfind(" ", 0, place), old.rfind("\n", 0, place)) + 1
    word = len(old[:start].split()) + 1
    one, other = (_excerpt(text, start) for text in (old, new))
    return f"It differs from word {word:,} on: {one} before, {other} now"


def _excerpt(text: str, start: int) -> str:
    rest = " ".join(text[start : start + AROUND].split())
    return f"\u201c{rest}\u201d" if rest else "nothing more"


def notice(words: str, *, is_repeatable: bool) -> Notice:
    text = "Written again with the same options and the same seed; it stands beside the old one."
    if not words.startswith(SAME) and not is_repeatable:
        text += " The options changed while the old one was written, or it was continued."
    tone = "info" if words.startswith(SAME) else "warning"
    return Notice(tone, words, text, (Way("Close", "dismiss-notice"),))  # type: ignore[arg-type]
