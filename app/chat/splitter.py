"""Streamed text -> thought and answer, and the end at a stop string. Knows text only.

However the text is cut into pieces, the joined result is the same: what could still become a tag or
a stop string is held back until it is decided.

A thought is what stands between the tags at the start of the answer; a tag further on, in a
sentence about tags, is ordinary text. The first closing tag ends the thought. White space around a
thought is dropped. Stop strings count in the answer, not in the thought; the match that is complete
first wins, and it is not part of the answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

OPEN, CLOSE = "<think>", "</think>"


@dataclass(frozen=True)
class Span:
    text: str
    is_thought: bool = False
    at: int = field(default=0, compare=False)  # characters fed before it


class Splitter:
    """Feed it pieces; each call returns what is decided by now."""

    def __init__(
        self, *, stop_strings: Sequence[str] = (), starts_in_thought: bool = False
    ) -> None:
        self.stop_strings = tuple(stop for stop in stop_strings if stop)
        self.is_stopped = False
        self.is_in_thought = starts_in_thought
        self.decided = 0  # characters fed of which it is known what they are
        self._pending = ""
        self._had_thought = False
        self._is_blank = True  # nothing of the current thought or answer came out yet
        self._step: Callable[[bool], Span | None] = (
            self._in_thought if starts_in_thought else self._at_start
        )

    def feed(self, text: str) -> list[Span]:
        self._pending += text
        return self._decide(is_last=False)

    def finish(self) -> list[Span]:
        """Nothing more will come: what was held back is text after all."""
        return self._decide(is_last=True)

    def _decide(self, *, is_last: bool) -> list[Span]:
        spans: list[Span] = []
        before = None
        while not self.is_stopped and before != (self._step, self._pending):
            before = (self._step, self._pending)
            span = self._step(is_last)
            if span is not None and span.text:
                spans.append(span)
        return spans

    # Each step takes what it can from the pending text and says which step comes next.

    def _at_start(self, is_last: bool) -> Span | None:
        text = self._pending.lstrip()
        blank = len(self._pending) - len(text)
        if text.startswith(OPEN):
            self._take(blank + len(OPEN))
            self._step, self.is_in_thought, self._is_blank = self._in_thought, True, True
        elif is_last or not OPEN.startswith(text):
            if self._had_thought:
                self._take(blank)
            self._step = self._in_answer
        return None

    def _in_thought(self, is_last: bool) -> Span | None:
        if self._is_blank:
            self._take(len(self._pending) - len(self._pending.lstrip()))
        start = self.decided
        body, found, _ = self._pending.partition(CLOSE)
        if found:
            self._take(len(body) + len(CLOSE))
            self._step, self.is_in_thought, self._had_thought = self._at_start, False, True
            return Span(body.rstrip(), is_thought=True, at=start)
        held = 0 if is_last else _held_back(body, (CLOSE,))
        body = body[: len(body) - held].rstrip()
        self._take(len(self._pending) if is_last else len(body))
        self._is_blank = self._is_blank and not body
        return Span(body, is_thought=True, at=start)

    def _in_answer(self, is_last: bool) -> Span | None:
        text, start = self._pending, self.decided
        ends = [(at + len(stop), at) for stop in self.stop_strings if (at := text.find(stop)) >= 0]
        if ends:
            self.is_stopped = True
            self._take(len(text))
            return Span(text[: min(ends)[1]], at=start)
        held = 0 if is_last else _held_back(text, self.stop_strings)
        return Span(self._take(len(text) - held), at=start)

    def _take(self, count: int) -> str:
        """The next characters, which are decided now."""
        taken, self._pending = self._pending[:count], self._pending[count:]
        self.decided += count
        return taken


def _held_back(text: str, markers: Sequence[str]) -> int:
    """Length of the longest end of the text that is the beginning of a marker."""
    longest = max((len(marker) for marker in markers), default=1) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(marker.startswith(text[-length:]) for marker in markers):
            return length
    return 0
