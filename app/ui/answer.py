"""The answer that is being written, from its question until its last word is in the store.

One that is continued stands already: what stands is shown and kept until the pieces, which begin
with it, have come as far.
"""

from dataclasses import dataclass, field
from time import monotonic

from app.chat.conversations import AnswerInProgress
from app.chat.events import Piece
from app.store.records import MessageRecord, PartRecord


@dataclass
class Answer:
    """`message_id` is None until the row is in the store; nothing is asked of a model before."""

    request_id: int
    conversation_id: int | None
    model: str
    status: str = ""
    sent_files: tuple[PartRecord, ...] = ()  # as `sent_text`
    sent_text: str = ""  # goes back to the message field if no token ever comes
    previous_leaf: int | None = None
    previous_memory: int | None = None  # the message where memory began before
    is_first_of_chat: bool = False
    message_id: int | None = None
    user_id: int | None = None  # the question, where it was written with this answer
    is_stopping: bool = False
    prompt_tokens: int = 0
    has_unsaved: bool = False
    stood: MessageRecord | None = None  # the answer that is continued, as it was before
    replays: MessageRecord | None = None  # the answer that is written a second time
    memory_start: int | None = None  # the message where memory began for it
    asked_ids: tuple[int, ...] = ()  # the messages that the model was given
    avoided: int = 0  # banned words that were turned away
    _written: AnswerInProgress = field(default_factory=AnswerInProgress)
    _thought_seconds: float = 0.0
    _thinking_since: float | None = None

    def __post_init__(self) -> None:
        if self.stood is not None:
            parts = self.stood.parts
            self._thought_seconds = sum(float(p.details.get("seconds", 0.0)) for p in parts)

    def add(self, piece: Piece) -> None:
        self.status = ""
        self.avoided = max(self.avoided, piece.avoided)
        if piece.is_thought and self._thinking_since is None:
            self._thinking_since = monotonic()
        elif piece.text and not piece.is_thought:
            self.end()
        self._written.add(piece, thought_seconds=self.thought_seconds)
        self.has_unsaved = not self.is_behind

    def end(self) -> None:
        """The thinking is over, if there was any."""
        self._thought_seconds = self.thought_seconds
        self._thinking_since = None

    @property
    def thought_seconds(self) -> float:
        running = monotonic() - self._thinking_since if self._thinking_since is not None else 0.0
        return self._thought_seconds + running

    @property
    def is_thinking(self) -> bool:
        return self._thinking_since is not None

    @property
    def is_behind(self) -> bool:
        """The pieces have not come as far yet as what stood before."""
        return self.stood is not None and (
            len(self._written.text) < len(_text_of(self.stood, "text"))
            or len(self._written.thought) < len(self._stood_thought)
        )

    @property
    def _stood_thought(self) -> str:
        """A thought that the model gets again; of another model's, only the text is."""
        return _text_of(self.stood, "thought") if self.stood and self._written.thought else ""

    @property
    def is_empty(self) -> bool:
        return not self.text and not self.thought

    @property
    def text(self) -> str:
        if self.stood is not None and self.is_behind:
            return _text_of(self.stood, "text")
        return self._written.text

    @property
    def thought(self) -> str:
        if self.stood is not None and (self.is_behind or not self._written.thought):
            return _text_of(self.stood, "thought")
        return self._written.thought

    @property
    def token_ids(self) -> tuple[int, ...]:
        if self.stood is not None and self.is_behind:
            return self.stood.token_ids
        return tuple(self._written.token_ids)

    @property
    def context_used(self) -> int:
        return self.prompt_tokens + len(self._written.token_ids)

    def parts(self) -> tuple[PartRecord, ...]:
        if self.stood is None:
            return self._written.parts
        if self.is_behind:
            return self.stood.parts
        if not self._written.thought:
            thoughts = tuple(part for part in self.stood.parts if part.kind == "thought")
            return (*thoughts, *self._written.parts)
        return self._written.parts


def _text_of(record: MessageRecord, kind: str) -> str:
    return "".join(part.text for part in record.parts if part.kind == kind)
