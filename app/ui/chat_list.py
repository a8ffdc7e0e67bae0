"""Rows of the list of chats as values: what they say, and where each stands.

Pure. The list is one flat row of rows in the order of their keys: pinned chats, folders with their
chats, then the others by date. A heading stands before what it heads, by its key as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from PySide6.QtCore import QLocale

from app.store.records import SearchHit

# Where a chat can be put: among the pinned, in the folder of a number, or in none.
Place = int | Literal["pinned"] | None

Key = tuple[int, int, int, int, float, int]
PINNED_AREA, FOLDERS_AREA, FOLDER_AREA, DATE_AREA = range(4)
PINNED: Key = (PINNED_AREA, 0, 0, 0, 0, 0)
FOLDERS: Key = (FOLDERS_AREA, 0, 0, 0, 0, 0)
LEAD = 14  # letters of an excerpt before its first find: it must be seen in a narrow list


@dataclass(frozen=True)
class ChatRow:
    id: int
    title: str
    updated_at: float  # seconds since the epoch
    is_live: bool = False
    has_draft: bool = False
    folder_id: int | None = None
    is_pinned: bool = False
    is_unread: bool = False
    is_temporary: bool = False


@dataclass(frozen=True)
class FolderRow:
    id: int
    name: str
    is_open: bool = True
    count: int = 0


@dataclass(frozen=True)
class Heading:
    title: str


@dataclass(frozen=True)
class HitRow:
    """A chat that a search found. `where` says where it stands, when no message was found."""

    chat: ChatRow
    title_places: tuple[tuple[int, int], ...] = ()
    message_id: int | None = None
    excerpt: str = ""
    places: tuple[tuple[int, int], ...] = ()
    where: str = ""

    @property
    def words(self) -> str:
        """What was found in the message, as it stands there."""
        return self.excerpt[slice(self.places[0][0], sum(self.places[0]))] if self.places else ""


Row = ChatRow | FolderRow | Heading | HitRow


# ---- dates
def section_of(when: date, today: date) -> str:
    return _section(when, today)[1]


def _section(when: date, today: date) -> tuple[int, str]:
    """(its place, its title)."""
    days = (today - when).days
    if days <= 1:
        return (0, "Today") if days <= 0 else (1, "Yesterday")
    if days <= 30:
        return (2, "Previous 7 days") if days <= 7 else (3, "Previous 30 days")
    months = (today.year - when.year) * 12 + today.month - when.month
    month = QLocale.c().standaloneMonthName(when.month)
    return 4 + months, month if when.year == today.year else f"{month} {when.year}"


def trail_of(when: datetime, now: datetime) -> str:
    """The short date at the right of a row."""
    days = (now.date() - when.date()).days
    if days <= 0:
        return f"{when:%H:%M}"
    if days < 7:
        return QLocale.c().standaloneDayName(when.isoweekday(), QLocale.FormatType.ShortFormat)
    month = QLocale.c().standaloneMonthName(when.month, QLocale.FormatType.ShortFormat)
    return f"{when.day} {month}" if when.year == now.year else f"{month} {when.year}"


def spoken_date(when: datetime, now: datetime) -> str:
    days = (now.date() - when.date()).days
    if days <= 1:
        return f"{'yesterday' if days == 1 else 'today'} at {when:%H:%M}"
    if days < 7:
        return QLocale.c().standaloneDayName(when.isoweekday())
    month = QLocale.c().standaloneMonthName(when.month)
    return f"{when.day} {month}" + (f" {when.year}" if when.year != now.year else "")


# ---- places
class Order:
    """Gives keys for one day and one order of folders."""

    def __init__(self, today: date, folders: Sequence[FolderRow]) -> None:
        self.today = today
        self._places = {folder.id: place for place, folder in enumerate(folders)}
        self._closed = {folder.id for folder in folders if not folder.is_open}
        self._sections: dict[date, tuple[int, str]] = {}

    def key_of(self, chat: ChatRow) -> Key:
        last = (-chat.updated_at, -chat.id)
        if chat.is_pinned:
            return (PINNED_AREA, 0, 0, 1, *last)
        place = self._places.get(chat.folder_id) if chat.folder_id is not None else None
        if place is not None and chat.folder_id is not None:
            return (FOLDER_AREA, place, chat.folder_id, 1, *last)
        return (DATE_AREA, self._section_of(chat)[0], 0, 1, *last)

    def key_of_folder(self, folder_id: int) -> Key:
        return (FOLDER_AREA, self._places[folder_id], folder_id, 0, 0, 0)

    def folder_of(self, chat: ChatRow) -> int | None:
        """The folder that it is shown in."""
        return None if chat.is_pinned or chat.folder_id not in self._places else chat.folder_id

    def is_shown(self, chat: ChatRow) -> bool:
        return self.folder_of(chat) not in self._closed

    def heading_of(self, chat: ChatRow) -> Heading | None:
        """What it stands under, unless it is in a folder."""
        if chat.is_pinned:
            return Heading("Pinned")
        if self.folder_of(chat) is not None:
            return None
        return Heading(self._section_of(chat)[1])

    def _section_of(self, chat: ChatRow) -> tuple[int, str]:
        day = datetime.fromtimestamp(chat.updated_at).date()
        found = self._sections.get(day)
        if found is None:
            found = self._sections[day] = _section(day, self.today)
        return found


def first_key(place: Place, order: Order) -> Key:
    """Where the rows of a place begin."""
    if place == "pinned":
        return PINNED
    return (DATE_AREA, 0, 0, 0, 0, 0) if place is None else order.key_of_folder(place)


def place_of_key(key: Key) -> Place | Literal["folders"]:
    """The place that a row of this key belongs to; "folders" is the heading over all of them."""
    if key[0] == PINNED_AREA:
        return "pinned"
    if key[0] == FOLDERS_AREA:
        return "folders"
    return key[2] if key[0] == FOLDER_AREA else None


def heading_key(key: Key) -> Key:
    """Of the heading, or the folder, that a chat with this key stands under."""
    return (*key[:3], 0, 0, 0)


def rows_of(
    chats: Sequence[ChatRow], folders: Sequence[FolderRow], order: Order
) -> list[tuple[Key, Row]]:
    """All of them at once, in their order."""
    found: dict[Key, Row] = {}
    for chat in chats:
        if order.is_shown(chat):
            key = order.key_of(chat)
            found[key] = chat
            heading = order.heading_of(chat)
            if heading is not None:
                found.setdefault(heading_key(key), heading)
    if folders:
        found[FOLDERS] = Heading("Folders")
    for folder in folders:
        found[order.key_of_folder(folder.id)] = folder
    return sorted(found.items(), key=lambda pair: pair[0])


# ---- finds
def hit_rows(
    hits: Sequence[SearchHit], chats: dict[int, ChatRow], folders: Sequence[FolderRow], order: Order
) -> list[HitRow]:
    """One row a chat, in the order of the finds."""
    titles = {hit.conversation_id: hit.highlights for hit in hits if hit.message_id is None}
    messages = {hit.conversation_id: hit for hit in hits if hit.message_id is not None}
    names = {folder.id: folder.name for folder in folders}
    rows = []
    for chat_id in dict.fromkeys(hit.conversation_id for hit in hits):
        chat, hit = chats.get(chat_id), messages.get(chat_id)
        if chat is None:
            continue
        title_places = titles.get(chat_id, ())
        if hit is not None:
            excerpt, places = _near(hit.excerpt, hit.highlights)
            rows.append(HitRow(chat, title_places, hit.message_id, excerpt, places))
        else:
            folder_id, heading = order.folder_of(chat), order.heading_of(chat)
            where = heading.title if heading else f"In {names.get(folder_id or 0, '')}"
            rows.append(HitRow(chat, title_places, where=where))
    return rows


def _near(
    excerpt: str, places: tuple[tuple[int, int], ...]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Cut in front, so that the first find is seen."""
    if not places or places[0][0] <= LEAD:
        return excerpt, places
    space = excerpt.rfind(" ", 0, places[0][0] - LEAD)
    cut = space + 1 if space >= 0 and places[0][0] - space < 2 * LEAD else places[0][0] - LEAD
    moved = tuple((start - cut + 1, length) for start, length in places)
    return "…" + excerpt[cut:], moved


# ---- words for screen readers
def spoken(row: Row, now: datetime, folder: str = "") -> str:
    """`folder` is the name of the one that a chat stands in."""
    if isinstance(row, Heading):
        return f"{row.title}, heading"
    if isinstance(row, FolderRow):
        chats = f"{row.count} chat{'s' * (row.count != 1)}"
        return f"Folder {row.name}, {chats}, {'open' if row.is_open else 'closed'}"
    if isinstance(row, HitRow):
        return ", ".join(filter(None, (spoken(row.chat, now, folder), row.excerpt)))
    parts = [row.title or "New chat"]
    if folder:
        parts.append(f"in folder {folder}")
    parts.append(spoken_date(datetime.fromtimestamp(row.updated_at), now))
    marks = {
        "pinned": row.is_pinned,
        "temporary": row.is_temporary,
        "being written": row.is_live,
        "new answer": row.is_unread,
        "has a draft": row.has_draft,
    }
    return ", ".join(parts + [word for word, is_so in marks.items() if is_so])
