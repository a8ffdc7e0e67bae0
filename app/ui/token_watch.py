"""The tokens of one answer of the chat that is shown: looked at while it is written, or afterwards.

Only while somebody looks: nothing is asked of the model before `set_open(True)`. Reading an answer
again gives way at once to whatever else the model is wanted for. What was read once is kept for a
while, so that going to and fro costs nothing.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.conversations import branch, memory_place, to_message
from app.chat.events import Failed, Finished, Inspect, Inspected, Piece, Prefill
from app.chat.messages import Alternative, TokenView
from app.store.records import MessageRecord
from app.ui.answer import Answer
from app.ui.answer_writer import Engine
from app.ui.chat_screen import ChatScreen
from app.ui.chat_state import ChatState
from app.ui.statistics import options_to_replay

Phase = Literal["none", "blocked", "waiting", "reading", "stopped", "failed", "live", "ready"]
LOOK_AFTER_MS = 120  # going from version to version reads only the last one
MOST_KEPT = 40_000  # tokens
NOTHING = "Write an answer, then look at it token by token here."
CHOOSE, AGAIN = ("Choose a model…", "choose-model"), ("Look again", "look-again")


@dataclass(frozen=True)
class TokensState:
    """`words` say why there are no tokens; `way` is what can be done about it."""

    phase: Phase = "none"
    words: str = NOTHING
    way: tuple[str, str] | None = None
    share: float = 0.0
    key: int | None = None  # the answer

    @property
    def has_tokens(self) -> bool:
        return self.phase in ("live", "ready")


@dataclass
class _Live:
    """An answer that is being written, watched."""

    answer: Answer
    tokens: list[TokenView] = field(default_factory=list)


class TokenWatch(QObject):
    changed = Signal(object)  # TokensState
    reset = Signal(list)  # the tokens of another answer, or none
    added = Signal(list)  # further ones of the same

    def __init__(
        self, screen: ChatScreen, engine: Engine, request_ids: "itertools.count[int]"
    ) -> None:
        super().__init__(screen)
        self._screen, self._engine, self._request_ids = screen, engine, request_ids
        self.state = TokensState()
        self.tokens: list[TokenView] = []
        self._is_open = False
        self._chosen: int | None = None  # None: the last answer
        self._asked: int | None = None  # the request that is read
        self._asked_of: MessageRecord | None = None
        self._live: _Live | None = None
        self._head: tuple[TokenView, ...] = ()  # of the answer that is begun next
        self._kept: dict[int, tuple[TokenView, ...]] = {}
        self._refusal: TokensState | None = None  # of an answer that is read only when asked for
        self._timer = QTimer(self, singleShot=True, interval=LOOK_AFTER_MS)
        self._timer.timeout.connect(self._look)

    # ---- what a person does
    def set_open(self, is_open: bool) -> None:
        """Whether the tokens can be seen. While they are, new answers are watched."""
        if is_open != self._is_open:
            self._is_open = self._screen.watches_tokens = is_open
            if is_open:
                self._look()
            else:
                self._timer.stop()
                self.make_way()

    def choose(self, key: int) -> None:
        """This answer, until the chat goes on."""
        self._chosen, self._refusal = key, None
        self.look()

    @Slot()
    def look_again(self) -> None:
        self._refusal = None
        self._look()

    @Slot()
    def cancel(self) -> None:
        """Reading stops; it begins again only when it is asked for."""
        if (record := self._asked_of) is not None:
            self.make_way()
            self._refuse(TokensState("stopped", "Stopped.", AGAIN, key=record.id))

    def _refuse(self, state: TokensState) -> None:
        self._refusal = state
        self._show(state)

    def make_way(self) -> None:
        """The model is wanted for something else."""
        if self._asked is not None:
            self._engine.cancel(self._asked)
            self._asked = self._asked_of = None
            self.look()  # again, when nothing else is going on

    def begins_with(self, place: int, chosen: Alternative | None) -> None:
        """The answer that is begun next has the tokens before this place, and the chosen one."""
        self._head = tuple(self.tokens[:place])
        if chosen is not None:
            old = self.tokens[place]
            rank = next((n for n, other in enumerate(old.alternatives) if other == chosen), 0)
            self._head += (
                replace(
                    old,
                    token_id=chosen.token_id,
                    text=chosen.text,
                    probability=chosen.probability,
                    rank=rank,
                ),
            )

    def forget_beginning(self) -> None:
        self._head = ()

    def is_of_loaded_model(self) -> bool:
        key = self.state.key
        record = self._screen.here.record(key) if key is not None else None
        return record is not None and self._is_its_model(record)

    # ---- following what is the case
    @Slot()
    def look(self) -> None:
        """Something changed: another chat, another version, another message."""
        if self._is_open:
            self._timer.start()

    @Slot(object)
    def follow(self, state: ChatState) -> None:
        if state.is_writing or state.model.phase != "ready":
            self.make_way()
        if self._is_open:
            self._timer.start()
        answer = self._screen.answer
        is_new = answer is not None and (self._live is None or self._live.answer is not answer)
        if answer is not None and is_new and state.writing == "here":
            head = self._known(answer.stood) if answer.stood is not None else self._head
            self._live = _Live(answer, list(head or ())) if self._is_open else None
            self._head, self._chosen = (), None

    def _record(self) -> MessageRecord | None:
        shown = self._screen.here.branch()
        answers = [record for record in shown if record.role == "assistant"]
        chosen = next((record for record in answers if record.id == self._chosen), None)
        return chosen or (answers[-1] if answers else None)

    @Slot()
    def _look(self) -> None:
        """Shows what there is of the answer, and asks for what there is not."""
        record = self._record()
        if not self._is_open:
            return
        if record is None:
            self._set_tokens((), TokensState())
        elif self._is_written_now(record):
            self._look_live(record)
        elif (known := self._known(record)) is not None:
            self._set_tokens(known, TokensState("ready", "", key=record.id))
        elif self._asked_of is None or self._asked_of.id != record.id:
            self.make_way()
            state = self._blocked(record)
            self._set_tokens((), state or TokensState("reading", "Reading", key=record.id))
            if state is None:
                self._ask(record)

    def _is_written_now(self, record: MessageRecord) -> bool:
        answer = self._screen.answer
        return answer is not None and answer.message_id == record.id

    def _look_live(self, record: MessageRecord) -> None:
        if self._live is None:
            words = "This answer is being written. Its tokens are shown when it is finished."
            self._set_tokens((), TokensState("waiting", words, key=record.id))
        elif self.state.phase != "live" or self.state.key != record.id:
            self._set_tokens(self._live.tokens, TokensState("live", "", key=record.id))

    def _known(self, record: MessageRecord) -> tuple[TokenView, ...] | None:
        """Tokens that were seen once, if they are still those of the answer."""
        known = self._kept.get(record.id)
        if known is None or tuple(token.token_id for token in known) != record.token_ids:
            return None
        return known

    def _blocked(self, record: MessageRecord) -> TokensState | None:
        """Why an answer cannot be looked at now."""
        model, key = self._screen.state.model, record.id
        if record.details.get("edited"):
            words = "This answer was changed by you, so it has no tokens of a model."
            return TokensState("blocked", words, key=key)
        if not record.token_ids:
            words = "This answer has no tokens: it was not written here, or it is empty."
            return TokensState("blocked", words, key=key)
        if model.phase == "loading":
            return TokensState("waiting", f"{model.name} is loading.", key=key)
        if model.phase != "ready":
            words = f"Choose {record.model or 'its model'} to look at this answer."
            return TokensState("blocked", words, CHOOSE, key=key)
        if not self._is_its_model(record):
            words = (
                f"This answer was written by {record.model or 'another model'}. Choose that model"
                " to see how likely its words were."
            )
            return TokensState("blocked", words, CHOOSE, key=key)
        if self._screen.state.is_writing:
            words = "The model is writing. The tokens are read when it has finished."
            return TokensState("waiting", words, key=key)
        return self._refusal if self._refusal is not None and self._refusal.key == key else None

    def _is_its_model(self, record: MessageRecord) -> bool:
        model = self._screen.state.model
        path = record.details.get("model_path", model.path)
        return record.model == model.name and path == model.path

    # ---- reading
    def _ask(self, record: MessageRecord) -> None:
        """With the options and the memory that it was written with."""
        asked = branch(self._screen.here.records, record.id)[:-1]
        begins = record.details.get("memory_start", self._screen.here.memory_start)
        self._asked, self._asked_of = next(self._request_ids), record
        self._engine.submit(
            Inspect(
                self._asked,
                tuple(to_message(each) for each in asked),
                options_to_replay(record) or self._screen.options,
                record.token_ids,
                memory_place(asked, begins),
            )
        )

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        fresh: list[TokenView] = []
        for event in events:
            number = getattr(event, "request_id", None)
            if number is None:
                continue
            if number == self._asked:
                self._take_read(event)
            elif self._live is not None and number == self._live.answer.request_id:
                fresh += self._take_live(self._live, event)
        if fresh and self.state.phase == "live":
            self.tokens += fresh
            self.added.emit(fresh)

    def _take_read(self, event: object) -> None:
        record = self._asked_of
        assert record is not None
        if isinstance(event, Prefill):
            words = f"Reading {event.done:,} of {event.total:,} tokens"
            share = event.done / max(1, event.total)
            self._show(TokensState("reading", words, share=share, key=record.id))
        elif isinstance(event, Inspected):
            self._keep(record.id, event.tokens)
            self._set_tokens(event.tokens, TokensState("ready", "", key=record.id))
        elif isinstance(event, Failed):
            self._asked = self._asked_of = None
            self._refuse(TokensState("failed", event.message, AGAIN, key=record.id))
        elif isinstance(event, Finished):
            self._asked = self._asked_of = None
            if event.reason == "stopped":
                self._refuse(TokensState("stopped", "Stopped.", AGAIN, key=record.id))

    def _take_live(self, live: _Live, event: object) -> tuple[TokenView, ...]:
        if isinstance(event, Piece) and not live.answer.is_stopping:
            live.tokens += event.tokens
            return event.tokens
        if isinstance(event, Finished | Failed):
            if live.answer.message_id is not None:
                self._keep(live.answer.message_id, tuple(live.tokens))
            self._live = None
            self.look()
        return ()

    def _keep(self, key: int, tokens: tuple[TokenView, ...]) -> None:
        self._kept.pop(key, None)
        self._kept[key] = tokens
        while sum(map(len, self._kept.values())) > MOST_KEPT and len(self._kept) > 1:
            del self._kept[next(iter(self._kept))]

    # ---- showing
    def _set_tokens(self, tokens: Sequence[TokenView], state: TokensState) -> None:
        is_same = state.key == self.state.key and self.tokens == list(tokens)
        if not is_same or state.has_tokens != self.state.has_tokens:
            self.tokens = list(tokens)
            self.reset.emit(self.tokens)
        self._show(state)

    def _show(self, state: TokensState) -> None:
        if state != self.state:
            self.state = state
            self.changed.emit(state)
