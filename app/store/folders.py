"""Folders of chats: names, order, which are folded up."""

import json
import time

from app.store.places import Places
from app.store.records import FolderRecord
from app.store.rows import folder_of, inserted, writable

CLOSED_FOLDERS = "closed folders"  # a note: their numbers


class Folders(Places):
    def folders(self) -> list[FolderRecord]:
        """Those that are not deleted, in their order."""
        return self._folders("deleted_at IS NULL ORDER BY position, id")

    def deleted_folders(self) -> list[FolderRecord]:
        """The bin, what was deleted last first."""
        return self._folders("deleted_at IS NOT NULL ORDER BY deleted_at DESC, id DESC")

    def _folders(self, condition: str) -> list[FolderRecord]:
        closed = self._closed()
        rows = self._disk.read(f"SELECT * FROM folder WHERE {condition}")
        return [folder_of(row, is_open=row["id"] not in closed) for row in rows]

    def set_folder_open(self, folder_id: int, is_open: bool) -> None:
        closed = self._closed() - {folder_id} if is_open else self._closed() | {folder_id}
        self._disk.change(
            "INSERT OR REPLACE INTO note VALUES (?, ?)", CLOSED_FOLDERS, json.dumps(sorted(closed))
        )

    def _closed(self) -> set[int]:
        rows = self._disk.read("SELECT text FROM note WHERE key = ?", CLOSED_FOLDERS)
        try:
            found = json.loads(rows[0][0]) if rows else []
        except ValueError:
            return set()
        return {each for each in found if isinstance(each, int)} if type(found) is list else set()

    def create_folder(self, name: str) -> int:
        """At the end of the list."""
        with self._disk.write() as writer:
            return inserted(
                writer.execute(
                    "INSERT INTO folder(name, position)"
                    " VALUES (?, (SELECT coalesce(max(position), 0) + 1 FROM folder))",
                    (writable(name),),
                )
            )

    def rename_folder(self, folder_id: int, name: str) -> None:
        self._disk.change("UPDATE folder SET name = ? WHERE id = ?", writable(name), folder_id)

    def move_folder(self, folder_id: int, position: int) -> None:
        """To a place in the list, counted from 0."""
        order = [folder.id for folder in self.folders() if folder.id != folder_id]
        order.insert(position, folder_id)
        with self._disk.write() as writer:
            for place, each in enumerate(order):
                writer.execute("UPDATE folder SET position = ? WHERE id = ?", (place, each))

    def delete_folder(self, folder_id: int) -> None:
        """Its chats stay, and stand in no folder while it is gone; `restore_folder` undoes it."""
        self._disk.change("UPDATE folder SET deleted_at = ? WHERE id = ?", time.time(), folder_id)

    def restore_folder(self, folder_id: int) -> None:
        self._disk.change("UPDATE folder SET deleted_at = NULL WHERE id = ?", folder_id)

    def delete_folder_for_good(self, folder_id: int) -> None:
        with self._disk.erase() as writer:
            writer.execute("DELETE FROM folder WHERE id = ?", (folder_id,))
