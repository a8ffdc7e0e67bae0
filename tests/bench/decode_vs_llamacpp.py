"""Our engine with an imported GGUF file beside llama.cpp, on the same file and threads.

    python tests/bench/decode_vs_llamacpp.py [FILE.gguf] [--threads 1 2] [--rounds 7]
                                             [--precision stored]

Both read the same 512 tokens, and write 64 more greedily after the first 64 of them. Runs take
turns, so that whatever else the machine does falls on both; a ratio is that of one round. Prints
ratios, asserts nothing.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "peers")]

from llama_cpp import LlamaCpp  # noqa: E402

from app import engine as og  # noqa: E402
from app.convert import Precision, import_gguf  # noqa: E402

STARTER = ROOT / "build" / "starter" / "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = [100 + (7 * i) % 900 for i in range(512)]
BEFORE, WRITTEN = 64, 64
CONTEXT = 1024
Rates = tuple[float, float]  # tokens a second, read and written


def ours(model: og.Model) -> Rates:
    def generator() -> og.Generator:
        params = og.GeneratorParams(model)
        params.set_search_options(
            max_length=CONTEXT, min_length=CONTEXT, do_sample=False, repetition_penalty=1.0
        )
        return og.Generator(model, params)

    with generator() as reading:
        begun = time.perf_counter()
        reading.append_tokens(PROMPT)
        reading.get_logits()
        read = len(PROMPT) / (time.perf_counter() - begun)
    with generator() as writing:
        writing.append_tokens(PROMPT[:BEFORE])
        writing.generate_next_token()
        begun = time.perf_counter()
        for _ in range(WRITTEN):
            writing.generate_next_token()
        return read, WRITTEN / (time.perf_counter() - begun)


def theirs(peer: LlamaCpp) -> Rates:
    begun = time.perf_counter()
    peer.logits(PROMPT, only_last=True)
    read = len(PROMPT) / (time.perf_counter() - begun)
    token = int(peer.logits(PROMPT[:BEFORE], only_last=True)[-1].argmax())
    begun = time.perf_counter()
    for i in range(WRITTEN):
        row: np.ndarray = peer.logits([token], at=BEFORE + i, only_last=True)[-1]
        token = int(row.argmax())
    return read, WRITTEN / (time.perf_counter() - begun)


def opened(folder: Path, threads: int) -> og.Model:
    config = og.Config(folder)
    options = {"intra_op_num_threads": threads}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    return og.Model(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=STARTER)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--precision", default="stored")
    options = parser.parse_args()
    precision: Precision = options.precision
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "model"
        for _ in import_gguf(options.file, folder, precision=precision):
            pass
        for threads in options.threads:
            peer = LlamaCpp(options.file, context=CONTEXT, threads=threads)
            with opened(folder, threads) as model:
                ours(model)
                theirs(peer)
                pairs = [(ours(model), theirs(peer)) for _ in range(options.rounds)]
            peer.close()
            for name, place in (("read", 0), ("write", 1)):
                ratios = sorted(a[place] / b[place] for a, b in pairs)
                mine, other = (statistics.median(p[side][place] for p in pairs) for side in (0, 1))
                print(
                    f"{options.file.name}, {threads} thread(s), {name}: ours {mine:.1f} tokens/s, "
                    f"llama.cpp {other:.1f}; ratio median {statistics.median(ratios):.2f}, "
                    f"lowest {ratios[0]:.2f}, highest {ratios[-1]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
