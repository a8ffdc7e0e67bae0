"""Milliseconds a token that the Generator takes beside the runtime's own runs and copies.

    python tests/bench/outside_runs.py TINY_MODEL_FOLDER [ROUNDS]

A tiny model is given vocabularies of real size by random weights, so that its runs are short. What
the peer does beside its runs cannot be told apart from outside: ours/peer is of the whole time of
each, runs included, "-" where onnxruntime-genai is not installed or lacks the option. Prints;
asserts nothing.
"""

import importlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from app import engine as og
from app.engine import devices
from app.engine.session import Session

VOCABULARIES = (49_152, 256_000)
STEPS = 40
TOKENS_BEFORE = 120
_CHAT = {"do_sample": True, "temperature": 0.7, "top_k": 50, "top_p": 0.95}
CASES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "top-k 50 + top-p": _CHAT,
    "chat defaults": {**_CHAT, "repetition_penalty": 1.1},
    "top-p alone": {"do_sample": True, "temperature": 0.7, "top_k": 0, "top_p": 0.95},
    "top-p alone, flat": {"do_sample": True, "temperature": 100.0, "top_k": 0, "top_p": 0.95},
    "min_p": {"do_sample": True, "top_k": 0, "top_p": 1.0, "min_p": 0.05},
    "4 beams": {"do_sample": False, "num_beams": 4},
    "guided JSON": {"do_sample": False},
}
_SCHEMA = '{"type": "array", "items": {"type": "integer"}, "minItems": 900}'


def main(folder: Path, rounds: int) -> None:
    outside_of = _RunTimer()
    try:
        peer: ModuleType | None = importlib.import_module("onnxruntime_genai")
    except ImportError:
        peer = None
    print(f"{'':20}{'vocabulary':>11}{'ms outside':>12}{'ms in runs':>12}{'ours/peer':>11}")
    with tempfile.TemporaryDirectory() as scratch:
        for size in VOCABULARIES:
            wide = _with_vocabulary(folder, size, Path(scratch) / str(size))
            ours, theirs = og.Model(wide), peer and peer.Model(str(wide))
            for name in CASES:
                outside, within, ratio = _case(name, ours, theirs, peer, rounds, outside_of)
                print(f"{name:20}{size:11}{outside:12.3f}{within:12.3f}{ratio:>11}")


class _RunTimer:
    """Seconds within the runtime's runs and copies so far."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for owner, name in ((Session, "run"), (Session, "_run_helper"), (devices, "copy")):
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, function: Any) -> Any:
        def timed(*args: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **named)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def _case(
    name: str, ours: Any, theirs: Any, peer: ModuleType | None, rounds: int, timer: _RunTimer
) -> tuple[float, float, str]:
    """Medians over the rounds, which take turns; the peer knows no min_p."""
    has_peer = peer is not None and "min_p" not in CASES[name]
    found: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        whole, within = _per_token(og, ours, name, timer)
        other, _ = _per_token(peer, theirs, name, timer) if has_peer else (0.0, 0.0)
        found.append((whole, within, other))
    whole, within, other = (float(np.median(column)) for column in zip(*found, strict=True))
    ratio = f"{whole / other:.2f}" if has_peer else "-"
    return whole - within, within, ratio


def _per_token(library: Any, model: Any, name: str, timer: _RunTimer) -> tuple[float, float]:
    """Milliseconds of one generate_next_token, is_done and get_next_tokens; those in our runs."""
    params = library.GeneratorParams(model)
    length = TOKENS_BEFORE + STEPS
    params.set_search_options(max_length=length, random_seed=1, **CASES[name])
    if name == "guided JSON":
        params.set_guidance("json_schema", _SCHEMA)
    generator = library.Generator(model, params)
    generator.append_tokens(np.arange(7, 7 + TOKENS_BEFORE, dtype=np.int32))
    timer.seconds, count, start = 0.0, 0, time.perf_counter()
    while not generator.is_done():
        generator.generate_next_token()
        generator.get_next_tokens()
        count += 1
    seconds = time.perf_counter() - start
    return 1e3 * seconds / count, 1e3 * timer.seconds / count


def _with_vocabulary(source: Path, size: int, target: Path) -> Path:
    """The same model with `size` tokens, all new ones unknown to the tokenizer."""
    shutil.copytree(source, target)
    random = np.random.default_rng(size)
    model = onnx.load(target / "model.onnx")
    old = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    width, scale = old["embed"].shape[1], 1.5 / np.sqrt(old["embed"].shape[1])
    wide = {
        "embed": random.normal(size=(size, width)),
        "lm_head": random.normal(scale=scale, size=(width, size)),
        "lora_B": np.zeros((old["lora_B"].shape[0], size)),
    }
    for tensor in model.graph.initializer:
        if tensor.name in wide:
            values = wide[tensor.name].astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        shape = value.type.tensor_type.shape.dim
        if value.name in ("lora_B", "logits"):
            shape[-1].dim_value = size
    onnx.save(model, target / "model.onnx")
    path = target / "genai_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["model"]["vocab_size"] = size
    settings["model"]["decoder"]["session_options"]["intra_op_num_threads"] = 1
    path.write_text(json.dumps(settings), encoding="utf-8")
    return target


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
