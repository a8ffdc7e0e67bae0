"""What can be taken back, the newest first: one stack for chats, messages and folders."""

from collections.abc import Callable
from dataclasses import dataclass

from app.store.store import Store


@dataclass(frozen=True)
class Deed:
    """What can be taken back.

    `words` say what was done ("Chat deleted"). `take_back` runs on the store's thread, `after` in
    the window's, once it is done. `conversation_id` is the chat that it was done to. `is_of_bin`:
    what it was done to lies in the bin, and is lost when that is emptied.
    """

    words: str
    take_back: Callable[[Store], object]
    after: Callable[[], None]
    conversation_id: int | None = None
    is_of_bin: bool = False
