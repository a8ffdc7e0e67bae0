"""genai_config.json as frozen dataclasses, and Config, which may change the file's values first.

Knows the file's words and their types, not what the graphs do with them. Keys that we do not know
are logged and skipped (newer exporters add some); a known key of the wrong type is an error that
names file and field. Invariant: a Configuration that exists is complete and in range.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from app.engine import speculative
from app.engine.errors import EngineError, ModelError
from app.engine.speculative import SpeculativeOptions

CONFIG_NAME = "genai_config.json"
GENERATION_CONFIG_NAME = "generation_config.json"

log = logging.getLogger(__name__)

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

DEFAULT_INPUTS = {
    "input_ids": "input_ids",
    "inputs_embeds": "inputs_embeds",
    "attention_mask": "attention_mask",
    "position_ids": "position_ids",
    "past_key_names": "past_key_values.%d.key",
    "past_value_names": "past_key_values.%d.value",
    "past_names": "",  # gpt2: keys and values in one tensor
    "past_conv_names": "past_conv.%d",
    "cross_past_key_names": "",
    "cross_past_value_names": "",
    "encoder_hidden_states": "encoder_hidden_states",
    "encoder_attention_mask": "encoder_attention_mask",
    "rnn_states_prev": "rnn_states_prev",
    "past_key_values_length": "past_key_values_length",
    "past_sequence_length": "past_sequence_length",
    "current_sequence_length": "current_sequence_length",
    "total_sequence_length": "total_sequence_length",
    "seqlens_k": "seqlens_k",
}
DEFAULT_OUTPUTS = {
    "logits": "logits",
    "present_key_names": "present.%d.key",
    "present_value_names": "present.%d.value",
    "present_names": "",
    "present_conv_names": "present_conv.%d",
    "rnn_states": "rnn_states",
}
ENCODER_INPUTS = {
    "input_ids": "input_ids",
    "attention_mask": "attention_mask",
    "audio_features": "audio_features",
}
ENCODER_OUTPUTS = {
    "encoder_hidden_states": "encoder_hidden_states",
    "encoder_outputs": "encoder_outputs",
    "cross_present_key_names": "present_key_cross_%d",
    "cross_present_value_names": "present_value_cross_%d",
}
EMBEDDING_INPUTS = {
    "input_ids": "input_ids",
    "image_features": "image_features",
    "audio_features": "audio_features",
}
EMBEDDING_OUTPUTS = {"inputs_embeds": "inputs_embeds", "per_layer_inputs": "per_layer_inputs"}

# Tokens around tool calls and reasoning of models whose exporters do not name them.
_QWEN_TOOLS = {"bot": 151657, "eot": 151658}
_MARKERS: Mapping[str, Mapping[str, int]] = {
    "qwen2": _QWEN_TOOLS,
    "qwen3": {**_QWEN_TOOLS, "bor": 151667, "eor": 151668},
    "phi3": {"bot": 200025, "eot": 200026},
}


@dataclass(frozen=True)
class Provider:
    """One entry of provider_options; `name` is lower case and without 'ExecutionProvider'."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StageConfig:
    """One graph of a decoder that is cut into several, run one after the other."""

    name: str
    filename: str
    renamed: Mapping[str, str] = field(default_factory=dict)  # its output -> the name later on
    runs_on_prompt: bool = True
    runs_on_token: bool = True
    session_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PartConfig:
    """A graph beside the decoder: the encoder or the embedding."""

    filename: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    session_options: Mapping[str, Any] = field(default_factory=dict)


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


