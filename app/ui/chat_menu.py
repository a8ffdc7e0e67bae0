"""The menu at a row of the list of chats: all that keys do, and where to move it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QWidget

from app.ui import icons
from app.ui.chat_list import ChatRow, FolderRow, Place

Move = Callable[[Place], None]


class ChatMenu(QMenu):
    """Filled by its maker; gone when it closes."""

    def __init__(self, parent: QWidget, name: str) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(name)

    def add(self, text: str, key: str, act: Callable[[], object], icon: str = "") -> None:
        """`key` is shown, and works in the list."""
        words = text.replace("&", "&&") + (f"\t{key}" if key else "")
        action = self.addAction(words)
        if icon:
            action.setIcon(icons.icon(icon))
        action.triggered.connect(lambda: act())

    def add_places(
        self, chats: Sequence[ChatRow], folders: Sequence[FolderRow], move: Move, new: Move
    ) -> None:
        """Where the chats can go; `new` makes a folder for them."""
        moves = ChatMenu(self, "Move to")
        moves.setTitle("Move to")
        fill_places(moves, chats, folders, move, new)
        self.addMenu(moves)


def fill_places(
    menu: ChatMenu,
    chats: Sequence[ChatRow],
    folders: Sequence[FolderRow],
    move: Move,
    new: Move,
) -> None:
    inside = {chat.folder_id for chat in chats}
    for folder in folders:
        if inside != {folder.id}:
            menu.add(folder.name, "", _to(move, folder.id), "folder")
    if any(folder.id in inside for folder in folders):
        menu.add("No folder", "", _to(move, None))
    if not menu.isEmpty():
        menu.addSeparator()
    menu.add("New folder", "", _to(new, None), "plus")


def _to(move: Move, place: Place) -> Callable[[], None]:
    return lambda: move(place)
