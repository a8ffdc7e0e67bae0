"""What goes into the chat and what comes out of it, in order.

Exactly one Finished or Failed ends each request, always last for its request_id.
"""

from dataclasses import dataclass, field

from app.chat.messages import (
    ContextUse,
    FinishReason,
    Message,
    ModelInfo,
    Options,
    Stats,
    TokenView,
)


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
    """Answer the last message of `messages` (without a system message: it is in the options).

    `start` are tokens of the answer that stand already, and `start_text` goes after them, encoded
    plainly: the answer is continued, or written on from a token. The first pieces repeat both, so
    that the pieces always make the whole answer. `first` is the first message in memory; earlier
    ones are left out unless they are pinned. `watches_tokens` asks for Piece.tokens, which come for
    new tokens; Inspect looks at those that stand.
    """

    request_id: int
    messages: tuple[Message, ...]
    options: Options
    start: tuple[int, ...] = ()
    start_text: str = ""
    first: int = 0
    watches_tokens: bool = False


@dataclass(frozen=True)
class Inspect:
    """Look at an answer that stands, token by token: the `token_ids` after `messages`."""

    request_id: int
    messages: tuple[Message, ...]
    options: Options
    token_ids: tuple[int, ...]
    first: int = 0


@dataclass(frozen=True)
class Count:
    """How much of the model's memory the chat takes. The last message may be of any role."""

    request_id: int
    messages: tuple[Message, ...]
    options: Options
    first: int = 0


@dataclass(frozen=True)
class Preview:
    """The prompt, exactly as the model would read it."""

    request_id: int
    messages: tuple[Message, ...]
    options: Options
    first: int = 0


Request = Load | Unload | Reply | Inspect | Count | Preview


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
class Forgot:
    """The oldest turns were left out: `first` is the first message in memory from now on, and
    `tokens` are no longer read. Comes before Prefill."""

    request_id: int
    first: int
    tokens: int


@dataclass(frozen=True)
class Trying:
    """The answer is searched among `beams`: its text comes at the end. `tokens` are written."""

    request_id: int
    beams: int
    tokens: int


@dataclass(frozen=True)
class Notice:
    """A sentence for the person about the answer that is being written: an option that was changed
    meanwhile and cannot act now. The answer goes on."""

    request_id: int
    message: str


@dataclass(frozen=True)
class Piece:
    """New text of the answer or of its thought; `token_ids` came since the last Piece.

    `avoided` counts the banned words turned away so far in this answer.
    """

    request_id: int
    text: str
    is_thought: bool = False
    token_ids: tuple[int, ...] = ()
    tokens: tuple[TokenView, ...] = ()
    avoided: int = 0


@dataclass(frozen=True)
class Inspected:
    request_id: int
    tokens: tuple[TokenView, ...]
    perplexity: float


@dataclass(frozen=True)
class Counted:
    request_id: int
    use: ContextUse


@dataclass(frozen=True)
class Previewed:
    request_id: int
    text: str
    token_count: int


@dataclass(frozen=True)
class Finished:
    request_id: int
    reason: FinishReason = "end"
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True)
class Failed:
    """`message` is a sentence for a person; `kind` lets the window offer the fitting way out.

    kind: "context" (prompt too long: `needed` tokens, `limit` fit), "options" (one of them cannot
    be used; the chat is as before), "model" (missing, cut or foreign files), "memory", "no model",
    "bug" (the traceback is in the log).
    """

    request_id: int
    message: str
    kind: str = "bug"
    needed: int = 0
    limit: int = 0


Event = (
    Loading
    | Loaded
    | Forgot
    | Prefill
    | Trying
    | Notice
    | Piece
    | Inspected
    | Counted
    | Previewed
    | Finished
    | Failed
)
