"""Chats as a whole: opening, starting, renaming, deleting, bringing back."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Slot

from app.chat.conversations import branch
from app.chat.messages import Options
from app.store.records import ConversationRecord, State
from app.store.store import Store, is_temporary
from app.ui.answer_writer import AnswerWriter
from app.ui.chat_items import options_from_details, options_to_details
from app.ui.chat_screen import ChatScreen
from app.ui.drafts import Drafts
from app.ui.undo import Deed

DELETED = "Chat deleted"


class Chats(QObject):
    def __init__(self, screen: ChatScreen, drafts: Drafts, writer: AnswerWriter) -> None:
        super().__init__(screen)
        self._screen, self._drafts, self._writer = screen, drafts, writer
        writer.chat_taken_back.connect(self._on_taken_back)

    @Slot()
    def start(self) -> None:
        """Shows what was cut off by a crash, else the new chat with its draft."""
        newest = self._screen.store.newest_conversation()
        was_cut = (
            newest is not None and not self._screen.store.draft(None) and self._was_cut(newest)
        )
        self._screen.update_chats()
        self.open(newest.id if newest is not None and was_cut else None)

    def _was_cut(self, chat: ConversationRecord) -> bool:
        shown = branch(self._screen.store.messages(chat.id), chat.leaf_id)
        return bool(chat.draft) or (bool(shown) and shown[-1].state is State.INTERRUPTED)

    @Slot(object)
    def open(self, conversation_id: int | None) -> None:
        self._drafts.save()
        self._drafts.save_options()
        self._screen.visit += 1
        record = self._screen.store.conversation(conversation_id) if conversation_id else None
        self._screen.shown = record.id if record else None
        self._screen.title = record.title if record else ""
        self._screen.options = options_from_details(record.options) if record else Options()
        self._screen.show_notice(None)
        self._screen.reload()
        self._drafts.show(self._screen.store.draft(self._screen.shown))
        self._screen.options_changed.emit(self._screen.options)
        self._screen.update_state()
        self._screen.shelf.follow()

    @Slot()
    def open_at(self, conversation_id: int, message_id: int) -> None:
        """With the branch that this message is in, scrolled to it."""
        if conversation_id != self._screen.shown:
            self.open(conversation_id)
        here = self._screen.here
        if here.record(message_id) is None or self._screen.shown != conversation_id:
            return  # deleted since it was found
        if all(record.id != message_id for record in here.branch()):
            if self._screen.state.writing == "here":
                return
            here.show_version(message_id)
            self._screen.show_items()
            self._screen.update_state()
            self._screen.change(
                partial(Store.set_leaf, conversation_id=conversation_id, message_id=here.leaf_id)
            )
        self._screen.scrolled_to.emit(message_id)

    @Slot()
    def new(self) -> None:
        self.open(None)

    @Slot()
    def continue_in_new_chat(self) -> None:
        """The new chat takes along what stands in the message field."""
        text, options = self._drafts.text, self._screen.options
        title = self._screen.title
        self._drafts.change("")
        if is_temporary(self._screen.shown):  # what was meant for no disk stays off it
            self._screen.job.run(
                lambda store: store.create_conversation(
                    title, options_to_details(options), is_temporary=True
                ),
                lambda number: self._go_on_in(number, text),
                self._screen.on_change_failed,
            )
            return
        self._screen.keeps_files = True
        self.open(None)
        self._drafts.change("\n\n".join(part for part in (self._drafts.text, text) if part))
        self._screen.composer_filled.emit(self._drafts.text)
        self._drafts.change_options(options)
        self._screen.options_changed.emit(options)

    def _go_on_in(self, conversation_id: int, text: str) -> None:
        self._screen.keeps_files = True
        self.open(conversation_id)
        self._drafts.change(text)
        self._screen.composer_filled.emit(text)

    @Slot(int, str)
    def rename(self, conversation_id: int, title: str) -> None:
        if conversation_id == self._screen.shown:
            self._screen.title = title
            self._screen.update_state()
        self._screen.change(
            partial(Store.rename, conversation_id=conversation_id, title=title), conversation_id
        )

    @Slot(int)
    def delete(self, conversation_id: int) -> None:
        self.delete_several([conversation_id])

    @Slot(list)
    def delete_several(self, conversation_ids: Sequence[int]) -> None:
        """At once, and undone at once."""
        screen = self._screen
        gone = [each for each in conversation_ids if screen.store.conversation(each) is not None]
        if not gone:
            return
        answer = screen.answer
        if answer is not None and answer.conversation_id in gone:
            self._writer.stop()
        was_shown = screen.shown in gone
        shown = screen.shown
        if was_shown:
            self.open(None)
        screen.deleted.update(gone)
        screen.change(partial(_each, Store.delete, gone), *gone)
        is_one = len(gone) == 1
        back_to = gone[0] if is_one else shown if was_shown else None
        screen.add_deed(
            Deed(
                DELETED if is_one else f"{len(gone)} chats deleted",
                partial(_each, Store.restore, gone),
                partial(self._on_restored, gone, back_to),
                gone[0] if is_one else None,
                is_of_bin=True,
            )
        )

    def restore(self, conversation_id: int) -> None:
        """Out of the bin; then there is nothing to undo about it."""
        self._screen.deeds = [
            deed
            for deed in self._screen.deeds
            if (deed.words, deed.conversation_id) != (DELETED, conversation_id)
        ]
        self._screen.job.run(
            partial(Store.restore, conversation_id=conversation_id),
            lambda _: self._on_restored([conversation_id], conversation_id),
            self._screen.on_change_failed,
        )

    @Slot()
    def empty_bin(self) -> None:
        """All that is in it, for good; what undo could bring back of it is gone as well."""
        screen = self._screen
        gone = {record.id for record in screen.store.deleted_conversations()}
        screen.deleted -= gone
        screen.deeds = [deed for deed in screen.deeds if not deed.is_of_bin]
        screen.update_state()
        screen.change(Store.empty_bin)

    @Slot(int)
    def delete_for_good(self, conversation_id: int) -> None:
        """Out of the bin, and out of what undo brings back."""
        self._screen.deleted.discard(conversation_id)
        self._screen.deeds = [
            deed for deed in self._screen.deeds if deed.conversation_id != conversation_id
        ]
        self._screen.update_state()
        self._screen.change(
            partial(Store.delete_for_good, conversation_id=conversation_id), conversation_id
        )

    def _on_restored(self, conversation_ids: Sequence[int], to_open: int | None) -> None:
        self._screen.deleted.difference_update(conversation_ids)
        self._screen.update_chats(*conversation_ids)
        if to_open is not None:
            self.open(to_open)

    @Slot(int)
    def show_again(self, conversation_id: int) -> None:
        """Something in it changed: the draft that stands in the field is left alone."""
        if conversation_id != self._screen.shown:
            self.open(conversation_id)
            return
        self._screen.reload()
        self._screen.update_state()
        self._screen.update_chats(conversation_id)

    @Slot(int)
    def _on_taken_back(self, conversation_id: int) -> None:
        """A chat whose first question came back: that stands in the new chat's field again."""
        screen = self._screen
        if screen.shown != conversation_id:
            screen.update_chats(conversation_id)
            return
        notice, options = screen.notice, screen.options
        self._drafts.discard()
        screen.keeps_files = True
        self.open(None)
        self._drafts.change_options(options)
        screen.options_changed.emit(options)
        screen.show_notice(notice)


def _each(write: Callable[[Store, int], None], numbers: Sequence[int], store: Store) -> None:
    for number in numbers:
        write(store, number)
