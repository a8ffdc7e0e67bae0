"""Every family, as llama.cpp runs it: small files of random weights, logits side by side."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gguf
import numpy as np
import pytest

from app import engine as og
from app.convert import ConvertError, import_gguf
from app.convert.families import FAMILIES

HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD = 4, 2, 32, 160
CONTEXT = 96
SPECIALS = 3
NORMS = ("attn_norm", "ffn_norm")
GEMMA_NORMS = (*NORMS, "post_attention_norm", "post_ffw_norm")


@dataclass(frozen=True)
class Case:
    """What a file of the architecture holds beside what all files do."""

    architecture: str
    facts: dict[str, Any] = field(default_factory=dict)
    norms: tuple[str, ...] = NORMS
    head_norms: str = ""  # "head" or "all"
    biases: tuple[str, ...] = ()
    fused: bool = False
    is_gated: bool = True
    is_centred: bool = False
    tied: bool = True
    layers: int = 4
    far: bool = False  # rope factors for near and far texts
    context: int = CONTEXT  # of llama.cpp, which takes the far factors by it
    length: int = 40  # of the text
    hidden: int = HEADS * HEAD_SIZE


YARN = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 24,
}
LONG_ROPE = {
    "context_length": 8192,
    "rope.scaling.original_context_length": 4096,
    "rope.scaling.attn_factor": 1.2,
    "rope.dimension_count": 16,
}
QKV = ("attn_q", "attn_k", "attn_v")
CASES = {
    "llama": Case("llama", tied=False),
    "llama-yarn": Case("llama", YARN),
    "qwen2": Case("qwen2", biases=QKV),
    "qwen2-yarn": Case("qwen2", YARN, biases=QKV),
    "qwen3": Case("qwen3", head_norms="head", hidden=96),
    "gemma2": Case(
        "gemma2",
        {"attention.sliding_window": 8, "attn_logit_softcapping": 5.0,
         "final_logit_softcapping": 3.0},
        norms=GEMMA_NORMS, hidden=96,
    ),
    "gemma3": Case(
        "gemma3",
        {"attention.sliding_window": 8, "rope.freq_base": 1e6},
        norms=GEMMA_NORMS, head_norms="head", layers=7, hidden=96,
    ),
    "gemma3-scaled": Case(
        "gemma3",
        {"attention.sliding_window": 8, "rope.freq_base": 1e6, "rope.scaling.type": "linear",
         "rope.scaling.factor": 8.0},
        norms=GEMMA_NORMS, head_norms="head", layers=7, hidden=96,
    ),
    "phi3": Case("phi3", fused=True, tied=False),
    "phi3-near": Case("phi3", LONG_ROPE, fused=True, far=True, context=256),
    "phi3-far": Case("phi3", LONG_ROPE, fused=True, far=True, context=4352, length=4100),
    "granite": Case(
        "granite",
        {"attention.scale": 0.1, "embedding_scale": 3.0, "residual_scale": 0.4,
         "logit_scale": 2.0},
    ),
    "olmo2": Case("olmo2", norms=("post_attention_norm", "post_ffw_norm"), head_norms="all",
                  tied=False),
    "smollm3": Case("smollm3", layers=8),
    "starcoder2": Case(
        "starcoder2", is_gated=False, is_centred=True,
        biases=(*QKV, "attn_output", "ffn_up", "ffn_down"),
    ),
}  # fmt: skip


class Maker:
    """Writes a file with random weights whose logits differ clearly between tokens."""

    def __init__(self, path: Path, case: Case) -> None:
        self.case, self.rng = case, np.random.default_rng(11)
        self.writer = gguf.GGUFWriter(str(path), case.architecture)

    def matrix(self, name: str, n: int, k: int, scale: float = 1.0) -> None:
        values = self.rng.standard_normal((n, k)) * scale / np.sqrt(k)
        self.writer.add_tensor(f"{name}.weight", values.astype(np.float32))
        if name.rpartition(".")[2] in self.case.biases:
            self.vector(f"{name}.bias", n, 0.0)

    def vector(self, name: str, n: int, around: float = 1.0) -> None:
        values = around + 0.2 * self.rng.standard_normal(n)
        self.writer.add_tensor(name, values.astype(np.float32))

    def norm(self, name: str) -> None:
        self.vector(f"{name}.weight", self.case.hidden)
        if self.case.is_centred:
            self.vector(f"{name}.bias", self.case.hidden, 0.0)

    def facts(self) -> None:
        case, writer = self.case, self.writer
        epsilon = "layer_norm_epsilon" if case.is_centred else "layer_norm_rms_epsilon"
        facts: dict[str, Any] = {
            "context_length": CONTEXT,
            "embedding_length": case.hidden,
            "block_count": case.layers,
            "feed_forward_length": FEED_FORWARD,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD_SIZE,
            "attention.value_length": HEAD_SIZE,
            f"attention.{epsilon}": 1e-5,
            "rope.dimension_count": HEAD_SIZE,
            "rope.freq_base": 10000.0,
            **case.facts,
        }
        for key, value in facts.items():
            add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
            add[type(value)](f"{case.architecture}.{key}", value)

    def layer(self, at: str) -> None:
        case, hidden = self.case, self.case.hidden
        query, key = HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE
        for norm in case.norms:
            self.norm(at + norm)
        if case.fused:
            self.matrix(f"{at}attn_qkv", query + 2 * key, hidden)
        else:
            for name, n in zip(QKV, (query, key, key), strict=True):
                self.matrix(at + name, n, hidden)
        if case.head_norms:
            sizes = (HEAD_SIZE, HEAD_SIZE) if case.head_norms == "head" else (query, key)
            self.vector(f"{at}attn_q_norm.weight", sizes[0])
            self.vector(f"{at}attn_k_norm.weight", sizes[1])
        self.matrix(f"{at}attn_output", hidden, query)
        if case.is_gated and not case.fused:
            self.matrix(f"{at}ffn_gate", FEED_FORWARD, hidden)
        self.matrix(f"{at}ffn_up", FEED_FORWARD * (2 if case.fused else 1), hidden)
        self.matrix(f"{at}ffn_down", hidden, FEED_FORWARD)

    def file(self, vocabulary: Callable[[gguf.GGUFWriter], int]) -> None:
        self.facts()
        size = vocabulary(self.writer)
        self.matrix("token_embd", size, self.case.hidden, scale=2.0)
        for i in range(self.case.layers):
            self.layer(f"blk.{i}.")
        if self.case.far:
            pairs = self.case.facts.get("rope.dimension_count", HEAD_SIZE) // 2
            for name, most in (("short", 2.0), ("long", 9.0)):
                factors = np.linspace(1, most, pairs).astype(np.float32)
                self.writer.add_tensor(f"rope_factors_{name}.weight", factors)
        self.norm("output_norm")
        if not self.case.tied:
            self.matrix("output", size, self.case.hidden, scale=2.0)
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


@pytest.fixture
def make(tmp_path: Path, bpe_vocabulary: Callable[[gguf.GGUFWriter], int]) -> Callable[..., Path]:
    def write(case: Case) -> Path:
        path = tmp_path / f"{case.architecture}.gguf"
        Maker(path, case).file(bpe_vocabulary)
        return path

    return write


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.sqrt(((found - expected) ** 2).mean() / (expected**2).mean()))


def test_every_family_has_a_case() -> None:
    assert {case.architecture for case in CASES.values()} == set(FAMILIES)


@pytest.mark.peer
@pytest.mark.parametrize("name", CASES)
def test_fp32_is_what_llama_cpp_computes(
    name: str, tmp_path: Path, make: Callable[..., Path], llama_cpp: ModuleType,
    folder_logits: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    case = CASES[name]
    source = make(case)
    list(import_gguf(source, tmp_path / "out", precision="fp32"))
    ids = [int(i) for i in np.random.default_rng(5).integers(SPECIALS, 250, case.length)]
    found = folder_logits(tmp_path / "out", ids)
    peer = llama_cpp.LlamaCpp(source, context=case.context)
    expected = peer.logits(ids)
    peer.close()
    error = relative_error(found, expected)
    print(f"{name}: {error:.2e}")
    assert expected.std() > 0.1
    assert error < 2e-3  # llama.cpp keeps keys and values in 16 bits


@pytest.mark.peer
@pytest.mark.parametrize("name", CASES)
def test_the_engine_and_the_peer_write_what_the_logits_say(
    name: str, tmp_path: Path, make: Callable[..., Path], folder_logits: Callable[..., np.ndarray]
) -> None:
    """Prompt, then token by token through the cache, windows passed on the way."""
    og_peer = pytest.importorskip("onnxruntime_genai", reason="the peer is missing")
    list(import_gguf(make(CASES[name]), tmp_path / "out", precision="fp32"))
    expected = [7, 77, 123, 45, 9, 200]
    while len(expected) < 30:
        expected.append(int(folder_logits(tmp_path / "out", expected)[-1].argmax()))
    for engine in (og, og_peer):
        model = engine.Model(str(tmp_path / "out"))
        params = engine.GeneratorParams(model)
        params.set_search_options(do_sample=False, max_length=64, repetition_penalty=1.0)
        generator = engine.Generator(model, params)
        generator.append_tokens(np.array(expected[:6], np.int32))
        while not generator.is_done() and len(generator.get_sequence(0)) < len(expected):
            generator.generate_next_token()
        found = [int(i) for i in generator.get_sequence(0)]
        assert found == expected[: len(found)]
        assert len(found) > 6


def test_parts_that_are_unknown_are_refused_by_name(
    tmp_path: Path, make: Callable[..., Path]
) -> None:
    source = make(Case("qwen2", head_norms="head", norms=(*NORMS, "layer_output_norm")))
    with pytest.raises(ConvertError, match=r"variant of “qwen2”.*“blk.0.layer_output_norm"):
        list(import_gguf(source, tmp_path / "out"))
    assert not (tmp_path / "out").exists()
