"""What the transcript shows, as values. They carry no widget, no store row and no engine.

`key` is the caller's own number for a message; the view only hands it back. `state` holds the
values of app.store.records.State, as text, so that a notice needs no row to exist.
"""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["info", "warning", "danger"]
Role = Literal["user", "assistant", "notice"]

STATS_SEPARATOR = "  ·  "


@dataclass(frozen=True)
class Way:
    """A button of a notice: what it says, and the name that the click sends."""

    text: str
    action: str


@dataclass(frozen=True)
class Notice:
    """What happened, what it means and the ways out; the first way is the recommended one."""

    tone: Tone
    title: str
    text: str
    ways: tuple[Way, ...] = ()
    details: str = ""


@dataclass(frozen=True)
class Attachment:
    """A file that stands with a message: `size` and `note` (its token cost) in words."""

    name: str
    size: str = ""
    note: str = ""


@dataclass(frozen=True)
class Item:
    """One entry of the transcript.

    `status` says what goes on before the first word ("Reading 120 of 400 tokens") or how the
    answer ended; where it is empty the view words the `state` itself. `stats` are figures joined
    by STATS_SEPARATOR, the most telling first: in a narrow column the last ones drop out.
    `kept` says what needed no reading again ("kept 1,180 of 1,240 tokens from the cache").
    `begins_memory`: entries above this one, unless pinned, are no longer read by the model.
    """

    key: int
    role: Role
    text: str = ""
    thought: str = ""
    thought_seconds: float = 0
    is_thinking: bool = False
    model: str = ""
    state: str = "done"
    stats: str = ""
    branch: tuple[int, int] | None = None  # (this one, of how many), counted from 1
    notice: Notice | None = None
    status: str = ""
    is_last: bool = False
    attachments: tuple[Attachment, ...] = ()
    is_pinned: bool = False
    is_edited: bool = False
    can_continue: bool = False  # it was cut off, and the model can write on
    begins_memory: bool = False
    adapter: str = ""
    kept: str = ""

    @property
    def is_writing(self) -> bool:
        return self.state == "writing"
