"""How full the model's memory is with what is typed, and whether a message may be sent.

Counts on the engine's thread, a moment after the last change; never while an answer is written.
"""

import itertools
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.conversations import memory_place, to_message
from app.chat.events import Count, Counted, Failed, Finished
from app.chat.messages import ContextUse, Message, Options
from app.ui import context_notices
from app.ui.answer_writer import Engine
from app.ui.chat_screen import ChatScreen
from app.ui.chat_state import ChatState

COUNT_AFTER_MS = 300
TEMPLATE_TOKENS = 32  # what a template adds to one message, at the very most

Key = tuple[tuple[Message, ...], Options, int]


class ContextWatch(QObject):
    counted = Signal()

    def __init__(
        self, screen: ChatScreen, engine: Engine, request_ids: "itertools.count[int]"
    ) -> None:
        super().__init__(screen)
        self._screen, self._engine, self._request_ids = screen, engine, request_ids
        self.draft: Callable[[], str] = str
        self.files_text: Callable[[], str] = str  # what the attached files add to it
        self.use: ContextUse | None = None
        self.messages: tuple[Message, ...] = ()  # those that were counted, with the draft
        self._key: Key | None = None
        self._uncounted: Key | None = None  # what could not be counted: the engine will say why
        self._asked: dict[int, tuple[Key, Callable[[], None] | None]] = {}
        self._was_ready = False
        self._of: int | None = None  # the chat that was counted
        self._timer = QTimer(self, singleShot=True, interval=COUNT_AFTER_MS)
        self._timer.timeout.connect(self._count)
        self._notice: object = None

    @Slot(object)
    def follow(self, state: ChatState) -> None:
        """A model that has just come, or an answer that has ended, wants a new count."""
        is_ready = state.model.phase == "ready" and not state.is_writing
        if is_ready and not self._was_ready:
            self._timer.start()
        self._was_ready = is_ready

    @Slot()
    def look(self) -> None:
        """Something changed that may fill the memory."""
        if self._screen.shown != self._of:  # of the chat before, nothing holds
            self._of, self._key, self.use, self.messages = self._screen.shown, None, None, ()
            self._screen.update_state(context=None, draft_tokens=0)
        if self._screen.state.model.phase == "ready" and not self._screen.state.is_writing:
            self._timer.start()

    def may_send(self, text: str, send: Callable[[], None]) -> bool:
        """False: it is counted first, and `send` is called again if it fits; or it does not."""
        if self._screen.options.overflow == "forget" or self._screen.state.model.phase != "ready":
            return True
        key = self._key_of(text)
        if key == self._key and self.use is not None:
            self._show()
            return not context_notices.is_full(self.use)
        if key == self._uncounted or self._surely_fits(key):
            return True
        self._submit(key, send)
        return False

    def cut(self) -> context_notices.Cut | None:
        return context_notices.cut_of(self.messages, self.use) if self.use is not None else None

    def draft_tokens(self) -> int:
        """Of the message that is being typed."""
        has_draft = self.use is not None and len(self.messages) > len(self._screen.here.branch())
        return self.use.turns[-1] if self.use is not None and has_draft and self.use.turns else 0

    def what(self) -> Key:
        """What would be read if the message were sent now."""
        return self._key_of(self.draft())

    # ---- counting
    def _key_of(self, text: str) -> Key:
        shown = self._screen.here.branch()
        messages = tuple(to_message(record) for record in shown)
        if whole := self.files_text() + text.strip():
            messages += (Message.of("user", whole),)
        first = memory_place(shown, self._screen.here.memory_start)
        chosen = self._screen.options
        asked = Options(system_prompt=chosen.system_prompt, thinks=chosen.thinks)
        return messages, asked, first

    def _surely_fits(self, key: Key) -> bool:
        """No tokenizer makes more tokens than a text has bytes."""
        messages, options, first = key
        texts = [options.system_prompt, *(m.text for m in messages[first:])]
        most = sum(len(text.encode("utf-8", "replace")) + TEMPLATE_TOKENS for text in texts)
        pinned = sum(len(m.text.encode("utf-8", "replace")) for m in messages[:first])
        return most + pinned + 2 * TEMPLATE_TOKENS < self._screen.state.model.context_length

    @Slot()
    def _count(self) -> None:
        if self._screen.state.model.phase != "ready" or self._screen.state.is_writing:
            return
        key = self._key_of(self.draft())
        if key == self._key:
            self._show()
            return
        if not key[0] and not key[1].system_prompt:
            self._take(key, ContextUse(0, (), 0, self._screen.state.model.context_length))
            return
        self._submit(key, None)

    def _submit(self, key: Key, then: Callable[[], None] | None) -> None:
        number = next(self._request_ids)
        self._asked[number] = (key, then)
        messages, options, first = key
        self._engine.submit(Count(number, messages, options, first))

    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        for event in events:
            number = getattr(event, "request_id", None)
            if number not in self._asked:
                continue
            key, then = self._asked[number]
            if isinstance(event, Counted):
                self._take(key, event.use)
            elif isinstance(event, Finished | Failed):
                del self._asked[number]
                self._uncounted = None if key == self._key else key
                if then is not None and key == self._key_of(self.draft()):
                    then()

    def _take(self, key: Key, use: ContextUse) -> None:
        if key != self._key_of(self.draft()):
            return
        self._key, self.use, self.messages = key, use, key[0]
        self._show()
        self._screen.update_state(context=use, draft_tokens=self.draft_tokens())
        self.counted.emit()

    def _show(self) -> None:
        """The notice comes when it is too long, and goes when it fits again."""
        assert self.use is not None
        is_asked = bool(self.messages) and self.messages[-1].role == "user"
        if is_asked and context_notices.is_full(self.use):
            notice = context_notices.full(self.messages, self.use, self._screen.options)
            if self._screen.notice is None or self._screen.notice.tone != "danger":
                self._notice = notice
                self._screen.show_notice(notice)
        elif self._notice is not None:
            if self._screen.notice == self._notice:
                self._screen.show_notice(None)
            self._notice = None
