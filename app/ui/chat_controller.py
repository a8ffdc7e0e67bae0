"""What a person does with chats, each as one method: write to the store, then show.

Joins the store's job, the engine and the window; knows no widget. Everything it says to the
window is a signal with values. Invariants: an answer is asked of the model only after the
question is committed; one answer is written at a time; text that was shown is never lost.
"""

import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.conversations import STATES, branch, title_of, to_message
from app.chat.events import Failed, Finished, Piece, Prefill, Reply, Request
from app.chat.messages import Options
from app.store.records import ConversationRecord, PartRecord, State
from app.store.store import Store
from app.ui import notices
from app.ui.answer import Answer
from app.ui.chat_items import (
    context_used,
    options_from_details,
    options_to_details,
    stats_to_details,
    text_of,
    written_over,
)
from app.ui.chat_list import ChatRow
from app.ui.chat_state import ChatState, ModelState
from app.ui.items import Item, Notice
from app.ui.job import StoreJob
from app.ui.shown_chat import ShownChat

log = logging.getLogger(__name__)

SAVE_ANSWER_MS = 250
SAVE_DRAFT_MS = 1000
SAVE_OPTIONS_MS = 300
PENDING = -1  # key of a message that is on its way to the store


class Engine(Protocol):
    def submit(self, request: Request) -> None: ...
    def stop(self) -> None: ...
    def set_options(self, options: Options) -> None: ...


@dataclass(frozen=True)
class _Rows:
    """What a question left in the store."""

    conversation_id: int
    answer_id: int
    user_id: int | None = None


