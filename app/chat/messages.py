"""What a conversation is made of: pure values. Identity is the store's, tokens the engine's."""

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["end", "length", "context", "stopped"]


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
    role: Role
    parts: tuple[Part, ...]

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

    `longest_answer` counts tokens of the answer alone; `seed` None draws a new one each time.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    longest_answer: int = 1024
    seed: int | None = None
    system_prompt: str = ""
    stop_strings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stats:
    """Figures of one answer. `kept_tokens` of the prompt were in the cache, the rest was read."""

    prompt_tokens: int = 0
    kept_tokens: int = 0
    new_tokens: int = 0
    first_token_s: float = 0.0
    total_s: float = 0.0
    tokens_per_second: float = 0.0
    seed: int = 0
    context_length: int = 0
    options: dict[str, Any] = field(default_factory=dict)  # what the engine really used


@dataclass(frozen=True)
class ModelInfo:
    """What the window shows of the loaded model; `defaults` has no None in its search options."""

    path: str
    name: str
    device: str  # "CPU", "CUDA", "WebGPU"
    context_length: int
    defaults: Options
    has_chat_template: bool = True
