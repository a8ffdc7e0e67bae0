"""A model that is open, with what the chat knows of it."""

import hashlib
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app import engine as og
from app.chat import options as chat_options
from app.chat import prompt as chat_prompt
from app.chat.messages import ModelInfo
from app.chat.tokens import Eye

log = logging.getLogger(__name__)

_DESCRIPTIONS = ("genai_config.json", "tokenizer.json")
_WEIGHTS = (".onnx", ".data", ".bin", ".safetensors")
_MIB = 1 << 20


@dataclass(frozen=True)
class LoadedModel:
    model: og.Model
    tokenizer: og.Tokenizer
    info: ModelInfo
    end_tokens: set[int]
    extra_ends: frozenset[int]  # those of them that the engine takes for text
    fingerprint: str
    template_hash: str
    eye: Eye


def open_model(engine: Any, path: str, threads: int) -> LoadedModel:
    """`threads` 0 leaves the choice to the engine."""
    config = engine.Config(path)
    if threads:
        options = {"intra_op_num_threads": threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    model: og.Model = engine.Model(config)
    tokenizer: og.Tokenizer = engine.Tokenizer(model)
    facts = model.config.model
    folder = Path(path).parent if Path(path).suffix == ".onnx" else Path(path)
    template = tokenizer.chat_template
    defaults = chat_options.defaults_of(model.config.search)
    if template is not None and "enable_thinking" in template:
        defaults = replace(defaults, thinks=True)
    info = ModelInfo(
        path=path,
        name=folder.name,
        device=model.device_type,
        context_length=facts.context_length,
        defaults=defaults,
        has_chat_template=template is not None,
    )
    known = {int(token) for token in facts.eos_token_ids}
    ends = known | {int(token) for token in tokenizer.eos_token_ids}
    ends |= chat_prompt.end_tokens(tokenizer)
    return LoadedModel(
        model,
        tokenizer,
        info,
        ends,
        frozenset(ends - known),
        fingerprint(folder),
        hashlib.sha256(template.encode()).hexdigest() if template is not None else "",
        Eye(tokenizer, ends),
    )


def fingerprint(folder: Path) -> str:
    """Tells models apart without reading all of them: of weights the size and both ends."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            digest.update(_sample(path))
        except OSError:  # not one of the files that the model was opened from
            log.warning("left out of the fingerprint: %s", path.name)
    return digest.hexdigest()


def _sample(path: Path) -> bytes:
    if path.name in _DESCRIPTIONS:
        return path.name.encode() + path.read_bytes()
    if path.suffix not in _WEIGHTS or not path.is_file():
        return b""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_MIB)
        file.seek(max(0, size - _MIB))
        return f"{path.name} {size} ".encode() + head + file.read(_MIB)
