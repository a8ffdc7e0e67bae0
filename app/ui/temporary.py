"""Temporary chats: kept in memory alone, gone when they or the app are closed, unless kept."""

from PySide6.QtCore import QObject, Slot

from app.store.records import MessageRecord
from app.store.store import Store, is_temporary
from app.ui.chat_items import options_to_details
from app.ui.chat_screen import ChatScreen
from app.ui.chats import Chats

TITLE = "Temporary chat"


class Temporary(QObject):
    def __init__(self, screen: ChatScreen, chats: Chats) -> None:
        super().__init__(screen)
        self._screen, self._chats = screen, chats

    @Slot()
    def start(self) -> None:
        """A new one; the options of the chat that is shown go along."""
        options = options_to_details(self._screen.options)

        def write(store: Store) -> int:
            return store.create_conversation(TITLE, options, is_temporary=True)

        self._screen.job.run(write, self._chats.open, self._screen.on_change_failed)

    @Slot()
    def close(self) -> None:
        """Gone for good, without asking: that is what it was for."""
        shown = self._screen.shown
        if shown is None or not is_temporary(shown) or self._screen.state.writing == "here":
            return
        self._chats.open(None)
        self._chats.delete_for_good(shown)

    @Slot()
    def keep(self) -> None:
        """From now on it is a chat like the others, on the disk."""
        shown = self._screen.shown
        if shown is None or not is_temporary(shown) or self._screen.state.writing == "here":
            return
        visit = self._screen.visit

        def kept(conversation_id: int) -> None:
            if visit == self._screen.visit:
                self._chats.open(conversation_id)
            self._screen.update_chats(shown, conversation_id)

        self._screen.job.run(
            lambda store: copy_to_disk(store, shown), kept, self._screen.on_change_failed
        )


def copy_to_disk(store: Store, conversation_id: int) -> int:
    """All branches of a chat in memory, as a chat in the file; the one in memory is gone then."""
    chat = store.conversation(conversation_id)
    assert chat is not None
    copy_id = store.create_conversation(chat.title, chat.options, created_at=chat.created_at)
    try:
        numbers: dict[int | None, int | None] = {None: None}
        for record in store.messages(conversation_id):
            numbers[record.id] = _copy(store, record, copy_id, numbers[record.parent_id])
        store.set_leaf(copy_id, numbers.get(chat.leaf_id))
        store.set_memory_start(copy_id, numbers.get(chat.memory_start))
        store.save_draft(copy_id, chat.draft)
    except BaseException:
        store.delete_for_good(copy_id)  # nothing half kept; the one in memory is still there
        raise
    store.delete_for_good(conversation_id)
    return copy_id


def _copy(store: Store, record: MessageRecord, chat_id: int, parent_id: int | None) -> int:
    for part in record.parts:
        digest = part.details.get("attachment")
        if digest and (data := store.attachment(digest)) is not None:
            media_type = str(part.details.get("media_type", ""))
            store.add_attachment(data, media_type, beside=chat_id)
    if record.role == "user":
        made = store.add_user_message(chat_id, parent_id, record.parts)
    else:
        made = store.add_answer(
            chat_id,
            parent_id,
            record.parts,
            model=record.model,
            state=record.state,
            token_ids=record.token_ids,
            details=record.details,
        )
    if record.is_pinned:
        store.pin_message(made, True)
    return made
