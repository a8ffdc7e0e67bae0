"""What a person does with one message: copy, write again, its versions, how it was made.

Joins the transcript and the controller. `elsewhere` are names that are no message's own, as the
ways out of a notice in the flow of the text.
"""

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication

from app.ui.chat_controller import ChatController
from app.ui.chat_items import text_of
from app.ui.statistics import StatisticsCard
from app.ui.transcript import TranscriptView


class MessageActions(QObject):
    elsewhere = Signal(str)
    announced = Signal(str)

    def __init__(self, chat: ChatController, transcript: TranscriptView, parent: QObject) -> None:
        super().__init__(parent)
        self._chat, self._transcript = chat, transcript

    @Slot(int, str)
    def act(self, key: int, name: str) -> None:
        if name == "copy":
            record = self._chat.here.record(key)
            if record is not None:
                QGuiApplication.clipboard().setText(text_of(record.parts))
        elif name == "regenerate":
            self._chat.write_again(key)
        elif name == "continue":
            self._chat.continue_answer(key)
        elif name in ("previous", "next"):
            self._chat.switch_branch(key, -1 if name == "previous" else 1)
        elif name == "statistics":
            self._show_statistics(key)
        elif name != "edit":  # the transcript edits in place and sends `edited`
            self.elsewhere.emit(name)

    def _show_statistics(self, key: int) -> None:
        record = self._chat.here.record(key)
        if record is not None:
            card = StatisticsCard(record)
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
    def copy_answer(self) -> None:
        if text := self._chat.here.last_answer_text():
            QGuiApplication.clipboard().setText(text)
            self.announced.emit("Copied")
