"""Rows of the store <-> messages of the chat, and the tree of branches. Pure functions and values.

A conversation is a tree by `parent_id`; a branch is one way from its root to a leaf.
"""

from collections.abc import Sequence

from app.chat.attachments import to_prompt_text
from app.chat.events import Piece
from app.chat.messages import FinishReason, Message, Part, TextPart, ThoughtPart
from app.store.records import MessageRecord, PartRecord, State

LONGEST_TITLE = 60

STATES: dict[FinishReason, State] = {
    "end": State.DONE,
    "length": State.LENGTH,
    "context": State.LENGTH,
    "stopped": State.STOPPED,
}


def to_message(record: MessageRecord) -> Message:
    role = "assistant" if record.role == "assistant" else "user"
    parts = tuple(_to_part(part) for part in record.parts)
    return Message(role, parts, is_pinned=record.is_pinned)  # type: ignore[arg-type]


def to_parts(message: Message) -> tuple[PartRecord, ...]:
    return tuple(_to_record(part) for part in message.parts)


def _to_part(record: PartRecord) -> Part:
    if record.kind == "thought":
        return ThoughtPart(record.text, float(record.details.get("seconds", 0.0)))
    if record.kind == "file":
        name = str(record.details.get("name", "file"))
        return TextPart(to_prompt_text(name, record.text) + "\n\n")
    return TextPart(record.text)


def _to_record(part: Part) -> PartRecord:
    if isinstance(part, ThoughtPart):
        return PartRecord("thought", part.text, {"seconds": part.seconds})
    return PartRecord("text", part.text)


def branch(records: Sequence[MessageRecord], leaf_id: int | None) -> list[MessageRecord]:
    """From the root to the leaf. Without a leaf that exists: the branch that was written last."""
    by_id = {record.id: record for record in records}
    at = by_id.get(leaf_id) if leaf_id is not None else None
    if at is None:
        at = max(records, key=lambda record: record.id, default=None)
    found: list[MessageRecord] = []
    while at is not None:
        found.append(at)
        at = by_id.get(at.parent_id) if at.parent_id is not None else None
    return found[::-1]


def siblings(records: Sequence[MessageRecord], message_id: int) -> list[int]:
    """The versions of a message, itself among them, oldest first."""
    parents = {record.id: record.parent_id for record in records}
    if message_id not in parents:
        return []
    return sorted(id for id, parent in parents.items() if parent == parents[message_id])


def newest_leaf(records: Sequence[MessageRecord], message_id: int) -> int:
    """Where the branch through a message goes on, by its newest answers: for switching versions."""
    newest: dict[int | None, int] = {}
    for record in records:
        newest[record.parent_id] = max(record.id, newest.get(record.parent_id, 0))
    while message_id in newest:
        message_id = newest[message_id]
    return message_id


def memory_place(shown: Sequence[MessageRecord], memory_start: int | None) -> int:
    """The first message in memory; of another branch than the one shown, it is the first at all."""
    ids = [record.id for record in shown]
    return ids.index(memory_start) if memory_start in ids else 0


def title_of(text: str) -> str:
    """A chat's name: the first line of its first message, cut between words."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    title = " ".join(line.split()).lstrip("#>*- ") or " ".join(line.split())
    if len(title) <= LONGEST_TITLE:
        return title
    head = title[:LONGEST_TITLE]
    cut = head.rsplit(" ", 1)[0] if " " in head[LONGEST_TITLE // 2 :] else head
    return cut.rstrip(" ,;:.") + "…"


class AnswerInProgress:
    """Pieces so far, as the parts and token ids that the store takes."""

    def __init__(self) -> None:
        self._thought: list[str] = []
        self._text: list[str] = []
        self.token_ids: list[int] = []
        self.thought_seconds = 0.0

    def add(self, piece: Piece, *, thought_seconds: float = 0.0) -> None:
        """`thought_seconds` is how long the thinking took up to now; only thoughts use it."""
        if piece.is_thought:
            self.thought_seconds = thought_seconds or self.thought_seconds
        (self._thought if piece.is_thought else self._text).append(piece.text)
        self.token_ids.extend(piece.token_ids)

    @property
    def text(self) -> str:
        self._text = ["".join(self._text)]
        return self._text[0]

    @property
    def thought(self) -> str:
        self._thought = ["".join(self._thought)]
        return self._thought[0]

    @property
    def message(self) -> Message:
        thought = (ThoughtPart(self.thought, self.thought_seconds),) if self.thought else ()
        return Message("assistant", (*thought, TextPart(self.text)))

    @property
    def parts(self) -> tuple[PartRecord, ...]:
        return to_parts(self.message)
