"""Everything that can be done by a key or a menu, as one table.

Each row becomes one QAction in one menu, so that every shortcut can be found. What an action does
is joined to it by the window.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QMenuBar


@dataclass(frozen=True)
class Entry:
    name: str
    menu: str
    text: str  # with its mnemonic
    keys: tuple[str, ...] = ()
    is_checkable: bool = False
    begins_group: bool = False


MENUS = ("&Chat", "&Answer", "&View", "&Model", "&Help")
CHAT, ANSWER, VIEW, MODEL, HELP = MENUS

ENTRIES = (
    Entry("new", CHAT, "&New chat", ("Ctrl+N", "Ctrl+Shift+O")),
    Entry("temporary", CHAT, "New &temporary chat", ("Ctrl+Shift+T",)),
    Entry("keep_temporary", CHAT, "&Keep this temporary chat"),
    Entry("close_temporary", CHAT, "&Close this temporary chat"),
    Entry("rename", CHAT, "&Rename", ("F2",)),
    Entry("delete", CHAT, "&Delete", ("Ctrl+Shift+Backspace",)),
    Entry("undo", CHAT, "&Undo delete", ("Ctrl+Z",)),
    Entry("pin", CHAT, "&Pin, or unpin", ("Ctrl+Shift+P",), begins_group=True),
    Entry("move_to", CHAT, "&Move to a folder…", ("Ctrl+Shift+V",)),
    Entry("new_folder", CHAT, "New &folder", ("Ctrl+Shift+N",)),
    Entry("previous_chat", CHAT, "Pre&vious chat", ("Ctrl+PgUp", "Ctrl+Shift+Tab")),
    Entry("next_chat", CHAT, "Ne&xt chat", ("Ctrl+PgDown", "Ctrl+Tab")),
    Entry("bin", CHAT, "Deleted c&hats…"),
    Entry("palette", CHAT, "&Go to a chat or command…", ("Ctrl+K",), begins_group=True),
    Entry("search", CHAT, "&Search chats", ("Ctrl+Shift+F",)),
    Entry("export_chat", CHAT, "Exp&ort this chat…", ("Ctrl+Shift+E",), begins_group=True),
    Entry("export_all", CHAT, "Export a&ll chats…"),
    Entry("import_chats", CHAT, "&Import chats…"),
    Entry("attach", CHAT, "&Attach files…", ("Ctrl+U",), begins_group=True),
    Entry("settings", CHAT, "S&ettings…", ("Ctrl+,",), begins_group=True),
    Entry("quit", CHAT, "&Quit", ("Ctrl+Q",)),
    Entry("stop", ANSWER, "&Stop writing (Esc)", ("Ctrl+.",)),
    Entry("write_again", ANSWER, "&Write again", ("Ctrl+R",)),
    Entry("continue", ANSWER, "C&ontinue writing", ("Ctrl+Shift+R",)),
    Entry("edit_last", ANSWER, "&Edit last message"),
    Entry("edit_answer", ANSWER, "Edit the last &answer"),
    Entry("pin_last", ANSWER, "P&in the last turn, or let it go", begins_group=True),
    Entry("remember_all", ANSWER, "Re&member all again"),
    Entry("branch_last", ANSWER, "&Branch as a new chat"),
    Entry("delete_last", ANSWER, "&Delete the last message"),
    Entry("explain_last", ANSWER, "What made the last ans&wer"),
    Entry("compare", ANSWER, "Compare two &settings", ("Ctrl+Shift+D",)),
    Entry("previous", ANSWER, "&Previous version", ("Alt+Left",), begins_group=True),
    Entry("next", ANSWER, "&Next version", ("Alt+Right",)),
    Entry("copy", ANSWER, "&Copy last answer", ("Ctrl+Shift+C",), begins_group=True),
    Entry("copy_code", ANSWER, "Copy its last code bloc&k", ("Ctrl+Shift+;",)),
    Entry("sidebar", VIEW, "&Sidebar", ("Ctrl+B", "Ctrl+Shift+S"), is_checkable=True),
    Entry("inspector", VIEW, "&Options panel", ("Ctrl+I", "Ctrl+Shift+B"), is_checkable=True),
    Entry("options", VIEW, "&Go to the options", ("Ctrl+1",)),
    Entry("tokens", VIEW, "&Tokens of the answer", ("Ctrl+3",)),
    Entry("find", VIEW, "&Find in this chat", ("Ctrl+F",), begins_group=True),
    Entry("find_next", VIEW, "Find ne&xt", ("F3",)),
    Entry("find_previous", VIEW, "Find pre&vious", ("Shift+F3",)),
    Entry("larger", VIEW, "&Larger text", ("Ctrl++", "Ctrl+="), begins_group=True),
    Entry("smaller", VIEW, "&Smaller text", ("Ctrl+-",)),
    Entry("normal", VIEW, "&Normal text size", ("Ctrl+0",)),
    Entry("next_area", VIEW, "Next &area", ("F6",), begins_group=True),
    Entry("previous_area", VIEW, "P&revious area", ("Shift+F6",)),
    Entry("context", VIEW, "What fills the model's &memory"),
    Entry("prompt", VIEW, "Show the e&xact prompt…"),
    Entry("message", VIEW, "Go to the &message field", ("Shift+Esc",)),
    Entry("choose_model", MODEL, "&Choose a model…", ("Ctrl+Shift+M", "Ctrl+L")),
    Entry("open_model", MODEL, "&Open a model file or folder…", ("Ctrl+O",)),
    Entry("library", MODEL, "&All models", ("Ctrl+Shift+L",)),
    Entry("server", MODEL, "&Local server…", begins_group=True),
    Entry("manual", HELP, "&Manual"),
    Entry("keys", HELP, "&Keyboard shortcuts", ("Ctrl+/", "F1")),
    Entry("data", HELP, "Show the &data folder", begins_group=True),
    Entry("log", HELP, "&Log…"),
    Entry("licences", HELP, "L&icences…"),
    Entry("about", HELP, "&About Inglenook", begins_group=True),
)

ROLES = {
    "settings": QAction.MenuRole.PreferencesRole,
    "quit": QAction.MenuRole.QuitRole,
    "about": QAction.MenuRole.AboutRole,
}


class Actions:
    """The QActions by name, in the window's menu bar and in one menu behind the ☰ button."""

    def __init__(self, window: QMainWindow) -> None:
        self._by_name: dict[str, QAction] = {}
        bar = window.menuBar()
        self.popup = QMenu(window)
        self.popup.setAccessibleName("Menu")
        for title in MENUS:
            self._fill(bar, title, window)
        # A hidden menu bar takes its shortcuts along; the window keeps them.
        window.addActions(list(self._by_name.values()))

    def _fill(self, bar: QMenuBar, title: str, window: QMainWindow) -> None:
        menu = bar.addMenu(title)
        self.popup.addMenu(menu)
        for entry in ENTRIES:
            if entry.menu == title:
                if entry.begins_group:
                    menu.addSeparator()
                menu.addAction(self._make(entry, window))

    def _make(self, entry: Entry, window: QMainWindow) -> QAction:
        action = QAction(entry.text, window)
        action.setObjectName(entry.name)
        action.setShortcuts([QKeySequence(keys) for keys in entry.keys])
        action.setCheckable(entry.is_checkable)
        action.setMenuRole(ROLES.get(entry.name, QAction.MenuRole.NoRole))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        self._by_name[entry.name] = action
        return action

    def __getitem__(self, name: str) -> QAction:
        return self._by_name[name]

    def enable(self, states: Mapping[str, bool]) -> None:
        for name, is_enabled in states.items():
            self._by_name[name].setEnabled(is_enabled)

    def listed(self) -> list[tuple[str, str, str, str]]:
        """(name, menu, what it does, its keys), in the order of the menus."""
        native = QKeySequence.SequenceFormat.NativeText
        found = []
        for entry in ENTRIES:
            keys = [key.toString(native) for key in self._by_name[entry.name].shortcuts()]
            words = entry.text.replace("&", "").rstrip("…").replace(" (Esc)", "")
            found.append((entry.name, entry.menu.replace("&", ""), words, "  or  ".join(keys)))
        return found

    def shortcuts(self) -> list[tuple[str, str]]:
        """(what it does, its keys) of all that have keys."""
        return [(words, keys) for _, _, words, keys in self.listed() if keys]


FIXED_KEYS = (
    ("Edit the last message", "Up, in the empty field"),
    ("Close what is open, then stop writing", "Esc"),
    ("Delete a chat or folder in the list", "Del"),
    ("Move a chat or folder in the list", "Alt+Up, Alt+Down"),
    ("Open or close a folder in the list", "Right, Left"),
    ("Start or end of the text", "Home, End"),
    ("Menu", "F10"),
)


def sending_keys(send_with: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """As the settings say."""
    send, line = ("Ctrl+Enter", "Enter") if send_with == "ctrl_enter" else ("Enter", "Shift+Enter")
    return ("Send the message", send), ("New line in the message", line)
