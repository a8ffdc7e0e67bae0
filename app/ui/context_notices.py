"""What is said when a chat is longer than the model reads, and what can be forgotten. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.chat.messages import ContextUse, Message, Options
from app.ui.items import Notice, Way

FULL = "This chat is as long as the model can read"
CHOOSE = Way("Choose messages…", "choose-messages")
NEW_CHAT = Way("Continue in a new chat", "continue-in-new-chat")
SEND_ANYWAY = Way("Send anyway", "send-anyway")


@dataclass(frozen=True)
class Cut:
    """`first`: where memory would begin, an index into the messages; `count` would be left out."""

    first: int
    count: int


def turns_of(messages: Sequence[Message]) -> list[range]:
    """A question with its answers, each."""
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    starts = [0, *(start for start in starts if start > 0)]
    return [range(*pair) for pair in zip(starts, [*starts[1:], len(messages)], strict=True)]


def is_full(use: ContextUse) -> bool:
    """Not even one token of an answer fits."""
    return use.total + 1 > use.limit


def cut_of(messages: Sequence[Message], use: ContextUse) -> Cut | None:
    """The oldest whole turns to forget, in one big step down to half of what the model reads; as
    many as there are where that is not enough; None where even that does not help."""
    turns = turns_of(messages)
    left, count = use.total, 0
    best: Cut | None = None
    for turn, following in pairwise(turns):
        tokens = sum(use.turns[index] for index in turn)
        if turn.start >= use.first and not any(messages[index].is_pinned for index in turn):
            left -= tokens
            count += len(turn)
        if count and left + 1 <= use.limit:
            best = Cut(following.start, count)
            if left <= use.limit // 2:
                break
    return best


def full(messages: Sequence[Message], use: ContextUse, options: Options) -> Notice:
    """Before the message is sent: by how much it is too long, and the ways out."""
    over = use.total + 1 - use.limit
    tokens = f"{over:,} token" + "s" * (over != 1)
    text = (
        f"With your message it has {use.total:,} tokens, {tokens} more than fit into {use.limit:,}."
    )
    cut = cut_of(messages, use)
    if cut is None and messages and use.system + use.turns[-1] + 1 > use.limit:
        text += " Shorten it, or attach less."
        return Notice("warning", "Your message is longer than the model can read", text)
    if options.overflow == "stop":
        text += " This chat is set to stop here. Everything stays here for you to read."
        return Notice("warning", FULL, text, (NEW_CHAT, CHOOSE))
    if cut is None:
        text += " What is pinned and your message alone are too long."
        return Notice("warning", FULL, text, (NEW_CHAT, CHOOSE))
    if options.overflow == "forget":
        text += f" When you send it, the model forgets about the oldest {cut.count} messages."
        text += " They stay here for you to read."
        return Notice("info", FULL, text, (SEND_ANYWAY, NEW_CHAT, CHOOSE))
    text += " To go on, let the model forget the oldest messages. They stay here for you to read."
    forget = Way(f"Forget the oldest {cut.count}", "forget-oldest")
    return Notice("warning", FULL, text, (forget, NEW_CHAT, CHOOSE))


def forgotten(count: int, tokens: int) -> Notice:
    """Turns were left out, as it was chosen for this chat."""
    messages = f"{count} message" + "s" * (count != 1)
    return Notice(
        "info",
        f"The model forgot the oldest {messages}",
        f"They have {tokens:,} tokens, and stay here for you to read. A line in the chat says where"
        " its memory begins now. Pinned turns are never forgotten.",
        (CHOOSE, Way("Close", "dismiss-notice")),
    )
