"""What the Generator costs beside the runtime's own runs, and its speed against the peer's.

    python tests/bench/generator.py MODEL_FOLDER [TOKENS]

Prints; asserts nothing. The peer's lines are left out where onnxruntime-genai is not installed.
"""

import importlib
import sys
import time
from types import ModuleType
from typing import Any

import numpy as np

from app import engine as og
from app.engine.session import Session

PROMPT = "Once upon a time there was a little house at the edge of a big forest. "
CASES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False, "repetition_penalty": 1.0},
    "top-k 50 + top-p": {"do_sample": True, "top_k": 50, "top_p": 0.9, "random_seed": 1},
    "top-p": {"do_sample": True, "top_k": 0, "top_p": 0.9, "random_seed": 1},
    "as the chat": {"do_sample": True, "repetition_penalty": 1.05, "random_seed": 1},
}


def main(folder: str, steps: int) -> None:
    in_runs = _time_runs()
    ids = np.tile(og.Tokenizer(folder).encode(PROMPT), 16)[:256]
    try:
        peer = importlib.import_module("onnxruntime_genai")
    except ImportError:
        peer = None
    for name, options in CASES.items():
        read, write, outside = _measure(og, folder, ids, steps, options, in_runs)
        line = f"{name}: prompt {read:.0f}/s, answer {write:.1f}/s"
        line += (
            f", outside the runs {np.median(outside):.3f} ms (p90 {np.percentile(outside, 90):.3f})"
        )
        if peer is not None:
            peer_read, peer_write, _ = _measure(peer, folder, ids, steps, options, in_runs)
            line += f"; ours/peer {read / peer_read:.2f} and {write / peer_write:.2f}"
        print(line)
    _report_guessing(folder, ids, steps)
    _report_other_searches(folder, steps)


def _report_guessing(folder: str, ids: Any, steps: int) -> None:
    """Text that repeats itself, with and without guesses; the ratio is of one run of this file."""
    model = og.Model(folder)
    rates, texts = [], []
    for size in (0, 3):
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + steps, do_sample=False)
        params.set_search_options(repetition_penalty=1.0)
        params.set_speculative_options(ngram_size=size, max_draft_tokens=8)
        with og.Generator(model, params) as generator:
            generator.append_tokens(ids)
            start = time.perf_counter()
            while not generator.is_done():
                generator.generate_next_token()
            written = generator.token_count() - len(ids)
            rates.append(written / (time.perf_counter() - start))
            texts.append(generator.get_sequence(0).tolist())
            stats = generator.get_speculative_stats()
    same = "the same text" if texts[0] == texts[1] else "another text"
    print(
        f"guessing ahead: {rates[1]:.1f}/s, {rates[1] / rates[0]:.2f} times as fast, {same}; "
        f"accepted {stats['acceptance_rate']:.2f} of {stats['draft_tokens_evaluated']} guesses"
    )


def _report_other_searches(folder: str, steps: int) -> None:
    """Milliseconds a token outside the runs, with several rows of logits or a mask."""
    in_runs = _time_runs()
    ids = og.Tokenizer(folder).encode(PROMPT)
    for name, options, pattern in (
        ("4 beams", {"num_beams": 4}, ""),
        ("guided", {}, "[a-z ,.]{900}"),
        ("no_repeat_ngram_size 3", {"no_repeat_ngram_size": 3}, ""),
    ):
        model = og.Model(folder)
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + steps, do_sample=False, **options)
        if pattern:
            params.set_guidance("regex", pattern)
        generator = og.Generator(model, params)
        generator.append_tokens(ids)
        outside = []
        while not generator.is_done():
            before, start = in_runs[0], time.perf_counter()
            generator.generate_next_token()
            outside.append(1e3 * (time.perf_counter() - start - (in_runs[0] - before)))
        print(f"{name}: outside the runs {np.median(outside):.3f} ms")


def _time_runs() -> list[float]:
    """Seconds within the runtime so far, in a list of one."""
    total = [0.0]
    plain = Session.run

    def run(self: Session, *args: Any) -> None:
        start = time.perf_counter()
        plain(self, *args)
        total[0] += time.perf_counter() - start

    Session.run = run  # type: ignore[method-assign]
    return total


def _measure(
    library: ModuleType,
    folder: str,
    ids: Any,
    steps: int,
    options: dict[str, Any],
    in_runs: list[float],
) -> tuple[float, float, list[float]]:
    """Prompt tokens a second, answer tokens a second, milliseconds outside the runs per token."""
    model = library.Model(folder)
    params = library.GeneratorParams(model)
    length = len(ids) + steps
    params.set_search_options(max_length=length, **options)
    generator = library.Generator(model, params)
    start = time.perf_counter()
    generator.append_tokens(ids)
    generator.get_logits()
    read = len(ids) / (time.perf_counter() - start)
    outside = []
    start = time.perf_counter()
    while not generator.is_done():
        before, token_start = in_runs[0], time.perf_counter()
        generator.generate_next_token()
        outside.append(1e3 * (time.perf_counter() - token_start - (in_runs[0] - before)))
    count = len(outside)
    return read, count / (time.perf_counter() - start), outside


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100)
