"""The tab of the inspector: which one is shown belongs to the chat, and is remembered with it."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.store.store import Store
from app.ui import theme
from app.ui.chat_state import ChatState
from app.ui.inspector import NAMES
from app.ui.joints.joint import Joint

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

WIDTHS = {"tokens": 400}  # of a tab that wants another one than the others
USUAL_WIDTH = 344


class TabsJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self._visit = 0
        window.inspector.tab_changed.connect(self._on_tab)

    def follow(self, old: ChatState, new: ChatState) -> None:
        if self.chat is None or (self._visit == self.chat.visit and not self._is_new(old, new)):
            return
        if self._visit == self.chat.visit:  # the new chat has its first message
            self._remember(self.window.inspector.tab)
            return
        self._visit = self.chat.visit
        shown = self.chat.shown
        record = self.chat.store.conversation(shown) if shown is not None else None
        name = record.view.get("tab") if record is not None else None
        self.window.inspector.choose_tab(name if name in NAMES else NAMES[0])

    @staticmethod
    def _is_new(old: ChatState, new: ChatState) -> bool:
        return old.conversation_id is None and new.conversation_id is not None

    @Slot(str)
    def _on_tab(self, name: str) -> None:
        self._widen(name)
        self._remember(name)

    def _widen(self, name: str) -> None:
        """A width that nobody chose follows the tab."""
        panels = self.window.panels
        known = {theme.u(width) for width in (USUAL_WIDTH, *WIDTHS.values())}
        if panels.width_of("inspector") in known:
            panels.set_width("inspector", theme.u(WIDTHS.get(name, USUAL_WIDTH)))

    def _remember(self, name: str) -> None:
        if self.chat is not None and self.chat.shown is not None:
            self.chat.change(partial(_set_tab, conversation_id=self.chat.shown, name=name))


def _set_tab(store: Store, conversation_id: int, name: str) -> None:
    record = store.conversation(conversation_id)
    if record is not None and record.view.get("tab", NAMES[0]) != name:
        store.set_view(conversation_id, {**record.view, "tab": name})
