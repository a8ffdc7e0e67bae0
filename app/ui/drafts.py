"""What is typed and chosen in the chat that is shown, saved a moment later.

A draft and the options belong to their chat: both are saved before another one is shown.
"""

from functools import partial

from PySide6.QtCore import QObject, QTimer, Slot

from app.chat.messages import Options
from app.store.store import Store
from app.ui.chat_items import options_to_details
from app.ui.chat_screen import ChatScreen

SAVE_DRAFT_MS = 1000
SAVE_OPTIONS_MS = 300


class Drafts(QObject):
    def __init__(self, screen: ChatScreen) -> None:
        super().__init__(screen)
        self._screen = screen
        self.text = ""  # what stands in the message field
        self._is_saved = True
        self._are_options_saved = True
        self.timer = QTimer(self, singleShot=True, interval=SAVE_DRAFT_MS)
        self.timer.timeout.connect(self._save_in_its_chat)
        self._options_timer = QTimer(self, singleShot=True, interval=SAVE_OPTIONS_MS)
        self._options_timer.timeout.connect(self.save_options)

    def show(self, text: str) -> None:
        """The draft of a chat that was opened; the one before it is saved."""
        self.text = text
        self._screen.composer_filled.emit(text)

    def take(self) -> None:
        """It was sent: the write of the question empties it in the store."""
        self.timer.stop()
        self.text, self._is_saved = "", True
        self._screen.composer_filled.emit("")

    def discard(self) -> None:
        """What stands here is in the store by now, in another chat."""
        self._is_saved = True

    @Slot(str)
    def change(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self._is_saved = False
            if not self.timer.isActive():
                self.timer.start()

    @Slot(object)
    def change_options(self, options: Options) -> None:
        self._screen.options = options
        self._are_options_saved = False
        self._options_timer.start()

    @Slot()
    def _save_in_its_chat(self) -> None:
        """A chat that is being made takes what is typed meanwhile: wait for its number."""
        answer = self._screen.answer
        if self._screen.shown is None and answer is not None and answer.message_id is None:
            self.timer.start()
        else:
            self.save()

    @Slot()
    def save(self) -> None:
        self.timer.stop()
        if not self._is_saved:
            self._is_saved = True
            shown = self._screen.shown
            self._screen.job.run(
                partial(Store.save_draft, conversation_id=shown, text=self.text),
                lambda _: self._screen.shelf.follow([shown]),
                self._screen.on_change_failed,
            )

    @Slot()
    def save_options(self) -> None:
        self._options_timer.stop()
        if self._are_options_saved or self._screen.shown is None:
            return
        self._are_options_saved = True
        options = options_to_details(self._screen.options)
        self._screen.job.run(
            partial(Store.set_options, conversation_id=self._screen.shown, options=options),
            None,
            self._screen.on_change_failed,
        )

    def give_back(self, text: str) -> None:
        if text and not self.text:
            self.change(text)
            self._screen.composer_filled.emit(text)
