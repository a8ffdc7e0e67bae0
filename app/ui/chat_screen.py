"""What the window is told about chats: the signals, and the values that they are made from.

Holds which chat is shown and which answer is being written, and reads the store. What a person
does with them is in the files beside it: chats.py, drafts.py, answer_writer.py, chat_controller.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.messages import Options
from app.store.store import Store, is_temporary
from app.ui import notices
from app.ui.answer import Answer
from app.ui.chat_items import can_continue, context_used, written_over
from app.ui.chat_state import ChatState
from app.ui.items import Notice
from app.ui.job import StoreJob
from app.ui.shelf import Shelf
from app.ui.shown_chat import ShownChat
from app.ui.undo import Deed


class ChatScreen(QObject):
    items_reset = Signal(list)  # the branch of the chat that is shown, root first
    item_appended = Signal(object)
    item_replaced = Signal(object)
    item_streamed = Signal(int, str, str)  # key, whole text, whole thought
    scrolled_to = Signal(int)
    state_changed = Signal(object)  # ChatState
    options_changed = Signal(object)  # Options of the chat that is shown
    composer_filled = Signal(str)
    files_returned = Signal(object)  # PartRecords of a message that came back
    notice_changed = Signal(object)  # Notice or None
    undoable_done = Signal(str)  # what was done, in words; undo takes it back
    announced = Signal(str)  # for screen readers

    def __init__(self, store: Store, job: StoreJob, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store, self.job = store, job
        self.shown: int | None = None  # None: the new chat that has no conversation yet
        self.keeps_files = False  # the next chat that is opened takes the attached files along
        self.visit = 0  # counts chats that were opened: tells a late result that it is too late
        self.here = ShownChat()  # the chat that is shown
        self.title = ""
        self.options = Options()
        self.answer: Answer | None = None  # the one that is being written, here or elsewhere
        self.watches_tokens = False  # new answers come with what is known of their tokens
        self.deleted: set[int] = set()  # chats that undo brings back
        self.deeds: list[Deed] = []  # what undo takes back, the newest last
        self.notice: Notice | None = None
        self.state = ChatState()
        self._last_look = ("", False, 0)
        self.shelf = Shelf(self)  # what the sidebar lists

    def takes_files_along(self) -> bool:
        """Whether the chat that was opened last goes on with the message of the one before; asked
        once."""
        takes, self.keeps_files = self.keeps_files, False
        return takes

    @Slot(object)
    def show_notice(self, notice: Notice | None) -> None:
        if notice != self.notice:
            self.notice = notice
            self.notice_changed.emit(notice)
            if notice is not None:
                self.announced.emit(f"{notice.title}. {notice.text}")

    def add_deed(self, deed: Deed) -> None:
        """Call it when the deed is on its way: undo takes back the newest first."""
        self.deeds.append(deed)
        self.update_state()
        self.undoable_done.emit(deed.words)

    @Slot()
    def undo(self) -> None:
        if not self.deeds:
            return
        deed = self.deeds.pop()
        self.update_state()
        self.job.run(deed.take_back, lambda _: deed.after(), self.on_change_failed)

    def change(self, write: Callable[[Store], object], *conversation_ids: int) -> None:
        """Written, then the list shows it; `conversation_ids` are the chats that it changes."""
        self.job.run(write, lambda _: self.shelf.follow(conversation_ids), self.on_change_failed)

    def on_change_failed(self, message: str) -> None:
        self.show_notice(notices.change_not_saved(message))
        self.update_chats()

    def reload(self) -> None:
        record = self.store.conversation(self.shown) if self.shown is not None else None
        self.here = ShownChat(
            self.store.messages(record.id) if record else [],
            record.leaf_id if record else None,
            record.memory_start if record else None,
        )
        self.show_items()

    def show_items(self) -> None:
        self._last_look = ("", False, 0)
        self.items_reset.emit(self.here.items(self.answer))

    def show_progress(self) -> None:
        answer = self.answer
        if answer is None or answer.conversation_id != self.shown or answer.message_id is None:
            return
        look = (answer.status, answer.is_thinking, answer.avoided)
        if look == self._last_look:
            self.item_streamed.emit(answer.message_id, answer.text, answer.thought)
            return
        record = self.here.record(answer.message_id)
        if record is not None:
            self._last_look = look
            self.item_replaced.emit(written_over(self.here.item(record), answer))

    def update_state(self, **changes: Any) -> None:
        answer = self.answer
        writing: Literal["no", "here", "elsewhere"]
        if answer is None:
            writing = "no"
        else:
            writing = "here" if answer.conversation_id == self.shown else "elsewhere"
        shown = self.here.branch()
        used = context_used(shown)
        if answer is not None and writing == "here" and answer.prompt_tokens:
            used = answer.context_used
        self.set_state(
            replace(
                self.state,
                title=self.title,
                conversation_id=self.shown,
                has_messages=bool(shown),
                is_temporary=is_temporary(self.shown),
                last_role=shown[-1].role if shown else "",
                can_continue=bool(shown) and can_continue(shown[-1]),
                forgets=self.here.memory_start is not None,
                has_answer=any(r.role == "assistant" for r in shown),
                writing=writing,
                is_stopping=answer is not None and answer.is_stopping,
                context_used=used,
                can_undo=bool(self.deeds),
                **changes,
            )
        )

    def set_comparing(self, *, is_comparing: bool) -> None:
        self.update_state(is_comparing=is_comparing)

    def set_state(self, state: ChatState) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)

    def update_chats(self, *conversation_ids: int) -> None:
        """The sidebar lists these as they are now; without numbers, all chats anew."""
        if conversation_ids:
            self.shelf.follow(conversation_ids)
        else:
            self.shelf.list_all()
