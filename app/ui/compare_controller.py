"""The last question answered by two settings of the options, one after the other, the same seed.

Nothing is stored until one of them is kept; then it is a version beside the chat's own answer.
"""

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.conversations import (
    STATES,
    AnswerInProgress,
    branch,
    memory_place,
    to_message,
)
from app.chat.events import Failed, Finished, Forgot, Piece, Prefill, Reply, Trying
from app.chat.messages import Options, Stats
from app.chat.options import drawn_seed
from app.store.records import State
from app.store.store import Store
from app.ui.answer_writer import Engine
from app.ui.chat_items import stats_line, stats_to_details
from app.ui.chat_screen import ChatScreen

SIDES = (0, 1)


@dataclass
class Side:
    """One of the two answers, as far as it came."""

    options: Options = field(default_factory=Options)
    written: AnswerInProgress = field(default_factory=AnswerInProgress)
    status: str = ""
    stats: Stats | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        return self.written.text

    @property
    def figures(self) -> str:
        return stats_line(self.stats) if self.stats is not None else ""

    @property
    def can_be_kept(self) -> bool:
        return bool(self.reason) and bool(self.written.text or self.written.thought)


class CompareController(QObject):
    begun = Signal()  # both sides are empty, and asked
    changed = Signal(int)  # a side
    done = Signal()  # both are written, or it was stopped
    kept = Signal(int)  # the chat in which one of them is a version now

    def __init__(
        self, screen: ChatScreen, engine: Engine, request_ids: "itertools.count[int]"
    ) -> None:
        super().__init__(screen)
        self._screen, self._engine, self._request_ids = screen, engine, request_ids
        self.sides = [Side(), Side()]
        self.seed = 0
        self.question_id: int | None = None
        self._conversation_id: int | None = None
        self._running: int | None = None  # the side that is written
        self._request_id = 0
        self._is_stopping = False

    # ---- what is compared
    def question(self) -> str:
        record = self._screen.here.record(self.question_id) if self.question_id else None
        return "".join(p.text for p in record.parts if p.kind == "text") if record else ""

    def take_question(self) -> bool:
        """The last one of the chat that is shown. False: there is none."""
        self.question_id = self._screen.here.last_question()
        self._conversation_id = self._screen.shown
        self.sides = [Side(self._screen.options), Side(self._screen.options)]
        self.seed = self._screen.options.seed or drawn_seed() % 1_000_000
        return self.question_id is not None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def is_of_shown_chat(self) -> bool:
        return self._conversation_id == self._screen.shown

    # ---- writing
    def run(self, options: tuple[Options, Options], seed: int) -> None:
        if self.question_id is None or not self._screen.state.can_send:
            return
        self.seed, self._is_stopping = seed, False
        self.sides = [Side(replace(each, seed=seed)) for each in options]
        self.sides[1].status = "Waits for the other one"
        self._screen.set_comparing(is_comparing=True)
        self._ask(0)
        self.begun.emit()

    def _ask(self, side: int) -> None:
        assert self._conversation_id is not None
        self._running, self._request_id = side, next(self._request_ids)
        asked = branch(self._screen.here.records, self.question_id)
        self.sides[side].status = "Reading"
        self._engine.submit(
            Reply(
                self._request_id,
                tuple(to_message(record) for record in asked),
                self.sides[side].options,
                first=memory_place(asked, self._screen.here.memory_start),
            )
        )
        self.changed.emit(side)

    @Slot()
    def stop(self) -> None:
        """In the same event; what is written so far can still be kept."""
        if self._running is None or self._is_stopping:
            return
        self._is_stopping = True
        self._engine.stop()
        self.sides[self._running].status = "Stopping"
        self.changed.emit(self._running)

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        touched = None
        for event in events:
            side = self._running
            if side is None or getattr(event, "request_id", None) != self._request_id:
                continue
            self._take(self.sides[side], event)
            touched = side
            if isinstance(event, Finished | Failed):
                self._on_end(side)
        if touched is not None:
            self.changed.emit(touched)

    def _take(self, side: Side, event: object) -> None:
        if isinstance(event, Finished):
            side.reason = "stopped" if self._is_stopping else event.reason
            side.status, side.stats = "", event.stats
        elif isinstance(event, Failed):
            side.status = event.message
        elif self._is_stopping:
            return
        elif isinstance(event, Piece):
            side.written.add(event)
            side.status = "Thinking" if event.is_thought and not side.text else ""
        elif isinstance(event, Prefill):
            side.status = f"Reading {event.done:,} of {event.total:,} tokens"
        elif isinstance(event, Trying):
            side.status = f"Trying {event.beams} answers, text appears at the end"
        elif isinstance(event, Forgot):
            side.status = f"The oldest {event.first} messages are left out"

    def _on_end(self, side: int) -> None:
        self._running = None
        if side == 0 and not self._is_stopping:
            self.changed.emit(0)
            self._ask(1)
            return
        if self._is_stopping and side == 0:
            self.sides[1].status = "Not written"
            self.changed.emit(1)
        self._screen.set_comparing(is_comparing=False)
        self.done.emit()

    # ---- keeping
    @Slot(int)
    def keep(self, side: int) -> None:
        """This one is the branch from now on."""
        chosen, model = self.sides[side], self._screen.state.model
        conversation_id, question_id = self._conversation_id, self.question_id
        if conversation_id is None or question_id is None or not chosen.can_be_kept:
            return
        details: dict[str, Any] = {
            "reason": chosen.reason,
            "stats": stats_to_details(chosen.stats) if chosen.stats else {},
            "device": model.device,
            "model_path": model.path,
            "memory_start": self._screen.here.memory_start,
        }
        state = STATES.get(chosen.reason, State.STOPPED)  # type: ignore[call-overload]
        parts, tokens = chosen.written.parts, tuple(chosen.written.token_ids)

        def write(store: Store) -> None:
            store.add_answer(
                conversation_id,
                question_id,
                parts,
                model=model.name,
                state=state,
                token_ids=tokens,
                details=details,
            )

        self._screen.job.run(
            write, lambda _: self.kept.emit(conversation_id), self._screen.on_change_failed
        )
