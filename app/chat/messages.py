"""What a conversation is made of: pure values. Identity is the store's, tokens the engine's."""

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["end", "length", "context", "stopped"]
AnswerFormat = Literal["text", "json", "json_schema", "regex"]
Overflow = Literal["ask", "forget", "stop"]


@dataclass(frozen=True)
class TextPart:
    text: str


@dataclass(frozen=True)
class ThoughtPart:
    """What a model wrote between its thinking tags; shown folded, left out of later turns."""

    text: str
    seconds: float = 0.0


Part = TextPart | ThoughtPart


@dataclass(frozen=True)
class Message:
    """`is_pinned`: stays in the model's memory when older turns are forgotten."""

    role: Role
    parts: tuple[Part, ...]
    is_pinned: bool = False

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def thought(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ThoughtPart))

    @staticmethod
    def of(role: Role, text: str) -> "Message":
        return Message(role, (TextPart(text),))


@dataclass(frozen=True)
class Options:
    """How an answer is written. None means the model's own default.

    `longest_answer` and `shortest_answer` count tokens of the answer alone; `seed` None draws a new
    one each time. `banned` are words and phrases that stand nowhere in the answer, inside longer
    words neither. `answer_grammar` is the schema or the expression of `answer_format`. `thinks` is
    for models whose template can switch the thinking off. `overflow` says what happens when a chat
    is longer than the model reads.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    longest_answer: int = 1024
    seed: int | None = None
    system_prompt: str = ""
    stop_strings: tuple[str, ...] = ()
    min_p: float | None = None
    no_repeat_ngram_size: int | None = None
    shortest_answer: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    banned: tuple[str, ...] = ()
    answer_format: AnswerFormat = "text"
    answer_grammar: str = ""
    overflow: Overflow = "ask"
    guesses_ahead: bool = False
    thinks: bool | None = None


@dataclass(frozen=True)
class Alternative:
    """What could have been written at a place, and how likely the model found it. `is_end`: the
    answer would have ended there."""

    token_id: int
    text: str
    probability: float
    is_end: bool = False


@dataclass(frozen=True)
class TokenView:
    """One token of an answer as the model saw it, before any option: `rank` 0 is the likeliest.

    `start` counts UTF-16 units from the beginning of the answer's text, or of its thought. A token
    that is a part of a character starts where the character stands, and its text may be "".
    """

    token_id: int
    text: str
    start: int
    probability: float
    rank: int
    alternatives: tuple[Alternative, ...] = ()
    is_thought: bool = False


@dataclass(frozen=True)
class ContextUse:
    """Tokens of a chat as the model would read it; `turns` are those of each message, 0 for one
    that is left out. The model reads `limit` with the answer. `total` holds the template's words
    too. `first` is the first message in memory."""

    system: int
    turns: tuple[int, ...]
    total: int
    limit: int
    first: int = 0


@dataclass(frozen=True)
class Stats:
    """Figures of one answer. `kept_tokens` of the prompt were in the cache, the rest was read.

    `avoided` counts the times that a banned word was turned away. `fingerprint` tells models apart,
    `template_hash` chat templates; with `options` and `seed` they say what made the answer.
    """

    prompt_tokens: int = 0
    kept_tokens: int = 0
    new_tokens: int = 0
    first_token_s: float = 0.0
    total_s: float = 0.0
    tokens_per_second: float = 0.0
    seed: int = 0
    context_length: int = 0
    options: dict[str, Any] = field(default_factory=dict)  # what the engine really used
    avoided: int = 0
    fingerprint: str = ""
    template_hash: str = ""
    perplexity: float = 0.0  # of the new tokens, if they were watched
    device: str = ""
    chosen: dict[str, Any] = field(default_factory=dict)  # Options, as options.to_record gives them
    is_repeatable: bool = True  # False: options changed on the way, or the answer was continued


@dataclass(frozen=True)
class ModelInfo:
    """What the window shows of the loaded model; `defaults` has no None in its search options."""

    path: str
    name: str
    device: str  # "CPU", "CUDA", "WebGPU"
    context_length: int
    defaults: Options
    has_chat_template: bool = True
