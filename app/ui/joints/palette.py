"""Ctrl+K: what the palette offers, and what a choice does."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Slot

from app.ui.joints.joint import Joint
from app.ui.palette import Palette, PaletteEntry

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

CHAT, MODEL, ACTION = "chat:", "model:", "do:"


class PaletteJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        window.actions_["palette"].triggered.connect(self._show)

    @Slot()
    def _show(self) -> None:
        palette = Palette([*self._chats(), *self._actions(), *self._models()])
        palette.chosen.connect(self._choose)
        palette.closed.connect(palette.deleteLater)
        palette.open_over(self.window)

    def _actions(self) -> list[PaletteEntry]:
        """Everything that can be done now."""
        return [
            PaletteEntry(ACTION + name, words, "keyboard", menu, keys)
            for name, menu, words, keys in self.window.actions_.listed()
            if self.window.actions_[name].isEnabled() and name != "palette"
        ]

    def _chats(self) -> list[PaletteEntry]:
        """All chats, also those that the sidebar's search leaves out."""
        if self.chat is None:
            return []
        return [
            PaletteEntry(f"{CHAT}{record.id}", record.title or "Untitled", "chat", "Chat")
            for record in self.chat.store.conversations()
        ]

    def _models(self) -> list[PaletteEntry]:
        if self.models is None:
            return []
        return [
            PaletteEntry(MODEL + entry.path, entry.name, "model", "Model")
            for entry in self.models.entries()
            if not entry.is_current
        ]

    @Slot(str)
    def _choose(self, key: str) -> None:
        if key.startswith(CHAT):
            self.window.sidebar.chat_opened.emit(int(key.removeprefix(CHAT)))
        elif key.startswith(MODEL) and self.models is not None:
            self.models.load(key.removeprefix(MODEL))
        elif key.startswith(ACTION):
            self.window.actions_[key.removeprefix(ACTION)].trigger()
