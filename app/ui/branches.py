"""Versions of messages and what the model remembers of them: change, delete, pin, copy.

Each action writes to the store, and shows the chat anew when that is done.
"""

from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.conversations import newest_leaf
from app.store.records import MessageRecord, PartRecord, State
from app.store.store import Store
from app.ui.chat_screen import ChatScreen
from app.ui.undo import Deed


class Branches(QObject):
    chat_copied = Signal(int)  # the new chat
    chat_restored = Signal(int)  # something in it is back

    def __init__(self, screen: ChatScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    def edit_answer(self, record: MessageRecord, text: str) -> None:
        """The changed text is a version beside the old one; the model takes it for its own."""
        parts = tuple(part for part in record.parts if part.kind == "thought")

        def write(store: Store) -> int:
            return store.add_answer(
                record.conversation_id,
                record.parent_id,
                (*parts, PartRecord("text", text)),
                model=record.model,
                state=State.DONE,
                details={"edited": True},
            )

        self._do(write)

    def end_answer(
        self, record: MessageRecord, parts: tuple[PartRecord, ...], token_ids: tuple[int, ...]
    ) -> None:
        """A version that ends earlier, beside the one that stands."""
        known = ("device", "model_path", "memory_start")
        details = {name: record.details[name] for name in known if name in record.details}

        def write(store: Store) -> int:
            return store.add_answer(
                record.conversation_id,
                record.parent_id,
                parts,
                model=record.model,
                state=State.DONE,
                token_ids=token_ids,
                details=details,
            )

        self._do(write)

    @Slot(int)
    def delete(self, key: int) -> None:
        """This version and what follows it; its other versions stay."""
        record = self._screen.here.record(key)
        shown = self._screen.shown
        if record is None or shown is None or self._screen.state.writing == "here":
            return
        leaf = self._screen.here.leaf_id
        versions = self._screen.here.versions(key)
        place = versions.index(key)
        beside = versions[place - 1] if place else versions[-1]
        beside_leaf = newest_leaf(self._screen.here.records, beside)

        def write(store: Store) -> None:
            store.delete_message(key)
            if len(versions) > 1:  # another version is shown in its place
                store.set_leaf(shown, beside_leaf)

        def take_back(store: Store) -> None:
            store.restore_message(key)
            store.set_leaf(shown, leaf)

        what = "Version" if len(versions) > 1 else "Message"
        self._do(write)
        after = partial(self.chat_restored.emit, shown)
        self._screen.add_deed(Deed(f"{what} deleted", take_back, after, shown))

    @Slot(int)
    def pin(self, key: int) -> None:
        """Pinned or not: a pinned turn is never forgotten."""
        record = self._screen.here.record(key)
        if record is not None:
            self._do(partial(Store.pin_message, message_id=key, is_pinned=not record.is_pinned))

    def pin_turn(self, keys: list[int], *, is_pinned: bool) -> None:
        """One message is enough to keep a turn; none of them may be pinned to let it go."""

        def write(store: Store) -> None:
            for key in keys[:1] if is_pinned else keys:
                store.pin_message(key, is_pinned)

        self._do(write)

    @Slot(int)
    def begin_memory(self, key: int) -> None:
        """The model reads from this turn on: an answer is read with its question."""
        record = self._screen.here.record(key)
        if record is not None and record.role != "user" and record.parent_id is not None:
            key = record.parent_id
        self._set_memory(key)

    @Slot()
    def remember_all(self) -> None:
        self._set_memory(None)

    def _set_memory(self, key: int | None) -> None:
        if (shown := self._screen.shown) is not None:
            self._do(partial(Store.set_memory_start, conversation_id=shown, message_id=key))

    @Slot(int)
    def copy(self, key: int) -> None:
        """A chat of its own from the branch up to this message."""
        shown = self._screen.shown
        record = self._screen.here.record(key)
        if shown is None or record is None:
            return
        title = self._screen.title
        self._screen.job.run(
            partial(Store.copy_branch, conversation_id=shown, leaf_id=key, title=title),
            self.chat_copied.emit,
            self._screen.on_change_failed,
        )

    def _do(self, write: object) -> None:
        visit, shown = self._screen.visit, self._screen.shown

        def done(_: object) -> None:
            if visit == self._screen.visit:
                self._screen.reload()
                self._screen.update_state()
            self._screen.shelf.follow([shown])

        self._screen.job.run(write, done, self._screen.on_change_failed)  # type: ignore[arg-type]
