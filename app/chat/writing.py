"""One answer as it grows: tokens to text, text to pieces, and what is counted on the way.

What could still become a banned word is held back, text and token ids, so that it can be taken
back: nothing that was sent ever is.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.chat.banned import BannedWords
from app.chat.events import Piece
from app.chat.messages import Stats, TokenView
from app.chat.prompt import Prompt
from app.chat.splitter import Span, Splitter
from app.chat.tokens import Places, Seen, perplexity

_TAIL = 200  # characters of what was released that are looked at again, at least
_CONTEXT = 24  # tokens from which the tokenizer's stream finds its way again


@dataclass(frozen=True)
class _Token:
    id: int
    end: int  # characters of the raw text that were certain with it
    seen: Seen | None


class Writing:
    def __init__(
        self,
        request_id: int,
        tokenizer: Any,
        prompt: Prompt,
        *,
        stop_strings: Sequence[str] = (),
        banned: Sequence[str] = (),
        watches: bool = False,
    ) -> None:
        self._request_id = request_id
        self._tokenizer = tokenizer
        self._prompt_stops = prompt.stop_strings
        self._stream = tokenizer.create_stream()
        self._splitter = Splitter(
            stop_strings=(*stop_strings, *prompt.stop_strings),
            starts_in_thought=prompt.starts_in_thought,
        )
        self._places = Places(tokenizer) if watches else None
        self.words = BannedWords(banned)
        self._context = ""  # the end of what was released: a banned word may have begun there
        self._held = ""  # raw text that is not released
        self._released = 0  # characters
        self._tokens: list[_Token] = []
        self._sent = 0  # tokens
        self._first_at = self._last_at = 0.0
        self._written = 0
        self._probabilities: list[float] = []
        self.answer = ""
        self.avoided = 0
        self.has_end_token = False
        self.changed: dict[str, Any] = {}

    @property
    def is_ended(self) -> bool:
        """A stop string was written."""
        return self._splitter.is_stopped

    @property
    def token_ids(self) -> list[int]:
        return [token.id for token in self._tokens]

    @property
    def sent(self) -> int:
        """How many tokens stand for good."""
        return self._sent

    def __len__(self) -> int:
        return len(self._tokens)

    def set_stop_strings(self, stop_strings: Sequence[str]) -> None:
        self._splitter.stop_strings = (*filter(None, stop_strings), *self._prompt_stops)

    def set_banned(self, banned: Sequence[str]) -> None:
        """From here on; what stands, stands."""
        self.words = BannedWords(banned)

    def begin(self, token_ids: Sequence[int]) -> Iterator[Piece]:
        """What of the answer stands already, banned or not."""
        for token in token_ids:
            self._append(token, None)
            yield from self._release(len(self._held))
        yield from self._send()

    def add(self, token: int, seen: Seen | None = None) -> int | None:
        """A new token. A place: a banned word came of the token there, which must be taken back."""
        self._last_at = time.perf_counter()
        self._first_at = self._first_at or self._last_at
        self._written += 1
        self._append(token, seen)
        if not self.words:
            return None
        at = self._clash()
        if at is None:
            return None
        begin = self._released + at
        ends = enumerate(self._tokens[self._sent :], start=self._sent)
        return next(place for place, token in ends if token.end > begin)

    def take_back(self, place: int) -> None:
        """All tokens from this place on."""
        self._written -= len(self._tokens) - place
        del self._tokens[place:]
        end = self._tokens[-1].end if self._tokens else 0
        self._held = self._held[: max(0, end - self._released)]
        self._stream = self._tokenizer.create_stream()
        for token in self._tokens[-_CONTEXT:]:
            self._stream.decode(token.id)

    def pieces(self) -> Iterator[Piece]:
        """What is certain by now: whole tokens only, since a token is taken back as a whole."""
        held = self.words.undecided(self._tail + self._held) if self.words else 0
        certain = self._released + len(self._held) - held
        ends = (token.end for token in self._tokens[self._sent :])
        end = max((end for end in ends if end <= certain), default=self._released)
        yield from self._release(max(0, end - self._released))

    def rest(self) -> Iterator[Piece]:
        """What was held back, and tokens that gave no text."""
        if not self.is_ended:
            broken = self._stream.flush()  # U+FFFD for a character that never became complete
            if self._clash(broken) is None:
                self._held += broken
            yield from self._release(len(self._held))
            yield from self._as_pieces(self._splitter.finish())
        self._released = self._tokens[-1].end if self._tokens else 0
        yield from self._send(is_last=True)

    def stats(self, stats: Stats, started: float) -> Stats:
        writing_s = self._last_at - self._first_at
        return replace(
            stats,
            new_tokens=self._written,
            first_token_s=self._first_at - started if self._first_at else 0.0,
            total_s=time.perf_counter() - started,
            tokens_per_second=(self._written - 1) / writing_s if writing_s > 0 else 0.0,
            options=stats.options | self.changed,
            avoided=self.avoided,
            perplexity=perplexity(self._probabilities),
        )

    @property
    def _tail(self) -> str:
        return self._context[-self.words.longest :]

    def _clash(self, more: str = "") -> int | None:
        """Where a banned word begins that is not all released, from what is held on."""
        tail = self._tail
        at = self.words.find(tail + self._held + more, after=len(tail))
        return None if at is None else at - len(tail)

    def _append(self, token: int, seen: Seen | None) -> None:
        self._held += self._stream.decode(token)
        self._tokens.append(_Token(token, self._released + len(self._held), seen))

    def _release(self, count: int) -> Iterator[Piece]:
        text, self._held = self._held[:count], self._held[count:]
        self._context = (self._context + text)[-max(_TAIL, self.words.longest) :]
        self._released += count
        yield from self._as_pieces(self._splitter.feed(text))

    def _as_pieces(self, spans: list[Span]) -> Iterator[Piece]:
        for span in spans:
            if not span.is_thought:
                self.answer += span.text
            if self._places is not None:
                self._places.show(span)
        for span in spans:
            yield self._piece(span)

    def _send(self, *, is_last: bool = False) -> Iterator[Piece]:
        """Tokens without text go with an empty piece."""
        piece = self._piece(Span(""), is_last=is_last)
        if piece.token_ids or piece.tokens:
            yield piece

    def _piece(self, span: Span, *, is_last: bool = False) -> Piece:
        ready: list[_Token] = []
        while self._sent < len(self._tokens) and self._tokens[self._sent].end <= self._released:
            ready.append(self._tokens[self._sent])
            self._sent += 1
        return Piece(
            self._request_id,
            span.text,
            span.is_thought,
            tuple(token.id for token in ready),
            self._views(ready, is_last=is_last),
            self.avoided,
        )

    def _views(self, ready: list[_Token], *, is_last: bool) -> tuple[TokenView, ...]:
        """Of new tokens; those that stood already were not seen."""
        if self._places is None:
            return ()
        for token in ready:
            self._places.add(token.seen or Seen(token.id))
            if token.seen is not None:
                self._probabilities.append(token.seen.probability)
        views = self._places.views(
            self._splitter.decided, is_thought=self._splitter.is_in_thought, is_last=is_last
        )
        return tuple(view for view in views if view.rank >= 0)
