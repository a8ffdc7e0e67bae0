"""The chat that is shown, as the store gave it: all branches, and the end of the one that shows.

Holds values and answers questions about them; nothing here writes or draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.chat.conversations import branch, newest_leaf
from app.store.records import MessageRecord
from app.ui.answer import Answer
from app.ui.chat_items import families, item_of, items_of, text_of
from app.ui.items import Item


@dataclass
class ShownChat:
    records: Sequence[MessageRecord] = ()
    leaf_id: int | None = None
    memory_start: int | None = None  # the message where the model's memory begins

    def __post_init__(self) -> None:
        """A leaf that is gone, or none, means the branch that was written last."""
        shown = branch(self.records, self.leaf_id)
        self.leaf_id = shown[-1].id if shown else None

    def branch(self) -> list[MessageRecord]:
        return branch(self.records, self.leaf_id)

    def record(self, key: int) -> MessageRecord | None:
        return next((record for record in self.records if record.id == key), None)

    def put(self, record: MessageRecord) -> None:
        """In the place of the one with the same number."""
        self.records = [record if old.id == record.id else old for old in self.records]

    def items(self, answer: Answer | None) -> list[Item]:
        return items_of(self.records, self.leaf_id, answer, self.memory_start)

    def item(self, record: MessageRecord) -> Item:
        family = families(self.records)[record.parent_id]
        item = item_of(record, family, is_last=record.id == self.leaf_id)
        return replace(item, begins_memory=record.id == self.memory_start)

    def versions(self, key: int) -> list[int]:
        """Itself and those beside it, oldest first."""
        record = self.record(key)
        return list(families(self.records)[record.parent_id]) if record else []

    def version(self, key: int, step: int) -> int | None:
        """The version before (-1) or after (+1) a message, if there is one."""
        versions = self.versions(key)
        if not versions:
            return None
        place = versions.index(key) + step
        return versions[place] if 0 <= place < len(versions) else None

    def show_version(self, key: int) -> None:
        """The branch through it, with what followed it."""
        self.leaf_id = newest_leaf(self.records, key)

    def last_with_versions(self) -> int | None:
        versions = families(self.records)
        keys = (r.id for r in reversed(self.branch()) if len(versions[r.parent_id]) > 1)
        return next(keys, None)

    def last_question(self) -> int | None:
        return next((r.id for r in reversed(self.branch()) if r.role == "user"), None)

    def last_answer_text(self) -> str:
        texts = (text_of(r.parts) for r in reversed(self.branch()) if r.role == "assistant")
        return next((text for text in texts if text), "")
