"""What is known of a model folder, as frozen dataclasses, and the search options with their types.

Knows the words of genai_config.json and their meaning; config_reader.py reads them from the file.
Invariant: a Configuration that exists is complete and in range.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from app.engine.errors import EngineError, shown
from app.engine.speculative import SpeculativeOptions

Kind = Literal["int", "float", "bool"]


@dataclass(frozen=True)
class SearchOptions:
    """How the next token is chosen and when the answer ends. max_length 0 = context_length."""

    do_sample: bool = False
    max_length: int = 0
    min_length: int = 0
    batch_size: int = 1
    num_beams: int = 1
    num_return_sequences: int = 1
    top_k: int = 50
    top_p: float = 0.0
    temperature: float = 1.0
    repetition_penalty: float = 1.0
    length_penalty: float = 1.0
    early_stopping: bool = True
    no_repeat_ngram_size: int = 0
    diversity_penalty: float = 0.0
    past_present_share_buffer: bool = False
    random_seed: int = -1
    chunk_size: int = 0
    min_p: float = 0.0


SEARCH_KINDS: Mapping[str, Kind] = {
    f.name: "bool" if f.type is bool else "int" if f.type is int else "float"
    for f in fields(SearchOptions)
}


@dataclass(frozen=True)
class DeviceFilter:
    """Which of a provider's devices may be used; None: any."""

    kind: Literal["cpu", "gpu", "npu"] | None = None
    device_id: int | None = None
    vendor_id: int | None = None

    def __post_init__(self) -> None:
        kind = self.kind.lower() if isinstance(self.kind, str) else self.kind
        if kind not in ("cpu", "gpu", "npu", None):
            raise EngineError(f"A hardware device type is cpu, gpu or npu, not {shown(self.kind)}.")
        object.__setattr__(self, "kind", kind)
        for name in ("device_id", "vendor_id"):
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _hardware_number(name, number))

    def fits(self, kind: str, device_id: int, vendor_id: int) -> bool:
        pairs = ((self.kind, kind), (self.device_id, device_id), (self.vendor_id, vendor_id))
        return all(wanted in (None, given) for wanted, given in pairs)


def _hardware_number(name: str, number: object) -> int:
    try:
        plain = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        plain = -1
    if isinstance(number, bool) or not 0 <= plain < 2**32:
        raise EngineError(f"A hardware {name} is a whole number from 0 on, not {shown(number)}.")
    return plain


@dataclass(frozen=True)
class Provider:
    """One entry of provider_options; `name` is lower case and without 'ExecutionProvider'."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    device: DeviceFilter = DeviceFilter()


@dataclass(frozen=True)
class StageConfig:
    """One graph of a decoder that is cut into several, run one after the other."""

    name: str
    filename: str
    renamed: Mapping[str, str] = field(default_factory=dict)  # its output -> the name later on
    runs_on_prompt: bool = True
    runs_on_token: bool = True
    is_lm_head: bool = False  # only gives logits: not needed before a prompt's last chunk
    session_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PartConfig:
    """A graph beside the decoder: the encoder or the embedding."""

    filename: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    session_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SlidingWindow:
    """How graphs of a fixed size are fed. Which layers look back how far, the graphs say."""

    window_size: int
    slide_inputs: bool = True
    alignment: Literal["left", "right"] = "right"  # where the text stands in a run with pads
    pad_value: int = 0  # what an empty cache is filled with


@dataclass(frozen=True)
class DecoderConfig:
    filename: str
    inputs: Mapping[str, str]  # our word -> name in the graph
    outputs: Mapping[str, str]
    session_options: Mapping[str, Any] = field(default_factory=dict)
    run_options: Mapping[str, str] = field(default_factory=dict)
    hidden_size: int = 0
    num_attention_heads: int = 0
    num_key_value_heads: int = 0
    num_hidden_layers: int = 0
    head_size: int = 0
    pipeline: tuple[StageConfig, ...] = ()
    sliding_window: SlidingWindow | None = None


@dataclass(frozen=True)
class ModelConfig:
    type: str
    vocab_size: int
    context_length: int
    eos_token_ids: tuple[int, ...]
    pad_token_id: int
    bos_token_id: int
    tokenizer_dir: str
    decoder: DecoderConfig
    encoder: PartConfig | None = None
    embedding: PartConfig | None = None
    markers: Mapping[str, int] = field(default_factory=dict)  # bot, eot, bor, eor: what is set


@dataclass(frozen=True)
class Configuration:
    """A model folder's facts, checked. What Model.config is."""

    folder: Path
    model: ModelConfig
    search: SearchOptions
    speculative: SpeculativeOptions = field(default_factory=SpeculativeOptions)
    providers: tuple[Provider, ...] = ()
    model_data: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def tokenizer_folder(self) -> Path:
        return self.folder / self.model.tokenizer_dir


PROVIDER_WORDS = (
    "cpu", "cuda", "qnn", "webgpu", "dml", "openvino",
    "vitisai", "ryzenai", "nvtensorrtrtx", "amdgpu",
)  # fmt: skip


def provider_word(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"A provider is named by text, not {type(name).__name__}.")
    word = name.lower().removesuffix("executionprovider")
    if word not in PROVIDER_WORDS:
        raise EngineError(
            f"Unknown provider name {shown(name)}; known are {', '.join(PROVIDER_WORDS)}."
        )
    return word


def coerce_option(name: str, value: object) -> Any:
    """`value` as the type that the search option has; numpy scalars are welcome."""
    kind = SEARCH_KINDS[name]
    plain: Any = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
    if kind == "bool":
        if not isinstance(plain, bool):
            raise TypeError(f"{name} must be True or False, not {shown(value)}.")
        return plain
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise TypeError(f"{name} must be a number, not {shown(value)}.")
    if isinstance(plain, int) and abs(plain) >= 2**31:
        raise EngineError(f"{name} is out of range: {shown(value)}.")
    if kind == "float":
        return float(plain)
    if isinstance(plain, float):
        if not plain.is_integer():
            raise EngineError(f"{name} must be a whole number, not {shown(value)}.")
        return coerce_option(name, int(plain))
    return plain
