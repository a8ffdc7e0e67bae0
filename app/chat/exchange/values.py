"""What is exchanged, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.store.records import ConversationRecord, MessageRecord, PartRecord


@dataclass(frozen=True)
class Saved:
    """One chat with all its branches, parents before their children; ids hold within it only.

    `attachments` are files by their sha256: (media type, bytes).
    """

    conversation: ConversationRecord
    messages: tuple[MessageRecord, ...]
    folder: str = ""
    attachments: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)

    def shown(self) -> "Shown":
        """The branch that is shown, as people read it."""
        by_id = {message.id: message for message in self.messages}
        at = by_id.get(self.conversation.leaf_id or -1)
        branch: list[MessageRecord] = []
        while at is not None:
            branch.append(at)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        return Shown(self.conversation, tuple(reversed(branch)))


def gone(thing: str) -> PartRecord:
    """The line that stands where something could not be kept."""
    return PartRecord("text", f"[{'An' if thing[0] in 'aeiou' else 'A'} {thing} stood here.]")


@dataclass(frozen=True)
class Shown:
    conversation: ConversationRecord
    messages: tuple[MessageRecord, ...]


@dataclass(frozen=True)
class Found:
    """A chat in a file, or None where it could not be read; and what of it was left out."""

    chat: Saved | None
    left_out: Mapping[str, int] = field(default_factory=dict)  # {"picture": 2}
    share: float = 1.0  # of the file, with this one


@dataclass(frozen=True)
class Summary:
    """Of an import: ids of the new chats, how many were there already or could not be read."""

    chats: tuple[int, ...] = ()
    known: int = 0
    unreadable: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def words(self) -> str:
        parts = [_count(len(self.chats), "chat") + " imported"]
        if self.known:
            parts.append(f"{self.known} {'was' if self.known == 1 else 'were'} there already")
        if self.unreadable:
            parts.append(f"{self.unreadable} could not be read")
        for name, count in sorted(self.left_out.items()):
            parts.append(f"{_count(count, name)} left out")
        return ", ".join(parts)


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" + ("" if number == 1 else "s")
