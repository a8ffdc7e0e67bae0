"""Our engine beside onnxruntime-genai: the same folder, the same threads, in turns.

    python tests/bench/generator.py MODEL_FOLDER [--quick] [--threads N] [--write FILE]

Each line is the median of rounds in which both do the same work one after the other (A B A B), and
the ratio of the two in each round: median, least and greatest. Above 1 ours is better. Lines
without a peer compare two ways of our own. Memory is the peak of a process that does nothing else.
Prints, asserts nothing; needs onnxruntime-genai.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from app import engine as og

PROMPT = "Once upon a time there was a little house at the edge of a big forest. "
PEER = "onnxruntime_genai"
Timed = Callable[[], float]


@dataclass(frozen=True)
class Line:
    """`pairs` are (ours, other) of each round; what is less is better."""

    name: str
    unit: str
    pairs: list[tuple[float, float]]
    bar: str = ""

    def __str__(self) -> str:
        ours, other = (statistics.median(values) for values in zip(*self.pairs, strict=True))
        ratios = [b / a for a, b in self.pairs]
        return (
            f"| {self.name} | {ours:,.1f} | {other:,.1f} | {self.unit} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
            f"| {self.bar} |"
        )


class Bench:
    def __init__(self, folder: Path, threads: int, rounds: int) -> None:
        self.folder, self.threads, self.rounds = folder, threads, rounds
        self.models: dict[ModuleType, Any] = {}
        self.peer = importlib.import_module(PEER)
        ids = og.Tokenizer(str(folder)).encode(PROMPT)
        self.text = np.tile(np.asarray(ids, np.int32), 200)

    def lines(self) -> Iterator[Line]:
        for count, bar in ((512, ">= 1.2"), (2048, ">= 1.2")):
            yield self._both(f"prompt of {count:,} tokens", "ms", self._reads(count), bar)
        for count in (128, 2048):
            yield self._both(f"a token after {count:,}", "ms", self._writes(count), ">= 1.1")
        yield self._both("a token with 4 beams", "ms", self._writes(64, num_beams=4))
        yield self._both("a token of each of 4 texts", "ms", self._writes(64, batch_size=4))
        yield self._follow_up()
        yield self._guesses()
        yield self._four_at_once()

    def _both(
        self, name: str, unit: str, work: Callable[[ModuleType], Timed], bar: str = ""
    ) -> Line:
        ways = [work(library) for library in (og, self.peer)]
        return Line(name, unit, self._in_turns(*ways), bar)

    def _in_turns(self, ours: Timed, other: Timed) -> list[tuple[float, float]]:
        ours(), other()  # what is done once is done
        return [(ours(), other()) for _ in range(self.rounds)]

    def generator(self, library: ModuleType, length: int, **options: Any) -> Any:
        if library not in self.models:
            self.models[library] = opened(library, self.folder, self.threads)
        params = library.GeneratorParams(self.models[library])
        params.set_search_options(
            **{"max_length": length, "do_sample": False, "repetition_penalty": 1.0, **options}
        )
        return library.Generator(self.models[library], params)

    def _reads(self, count: int) -> Callable[[ModuleType], Timed]:
        def work(library: ModuleType) -> Timed:
            def timed() -> float:
                generator = self.generator(library, count + 64)
                start = time.perf_counter()
                generator.append_tokens(self.text[:count])
                generator.get_logits()
                return 1e3 * (time.perf_counter() - start)

            return timed

        return work

    def _writes(self, count: int, steps: int = 32, **options: Any) -> Callable[[ModuleType], Timed]:
        def work(library: ModuleType) -> Timed:
            def timed() -> float:
                length = count + steps + 2
                generator = self.generator(library, length, min_length=length, **options)
                rows = options.get("batch_size", 1)
                generator.append_tokens(np.tile(self.text[:count], (rows, 1)))
                generator.generate_next_token()
                start = time.perf_counter()
                for _ in range(steps):
                    generator.generate_next_token()
                return 1e3 * (time.perf_counter() - start) / steps

            return timed

        return work

    def _follow_up(self) -> Line:
        """Other: a fresh prompt of 50 tokens."""
        generator = self.generator(og, 2200)

        def follow_up() -> float:
            generator.rewind_to(0)
            generator.append_tokens(self.text[:2000])
            generator.generate_next_token()
            start = time.perf_counter()
            generator.append_tokens(self.text[:49])  # and the token that was just written
            generator.generate_next_token()
            return 1e3 * (time.perf_counter() - start)

        def fresh() -> float:
            short = self.generator(og, 128)
            start = time.perf_counter()
            short.append_tokens(self.text[:50])
            short.generate_next_token()
            return 1e3 * (time.perf_counter() - start)

        pairs = self._in_turns(follow_up, fresh)
        return Line("50 more tokens after 2,000, beside 50 alone", "ms", pairs, ">= 0.5")

    def _guesses(self) -> Line:
        """Text that repeats itself. Other: without guesses."""

        def writes(size: int) -> Timed:
            def timed() -> float:
                params = og.GeneratorParams(self.models[og])
                params.set_search_options(
                    max_length=256 + 96, do_sample=False, repetition_penalty=1.0
                )
                params.set_speculative_options(ngram_size=size, max_draft_tokens=8)
                with og.Generator(self.models[og], params) as generator:
                    generator.append_tokens(self.text[:256])
                    start = time.perf_counter()
                    while not generator.is_done():
                        generator.generate_next_token()
                    written = generator.token_count() - 256
                    return 1e3 * (time.perf_counter() - start) / written

            return timed

        return Line(
            "a token guessed from the text", "ms", self._in_turns(writes(3), writes(0)), ">= 1.8"
        )

    def _four_at_once(self) -> Line:
        """Other: four texts one after another."""
        together, alone = self._writes(64, batch_size=4)(og), self._writes(64)(og)
        pairs = self._in_turns(together, lambda: 4 * alone())
        return Line("4 tokens at once, beside 4 times one", "ms", pairs, ">= 2.5")

    def memory(self) -> Line:
        pairs = [
            (self._peak("app.engine"), self._peak(PEER)) for _ in range(min(3, self.rounds))
        ]
        return Line("peak memory, prompt of 2,048 and 16 more", "MB", pairs, ">= 1.54")

    def _peak(self, library: str) -> float:
        command = [sys.executable, __file__, str(self.folder), "--peak", library]
        command += ["--threads", str(self.threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-1])


def opened(library: ModuleType, folder: Path, threads: int) -> Any:
    config = library.Config(str(folder))
    options = {"intra_op_num_threads": threads}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    return library.Model(config)


def peak(name: str, folder: Path, threads: int) -> float:
    """In MB, of this process after a long prompt; imports are part of it."""
    library = importlib.import_module(name)
    model = opened(library, folder, threads)
    params = library.GeneratorParams(model)
    params.set_search_options(max_length=2048 + 64, do_sample=False)
    generator = library.Generator(model, params)
    generator.append_tokens(np.tile(np.arange(40, 72, dtype=np.int32), 64))
    for _ in range(16):
        generator.generate_next_token()
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e3


def heading(folder: Path, threads: int, rounds: int) -> str:
    modules = [importlib.import_module(name) for name in ("onnxruntime", PEER, "numpy")]
    versions = ", ".join(f"{module.__name__} {module.__version__}" for module in modules)
    return (
        f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores, {threads} threads, "
        f"load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, {versions}; "
        f"{folder.name}, {rounds} rounds.\n\n"
        "| work | ours | other | unit | other / ours | wanted |\n|---|---|---|---|---|---|"
    )


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="two rounds instead of seven")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--write", type=Path, help="the table goes into this file too")
    parser.add_argument("--peak", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(options.peak, options.folder, options.threads))
        return
    rounds = 2 if options.quick else 7
    said = [heading(options.folder, options.threads, rounds)]
    print(said[0], flush=True)
    bench = Bench(options.folder, options.threads, rounds)
    for line in bench.lines():
        said.append(str(line))
        print(line, flush=True)
    bench.models.clear()
    said.append(str(bench.memory()))
    print(said[-1])
    if options.write:
        options.write.write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
