"""Messages -> the tokens that the model reads, by the model's own chat template.

The invariant: what a person or a model wrote never becomes a control token. The template is
rendered with a placeholder for each text; the template's own words are encoded with control tokens,
each text apart from them without, and the ids are joined. So a template may trim, split or test the
text: it only ever sees the placeholder, and the text arrives as it was written.

Knows nothing of lengths (context.py) and of the cache (session.py).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, product
from typing import Any

from app.chat.messages import Message, Role
from app.chat.splice import Encoder, Splicer, named, opening_ids
from app.chat.splitter import CLOSE, OPEN
from app.engine.errors import EngineError

BETWEEN_TURNS = "\n\n"
# The usual way to have no tools, and the one for templates that count on a list of them.
NO_TOOLS: tuple[dict[str, str], ...] = ({}, {"tools": "[]"})
PLAIN_STOPS = ("\nUser:",)


class PromptError(Exception):
    """The model's chat template cannot show this conversation; a sentence for a person."""


@dataclass(frozen=True)
class Turn:
    role: Role
    text: str


@dataclass(frozen=True)
class TextSpan:
    """The tokens `start` to `stop` of a prompt are what `role` wrote."""

    role: Role
    start: int
    stop: int


@dataclass(frozen=True)
class Prompt:
    token_ids: tuple[int, ...]
    spans: tuple[TextSpan, ...] = ()
    starts_in_thought: bool = False  # the template itself opened the thinking tag
    stop_strings: tuple[str, ...] = ()  # where an answer without end tokens ends
    start: tuple[int, ...] = ()  # what of the answer stands already
    text: str = ""  # as the model reads it, without the answer

    def __len__(self) -> int:
        """Tokens to be read before the first new one."""
        return len(self.token_ids) + len(self.start)


def build(
    messages: Sequence[Message],
    system_prompt: str,
    encoder: Encoder,
    written: Mapping[str, Sequence[int]] = {},
    *,
    thinks: bool | None = None,
    start: Sequence[int] = (),
    start_text: str = "",
    asks: bool = True,
) -> Prompt:
    """The prompt whose continuation is the answer to the last message.

    `written` holds the ids of answers as they were generated: the same text encoded anew may get
    other ids, and the cache could not be kept. `start` and `start_text` begin the answer. Without
    `asks` the last message may be an answer, and the prompt ends behind it.
    """
    turns = to_turns(messages, system_prompt)
    if asks and (not turns or turns[-1].role != "user"):
        raise PromptError("There is no message to answer yet. Write one first.")
    pieces = _render(turns, encoder, add_generation_prompt=asks, thinks=thinks)
    splicer = Splicer(encoder)
    if not encoder.chat_template:
        splicer.ids += opening_ids(encoder)
    shown = named(encoder, splicer.ids) if splicer.ids else ""
    spans: list[TextSpan] = []
    begins_with_text = bool(start_text) and not start
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            splicer.words(piece, before_text=index + 1 < len(pieces) or begins_with_text)
            continue
        turn, begin = turns[piece], len(splicer.ids)
        known = written.get(turn.text) if turn.role == "assistant" else None
        if known is None:
            splicer.text(turn.text)
        else:
            splicer.written(list(known))
        spans.append(TextSpan(turn.role, begin, len(splicer.ids)))
    length, opening = len(splicer.ids), str(pieces[-1])
    if start:
        splicer.written(list(start))
    if start_text:
        splicer.text(start_text)
    return Prompt(
        tuple(splicer.ids[:length]),
        tuple(spans),
        starts_in_thought=opening.rfind(OPEN) > opening.rfind(CLOSE),
        stop_strings=() if encoder.chat_template else PLAIN_STOPS,
        start=tuple(splicer.ids[length:]),
        text=shown + "".join(turns[p].text if isinstance(p, int) else p for p in pieces),
    )


def end_tokens(encoder: Encoder) -> frozenset[int]:
    """The control token that the template writes after an answer: it ends one, whatever the
    configuration forgets to say. Empty where the template has none, or shows no such chat.
    """
    if not encoder.chat_template:
        return frozenset()
    turns = [Turn("user", "x"), Turn("assistant", "x")]
    try:
        after = _render(turns, encoder, add_generation_prompt=False)[-1]
    except PromptError:
        return frozenset()
    ids = (int(token) for token in encoder.encode(str(after)))
    control = (token for token in ids if token in encoder.special_token_ids)
    return frozenset(islice(control, 1))


