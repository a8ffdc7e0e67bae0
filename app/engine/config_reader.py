"""genai_config.json -> Configuration's values.

Keys that we do not know are logged and skipped (newer exporters add some); a known key of the wrong
type is an error that names file and field. What graphs do with the values is not known here.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.engine import speculative
from app.engine.config import (
    SEARCH_KINDS,
    DecoderConfig,
    DeviceFilter,
    ModelConfig,
    PartConfig,
    Provider,
    SearchOptions,
    SlidingWindow,
    StageConfig,
    coerce_option,
    provider_word,
)
from app.engine.errors import EngineError, ModelError, shown
from app.engine.speculative import SpeculativeOptions

CONFIG_NAME = "genai_config.json"
GENERATION_CONFIG_NAME = "generation_config.json"
FILTER_NAME = "device_filtering_options"

log = logging.getLogger(__name__)

DEFAULT_INPUTS = {
    "input_ids": "input_ids",
    "inputs_embeds": "inputs_embeds",
    "hidden_states": "hidden_states",
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


def read_json(path: Path) -> dict[str, Any]:
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


def read_generation_eos(folder: Path) -> tuple[int, ...]:
    """End-of-text ids of the folder's generation_config.json, () where it has none.

    Exporters forget some of them in genai_config.json, and the answer then runs on.
    """
    path = folder / GENERATION_CONFIG_NAME
    if not path.is_file():
        return ()
    value = read_json(path).get("eos_token_id")
    ids = value if isinstance(value, list) else [value]
    return tuple(i for i in ids if isinstance(i, int) and not isinstance(i, bool))


def section(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.setdefault(name, {})
    if not isinstance(value, dict):
        raise ModelError(f"{CONFIG_NAME}: {name} must be an object.")
    return value


def session_options(document: dict[str, Any]) -> dict[str, Any]:
    value = document
    for name in ("model", "decoder", "session_options"):
        value = value.get(name, {})
        if not isinstance(value, dict):
            raise ModelError(f"{CONFIG_NAME}: {name} must be an object.")
    return value


def read_providers(document: dict[str, Any]) -> list[Provider]:
    entries = session_options(document).get("provider_options", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ModelError(f"{CONFIG_NAME}: provider_options must be a list of objects.")
    found = []
    for entry in entries:
        for name, options in entry.items():
            if not isinstance(options, dict | None):
                raise ModelError(f"{CONFIG_NAME}: the options of {shown(name)} must be an object.")
            chosen = {k: str(v) for k, v in (options or {}).items() if not isinstance(v, dict)}
            try:
                device = _read_filter((options or {}).get(FILTER_NAME) or {})
            except EngineError as error:
                raise ModelError(f"{CONFIG_NAME}: {FILTER_NAME}: {error}") from error
            found.append(Provider(provider_word(name), chosen, device))
    return found


def _read_filter(values: object) -> DeviceFilter:
    if not isinstance(values, dict):
        raise ModelError("it must be an object.")
    return DeviceFilter(
        kind=values.get("hardware_device_type") or None,
        device_id=values.get("hardware_device_id"),
        vendor_id=values.get("hardware_vendor_id"),
    )


class _Reader:
    """Typed access to one object of the file, remembering where it is for the error text."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values, self._where = values, where

    def fail(self, name: str, expected: str) -> ModelError:
        value = self._values.get(name)
        return ModelError(
            f"{CONFIG_NAME}: {self._where}.{name} must be {expected}, not {shown(value)}."
        )

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


def parse(document: dict[str, Any], folder: Path) -> tuple[ModelConfig, SearchOptions]:
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
            sliding_window=_parse_sliding_window(decoder),
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
                    is_lm_head=stage.flag("is_lm_head", False),
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


def parse_speculative(document: dict[str, Any]) -> SpeculativeOptions:
    values = document.get("speculative", {})
    if not isinstance(values, dict):
        raise ModelError(f"{CONFIG_NAME}: speculative must be an object.")
    try:
        return speculative.changed(SpeculativeOptions(), values)
    except (TypeError, EngineError) as error:
        raise ModelError(f"{CONFIG_NAME}: speculative.{error}") from error


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


_KNOWN_SLIDING_WINDOW = {
    "window_size", "pad_value", "alignment", "slide_key_value_cache", "slide_inputs", "layers",
    "cache_slack",
}  # fmt: skip


def _parse_sliding_window(decoder: _Reader) -> SlidingWindow | None:
    """The graphs themselves say which layers look back how far; `layers` and `cache_slack` are
    only looked at."""
    values = decoder.object("sliding_window")
    if not values:
        return None
    window = _Reader(values, "model.decoder.sliding_window")
    window.whole("cache_slack", least=0)
    window.flag("slide_key_value_cache", True)
    alignment = window.text("alignment", "right")
    if alignment not in ("left", "right"):
        raise window.fail("alignment", '"left" or "right"')
    layers = values.get("layers", [])
    if not isinstance(layers, list) or any(type(i) is not int or i < 0 for i in layers):
        raise window.fail("layers", "a list of numbers of layers")
    for name in sorted(set(values) - _KNOWN_SLIDING_WINDOW):
        log.warning(
            "%s: model.decoder.sliding_window.%s is not known and was skipped", CONFIG_NAME, name
        )
    return SlidingWindow(
        window_size=window.whole("window_size", least=1),
        slide_inputs=window.flag("slide_inputs", True),
        alignment="left" if alignment == "left" else "right",
        pad_value=window.whole("pad_value"),
    )


def _warn_unknown(model: dict[str, Any], decoder: dict[str, Any]) -> None:
    for name in sorted(set(model) - _KNOWN_MODEL):
        log.warning("%s: model.%s is not known and was skipped", CONFIG_NAME, name)
    for name in sorted(set(decoder) - _KNOWN_DECODER):
        log.warning("%s: model.decoder.%s is not known and was skipped", CONFIG_NAME, name)
