"""Exports of Hugging Face's tools: graphs beside a config.json, without a genai_config.json.

Optimum writes model.onnx, transformers.js a folder `onnx` with the same model in several forms. One
form is brought in, and what its files say becomes a genai_config.json.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine import config_guess
from app.engine.errors import EngineError
from app.library.errors import LibraryError
from app.library.graph_facts import graph_facts

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
_SUBFOLDER = "onnx"
_TEXTS = (
    TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja", "generation_config.json", CONFIG,
)  # fmt: skip
# The forms of one model, the best for a processor first: small ones are quicker too. Half
# precision comes last: a processor has to widen it at each step.
_FORMS = ("q4", "int8", "quantized", "uint8", "bnb4", "", "q4f16", "fp16")
_NAMES = ("model", "decoder_model_merged", "decoder_with_past_model")
_SEES = ("vision_encoder", "vision_model", "audio_encoder", "embed_tokens", "encoder_model")


@dataclass(frozen=True)
class Export:
    """`graph` is the form to bring in, `files` all that goes along, graph and weights too."""

    folder: Path
    graph: Path
    files: tuple[Path, ...]
    config: dict[str, Any]  # as genai_config.json

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def holds_export(path: Path) -> bool:
    """From names alone: a folder, or an .onnx file of one."""
    folder = config_guess.folder_of(path) if path.suffix == ".onnx" else path
    return (folder / CONFIG).is_file() and (path.suffix == ".onnx" or bool(_graphs(folder)))


def find_export(path: Path) -> Export:
    """LibraryError says what is missing, or why it cannot be used."""
    folder = config_guess.folder_of(path) if path.suffix == ".onnx" else path
    graph = path if path.suffix == ".onnx" else _best(folder)
    if not (folder / TOKENIZER).is_file():
        raise LibraryError(
            f"“{folder.name}” has no “{TOKENIZER}”, which says how text becomes tokens."
        )
    texts = [folder / name for name in _TEXTS if (folder / name).is_file()]
    return Export(folder, graph, (graph, *_data(graph), *texts), _config(folder, graph))


def _graphs(folder: Path) -> list[Path]:
    return [
        file for place in (folder / _SUBFOLDER, folder) for file in sorted(place.glob("*.onnx"))
    ]


def _best(folder: Path) -> Path:
    found = {file.stem: file for file in reversed(_graphs(folder))}
    for name in _NAMES:
        for form in _FORMS:
            stem = f"{name}_{form}" if form else name
            if stem in found:
                _check_beside(folder, found, name)
                return found[stem]
    if len(found) == 1:
        return next(iter(found.values()))
    names = ", ".join(file.name for file in list(found.values())[:6])
    raise LibraryError(
        f"“{folder.name}” holds several graphs ({names}): drop the one that writes text."
    )


def _check_beside(folder: Path, found: dict[str, Path], name: str) -> None:
    """A decoder that is fed by other graphs is no whole model."""
    others = [stem for stem in found if stem.startswith(_SEES)]
    if name != "model" and others:
        raise LibraryError(
            f"“{folder.name}” is a model of several graphs (“{others[0]}.onnx” is one), which "
            "cannot be used yet without a genai_config.json."
        )


def _data(graph: Path) -> Iterator[Path]:
    for name, size in graph_facts(graph).data_bytes.items():
        file = graph.parent / name
        if Path(name).name != name or not file.is_file():
            raise LibraryError(f"“{graph.name}” keeps its weights in “{name}”, which is missing.")
        if file.stat().st_size < size:
            raise LibraryError(f"“{name}” is cut: get the model again.")
        yield file


def _config(folder: Path, graph: Path) -> dict[str, Any]:
    try:
        return config_guess.guess(folder, graph.name)
    except EngineError as error:
        raise LibraryError(f"“{folder.name}” cannot be used: {error}") from error


def written(config: dict[str, Any]) -> str:
    return json.dumps(config, ensure_ascii=False, indent=1)
