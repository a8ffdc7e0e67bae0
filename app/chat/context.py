"""How much the model can read, and what to say when a chat is longer. Never silent.

Nothing is left out yet: a chat that does not fit is not sent, and the person hears by how much.
"""

from app.engine.errors import ContextFullError


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


def common_prefix(first: list[int], second: list[int]) -> int:
    """How many tokens both begin with."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))
