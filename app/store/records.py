"""Rows of the store as values. Nothing here touches the database.

`parent_id` makes a conversation a tree: an edit or a second answer is a sibling, nothing is
overwritten. The store knows nothing of tokens' meaning; ids are kept as they were generated.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Where a message stands. A row found WRITING when the store opens becomes INTERRUPTED."""

    WRITING = "writing"
    DONE = "done"
    STOPPED = "stopped"  # by the person
    LENGTH = "length"  # longest answer or the context was reached
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # the process ended while it was written


@dataclass(frozen=True)
class PartRecord:
    """kind is "text", "thought", "file" or "image"; `details` holds what else the kind needs."""

    kind: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MessageRecord:
    id: int
    conversation_id: int
    parent_id: int | None
    role: str  # "user" or "assistant"
    parts: tuple[PartRecord, ...]
    state: State
    created_at: float  # seconds since the epoch
    model: str = ""
    token_ids: tuple[int, ...] = ()  # as generated, assistant messages only
    details: dict[str, Any] = field(default_factory=dict)  # options, stats, error text
    is_pinned: bool = False  # stays in the model's memory when older turns are forgotten


@dataclass(frozen=True)
class FolderRecord:
    id: int
    name: str
    position: int
    is_open: bool = True  # its chats are shown
    deleted_at: float | None = None


@dataclass(frozen=True)
class ListedChat:
    """What a list shows of a conversation."""

    id: int
    title: str
    updated_at: float
    has_draft: bool = False
    folder_id: int | None = None  # the folder may be deleted
    is_pinned: bool = False
    is_unread: bool = False


@dataclass(frozen=True)
class SearchHit:
    """`message_id` None: the title has it. `highlights` are (start, length) in the excerpt."""

    conversation_id: int
    message_id: int | None
    excerpt: str
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ConversationRecord:
    id: int
    title: str
    created_at: float
    updated_at: float
    draft: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    leaf_id: int | None = None  # the branch that is shown
    deleted_at: float | None = None
    folder_id: int | None = None
    is_pinned: bool = False
    memory_start: int | None = None  # the message where the model's memory begins
    view: dict[str, Any] = field(default_factory=dict)  # which tab, where it was scrolled to