class ChatController(QObject):
    items_reset = Signal(list)  # the branch of the chat that is shown, root first
    item_appended = Signal(object)
    item_replaced = Signal(object)
    item_streamed = Signal(int, str, str)  # key, whole text, whole thought
    scrolled_to = Signal(int)
    state_changed = Signal(object)  # ChatState
    chats_changed = Signal(list, object)  # ChatRows that match the search; id of the one shown
    options_changed = Signal(object)  # Options of the chat that is shown
    composer_filled = Signal(str)
    notice_changed = Signal(object)  # Notice or None
    chat_deleted = Signal(str)  # its title
    announced = Signal(str)  # for screen readers

    def __init__(
        self,
        store: Store,
        job: StoreJob,
        engine: Engine,
        request_ids: "itertools.count[int]",
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._job, self._engine = store, job, engine
        self._request_ids = request_ids
        self._shown: int | None = None  # None: the new chat that has no conversation yet
        self._visit = 0  # counts chats that were opened: tells a late result that it is too late
        self._here = ShownChat()
        self._title = ""
        self._options = Options()
        self._are_options_saved = True
        self._draft = ""
        self._is_draft_saved = True
        self._answer: Answer | None = None
        self._last_look = ("", False)
        self._query = ""
        self._deleted: list[int] = []
        self._unsaved: dict[int, Callable[[], None]] = {}
        self._notice: Notice | None = None
        self._state = ChatState()
        self._save_answer_timer = self._timer(SAVE_ANSWER_MS, self._save_progress, repeats=True)
        self._save_draft_timer = self._timer(SAVE_DRAFT_MS, self._save_draft_in_its_chat)
        self._save_options_timer = self._timer(SAVE_OPTIONS_MS, self._save_options)

    def _timer(
        self, interval_ms: int, slot: Callable[[], None], *, repeats: bool = False
    ) -> QTimer:
        timer = QTimer(self, singleShot=not repeats, interval=interval_ms)
        timer.timeout.connect(slot)
        return timer

    @property
    def state(self) -> ChatState:
        return self._state

    @property
    def here(self) -> ShownChat:
        """The chat that is shown."""
        return self._here

    @property
    def options(self) -> Options:
        return self._options

    # ---- chats
    @Slot()
    def start(self) -> None:
        """Shows what was cut off by a crash, else the new chat with its draft."""
        newest = next(iter(self._store.conversations()), None)
        was_cut = newest is not None and not self._store.draft(None) and self._was_cut(newest)
        self.open_chat(newest.id if newest is not None and was_cut else None)

    def _was_cut(self, chat: ConversationRecord) -> bool:
        shown = branch(self._store.messages(chat.id), chat.leaf_id)
        return bool(chat.draft) or (bool(shown) and shown[-1].state is State.INTERRUPTED)

    @Slot(object)
    def open_chat(self, conversation_id: int | None) -> None:
        self._save_draft()
        self._save_options()
        self._visit += 1
        record = self._store.conversation(conversation_id) if conversation_id else None
        self._shown = record.id if record else None
        self._title = record.title if record else ""
        self._options = options_from_details(record.options) if record else Options()
        self._draft = self._store.draft(self._shown)
        self.show_notice(None)
        self._reload()
        self.composer_filled.emit(self._draft)
        self.options_changed.emit(self._options)
        self._update_state()
        self._update_chats()

    @Slot()
    def new_chat(self) -> None:
        self.open_chat(None)

    @Slot()
    def continue_in_new_chat(self) -> None:
        """The new chat takes along what stands in the message field."""
        text, options = self._draft, self._options
        self.change_draft("")
        self.open_chat(None)
        self.change_draft("\n\n".join(part for part in (self._draft, text) if part))
        self.composer_filled.emit(self._draft)
        self.change_options(options)
        self.options_changed.emit(options)

    @Slot(int, str)
    def rename_chat(self, conversation_id: int, title: str) -> None:
        if conversation_id == self._shown:
            self._title = title
            self._update_state()
        self._change(partial(Store.rename, conversation_id=conversation_id, title=title))

    @Slot(int)
    def delete_chat(self, conversation_id: int) -> None:
        record = self._store.conversation(conversation_id)
        if record is None:
            return
        if self._answer is not None and self._answer.conversation_id == conversation_id:
            self.stop()
        if conversation_id == self._shown:
            self.open_chat(None)
        self._deleted.append(conversation_id)
        self._change(partial(Store.delete, conversation_id=conversation_id))
        self._update_state()
        self.chat_deleted.emit(record.title)

    @Slot()
    def undo_delete(self) -> None:
        if self._deleted:
            conversation_id = self._deleted.pop()
            self._update_state()
            self._job.run(
                partial(Store.restore, conversation_id=conversation_id),
                lambda _: self.open_chat(conversation_id),
                self._on_change_failed,
            )

    @Slot(str)
    def search(self, text: str) -> None:
        self._query = text.strip()
        self._update_chats()

    @Slot(str)
    def change_draft(self, text: str) -> None:
        if text != self._draft:
            self._draft = text
            self._is_draft_saved = False
            if not self._save_draft_timer.isActive():
                self._save_draft_timer.start()

    @Slot(object)
    def change_options(self, options: Options) -> None:
        self._options = options
        self._are_options_saved = False
        self._save_options_timer.start()
        if self._answer is not None and self._state.writing == "here":
            self._engine.set_options(options)

    # ---- messages
    @Slot(str)
    def send(self, text: str) -> None:
        text = text.strip()
        if not text or not self._state.can_send:
            return
        self.show_notice(None)
        self._save_draft_timer.stop()
        self._draft, self._is_draft_saved = "", True  # the question's own write empties it
        answer = self._new_answer(text)
        self.item_appended.emit(Item(PENDING, "user", text, is_last=True))
        self.composer_filled.emit("")
        shown, leaf = self._shown, self._here.leaf_id
        options, model = self._options, answer.model

        def write(store: Store) -> _Rows:
            conversation_id = shown
            if conversation_id is None:
                conversation_id = store.create_conversation(
                    title_of(text), options_to_details(options)
                )
            user_id = store.add_user_message(conversation_id, leaf, (PartRecord("text", text),))
            store.save_draft(shown, "")
            return _Rows(
                conversation_id, store.start_answer(conversation_id, user_id, model), user_id
            )

        self._begin(answer, write)

    @Slot(int)
    def write_again(self, key: int) -> None:
        """A new answer beside the one of `key`; for a question, its first or a further one."""
        record = self._here.record(key)
        if record is None or not self._state.can_write_again or self._shown is None:
            return
        self.show_notice(None)
        question = record.id if record.role == "user" else record.parent_id
        shown, answer = self._shown, self._new_answer()

        def write(store: Store) -> _Rows:
            return _Rows(shown, store.start_answer(shown, question, answer.model))

        self._begin(answer, write)

    @Slot()
    def write_last_again(self) -> None:
        if self._here.leaf_id is not None:
            self.write_again(self._here.leaf_id)

    @Slot(int, str)
    def edit(self, key: int, text: str) -> None:
        """A changed question is a sibling of the old one, with an answer of its own."""
        record, text = self._here.record(key), text.strip()
        if record is None or not text or not self._state.can_send or self._shown is None:
            return
        if text == text_of(record.parts):
            return
        self.show_notice(None)
        shown, answer = self._shown, self._new_answer()

        def write(store: Store) -> _Rows:
            user_id = store.add_user_message(shown, record.parent_id, (PartRecord("text", text),))
            return _Rows(shown, store.start_answer(shown, user_id, answer.model), user_id)

        self._begin(answer, write)

    @Slot(int, int)
    def switch_branch(self, key: int, step: int) -> None:
        """Shows the version before (-1) or after (+1) a message, with what followed it."""
        version = self._here.version(key, step)
        if version is None or self._shown is None or self._state.writing == "here":
            return
        self._here.show_version(version)
        self._show_items()
        self.scrolled_to.emit(version)
        self._update_state()
        leaf = self._here.leaf_id
        self._change(partial(Store.set_leaf, conversation_id=self._shown, message_id=leaf))

    @Slot()
    def stop(self) -> None:
        """Answers in the same event; pieces that still come are dropped."""
        answer = self._answer
        if answer is None or answer.is_stopping:
            return
        answer.is_stopping = True
        answer.status = "Stopping"
        if answer.message_id is not None:
            self._engine.stop()
        if answer.message_id is not None and self._state.model.phase == "loading":
            # The engine answers only when the model is loaded; nobody should wait for that.
            self._on_finished(answer, Finished(answer.request_id, "stopped"))
            return
        self._show_progress()
        self._update_state()

    # ---- what comes from elsewhere
    @Slot(object)
    def set_model_state(self, model: ModelState) -> None:
        is_ready = model.phase == "ready" and self._state.model.phase != "ready"
        if is_ready and self._notice is not None and notices.RELOAD in self._notice.ways:
            self.show_notice(None)
        answer = self._answer
        if answer is not None and not answer.is_stopping and not answer.prompt_tokens:
            answer.status = self._waiting_words(model)
            self._show_progress()
        self._update_state(model=model)

    @Slot(str)
    def set_send_with(self, send_with: str) -> None:
        self._update_state(send_with=send_with)

    @Slot(object)
    def show_notice(self, notice: Notice | None) -> None:
        if notice != self._notice:
            self._notice = notice
            self.notice_changed.emit(notice)
            if notice is not None:
                self.announced.emit(f"{notice.title}. {notice.text}")

    @Slot()
    def retry_save(self) -> None:
        retries, self._unsaved = list(self._unsaved.values()), {}
        self.show_notice(None)
        for retry in retries:
            retry()

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        """A batch of the engine's events; those of other requests pass by."""
        is_shown_anew = False
        for event in events:
            answer = self._answer
            if answer is None or getattr(event, "request_id", None) != answer.request_id:
                continue
            if isinstance(event, Finished):
                self._on_finished(answer, event)
            elif isinstance(event, Failed):
                self._on_failed(answer, event)
            elif not answer.is_stopping:
                is_shown_anew |= self._take(answer, event)
        answer = self._answer
        if is_shown_anew and answer is not None:
            self._show_progress()
            if answer.conversation_id == self._shown and answer.prompt_tokens:
                self._set_state(replace(self._state, context_used=answer.context_used))

    @staticmethod
    def _take(answer: Answer, event: object) -> bool:
        if isinstance(event, Piece):
            answer.add(event)
        elif isinstance(event, Prefill):
            answer.prompt_tokens = event.total
            answer.status = f"Reading {event.done:,} of {event.total:,} tokens"
        else:
            return False
        return True

    # ---- quitting
    def prepare_quit(self) -> None:
        """Before the engine closes: nothing that is typed or written gets lost."""
        self._save_draft()
        self._save_options()
        self.stop()

    def settle(self) -> None:
        """After the engine has closed: an answer that it did not end is kept as stopped."""
        if self._answer is not None and self._answer.message_id is not None:
            self._keep(self._answer, State.STOPPED, {})

    # ---- an answer, from its question to its last word
    def _new_answer(self, sent_text: str = "") -> Answer:
        return Answer(
            next(self._request_ids),
            self._shown,
            self._state.model.name,
            status=self._waiting_words(self._state.model),
            sent_text=sent_text,
            previous_leaf=self._here.leaf_id,
            is_first_of_chat=self._shown is None,
        )

    @staticmethod
    def _waiting_words(model: ModelState) -> str:
        return f"Loading {model.name}" if model.phase == "loading" else ""

    def _begin(self, answer: Answer, write: Callable[[Store], _Rows]) -> None:
        self._answer = answer
        self._update_state()
        visit = self._visit
        self._job.run(
            write,
            lambda rows: self._on_begun(answer, visit, rows),
            lambda message: self._on_not_begun(answer, visit, message),
        )

    def _on_begun(self, answer: Answer, visit: int, rows: _Rows) -> None:
        """The question is on the disk: now the model may be asked."""
        answer.conversation_id, answer.message_id = rows.conversation_id, rows.answer_id
        answer.user_id = rows.user_id
        if visit == self._visit and self._shown is None:
            self._shown = rows.conversation_id
            self._title = title_of(answer.sent_text)
        if self._shown == rows.conversation_id:
            self._reload()
        self._update_state()
        self._update_chats()
        if answer.is_stopping:
            self._on_finished(answer, Finished(answer.request_id, "stopped"))
            return
        records = self._store.messages(rows.conversation_id)
        asked = branch(records, rows.answer_id)[:-1]
        options = self._options_of(rows.conversation_id)
        messages = tuple(to_message(record) for record in asked)
        self._save_answer_timer.start()
        self._engine.submit(Reply(answer.request_id, messages, options))
        self.announced.emit("Writing")

    def _options_of(self, conversation_id: int) -> Options:
        if conversation_id == self._shown:
            return self._options
        record = self._store.conversation(conversation_id)
        return options_from_details(record.options) if record else Options()

    def _on_not_begun(self, answer: Answer, visit: int, message: str) -> None:
        self._answer = None
        if visit == self._visit:
            self._show_items()
            self._give_back(answer.sent_text)
            self.show_notice(notices.message_not_saved(message))
        self._update_state()

    def _on_finished(self, answer: Answer, event: Finished) -> None:
        if answer.is_stopping:  # it may have come to its end meanwhile, unseen
            event = replace(event, reason="stopped")
        if event.reason == "stopped" and answer.is_empty and self._can_take_back(answer):
            self._take_back(answer)
            return
        details = {
            "reason": event.reason,
            "stats": stats_to_details(event.stats),
            "device": self._state.model.device,
            "model_path": self._state.model.path,
        }
        self._keep(answer, STATES[event.reason], details)

    def _on_failed(self, answer: Answer, event: Failed) -> None:
        log.warning("An answer failed (%s): %s", event.kind, event.message)
        tokens = len(answer.token_ids)
        is_shown = answer.conversation_id == self._shown
        if answer.is_empty and self._can_take_back(answer):
            self._take_back(answer)
        else:
            self._keep(answer, State.FAILED, {"error": event.message, "kind": event.kind})
        if is_shown:
            self.show_notice(
                notices.answer_failed(event.kind, event.message, written_tokens=tokens)
            )

    def _keep(self, answer: Answer, state: State, details: Mapping[str, object]) -> None:
        """Shows the answer as it stays, and saves it."""
        assert answer.message_id is not None
        answer.end()
        self._end_writing()
        record = self._here.record(answer.message_id)
        if record is not None:
            record = replace(
                record,
                parts=answer.parts(),
                token_ids=answer.token_ids,
                state=state,
                details=dict(details),
            )
            self._here.put(record)
            self.item_replaced.emit(self._here.item(record))
        self._update_state()
        self._update_chats()
        self._save_finished(answer.message_id, answer, state, details)
        self.announced.emit(_spoken_ending(state, answer.text))

    def _save_finished(
        self, message_id: int, answer: Answer, state: State, details: Mapping[str, object]
    ) -> None:
        parts, token_ids = answer.parts(), answer.token_ids

        def failed(message: str) -> None:
            self._unsaved[message_id] = partial(
                self._save_finished, message_id, answer, state, details
            )
            self.show_notice(notices.answer_not_saved(message))

        self._job.run(
            lambda store: store.finish_answer(message_id, parts, token_ids, state, details),
            lambda _: self._update_chats(),
            failed,
        )

    def _can_take_back(self, answer: Answer) -> bool:
        """Not an edited question, not over a text that stands in the field by now, and not in a
        chat that was deleted meanwhile: there the empty answer stays, and can be written again."""
        if answer.conversation_id in self._deleted:
            return False
        if not answer.sent_text:
            return answer.user_id is None
        is_shown = answer.conversation_id == self._shown
        return not (self._draft if is_shown else self._store.draft(answer.conversation_id))

    def _take_back(self, answer: Answer) -> None:
        """No token ever came: the chat is as before, a sent message is in the field again."""
        self._end_writing()
        conversation_id, text = answer.conversation_id, answer.sent_text
        assert conversation_id is not None
        assert answer.message_id is not None
        if text and answer.is_first_of_chat:
            self._take_back_chat(conversation_id, text)
            return
        gone = answer.message_id if answer.user_id is None else answer.user_id

        def write(store: Store) -> None:
            store.delete_message(gone)
            store.set_leaf(conversation_id, answer.previous_leaf)
            if text:
                store.save_draft(conversation_id, text)

        visit = self._visit
        self._job.run(write, lambda _: self._after_taking_back(visit, text), self._on_change_failed)

    def _take_back_chat(self, conversation_id: int, text: str) -> None:
        def write(store: Store) -> None:
            store.save_draft(None, text)
            store.delete(conversation_id)

        def done(_: None) -> None:
            if self._shown == conversation_id:
                notice, options = self._notice, self._options
                self._is_draft_saved = True
                self.open_chat(None)
                self.change_options(options)
                self.options_changed.emit(options)
                self.show_notice(notice)
            else:
                self._update_chats()

        self._job.run(write, done, self._on_change_failed)

    def _after_taking_back(self, visit: int, text: str) -> None:
        if visit == self._visit:
            self._reload()
            self._give_back(text)
        self._update_state()
        self._update_chats()

    def _give_back(self, text: str) -> None:
        if text and not self._draft:
            self.change_draft(text)
            self.composer_filled.emit(text)

    def _end_writing(self) -> None:
        self._answer = None
        self._save_answer_timer.stop()
        self._last_look = ("", False)

    @Slot()
    def _save_progress(self) -> None:
        answer = self._answer
        if answer is None or answer.message_id is None or not answer.has_unsaved:
            return
        answer.has_unsaved = False
        message_id, parts = answer.message_id, answer.parts()
        token_ids = answer.token_ids

        def failed(message: str) -> None:
            answer.has_unsaved = True
            self.show_notice(notices.answer_not_saved(message))

        self._job.run(lambda store: store.update_answer(message_id, parts, token_ids), None, failed)

    # ---- saving small things
    @Slot()
    def _save_draft_in_its_chat(self) -> None:
        """A chat that is being made takes what is typed meanwhile: wait for its number."""
        answer = self._answer
        if self._shown is None and answer is not None and answer.message_id is None:
            self._save_draft_timer.start()
        else:
            self._save_draft()

    @Slot()
    def _save_draft(self) -> None:
        self._save_draft_timer.stop()
        if not self._is_draft_saved:
            self._is_draft_saved = True
            self._job.run(
                partial(Store.save_draft, conversation_id=self._shown, text=self._draft),
                lambda _: self._update_chats(),
                self._on_change_failed,
            )

    @Slot()
    def _save_options(self) -> None:
        self._save_options_timer.stop()
        if self._are_options_saved or self._shown is None:
            return
        self._are_options_saved = True
        options = options_to_details(self._options)
        self._job.run(
            partial(Store.set_options, conversation_id=self._shown, options=options),
            None,
            self._on_change_failed,
        )

    def _change(self, write: Callable[[Store], object]) -> None:
        self._job.run(write, lambda _: self._update_chats(), self._on_change_failed)

    def _on_change_failed(self, message: str) -> None:
        self.show_notice(notices.change_not_saved(message))
        self._update_chats()

    # ---- showing
    def _reload(self) -> None:
        record = self._store.conversation(self._shown) if self._shown is not None else None
        self._here = ShownChat(
            self._store.messages(record.id) if record else [], record.leaf_id if record else None
        )
        self._show_items()

    def _show_items(self) -> None:
        self._last_look = ("", False)
        self.items_reset.emit(self._here.items(self._answer))

    def _show_progress(self) -> None:
        answer = self._answer
        if answer is None or answer.conversation_id != self._shown or answer.message_id is None:
            return
        look = (answer.status, answer.is_thinking)
        if look == self._last_look:
            self.item_streamed.emit(answer.message_id, answer.text, answer.thought)
            return
        record = self._here.record(answer.message_id)
        if record is not None:
            self._last_look = look
            self.item_replaced.emit(written_over(self._here.item(record), answer))

    def _update_state(self, **changes: Any) -> None:
        answer = self._answer
        writing: Literal["no", "here", "elsewhere"]
        if answer is None:
            writing = "no"
        else:
            writing = "here" if answer.conversation_id == self._shown else "elsewhere"
        shown = self._here.branch()
        used = context_used(shown)
        if answer is not None and writing == "here" and answer.prompt_tokens:
            used = answer.context_used
        self._set_state(
            replace(
                self._state,
                title=self._title,
                conversation_id=self._shown,
                has_messages=bool(shown),
                has_answer=any(r.role == "assistant" for r in shown),
                writing=writing,
                is_stopping=answer is not None and answer.is_stopping,
                context_used=used,
                can_undo=bool(self._deleted),
                **changes,
            )
        )

    def _set_state(self, state: ChatState) -> None:
        if state != self._state:
            self._state = state
            self.state_changed.emit(state)

    def _update_chats(self) -> None:
        live = self._answer.conversation_id if self._answer else None
        found = {hit[0] for hit in self._store.search(self._query)} if self._query else set()
        words = self._query.casefold()
        rows = [
            ChatRow(
                record.id,
                record.title,
                record.updated_at,
                is_live=record.id == live,
                has_draft=bool(record.draft) and record.id != self._shown,
            )
            for record in self._store.conversations()
            if not words or words in record.title.casefold() or record.id in found
        ]
        self.chats_changed.emit(rows, self._shown)


def _spoken_ending(state: State, text: str) -> str:
    """What a screen reader says at the end: how it ended, the first sentence, the length."""
    how = {State.STOPPED: "Stopped", State.FAILED: "Writing failed"}.get(state, "Answer finished")
    first = text.strip().split("\n")[0].split(". ")[0][:200]
    return f"{how}. {first}. {len(text.split())} words." if first else f"{how}."
