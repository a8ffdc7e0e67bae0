"""One story of the window, in a file of its own: joins widgets, actions and controllers.

The window holds the widgets and tells every joint what is the case; a joint connects signals to its
own slots and holds no widget of the window but through `window`. A feature is a new joint in the
list in main_window.py, with its rows in actions.py.
"""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.ui.chat_state import ChatState

if TYPE_CHECKING:
    from app.ui.chat_controller import ChatController
    from app.ui.main_window import MainWindow
    from app.ui.model_controller import ModelController


class Joint(QObject):
    def __init__(self, window: "MainWindow") -> None:
        """Connect what needs no chats: widgets' signals and actions."""
        super().__init__(window)
        self.window = window
        self.chat: ChatController | None = None
        self.models: ModelController | None = None

    def open(self, chat: "ChatController", models: "ModelController") -> None:
        """Chats are open (it may happen again after an error, with new controllers)."""
        self.chat, self.models = chat, models

    def follow(self, old: ChatState, new: ChatState) -> None:
        """Something changed; enable the actions of this story, show what it shows."""

    def act(self, name: str) -> bool:
        """A way out of a notice, by name. True: it was this joint's, and is done."""
        return False

    def restyle(self) -> None:
        """The colours or the text size changed."""
