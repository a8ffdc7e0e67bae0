"""How much the model can read, what to leave out when a chat is longer, and what to say.

Never silent: a chat that does not fit is not sent, and the person hears by how much; or, where it
was chosen so, the oldest whole turns are left out in one big step, so that the rest stays as it is,
and in the cache, for many turns. A turn is a question with its answers; it stays if any of its
messages is pinned.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from app.chat.messages import Message, Options
from app.chat.prompt import Prompt
from app.engine.errors import ContextFullError

Build = Callable[[tuple[Message, ...]], Prompt]


def room_for_answer(prompt_tokens: int, *, context_length: int, longest_answer: int) -> int:
    """The engine's max_length for this turn: the prompt and its answer, as far as the model reads.

    Raises ContextFullError when not even one token of an answer fits.
    """
    needed = prompt_tokens + 1
    if needed > context_length:
        over = needed - context_length
        raise ContextFullError(
            f"This chat is {over:,} {'token' if over == 1 else 'tokens'} longer than the model can"
            f" read: it has {prompt_tokens:,}, and the model reads {context_length:,} with the"
            " answer. Shorten your message, or continue in a new chat.",
            needed=needed,
            limit=context_length,
        )
    return min(prompt_tokens + max(1, longest_answer), context_length)


def is_remembered(messages: Sequence[Message], first: int) -> list[bool]:
    """Of each message, whether the model gets to read it: the last turn always."""
    kept: list[bool] = []
    turns = _turns(messages)
    for turn in turns:
        stays = turn.start >= first or turn == turns[-1]
        is_pinned = any(messages[index].is_pinned for index in turn)
        kept += [stays or is_pinned] * len(turn)
    return kept


def remembered(messages: Sequence[Message], first: int) -> tuple[Message, ...]:
    kept = is_remembered(messages, first)
    return tuple(message for message, is_kept in zip(messages, kept, strict=True) if is_kept)


def fitted(
    build: Build, messages: Sequence[Message], first: int, *, options: Options, context_length: int
) -> tuple[Prompt, int]:
    """The prompt, and the first message in memory, which is another one if turns were forgotten.

    They are where `options.overflow` says so and the answer would get less room than it may take,
    or a quarter of the context: then down to half of it.
    """
    prompt = build(remembered(messages, first))
    room = min(options.longest_answer, context_length // 4)
    if options.overflow != "forget" or len(prompt) + room <= context_length:
        return prompt, first
    starts = [turn.start for turn in _turns(messages) if turn.start > first]
    if not starts:
        return prompt, first

    def is_short(start: int) -> bool:
        return len(build(remembered(messages, start))) <= context_length // 2

    chosen = starts[min(bisect_left(starts, True, key=is_short), len(starts) - 1)]
    return build(remembered(messages, chosen)), chosen


def common_prefix(first: list[int], second: list[int]) -> int:
    """How many tokens both begin with."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def _turns(messages: Sequence[Message]) -> list[range]:
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    starts = [0, *(start for start in starts if start > 0)]
    return [range(*pair) for pair in zip(starts, [*starts[1:], len(messages)], strict=True)]
