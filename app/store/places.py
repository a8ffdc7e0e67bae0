"""Where a chat is kept: on the disk, or in memory only. Its number alone tells."""

from pathlib import Path

from app.store.file import IN_MEMORY, StoreFile

FIRST_IN_MEMORY = 1 << 30  # numbers of chats and messages that never touch the disk


class Places:
    """The file, and a database in memory that is made when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._disk = StoreFile(self.path)
        self._memory: StoreFile | None = None

    def close(self) -> None:
        """Let go of both; harmless when done twice. What was in memory is gone."""
        for file in self._files():
            file.close()
        self._memory = None

    def _files(self) -> list[StoreFile]:
        return [self._disk] + ([self._memory] if self._memory is not None else [])

    def _of(self, number: int | None) -> StoreFile:
        """Where the chat or message of that number is."""
        if number is not None and number >= FIRST_IN_MEMORY and self._memory is not None:
            return self._memory
        return self._disk

    def _in_memory(self) -> StoreFile:
        if self._memory is None:
            self._memory = StoreFile(IN_MEMORY)
            with self._memory.write() as writer:
                for table in ("conversation", "message"):
                    writer.execute(
                        "INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)",
                        (table, FIRST_IN_MEMORY - 1),
                    )
        return self._memory


def is_temporary(number: int | None) -> bool:
    return number is not None and number >= FIRST_IN_MEMORY
