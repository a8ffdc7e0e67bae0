"""How much memory a model would take, beside what is there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil  # type: ignore[import-untyped]

from app.library.models import CONFIG, ModelFolder

Fit = Literal["fits", "tight", "too large"]

USUAL_CONTEXT = 8192  # a chat seldom grows longer; caches grow with it, not before
WORKSPACE_BYTES = 120_000_000  # the runtime and what a run computes
TIGHT = 0.85  # of what is free


@dataclass(frozen=True)
class Memory:
    total_bytes: int
    free_bytes: int
    own_bytes: int  # of this process


def memory_now() -> Memory:
    found = psutil.virtual_memory()
    return Memory(found.total, found.available, psutil.Process().memory_info().rss)


def memory_of(model: ModelFolder) -> int:
    """Bytes for weights, a chat of usual length and the work; measured peaks are at most this."""
    length = min(model.context_length or USUAL_CONTEXT, USUAL_CONTEXT)
    return model.size_bytes + length * _bytes_per_token(model.path) + WORKSPACE_BYTES


def fit_of(needed_bytes: int, memory: Memory) -> Fit:
    """What this app holds now is given back before another model is loaded."""
    free = memory.free_bytes + memory.own_bytes // 2
    if needed_bytes > memory.total_bytes or needed_bytes > 1.5 * free:
        return "too large"
    return "tight" if needed_bytes > TIGHT * free else "fits"


def _bytes_per_token(folder: Path) -> int:
    """Keys and values of all layers, in 32 bits; what is half of that is not told apart here."""
    try:
        decoder = json.loads((folder / CONFIG).read_text("utf-8-sig"))["model"]["decoder"]
        sizes = [
            _whole(decoder, name)
            for name in ("num_hidden_layers", "num_key_value_heads", "head_size")
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0
    layers, heads, size = sizes
    return 2 * 4 * layers * heads * size


def _whole(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if type(value) is int and 0 < value < 1 << 20 else 0
