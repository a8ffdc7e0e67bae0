"""Pieces of a prompt -> ids that, joined, read like one text encoded at once.

Two kinds of pieces: a template's own words, in which control tokens are meant, and what somebody
wrote, in which they never are. Vocabularies of the SentencePiece kind put a space before whatever
they encode: right at the start of a text, wrong in the middle of one, and taken back here.
"""

from collections.abc import Callable
from itertools import takewhile
from typing import Any, Protocol

NEWLINE = "\n"  # an anchor: no vocabulary joins it with what follows


class Encoder(Protocol):
    """What is needed of the engine's Tokenizer."""

    @property
    def chat_template(self) -> str | None: ...
    @property
    def special_token_ids(self) -> frozenset[int]: ...
    def encode(self, text: str) -> Any: ...
    def encode_plain(self, text: str) -> Any: ...
    def decode(self, ids: Any) -> str: ...
    def update_options(self, **options: Any) -> None: ...
    def apply_chat_template(
        self, messages: str, *, add_generation_prompt: bool = True, **extra: Any
    ) -> str: ...


class Splicer:
    """Give it the pieces in their order; `ids` grows."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._adds_space = encoder.decode(_list(encoder.encode_plain(NEWLINE))[:1]) != NEWLINE
        self._brings_space = False  # the last words ended in a space that the text will bring
        self._follows_text = False
        self._is_begun = False
        self.ids: list[int] = []

    def words(self, piece: str, *, before_text: bool) -> None:
        """The template's own; control tokens in it are control tokens."""
        self._brings_space = self._adds_space and before_text and piece.endswith(" ")
        piece = piece.removesuffix(" ") if self._brings_space else piece
        if not piece:
            return
        encode = self._encoder.encode
        goes_on = self._adds_space and self._follows_text
        self.ids += _continued(encode, piece) if goes_on else _list(encode(piece))
        self._follows_text, self._is_begun = False, True

    def text(self, text: str) -> None:
        """What somebody wrote; decoding the ids that it adds gives it back."""
        plain = self._encoder.encode_plain
        ids = _list(plain(text))
        if self._adds_space and self._is_begun and not self._brings_space:
            bare = _continued(plain, text)
            ids = bare if self._encoder.decode(bare) == text else ids
        self.written(ids)

    def written(self, ids: list[int]) -> None:
        """A text whose ids are known."""
        self.ids += ids
        self._brings_space = False
        self._follows_text = self._is_begun = True


def opening_ids(encoder: Encoder) -> list[int]:
    """What the tokenizer itself puts before a text, where no template does: BOS or nothing."""
    encoder.update_options(add_special_tokens=True)
    try:
        ids = _list(encoder.encode("x"))
    finally:
        encoder.update_options(add_special_tokens=False)
    return list(takewhile(encoder.special_token_ids.__contains__, ids))


def named(encoder: Encoder, ids: list[int]) -> str:
    """The text of ids in which control tokens are written out."""
    encoder.update_options(skip_special_tokens=False)
    try:
        return encoder.decode(ids)
    finally:
        encoder.update_options(skip_special_tokens=True)


def _continued(encode: Callable[[str], Any], text: str) -> list[int]:
    """The ids of a text as they are in the middle of another one."""
    anchor, both = _list(encode(NEWLINE)), _list(encode(NEWLINE + text))
    return both[len(anchor) :] if both[: len(anchor)] == anchor else _list(encode(text))


def _list(ids: Any) -> list[int]:
    return [int(token) for token in ids]
