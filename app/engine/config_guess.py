"""The words of a genai_config.json for folders that have none: exports with a config.json.

The graphs' inputs and outputs of such exports have the usual names; sizes and ids of tokens are in
config.json, and how to sample in generation_config.json.
"""

from pathlib import Path
from typing import Any

from app.engine.config_reader import GENERATION_CONFIG_NAME, read_json
from app.engine.errors import ModelError

NAME = "config.json"
_SUBFOLDER = "onnx"
_FIRST_CHOICES = ("model.onnx", "model_q4.onnx", "model_quantized.onnx")
_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty")


def folder_of(onnx_file: Path) -> Path:
    """Where the config of an .onnx file lies: beside it, or one folder above `onnx`."""
    place = onnx_file.parent
    is_below = place.name == _SUBFOLDER and not (place / NAME).is_file()
    return place.parent if is_below and (place.parent / NAME).is_file() else place


def guess(folder: Path, onnx_name: str = "") -> dict[str, Any]:
    """`onnx_name` is the decoder's file; "": the one that is there."""
    document = read_json(folder / NAME)
    inner = document.get("text_config")  # models that see too keep their text's sizes there
    values = {**document, **inner} if isinstance(inner, dict) else document
    generation: dict[str, Any] = {}
    if (folder / GENERATION_CONFIG_NAME).is_file():
        generation = read_json(folder / GENERATION_CONFIG_NAME)
    eos = _first(values, generation, "eos_token_id")
    if eos in (None, []):
        raise ModelError(f"{NAME}: eos_token_id is missing, with which an answer ends.")
    pad = _first(values, generation, "pad_token_id")
    bos = _first(values, generation, "bos_token_id")
    ids = eos if isinstance(eos, list) else [eos]
    return {
        "model": {
            "type": str(values.get("model_type") or ""),
            "vocab_size": _size(values, "vocab_size"),
            "context_length": _size(values, "max_position_embeddings", "n_positions"),
            "eos_token_id": ids,
            "pad_token_id": ids[0] if pad is None else pad,
            "bos_token_id": 0 if bos is None else bos,
            "decoder": {"filename": onnx_name or _only_graph(folder), **_shapes(values)},
        },
        "search": {name: generation[name] for name in _SAMPLING if name in generation},
    }


def _shapes(values: dict[str, Any]) -> dict[str, int]:
    """For graphs that do not say the shape of their cache."""
    heads = values.get("num_attention_heads") or values.get("n_head")
    found = {
        "num_attention_heads": heads,
        "num_key_value_heads": values.get("num_key_value_heads") or heads,
        "num_hidden_layers": values.get("num_hidden_layers") or values.get("n_layer"),
        "hidden_size": values.get("hidden_size") or values.get("n_embd"),
        "head_size": values.get("head_dim"),
    }
    sizes = {name: size for name, size in found.items() if type(size) is int and size > 0}
    if "head_size" not in sizes and {"num_attention_heads", "hidden_size"} <= set(sizes):
        sizes["head_size"] = sizes["hidden_size"] // sizes["num_attention_heads"]
    return sizes


def _first(values: dict[str, Any], generation: dict[str, Any], name: str) -> Any:
    found = values.get(name)
    return generation.get(name) if found is None else found


def _size(values: dict[str, Any], *names: str) -> Any:
    for name in names:
        if values.get(name) is not None:
            return values[name]
    raise ModelError(f"{NAME}: {names[0]} is missing.")


def _only_graph(folder: Path) -> str:
    places = [folder, folder / _SUBFOLDER]
    found = {file.name: file for place in places for file in sorted(place.glob("*.onnx"))}
    for name in _FIRST_CHOICES:
        if name in found:
            return found[name].relative_to(folder).as_posix()
    if len(found) != 1:
        known = ", ".join(list(found)[:8]) or "none"
        raise ModelError(f"{folder}: open one of its .onnx files; there are: {known}.")
    return next(iter(found.values())).relative_to(folder).as_posix()