class Config:
    """A model folder's genai_config.json before the model is opened, still open to changes.

    Takes the folder, or the .onnx file in it (which is then the decoder).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder, onnx_name = _locate(path)
        self._document = _read_json(self.folder / CONFIG_NAME)
        if onnx_name:
            decoder = _section(_section(self._document, "model"), "decoder")
            decoder["filename"] = onnx_name
        self._provider_names = [p.name for p in _providers(self._document)]
        self._provider_options: dict[str, dict[str, str]] = {
            p.name: dict(p.options) for p in _providers(self._document)
        }
        self._model_data: dict[str, bytes] = {}

    def overlay(self, text: str) -> None:
        """Lay a second JSON document over the first: objects merge, everything else replaces."""
        try:
            above = json.loads(text)
        except (TypeError, ValueError) as error:
            raise EngineError(f"The overlay is not valid JSON: {error}") from error
        if not isinstance(above, dict):
            raise EngineError("The overlay must be a JSON object.")
        _merge(self._document, above)
        for provider in _providers(self._document):
            self._provider_options.setdefault(provider.name, {}).update(provider.options)
        if "provider_options" in _session_options(above):
            self._provider_names = [p.name for p in _providers(self._document)]

    def append_provider(self, name: str) -> None:
        word = provider_word(name)
        if word not in self._provider_names:
            self._provider_names.append(word)

    def clear_providers(self) -> None:
        self._provider_names.clear()

    def set_provider_option(self, provider: str, key: str, value: str) -> None:
        self._provider_options.setdefault(provider_word(provider), {})[str(key)] = str(value)

    def add_model_data(self, filename: str, data: bytes | bytearray | memoryview) -> None:
        """Use `data` in place of the file `filename`. Its external data stays in the folder."""
        if isinstance(data, str):
            raise TypeError("add_model_data takes bytes, not str.")
        copied = bytes(data)
        if not copied:
            raise EngineError(f"The data given for {filename} is empty.")
        self._model_data[filename] = copied

    def remove_model_data(self, filename: str) -> None:
        if self._model_data.pop(filename, None) is None:
            raise EngineError(f"No data was added for {filename}.")

    def freeze(self) -> Configuration:
        model, search = _parse(self._document, self.folder)
        return Configuration(
            folder=self.folder,
            model=model,
            search=search,
            speculative=_parse_speculative(self._document),
            providers=tuple(
                Provider(name, dict(self._provider_options.get(name, {})))
                for name in self._provider_names
            ),
            model_data=dict(self._model_data),
        )


PROVIDER_WORDS = (
    "cpu", "cuda", "qnn", "webgpu", "dml", "openvino",
    "vitisai", "ryzenai", "nvtensorrtrtx", "amdgpu",
)  # fmt: skip


def provider_word(name: str) -> str:
    word = str(name).lower().removesuffix("executionprovider")
    if word not in PROVIDER_WORDS:
        raise EngineError(f"Unknown provider name {name!r}; known are {', '.join(PROVIDER_WORDS)}.")
    return word


def read_generation_eos(folder: Path) -> tuple[int, ...]:
    """End-of-text ids of the folder's generation_config.json, () where it has none.

    Exporters forget some of them in genai_config.json, and the answer then runs on.
    """
    path = folder / GENERATION_CONFIG_NAME
    if not path.is_file():
        return ()
    value = _read_json(path).get("eos_token_id")
    ids = value if isinstance(value, list) else [value]
    return tuple(i for i in ids if isinstance(i, int) and not isinstance(i, bool))


# ---------------------------------------------------------------- reading


def _locate(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """(folder, name of the .onnx file that was given or "")."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"A model is opened by the path of its folder, not {type(path).__name__}.")
    place = Path(path)
    onnx_name = ""
    if os.path.isfile(place):  # Path's own raises for a name that is too long
        if place.name == CONFIG_NAME:
            return place.parent, ""
        if place.suffix.lower() != ".onnx":
            raise ModelError(f"{place.name} is not a model folder or an .onnx file.")
        place, onnx_name = place.parent, place.name
    if not os.path.isdir(place):
        raise ModelError(f"There is no model at {place}.")
    if not (place / CONFIG_NAME).is_file():
        raise ModelError(f"{place} is not a model folder: {CONFIG_NAME} is missing in it.")
    return place, onnx_name


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except OSError as error:
        raise ModelError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path.name} is not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise ModelError(f"{path.name} must hold a JSON object.")
    return document


