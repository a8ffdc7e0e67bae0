"""A GGUF file becomes a model folder: header, plan, then the weights as a stream."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.convert import tokenizer
from app.convert import vocabulary as vocabularies
from app.convert.decoder import Decoder
from app.convert.drawing import DATA_FILE, Drawing
from app.convert.errors import ConvertError, writing_to
from app.convert.families import FAMILIES, Reader
from app.convert.folder import new_folder, require_space
from app.convert.forms import Precision
from app.convert.genai_config import genai_config
from app.convert.gguf_file import GgufFile
from app.convert.graph import draw
from app.convert.progress import Progress
from app.convert.weights import Loss, write

FACTS_FILE = "import.json"
SMALL_FILES_BYTES = 32_000_000  # graph, tokenizer and room to breathe, for the disk check


def import_gguf(
    source: Path, destination: Path, *, precision: Precision = "stored"
) -> Iterator[Progress]:
    """Yields Progress by source bytes; closing it cancels and leaves nothing behind."""
    text = f"Converting {source.name}"
    with GgufFile(source) as file:
        yield Progress(0, 1, f"Reading {source.name}")
        decoder = _decoder(file)
        vocabulary = vocabularies.read(file.metadata, source.name, decoder.vocabulary_size)
        words = tokenizer.tokenizer_json(vocabulary, source.name)
        model, drawing = draw(decoder, precision)
        require_space(destination.parent, drawing.layout.size_bytes + SMALL_FILES_BYTES)
        total = sum(stored.matrix.source_bytes for stored in drawing.stored)
        done = 0
        with new_folder(destination) as folder:
            yield Progress(0, total, text)
            loss = Loss()
            for size in _write_data(folder / DATA_FILE, file, drawing, loss):
                done += size
                yield Progress(done, total, text)
            with writing_to(destination):
                (folder / "model.onnx").write_bytes(model.SerializeToString())
                _write_json(folder / "tokenizer.json", words)
                _write_json(
                    folder / "tokenizer_config.json",
                    tokenizer.tokenizer_config(vocabulary, decoder.context_length),
                )
                config = genai_config(decoder, vocabulary, file.metadata)
                _write_json(folder / "genai_config.json", config)
                _write_json(folder / FACTS_FILE, _facts(file, drawing, precision, loss))
    yield Progress(total, total, text)


def _decoder(file: GgufFile) -> Decoder:
    family = file.metadata.get("general.architecture")
    if not isinstance(family, str) or family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise ConvertError(
            f"“{file.path.name}” is a model of the family “{family}”, which cannot be imported yet "
            f"(known: {known})."
        )
    return Reader(file, FAMILIES[family]).decoder()


def _facts(
    source: GgufFile, drawing: Drawing, precision: Precision, loss: Loss
) -> dict[str, Any]:
    """Where the folder comes from; `rounding_error` is that of Loss."""
    sizes: dict[str, int] = {}
    for stored in drawing.stored:
        for part in stored.matrix.parts:
            name = part.tensor.type.name
            sizes[name] = sizes.get(name, 0) + part.tensor.size_bytes
    return {
        "source": source.path.name,
        "source_bytes": source.size_bytes,
        "source_types": dict(sorted(sizes.items(), key=lambda item: -item[1])),
        "precision": precision,
        "rounding_error": loss.relative,
    }


def _write_data(
    path: Path, source: GgufFile, drawing: Drawing, loss: Loss
) -> Iterator[int]:
    with writing_to(path), path.open("wb") as file:
        file.truncate(drawing.layout.size_bytes)
        for place, values in drawing.constants:
            file.seek(place.offset)
            file.write(values.data)
        for stored in drawing.stored:
            yield from write(file, source, stored, loss)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
