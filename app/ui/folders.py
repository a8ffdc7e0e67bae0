"""What a person does with folders, and with chats among them: each is written, then shown."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from app.store.store import Store
from app.ui.chat_list import Place
from app.ui.chat_screen import ChatScreen
from app.ui.undo import Deed

NEW_FOLDER = "New folder"
DELETED = "Folder deleted"


class Folders(QObject):
    created = Signal(int)  # it is listed, and wants its name

    def __init__(self, screen: ChatScreen) -> None:
        super().__init__(screen)
        self._screen = screen

    @Slot(list)
    def create(self, chats: Sequence[int]) -> None:
        """A new one, with these chats in it."""

        def write(store: Store) -> int:
            folder_id = store.create_folder(NEW_FOLDER)
            _put(store, chats, folder_id)
            return folder_id

        def done(folder_id: int) -> None:
            self._show(chats)
            self.created.emit(folder_id)

        self._screen.job.run(write, done, self._screen.on_change_failed)

    @Slot(int, str)
    def rename(self, folder_id: int, name: str) -> None:
        self._change(partial(Store.rename_folder, folder_id=folder_id, name=name))

    @Slot(int, bool)
    def set_open(self, folder_id: int, is_open: bool) -> None:
        self._change(partial(Store.set_folder_open, folder_id=folder_id, is_open=is_open))

    @Slot(int, int)
    def move(self, folder_id: int, position: int) -> None:
        self._change(partial(Store.move_folder, folder_id=folder_id, position=position))

    @Slot(int)
    def delete(self, folder_id: int) -> None:
        """Its chats stay."""
        self._change(partial(Store.delete_folder, folder_id=folder_id))
        back = partial(Store.restore_folder, folder_id=folder_id)
        shelf = self._screen.shelf
        self._screen.add_deed(Deed(DELETED, back, shelf.list_folders, is_of_bin=True))

    @Slot(int)
    def restore(self, folder_id: int) -> None:
        """Out of the bin."""
        self._change(partial(Store.restore_folder, folder_id=folder_id))

    @Slot(int)
    def delete_for_good(self, folder_id: int) -> None:
        self._change(partial(Store.delete_folder_for_good, folder_id=folder_id))

    @Slot(list, object)
    def put(self, chats: Sequence[int], place: Place) -> None:
        """Chats into a folder, out of it, or among the pinned; a pinned one keeps its folder."""

        def write(store: Store) -> None:
            _put(store, chats, place)

        self._screen.job.run(
            write, lambda _: self._screen.update_chats(*chats), self._screen.on_change_failed
        )
        self._screen.announced.emit(self._words(place))

    def _words(self, place: Place) -> str:
        if place == "pinned":
            return "Pinned"
        names = (each.name for each in self._screen.store.folders() if each.id == place)
        name = next(names, "")
        return f"Moved to {name}" if name else "Moved out of the folder"

    def _change(self, write: Callable[[Store], object]) -> None:
        self._screen.job.run(write, lambda _: self._show(), self._screen.on_change_failed)

    def _show(self, chats: Sequence[int] = ()) -> None:
        self._screen.shelf.list_folders()
        if chats:
            self._screen.update_chats(*chats)


def _put(store: Store, chats: Sequence[int], place: Place) -> None:
    for chat_id in chats:
        store.set_pinned(chat_id, place == "pinned")
        if place != "pinned":
            store.move_to_folder(chat_id, place if isinstance(place, int) else None)
