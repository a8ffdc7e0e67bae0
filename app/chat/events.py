"""What goes into the chat and what comes out of it, in order.

Exactly one Finished or Failed ends each Reply, Load and Unload, always last for its request_id.
"""

from dataclasses import dataclass, field

from app.chat.messages import FinishReason, Message, ModelInfo, Options, Stats


# ---- requests
@dataclass(frozen=True)
class Load:
    """`threads`: how many processor threads; 0 leaves the choice to the engine."""

    request_id: int
    path: str
    threads: int = 0


@dataclass(frozen=True)
class Unload:
    request_id: int


@dataclass(frozen=True)
class Reply:
    """Answer the last message of `messages` (without a system message: it is in the options)."""

    request_id: int
    messages: tuple[Message, ...]
    options: Options


Request = Load | Unload | Reply


# ---- events
@dataclass(frozen=True)
class Loading:
    request_id: int
    path: str


@dataclass(frozen=True)
class Loaded:
    request_id: int
    model: ModelInfo


@dataclass(frozen=True)
class Prefill:
    """`done` of `total` prompt tokens are in the cache, `kept` of them from before."""

    request_id: int
    done: int
    total: int
    kept: int


@dataclass(frozen=True)
class Piece:
    """New text of the answer or of its thought; `token_ids` came since the last Piece."""

    request_id: int
    text: str
    is_thought: bool = False
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finished:
    request_id: int
    reason: FinishReason = "end"
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True)
class Failed:
    """`message` is a sentence for a person; `kind` lets the window offer the fitting way out.

    kind: "context" (prompt too long), "model" (missing, cut or foreign files), "memory",
    "no model", "bug" (the traceback is in the log).
    """

    request_id: int
    message: str
    kind: str = "bug"


Event = Loading | Loaded | Prefill | Piece | Finished | Failed
