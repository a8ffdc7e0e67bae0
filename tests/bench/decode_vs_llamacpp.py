"""Decode speed of the imported starter model beside llama.cpp's, on the same file and threads.

    python tests/bench/decode_vs_llamacpp.py [--threads 1 2] [--tokens 96] [--rounds 7]

Runs take turns, so that whatever else the machine does falls on both. Each round prefills the same
64 tokens and then decodes greedily; a ratio is that of one round. Prints ratios, asserts nothing.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "peers")]

from llama_cpp import LlamaCpp  # noqa: E402

from app.convert import import_gguf  # noqa: E402

STARTER = ROOT / "build" / "starter" / "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = list(range(100, 164))
CONTEXT = 512
Step = Callable[[list[int], int], np.ndarray]  # ids, position of the first -> last logits


def onnx_step(folder: Path, threads: int) -> Step:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    cache = {
        port.name: onnxruntime.OrtValue.ortvalue_from_numpy(
            np.zeros((1, port.shape[1], CONTEXT, port.shape[3]), np.float32)
        )
        for port in session.get_inputs()
        if port.name.startswith("past_key_values")
    }

    def step(ids: list[int], at: int) -> np.ndarray:
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.array([ids], np.int64))
        binding.bind_cpu_input("attention_mask", np.ones((1, at + len(ids)), np.int64))
        binding.bind_output("logits")
        for name, value in cache.items():
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)
        session.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy()[0, -1]

    return step


def llama_step(model: LlamaCpp) -> Step:
    return lambda ids, at: model.logits(ids, at=at, only_last=True)[-1]


def decode_speed(step: Step, tokens: int) -> float:
    """Tokens a second, the prompt not counted."""
    token = int(step(PROMPT, 0).argmax())
    begun = time.perf_counter()
    for i in range(tokens):
        token = int(step([token], len(PROMPT) + i).argmax())
    return tokens / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "starter"
        for _ in import_gguf(STARTER, folder):
            pass
        for threads in options.threads:
            peer = LlamaCpp(STARTER, context=CONTEXT, threads=threads)
            ours, theirs = onnx_step(folder, threads), llama_step(peer)
            pairs = [
                (decode_speed(ours, options.tokens), decode_speed(theirs, options.tokens))
                for _ in range(options.rounds)
            ]
            peer.close()
            ratios = sorted(a / b for a, b in pairs)
            print(
                f"{threads} thread(s): ours {statistics.median(p[0] for p in pairs):.1f} tokens/s, "
                f"llama.cpp {statistics.median(p[1] for p in pairs):.1f}; ratio median "
                f"{statistics.median(ratios):.2f}, lowest {ratios[0]:.2f}, highest {ratios[-1]:.2f}"
            )


if __name__ == "__main__":
    main()
