"""The answer that is being written, from its question until its last word is in the store."""

from dataclasses import dataclass, field
from time import monotonic

from app.chat.conversations import AnswerInProgress
from app.chat.events import Piece
from app.store.records import PartRecord


@dataclass
class Answer:
    """`message_id` is None until the row is in the store; nothing is asked of a model before."""

    request_id: int
    conversation_id: int | None
    model: str
    status: str = ""
    sent_text: str = ""  # goes back to the message field if no token ever comes
    previous_leaf: int | None = None
    is_first_of_chat: bool = False
    message_id: int | None = None
    user_id: int | None = None  # the question, where it was written with this answer
    is_stopping: bool = False
    prompt_tokens: int = 0
    has_unsaved: bool = False
    _written: AnswerInProgress = field(default_factory=AnswerInProgress)
    _thought_seconds: float = 0.0
    _thinking_since: float | None = None

    def add(self, piece: Piece) -> None:
        self.status = ""
        self.has_unsaved = True
        if piece.is_thought and self._thinking_since is None:
            self._thinking_since = monotonic()
        elif piece.text and not piece.is_thought:
            self.end()
        self._written.add(piece, thought_seconds=self.thought_seconds)

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
    def is_empty(self) -> bool:
        return not self.text and not self.thought

    @property
    def text(self) -> str:
        return self._written.text

    @property
    def thought(self) -> str:
        return self._written.thought

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(self._written.token_ids)

    @property
    def context_used(self) -> int:
        return self.prompt_tokens + len(self._written.token_ids)

    def parts(self) -> tuple[PartRecord, ...]:
        return self._written.parts
