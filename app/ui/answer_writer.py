"""An answer, from its question in the store to its last word there.

Invariants: an answer is asked of the model only after the question is committed; one answer is
written at a time; text that was shown is never lost.
"""

import itertools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Slot

from app.chat.conversations import STATES, branch, memory_place, title_of, to_message
from app.chat.events import Failed, Finished, Forgot, Piece, Prefill, Reply, Request, Trying
from app.chat.events import Notice as Refused
from app.chat.messages import Options
from app.store.records import MessageRecord, State
from app.store.store import Store
from app.ui import context_notices, notices, replay
from app.ui.answer import Answer
from app.ui.chat_items import options_from_details, stats_of, stats_to_details, text_of
from app.ui.chat_screen import ChatScreen
from app.ui.chat_state import ModelState
from app.ui.drafts import Drafts
from app.ui.taking_back import TakingBack

log = logging.getLogger(__name__)

SAVE_ANSWER_MS = 250


class Engine(Protocol):
    def submit(self, request: Request) -> None: ...
    def stop(self) -> None: ...
    def cancel(self, request_id: int) -> None: ...
    def set_options(self, options: Options) -> None: ...


@dataclass(frozen=True)
class Rows:
    """What a question left in the store."""

    conversation_id: int
    answer_id: int
    user_id: int | None = None


@dataclass(frozen=True)
class Beginning:
    """What stands of an answer before the model goes on: its own tokens, then plain text."""

    token_ids: tuple[int, ...] = ()
    text: str = ""


NOTHING = Beginning()