def _section(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.setdefault(name, {})
    if not isinstance(value, dict):
        raise ModelError(f"{CONFIG_NAME}: {name} must be an object.")
    return value


def _session_options(document: dict[str, Any]) -> dict[str, Any]:
    value = document
    for name in ("model", "decoder", "session_options"):
        value = value.get(name, {})
        if not isinstance(value, dict):
            raise ModelError(f"{CONFIG_NAME}: {name} must be an object.")
    return value


def _providers(document: dict[str, Any]) -> list[Provider]:
    entries = _session_options(document).get("provider_options", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ModelError(f"{CONFIG_NAME}: provider_options must be a list of objects.")
    found = []
    for entry in entries:
        for name, options in entry.items():
            if not isinstance(options, dict | None):
                raise ModelError(f"{CONFIG_NAME}: the options of {name!r} must be an object.")
            chosen = {k: str(v) for k, v in (options or {}).items() if not isinstance(v, dict)}
            found.append(Provider(provider_word(name), chosen))
    return found


def _merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = value


class _Reader:
    """Typed access to one object of the file, remembering where it is for the error text."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values, self._where = values, where

    def fail(self, name: str, expected: str) -> ModelError:
        value = self._values.get(name)
        return ModelError(f"{CONFIG_NAME}: {self._where}.{name} must be {expected}, not {value!r}.")

    def whole(self, name: str, default: int = 0, *, least: int | None = None) -> int:
        value = self._values.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**31:
            raise self.fail(name, "a whole number")
        if least is not None and value < least:
            raise self.fail(name, f"a whole number of at least {least}")
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self.fail(name, "a string")
        return value

    def file(self, name: str) -> str:
        value = self.text(name)
        is_outside = Path(value).is_absolute() or ".." in Path(value).parts or ":" in value
        if is_outside or "\0" in value:
            raise self.fail(name, "a name inside the model folder")
        return value

    def texts(self, name: str, defaults: Mapping[str, str]) -> dict[str, str]:
        return {**defaults, **{k: str(v) for k, v in self.object(name).items()}}

    def object(self, name: str) -> dict[str, Any]:
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise self.fail(name, "an object")
        return value

    def objects(self, name: str) -> list[dict[str, Any]]:
        value = self._values.get(name, [])
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, dict) for entry in entries):
            raise self.fail(name, "an object or a list of them")
        return entries

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self.fail(name, "true or false")
        return value

    def ids(self, name: str, default: int) -> tuple[int, ...]:
        value = self._values.get(name, default)
        ids = value if isinstance(value, list) else [value]
        if not ids or any(isinstance(i, bool) or not isinstance(i, int) for i in ids):
            raise self.fail(name, "a token id or a list of them")
        return tuple(ids)


def _parse(document: dict[str, Any], folder: Path) -> tuple[ModelConfig, SearchOptions]:
    model_values = document.get("model")
    if not isinstance(model_values, dict):
        raise ModelError(f"{CONFIG_NAME}: the object 'model' is missing.")
    model = _Reader(model_values, "model")
    decoder_values = model.object("decoder")
    decoder = _Reader(decoder_values, "model.decoder")
    vocab_size = model.whole("vocab_size", 0, least=1)
    pad = model.whole("pad_token_id", 0)
    eos = dict.fromkeys(model.ids("eos_token_id", pad) + read_generation_eos(folder))
    for token in eos:
        if not 0 <= token < vocab_size:
            raise ModelError(
                f"{CONFIG_NAME}: eos_token_id {token} is outside the vocabulary of {vocab_size}."
            )
    _warn_unknown(model_values, decoder_values)
    parsed = ModelConfig(
        type=model.text("type"),
        vocab_size=vocab_size,
        context_length=model.whole("context_length", 0, least=1),
        eos_token_ids=tuple(eos),
        pad_token_id=pad,
        bos_token_id=model.whole("bos_token_id", 0),
        tokenizer_dir=model.file("tokenizer_dir"),
        decoder=DecoderConfig(
            filename=decoder.file("filename"),
            inputs=decoder.texts("inputs", DEFAULT_INPUTS),
            outputs=decoder.texts("outputs", DEFAULT_OUTPUTS),
            session_options=decoder.object("session_options"),
            run_options={k: str(v) for k, v in decoder.object("run_options").items()},
            hidden_size=decoder.whole("hidden_size"),
            num_attention_heads=decoder.whole("num_attention_heads"),
            num_key_value_heads=decoder.whole("num_key_value_heads"),
            num_hidden_layers=decoder.whole("num_hidden_layers"),
            head_size=decoder.whole("head_size"),
            pipeline=_parse_pipeline(decoder),
        ),
        encoder=_parse_part(model, "encoder", ENCODER_INPUTS, ENCODER_OUTPUTS),
        embedding=_parse_part(model, "embedding", EMBEDDING_INPUTS, EMBEDDING_OUTPUTS),
        markers={
            **_MARKERS.get(model.text("type"), {}),
            **{
                word: model.whole(f"{word}_token_id")
                for word in ("bot", "eot", "bor", "eor")
                if model_values.get(f"{word}_token_id") is not None
            },
        },
    )
    return parsed, _parse_search(document, parsed.context_length)


def _parse_part(
    model: _Reader, name: str, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> PartConfig | None:
    values = model.object(name)
    if not values:
        return None
    part = _Reader(values, f"model.{name}")
    own = part.object("session_options")
    shared = _Reader(model.object("decoder"), "model.decoder").object("session_options")
    return PartConfig(
        filename=part.file("filename"),
        inputs=part.texts("inputs", inputs),
        outputs=part.texts("outputs", outputs),
        session_options=own or shared,
    )


def _parse_pipeline(decoder: _Reader) -> tuple[StageConfig, ...]:
    """A list that holds one object, or the object itself: {name of a stage: its values}."""
    stages = []
    for entry in decoder.objects("pipeline"):
        for name in entry:
            stage = _Reader(_Reader(entry, "model.decoder.pipeline").object(name), f"stage {name}")
            inherits = not stage.object("session_options")
            stages.append(
                StageConfig(
                    name=name,
                    filename=stage.file("filename"),
                    renamed=stage.texts("output_names_forwarder", {}),
                    runs_on_prompt=stage.flag("run_on_prompt", True),
                    runs_on_token=stage.flag("run_on_token_gen", True),
                    session_options=(decoder if inherits else stage).object("session_options"),
                )
            )
    return tuple(stages)


def _parse_search(document: dict[str, Any], context_length: int) -> SearchOptions:
    values = document.get("search", {})
    if not isinstance(values, dict):
        raise ModelError(f"{CONFIG_NAME}: search must be an object.")
    known: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        if name not in SEARCH_KINDS:
            log.warning("%s: search.%s is not known and was skipped", CONFIG_NAME, name)
            continue
        try:
            known[name] = coerce_option(name, value)
        except (TypeError, EngineError) as error:
            raise ModelError(f"{CONFIG_NAME}: search.{error}") from error
    known["max_length"] = known.get("max_length", 0) or context_length
    return SearchOptions(**known)


def _parse_speculative(document: dict[str, Any]) -> SpeculativeOptions:
    values = document.get("speculative", {})
    if not isinstance(values, dict):
        raise ModelError(f"{CONFIG_NAME}: speculative must be an object.")
    try:
        return speculative.changed(SpeculativeOptions(), values)
    except (TypeError, EngineError) as error:
        raise ModelError(f"{CONFIG_NAME}: speculative.{error}") from error


def coerce_option(name: str, value: object) -> Any:
    """`value` as the type that the search option has; numpy scalars are welcome."""
    kind = SEARCH_KINDS[name]
    plain: Any = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
    if kind == "bool":
        if not isinstance(plain, bool):
            raise TypeError(f"{name} must be True or False, not {value!r}.")
        return plain
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        raise TypeError(f"{name} must be a number, not {value!r}.")
    if isinstance(plain, int) and abs(plain) >= 2**31:
        raise EngineError(f"{name} is out of range: {value!r:.40}.")
    if kind == "float":
        return float(plain)
    if isinstance(plain, float):
        if not plain.is_integer():
            raise EngineError(f"{name} must be a whole number, not {value!r}.")
        return coerce_option(name, int(plain))
    return plain


_KNOWN_MODEL = {
    "type", "tokenizer_dir", "pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id",
    "decoder_start_token_id", "vocab_size", "context_length", "decoder", "encoder", "embedding",
    "vision", "speech", "bot_token_id", "eot_token_id", "bor_token_id", "eor_token_id",
    "image_token_id", "audio_token_id", "boa_token_id", "video_token_id", "vision_start_token_id",
}  # fmt: skip
_KNOWN_DECODER = {
    "filename", "session_options", "run_options", "hidden_size", "num_attention_heads",
    "num_key_value_heads", "num_hidden_layers", "head_size", "inputs", "outputs", "pipeline",
    "sliding_window", "layer_types", "conv_cache_size", "shared_initializers",
}  # fmt: skip


def _warn_unknown(model: dict[str, Any], decoder: dict[str, Any]) -> None:
    for name in sorted(set(model) - _KNOWN_MODEL):
        log.warning("%s: model.%s is not known and was skipped", CONFIG_NAME, name)
    for name in sorted(set(decoder) - _KNOWN_DECODER):
        log.warning("%s: model.decoder.%s is not known and was skipped", CONFIG_NAME, name)