def to_turns(messages: Sequence[Message], system_prompt: str) -> list[Turn]:
    """Roles take turns, as templates demand: empty answers go, two messages in a row are joined."""
    said = [Turn(message.role, message.text) for message in messages if message.text]
    turns = [Turn("system", system_prompt)] if system_prompt.strip() else []
    for role, group in groupby(said, lambda turn: turn.role):
        turns.append(Turn(role, BETWEEN_TURNS.join(turn.text for turn in group)))
    return turns


# ---- rendering with placeholders

Pieces = list[str | int]  # the template's own words, and the index of a text between them


def _render(
    turns: list[Turn],
    encoder: Encoder,
    *,
    add_generation_prompt: bool = True,
    thinks: bool | None = None,
) -> Pieces:
    """Words and texts in turn, words first and last (they may be empty)."""
    template = encoder.chat_template
    if not template:
        return _plain(turns, add_generation_prompt=add_generation_prompt)
    extra = {} if thinks is None else {"enable_thinking": thinks}
    marks = _unused_characters(template)
    first_error: Exception | None = None
    for make_messages, tools in product(_forms(turns), NO_TOOLS):
        try:
            text = encoder.apply_chat_template(
                json.dumps(make_messages(lambda index: f"{marks[0]}{index}{marks[1]}")),
                add_generation_prompt=add_generation_prompt,
                **extra,
                **tools,
            )
        # A template is a foreign program: it may fail in any way, and another form may suit it.
        except Exception as error:
            first_error = first_error or error
            continue
        pieces = _split(text, marks)
        if {piece for piece in pieces if isinstance(piece, int)} == set(range(len(turns))):
            return pieces
    raise PromptError(_why(first_error)) from first_error


def _why(error: Exception | None) -> str:
    if error is None:
        return (
            "This model's chat template leaves out a part of this chat, so it cannot be answered."
            " Start a new chat, or choose another model."
        )
    said = str(error).partition(": ")[2] if isinstance(error, EngineError) else ""
    reason = said.strip().rstrip(".")
    return (
        "This model's chat template does not accept this chat"
        + (f" ({reason})" if reason else "")
        + ". Start a new chat, or choose another model."
    )


MakeMessages = Callable[[Callable[[int], str]], list[dict[str, Any]]]


def _forms(turns: list[Turn]) -> Iterable[MakeMessages]:
    """The ways to hand a conversation to a template, the usual one first.

    Templates without a system role get that text at the head of the first message; templates for
    pictures expect a list of parts where others expect text.
    """
    merges = (False, True) if len(turns) > 1 and turns[0].role == "system" else (False,)
    for as_parts, merge_system in product((False, True), merges):
        yield lambda mark, a=as_parts, m=merge_system: _messages(  # type: ignore[misc]
            turns, mark, as_parts=a, merge_system=m
        )


def _messages(
    turns: list[Turn], mark: Callable[[int], str], *, as_parts: bool, merge_system: bool
) -> list[dict[str, Any]]:
    contents = [(turn.role, mark(index)) for index, turn in enumerate(turns)]
    if merge_system:
        (_, system), (role, first), *rest = contents
        contents = [(role, system + BETWEEN_TURNS + first), *rest]
    return [
        {"role": role, "content": [{"type": "text", "text": text}] if as_parts else text}
        for role, text in contents
    ]


def _unused_characters(template: str) -> tuple[str, str]:
    """Two characters for private use that the template does not contain: no letters, no space."""
    unused = [chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in template]
    return unused[0], unused[1]


def _split(text: str, marks: tuple[str, str]) -> Pieces:
    found = re.split(f"{marks[0]}([0-9]+){marks[1]}", text)
    return [int(piece) if index % 2 else piece for index, piece in enumerate(found)]


def _plain(turns: list[Turn], *, add_generation_prompt: bool) -> Pieces:
    """For a model without a chat template: a conversation as people write one down."""
    names = {"system": "", "user": "User: ", "assistant": "Assistant: "}
    pieces: Pieces = []
    for index, turn in enumerate(turns):
        pieces += [("\n" if index else "") + names[turn.role], index]
    return [*pieces, "\nAssistant:" if add_generation_prompt else "\n"]
