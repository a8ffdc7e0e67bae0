"""A question whose answer never had a word goes back to the message field, as if not sent."""

from PySide6.QtCore import QObject, Signal

from app.store.store import Store
from app.ui.answer import Answer
from app.ui.chat_screen import ChatScreen
from app.ui.drafts import Drafts


class TakingBack(QObject):
    chat_taken_back = Signal(int)  # its first question is the draft of the new chat again

    def __init__(self, screen: ChatScreen, drafts: Drafts) -> None:
        super().__init__(screen)
        self._screen, self._drafts = screen, drafts

    def is_possible(self, answer: Answer) -> bool:
        """Not an edited question, not over a text that stands in the field by now, and not in a
        chat that was deleted meanwhile: there the empty answer stays, and can be written again."""
        if answer.conversation_id in self._screen.deleted:
            return False
        if not answer.sent_text:
            return answer.user_id is None
        is_shown = answer.conversation_id == self._screen.shown
        if answer.sent_files and not is_shown:
            return False  # a draft keeps words only
        return not (
            self._drafts.text if is_shown else self._screen.store.draft(answer.conversation_id)
        )

    def take_back(self, answer: Answer) -> None:
        """No token ever came: the chat is as before, a sent message is in the field again."""
        conversation_id, text = answer.conversation_id, answer.sent_text
        self._screen.files_returned.emit(answer.sent_files)
        assert conversation_id is not None
        assert answer.message_id is not None
        if text and answer.is_first_of_chat:
            self._take_back_chat(conversation_id, text)
            return
        gone = answer.message_id if answer.user_id is None else answer.user_id

        def write(store: Store) -> None:
            store.delete_message(gone)
            store.set_leaf(conversation_id, answer.previous_leaf)
            store.set_memory_start(conversation_id, answer.previous_memory)
            if text:
                store.save_draft(conversation_id, text)

        visit = self._screen.visit
        self._screen.job.run(
            write,
            lambda _: self._after_taking_back(visit, conversation_id, text),
            self._screen.on_change_failed,
        )

    def _take_back_chat(self, conversation_id: int, text: str) -> None:
        def write(store: Store) -> None:
            store.save_draft(None, text)
            store.delete(conversation_id)

        self._screen.job.run(
            write,
            lambda _: self.chat_taken_back.emit(conversation_id),
            self._screen.on_change_failed,
        )

    def _after_taking_back(self, visit: int, conversation_id: int, text: str) -> None:
        if visit == self._screen.visit:
            self._screen.reload()
            self._drafts.give_back(text)
        self._screen.update_state()
        self._screen.update_chats(conversation_id)
