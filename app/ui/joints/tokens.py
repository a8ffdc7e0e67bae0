"""The tokens of an answer: their tab, their alternatives, and going on from one of them."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QWidget

from app.chat.messages import Alternative
from app.ui.answer_writer import Beginning
from app.ui.chat_controller import ChatController
from app.ui.chat_items import parts_until
from app.ui.chat_state import ChatState
from app.ui.joints.joint import Joint
from app.ui.model_controller import ModelController
from app.ui.token_popover import TokenPopover
from app.ui.token_watch import TokensState
from app.ui.token_words import percent

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class TokensJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.tab = window.inspector.tokens
        self.popover: TokenPopover | None = None
        self._anchor = QWidget(self.tab.flow.viewport())
        self._anchor.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._anchor.setFocusProxy(self.tab.flow)
        self._place = -1
        window.actions_["tokens"].triggered.connect(self.show)
        window.page.message_action.connect(self._on_message)
        window.panels.changed.connect(self._on_panels)
        window.inspector.tab_changed.connect(self._on_panels)
        self.tab.flow.chosen.connect(self.show_alternatives)
        self.tab.acted.connect(self._on_way)

    def open(self, chat: ChatController, models: ModelController) -> None:
        super().open(chat, models)
        chat.tokens.reset.connect(self.tab.set_tokens)
        chat.tokens.added.connect(self.tab.add_tokens)
        chat.tokens.changed.connect(self._on_state)
        self._on_panels()

    def follow(self, old: ChatState, new: ChatState) -> None:
        self.window.actions_.enable({"tokens": new.is_store_open})

    def restyle(self) -> None:
        self.tab.restyle()

    # ---- the tab
    @property
    def is_open(self) -> bool:
        inspector = self.window.inspector
        return self.window.panels.is_shown("inspector") and inspector.tab == "tokens"

    @Slot()
    def show(self) -> None:
        self.window.inspector.choose_tab("tokens")
        self.window.panels.set_shown("inspector", True)
        self._on_panels()
        self.tab.focus_target().setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot(int, str)
    def _on_message(self, key: int, name: str) -> None:
        if name == "tokens" and self.chat is not None:
            self.chat.tokens.choose(key)
            self.show()

    @Slot()
    def _on_panels(self) -> None:
        if self.chat is not None:
            self.chat.tokens.set_open(self.is_open)

    @Slot(object)
    def _on_state(self, state: TokensState) -> None:
        was_reading = self.tab.is_reading
        self.tab.set_state(state)
        if was_reading and state.phase == "ready" and self.is_open:
            self.window.announce(self.tab.summary())

    @Slot(str)
    def _on_way(self, name: str) -> None:
        if self.chat is None:
            return
        if name == "cancel":
            self.chat.tokens.cancel()
        elif name == "look-again":
            self.chat.tokens.look_again()
        else:
            self.window.actions_["choose_model"].trigger()

    # ---- alternatives
    @Slot(int)
    def show_alternatives(self, place: int) -> None:
        flow = self.tab.flow
        self._place = place
        self._anchor.setGeometry(flow.rect_of(place))
        self._anchor.show()
        popover = TokenPopover(flow.tokens[place], place, len(flow.tokens), self._why_not())
        popover.alternative_chosen.connect(self._on_alternative)
        popover.text_chosen.connect(self._on_text)
        popover.closed.connect(self._on_closed)
        self.popover = popover
        popover.open_from(self._anchor)

    @Slot()
    def _on_closed(self) -> None:
        self._anchor.hide()
        if self.popover is not None:
            self.popover.deleteLater()
            self.popover = None

    def _why_not(self) -> str:
        """Empty: it can go on from a token."""
        state = self.window.state
        if state.is_writing:
            return "The model is writing. Go on from here when it has finished."
        if not state.can_write_again:
            return "Choose a model to go on from here."
        if self.chat is not None and not self.chat.tokens.is_of_loaded_model():
            return "Another model wrote this. Choose it to go on from here."
        return ""

    @Slot(object)
    def _on_alternative(self, alternative: Alternative) -> None:
        if alternative.is_end:
            self._end_here()
            return
        self._write_from(Beginning((*self._ids_before(), alternative.token_id)), alternative)

    @Slot(str)
    def _on_text(self, text: str) -> None:
        self._write_from(Beginning(self._ids_before(), text))

    def _ids_before(self) -> tuple[int, ...]:
        return tuple(token.token_id for token in self.tab.flow.tokens[: self._place])

    def _write_from(self, beginning: Beginning, chosen: Alternative | None = None) -> None:
        """What stands before the token is in the model's memory: nothing of it is read again."""
        chat = self.chat
        if chat is None or (key := chat.tokens.state.key) is None:
            return
        chat.tokens.begins_with(self._place, chosen)
        chat.write_from(key, beginning)
        chat.tokens.forget_beginning()
        if chosen is not None:
            self.window.announce(f"Writing on from {chosen.text}, {percent(chosen.probability)}")

    def _end_here(self) -> None:
        chat, token = self.chat, self.tab.flow.tokens[self._place]
        record = chat.here.record(chat.tokens.state.key or 0) if chat is not None else None
        if chat is not None and record is not None:
            parts = parts_until(record.parts, token.start, is_thought=token.is_thought)
            chat.branches.end_answer(record, parts, self._ids_before())
