"""What the model remembers: the ways out of a full chat, and what fills its memory."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Slot

from app.ui.chat_state import ChatState
from app.ui.context_card import ContextCard
from app.ui.joints.joint import Joint
from app.ui.prompt_preview import PromptView

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ContextJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.card: ContextCard | None = None
        window.page.composer.meter.clicked.connect(self.show_card)
        window.actions_["context"].triggered.connect(self.show_card)
        window.actions_["prompt"].triggered.connect(self._show_prompt)

    def follow(self, old: ChatState, new: ChatState) -> None:
        is_ready = new.model.phase == "ready" and not new.is_writing
        self.window.actions_.enable({"prompt": is_ready})
        system = None if new.context is None else new.context.system
        self.window.inspector.options.set_prompt_tokens(system)

    def act(self, name: str) -> bool:
        if self.chat is None:
            return False
        deed = {
            "forget-oldest": self.chat.send_forgetting,
            "send-anyway": self.chat.send_anyway,
            "choose-messages": self.show_card,
            "remember-all": self.chat.branches.remember_all,
            "dismiss-notice": self._dismiss,
            "go-to-options": self.window.actions_["options"].trigger,
        }.get(name)
        if deed is not None:
            deed()
        return deed is not None

    def _dismiss(self) -> None:
        if self.chat is not None:
            self.chat.show_notice(None)

    @Slot()
    def show_card(self) -> None:
        if self.chat is None or self.chat.context.use is None:
            return
        card = self.card = ContextCard(self.chat)
        card.closed.connect(self._on_closed)
        card.open_from(self.window.page.composer.meter, above=True)

    @Slot()
    def _show_prompt(self) -> None:
        if self.chat is None:
            return
        view = PromptView(self.window)
        view.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.chat.preview.shown.connect(view.set_prompt)
        self.chat.preview.failed.connect(view.set_problem)
        self.chat.preview.ask()
        view.open()

    @Slot()
    def _on_closed(self) -> None:
        if self.card is not None:
            self.card.deleteLater()
            self.card = None