class AnswerWriter(QObject):
    def __init__(
        self,
        screen: ChatScreen,
        drafts: Drafts,
        engine: Engine,
        request_ids: "itertools.count[int]",
    ) -> None:
        super().__init__(screen)
        self._screen, self._drafts, self._engine = screen, drafts, engine
        self._request_ids = request_ids
        self._taking_back = TakingBack(screen, drafts)
        self.chat_taken_back = self._taking_back.chat_taken_back
        self._unsaved: dict[int, Callable[[], None]] = {}
        self._save_timer = QTimer(self, interval=SAVE_ANSWER_MS)
        self._save_timer.timeout.connect(self._save_progress)

    # ---- begin and stop
    def new_answer(self, sent_text: str = "", stood: MessageRecord | None = None) -> Answer:
        return Answer(
            next(self._request_ids),
            self._screen.shown,
            self._screen.state.model.name,
            status=self._waiting_words(self._screen.state.model),
            sent_text=sent_text,
            previous_leaf=self._screen.here.leaf_id,
            previous_memory=self._screen.here.memory_start,
            is_first_of_chat=self._screen.shown is None,
            stood=stood,
        )

    @staticmethod
    def _waiting_words(model: ModelState) -> str:
        return f"Loading {model.name}" if model.phase == "loading" else ""

    def begin(
        self,
        answer: Answer,
        write: Callable[[Store], Rows],
        beginning: Beginning = NOTHING,
        options: Options | None = None,
    ) -> None:
        """`options` None: those of the chat."""
        self._screen.answer = answer
        self._screen.update_state()
        visit = self._screen.visit
        self._screen.job.run(
            write,
            lambda rows: self._on_begun(answer, visit, rows, beginning, options),
            lambda message: self._on_not_begun(answer, visit, message),
        )

    def _on_begun(
        self,
        answer: Answer,
        visit: int,
        rows: Rows,
        beginning: Beginning,
        options: Options | None,
    ) -> None:
        """The question is on the disk: now the model may be asked."""
        answer.conversation_id, answer.message_id = rows.conversation_id, rows.answer_id
        answer.user_id = rows.user_id
        if visit == self._screen.visit and self._screen.shown is None:
            self._screen.shown = rows.conversation_id
            self._screen.title = title_of(answer.sent_text)
        if self._screen.shown == rows.conversation_id:
            self._screen.reload()
        self._screen.update_state()
        self._screen.shelf.follow([answer.conversation_id])
        if answer.is_stopping:
            self._on_finished(answer, Finished(answer.request_id, "stopped"))
            return
        self._save_timer.start()
        self._engine.submit(self._request(answer, rows, beginning, options))
        self._screen.announced.emit("Writing")

    def _request(
        self, answer: Answer, rows: Rows, beginning: Beginning, options: Options | None
    ) -> Reply:
        store = self._screen.store
        asked = branch(store.messages(rows.conversation_id), rows.answer_id)[:-1]
        chat = store.conversation(rows.conversation_id)
        answer.asked_ids = tuple(record.id for record in asked)
        answer.memory_start = chat.memory_start if chat else None
        if answer.replays is not None:
            answer.memory_start = answer.replays.details.get("memory_start")
        return Reply(
            answer.request_id,
            tuple(to_message(record) for record in asked),
            options or self._options_of(rows.conversation_id),
            start=beginning.token_ids,
            start_text=beginning.text,
            first=memory_place(asked, answer.memory_start),
            watches_tokens=self._screen.watches_tokens,
        )

    def _options_of(self, conversation_id: int) -> Options:
        if conversation_id == self._screen.shown:
            return self._screen.options
        record = self._screen.store.conversation(conversation_id)
        return options_from_details(record.options) if record else Options()

    def _on_not_begun(self, answer: Answer, visit: int, message: str) -> None:
        self._screen.answer = None
        if visit == self._screen.visit:
            self._screen.show_items()
            self._drafts.give_back(answer.sent_text)
            self._screen.files_returned.emit(answer.sent_files)
            self._screen.show_notice(notices.message_not_saved(message))
        self._screen.update_state()

    @Slot()
    def stop(self) -> None:
        """Answers in the same event; pieces that still come are dropped."""
        answer = self._screen.answer
        if answer is None or answer.is_stopping:
            return
        answer.is_stopping = True
        answer.status = "Stopping"
        if answer.message_id is not None:
            self._engine.stop()
        if answer.message_id is not None and self._screen.state.model.phase == "loading":
            # The engine answers only when the model is loaded; nobody should wait for that.
            self._on_finished(answer, Finished(answer.request_id, "stopped"))
            return
        self._screen.show_progress()
        self._screen.update_state()

    @Slot(object)
    def set_model_state(self, model: ModelState) -> None:
        is_ready = model.phase == "ready" and self._screen.state.model.phase != "ready"
        notice = self._screen.notice
        if is_ready and notice is not None and notices.RELOAD in notice.ways:
            self._screen.show_notice(None)
        answer = self._screen.answer
        if answer is not None and not answer.is_stopping and not answer.prompt_tokens:
            answer.status = self._waiting_words(model)
            self._screen.show_progress()
        self._screen.update_state(model=model)

    @Slot()
    def retry_save(self) -> None:
        retries, self._unsaved = list(self._unsaved.values()), {}
        self._screen.show_notice(None)
        for retry in retries:
            retry()

    def settle(self) -> None:
        """After the engine has closed: an answer that it did not end is kept as stopped."""
        if self._screen.answer is not None and self._screen.answer.message_id is not None:
            answer = self._screen.answer
            self._keep(answer, State.STOPPED, answer.stood.details if answer.stood else {})

    # ---- what the engine says
    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        """A batch of the engine's events; those of other requests pass by."""
        is_shown_anew = False
        for event in events:
            answer = self._screen.answer
            if answer is None or getattr(event, "request_id", None) != answer.request_id:
                continue
            if isinstance(event, Finished):
                self._on_finished(answer, event)
            elif isinstance(event, Failed):
                self._on_failed(answer, event)
            elif not answer.is_stopping:
                is_shown_anew |= self._take(answer, event)
        answer = self._screen.answer
        if is_shown_anew and answer is not None:
            self._screen.show_progress()
            if answer.conversation_id == self._screen.shown and answer.prompt_tokens:
                self._screen.update_state()

    def _take(self, answer: Answer, event: object) -> bool:
        if isinstance(event, Forgot):
            self._on_forgot(answer, event)
        elif isinstance(event, Refused):
            self._screen.show_notice(notices.change_refused(event.message))
        elif isinstance(event, Piece):
            answer.add(event)
        elif isinstance(event, Prefill):
            answer.prompt_tokens = event.total
            answer.status = f"Reading {event.done:,} of {event.total:,} tokens"
        elif isinstance(event, Trying):
            answer.status = _trying_words(event)
        else:
            return False
        return True

    def _on_forgot(self, answer: Answer, event: Forgot) -> None:
        """Never silent: a line in the chat, a notice, and said aloud."""
        assert answer.conversation_id is not None
        begins = answer.asked_ids[event.first] if event.first < len(answer.asked_ids) else None
        answer.memory_start = begins
        self._screen.change(
            partial(
                Store.set_memory_start, conversation_id=answer.conversation_id, message_id=begins
            )
        )
        if answer.conversation_id == self._screen.shown:
            self._screen.here.memory_start = begins
            self._screen.show_items()
            self._screen.show_notice(context_notices.forgotten(event.first, event.tokens))

    def _on_finished(self, answer: Answer, event: Finished) -> None:
        if answer.is_stopping:  # it may have come to its end meanwhile, unseen
            event = replace(event, reason="stopped")
        if event.reason == "stopped" and answer.is_empty and self._taking_back.is_possible(answer):
            self._end_writing()
            self._taking_back.take_back(answer)
            return
        if answer.stood is not None and answer.is_behind:  # stopped before it went on
            self._keep(answer, answer.stood.state, answer.stood.details)
            return
        details = {
            "reason": event.reason,
            "stats": stats_to_details(event.stats),
            "device": self._screen.state.model.device,
            "model_path": self._screen.state.model.path,
            "memory_start": answer.memory_start,
        }
        if answer.replays is not None:
            details["replay"] = self._compare(answer, answer.replays, event)
        self._keep(answer, STATES[event.reason], details)

    def _compare(self, answer: Answer, old: MessageRecord, event: Finished) -> str:
        before = text_of(old.parts, "thought") + text_of(old.parts)
        is_whole = event.reason != "stopped"
        words = replay.verdict(before, answer.thought + answer.text, is_whole=is_whole)
        stats = stats_of(old)
        if answer.conversation_id == self._screen.shown:
            is_repeatable = stats is None or stats.is_repeatable
            self._screen.show_notice(replay.notice(words, is_repeatable=is_repeatable))
        return words

    def _on_failed(self, answer: Answer, event: Failed) -> None:
        log.warning("An answer failed (%s): %s", event.kind, event.message)
        tokens = len(answer.token_ids)
        is_shown = answer.conversation_id == self._screen.shown
        if answer.is_empty and self._taking_back.is_possible(answer):
            self._end_writing()
            self._taking_back.take_back(answer)
        elif answer.stood is not None and answer.is_behind:
            self._keep(answer, answer.stood.state, answer.stood.details)
        else:
            self._keep(answer, State.FAILED, {"error": event.message, "kind": event.kind})
        if is_shown:
            self._screen.show_notice(
                notices.answer_failed(
                    event.kind,
                    event.message,
                    written_tokens=tokens,
                    needed=event.needed,
                    limit=event.limit,
                )
            )

    # ---- how it ends
    def _keep(self, answer: Answer, state: State, details: Mapping[str, object]) -> None:
        """Shows the answer as it stays, and saves it."""
        assert answer.message_id is not None
        answer.end()
        self._end_writing()
        record = self._screen.here.record(answer.message_id)
        if record is not None:
            record = replace(
                record,
                parts=answer.parts(),
                token_ids=answer.token_ids,
                state=state,
                details=dict(details),
            )
            self._screen.here.put(record)
            self._screen.item_replaced.emit(self._screen.here.item(record))
        self._screen.update_state()
        self._screen.shelf.follow([answer.conversation_id])
        self._save_finished(answer.message_id, answer, state, details)
        self._screen.announced.emit(_spoken_ending(state, answer.text))

    def _save_finished(
        self, message_id: int, answer: Answer, state: State, details: Mapping[str, object]
    ) -> None:
        parts, token_ids = answer.parts(), answer.token_ids

        def failed(message: str) -> None:
            self._unsaved[message_id] = partial(
                self._save_finished, message_id, answer, state, details
            )
            self._screen.show_notice(notices.answer_not_saved(message))

        self._screen.job.run(
            lambda store: store.finish_answer(message_id, parts, token_ids, state, details),
            lambda _: self._screen.shelf.follow([answer.conversation_id]),
            failed,
        )

    def _end_writing(self) -> None:
        self._screen.answer = None
        self._save_timer.stop()

    @Slot()
    def _save_progress(self) -> None:
        answer = self._screen.answer
        if answer is None or answer.message_id is None or not answer.has_unsaved:
            return
        answer.has_unsaved = False
        message_id, parts = answer.message_id, answer.parts()
        token_ids = answer.token_ids

        def failed(message: str) -> None:
            answer.has_unsaved = True
            self._screen.show_notice(notices.answer_not_saved(message))

        self._screen.job.run(
            lambda store: store.update_answer(message_id, parts, token_ids), None, failed
        )


def _trying_words(event: Trying) -> str:
    words = f"Trying {event.beams} answers, text appears at the end"
    return f"{words} ({event.tokens:,} tokens so far)" if event.tokens else words


def _spoken_ending(state: State, text: str) -> str:
    """What a screen reader says at the end: how it ended, the first sentence, the length."""
    how = {State.STOPPED: "Stopped", State.FAILED: "Writing failed"}.get(state, "Answer finished")
    first = text.strip().split("\n")[0].split(". ")[0][:200]
    return f"{how}. {first}. {len(text.split())} words." if first else f"{how}."
