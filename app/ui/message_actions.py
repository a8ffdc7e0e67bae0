"""What a person does with one message: copy, write again, its versions, how it was made.

Joins the transcript and the controller. `elsewhere` are names that are no message's own, as the
ways out of a notice in the flow of the text.
"""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QPoint, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from app.store.records import MessageRecord
from app.ui import copying, icons
from app.ui.chat_controller import ChatController
from app.ui.chat_items import can_continue, text_of
from app.ui.made_card import MadeCard
from app.ui.transcript import TranscriptView


class MessageActions(QObject):
    elsewhere = Signal(str)
    announced = Signal(str)

    def __init__(self, chat: ChatController, transcript: TranscriptView, parent: QObject) -> None:
        super().__init__(parent)
        self._chat, self._transcript = chat, transcript
        branches = chat.branches
        self._deeds: dict[str, Callable[[int], None]] = {
            "continue": chat.continue_answer,
            "branch": branches.copy,
            "pin": branches.pin,
            "begin-memory": branches.begin_memory,
            "remember-all": lambda _: branches.remember_all(),
            "delete": branches.delete,
        }

    @Slot(int, str)
    def act(self, key: int, name: str) -> None:
        if name in ("copy", "copy-plain"):
            self._copy(key, is_plain=name == "copy-plain")
        elif name == "regenerate":
            self._chat.write_again(key)
        elif name == "more":
            self._show_menu(key)
        elif name in self._deeds:
            self._deeds[name](key)
        elif name in ("previous", "next"):
            self._chat.switch_branch(key, -1 if name == "previous" else 1)
        elif name == "statistics":
            self._show_statistics(key)
        elif name not in ("edit", "tokens"):  # edited in place, looked at in their tab
            self.elsewhere.emit(name)

    def _copy(self, key: int, *, is_plain: bool) -> None:
        """What a person wrote is no Markdown, and goes as it is."""
        record = self._chat.here.record(key)
        if record is None:
            return
        text = text_of(record.parts)
        if record.role == "user":
            QGuiApplication.clipboard().setText(text)
        elif is_plain:
            QGuiApplication.clipboard().setText(copying.plain_of(text))
        else:
            copying.copy(text)

    def menu(self, key: int) -> QMenu | None:
        """What else can be done with a message."""
        record = self._chat.here.record(key)
        if record is None:
            return None
        menu = QMenu(self._transcript)
        menu.setAccessibleName("Message")
        for words, icon, name, is_possible in self._choices(record):
            choice = menu.addAction(icons.icon(icon), words)
            choice.setObjectName(name)
            choice.setEnabled(is_possible)
            choice.triggered.connect(partial(self.act, key, name))
        return menu

    def _choices(self, record: MessageRecord) -> list[tuple[str, str, str, bool]]:
        here, state = self._chat.here, self._chat.state
        is_free = state.writing != "here"
        versions = here.versions(record.id)
        choices = [("Branch as a new chat", "branch", "branch", is_free)]
        if record.role == "assistant":
            go_on = can_continue(record) and state.can_send
            choices.insert(0, ("Continue writing", "pen", "continue", go_on))
            choices.append(("Copy as plain text", "copy", "copy-plain", True))
        pin = "Let it be forgotten again" if record.is_pinned else "Pin: never forget this turn"
        choices.append((pin, "pin", "pin", is_free))
        choices.append(("Memory begins here", "flag", "begin-memory", is_free))
        if here.memory_start is not None:
            choices.append(("Remember all again", "undo", "remember-all", is_free))
        what = "Delete this version" if len(versions) > 1 else "Delete from here on"
        choices.append((what, "trash", "delete", is_free))
        return choices

    def _show_menu(self, key: int) -> None:
        menu = self.menu(key)
        opener = self._transcript.control(key, "more") or self._transcript
        if menu is not None:
            menu.aboutToHide.connect(menu.deleteLater)
            menu.popup(opener.mapToGlobal(QPoint(0, opener.height())))

    def _show_statistics(self, key: int) -> None:
        record = self._chat.here.record(key)
        if record is not None:
            card = MadeCard(record, self._chat.why_no_replay(record))
            card.replay_requested.connect(self._chat.replay)
            card.closed.connect(card.deleteLater)
            card.open_from(
                self._transcript.control(key, "statistics") or self._transcript, above=True
            )

    @Slot()
    def edit_last(self) -> None:
        key = self._chat.here.last_question()
        if key is not None and not self._chat.state.is_writing:
            self._transcript.edit(key)

    @Slot()
    def previous_version(self) -> None:
        self._switch(-1)

    @Slot()
    def next_version(self) -> None:
        self._switch(1)

    def _switch(self, step: int) -> None:
        if (key := self._chat.here.last_with_versions()) is not None:
            self._chat.switch_branch(key, step)

    @Slot()
    def branch_last(self) -> None:
        self._on_last("branch")

    @Slot()
    def pin_last(self) -> None:
        self._on_last("pin")

    @Slot()
    def delete_last(self) -> None:
        self._on_last("delete")

    @Slot()
    def edit_answer(self) -> None:
        key = self._chat.here.leaf_id
        if key is not None and not self._chat.state.is_writing:
            self._transcript.edit(key)

    @Slot()
    def explain_last(self) -> None:
        self._on_last("statistics")

    def _on_last(self, name: str) -> None:
        if (key := self._chat.here.leaf_id) is not None:
            self.act(key, name)

    @Slot()
    def copy_answer(self) -> None:
        if text := self._chat.here.last_answer_text():
            copying.copy(text)
            self.announced.emit("Copied")

    @Slot()
    def copy_code(self) -> None:
        """The last block of code of the last answer."""
        code = copying.last_code(self._chat.here.last_answer_text())
        if code is None:
            self.announced.emit("The last answer has no code")
        else:
            QGuiApplication.clipboard().setText(code)
            self.announced.emit("Code copied")
