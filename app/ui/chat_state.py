"""One value that says what the window may do now; every button follows it, none asks another.

Pure: made by the controllers, read by widgets.
"""

from dataclasses import dataclass, field
from typing import Literal

from app.chat.messages import ContextUse, Options

ModelPhase = Literal["none", "loading", "ready", "failed"]
SendMode = Literal["off", "send", "stop", "stopping"]


@dataclass(frozen=True)
class ImportState:
    """A model file or folder that is being taken in."""

    name: str
    text: str = ""
    share: float = 0.0
    is_cancelling: bool = False


@dataclass(frozen=True)
class ModelState:
    """`defaults` and `context_length` are those of the loaded model."""

    phase: ModelPhase = "none"
    name: str = ""
    path: str = ""
    device: str = ""
    context_length: int = 0
    defaults: Options = field(default_factory=Options)
    importing: ImportState | None = None

    @property
    def is_usable(self) -> bool:
        """A message may be sent: it waits for a model that is still loading."""
        return self.phase in ("ready", "loading")


@dataclass(frozen=True)
class ChatState:
    """`writing` says where an answer is being written: in the chat that is shown or in another."""

    model: ModelState = ModelState()
    title: str = ""
    conversation_id: int | None = None
    has_messages: bool = False
    has_answer: bool = False
    last_role: str = ""  # of the message that the branch ends in
    can_continue: bool = False  # that message is an answer that was cut off
    is_temporary: bool = False  # the chat is in memory only
    forgets: bool = False  # the model's memory does not begin at the first message
    writing: Literal["no", "here", "elsewhere"] = "no"
    is_stopping: bool = False
    is_comparing: bool = False  # two answers are written on the page for it
    context_used: int = 0
    context: ContextUse | None = None  # as counted last, with what is typed
    draft_tokens: int = 0  # of it, what is typed
    can_undo: bool = False
    send_with: str = "enter"
    is_store_open: bool = True

    @property
    def is_writing(self) -> bool:
        return self.writing != "no" or self.is_comparing

    def send_mode(self, *, has_text: bool) -> SendMode:
        if self.is_writing:
            return "stopping" if self.is_stopping else "stop"
        return "send" if has_text and self.can_send else "off"

    @property
    def can_send(self) -> bool:
        return self.is_store_open and self.model.is_usable and not self.is_writing

    @property
    def can_write_again(self) -> bool:
        return self.has_messages and self.can_send

    @property
    def placeholder(self) -> str:
        return f"Message {self.model.name}" if self.model.is_usable else "Choose a model to start"

    @property
    def hint(self) -> str:
        if self.is_stopping:
            return "Stopping."
        if self.is_comparing:
            return "Two answers are being compared. Press Esc to stop them."
        if self.writing == "here":
            return "The reply is being written. Press Esc to stop it."
        if self.writing == "elsewhere":
            return "A reply is being written in another chat. Press Esc to stop it."
        if self.model.phase == "loading":
            return f"{self.model.name} is loading. You can send already."
        if not self.model.is_usable:
            return "Choose a model below, or drop a model file on this window."
        if self.send_with == "ctrl_enter":
            return "Ctrl+Enter to send, Enter for a new line"
        return "Enter to send, Shift+Enter for a new line"


def short_count(tokens: int) -> str:
    """2148 as "2.1k", 32768 as "32k": figures of the context meter."""
    if tokens < 1000:
        return str(tokens)
    if tokens % 1024 == 0:
        return f"{tokens // 1024}k"
    return f"{tokens / 1000:.1f}k" if tokens < 100_000 else f"{tokens // 1000}k"
