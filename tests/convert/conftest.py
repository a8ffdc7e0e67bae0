"""Small GGUF files of random weights, a plain numpy model of them, and llama.cpp beside it."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, FEED_FORWARD, LAYERS = 256, 4, 2, 64, 256, 2
CONTEXT = 64


@pytest.fixture(scope="session")
def llama_cpp() -> ModuleType:
    """tests/peers/llama_cpp.py; skips where xllamacpp does not show its C functions."""
    pytest.importorskip("xllamacpp", reason="llama.cpp is missing: install the test peers")
    path = Path(__file__).parents[1] / "peers" / "llama_cpp.py"
    spec = importlib.util.spec_from_file_location("llama_cpp_peer", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.load_library()
    except (AttributeError, OSError) as error:
        pytest.skip(f"this build of xllamacpp does not export llama.cpp's functions: {error}")
    return module


@pytest.fixture(scope="session")
def starter_llama(llama_cpp: ModuleType, starter_gguf: Path) -> Iterator[Any]:
    model = llama_cpp.LlamaCpp(starter_gguf, context=512)
    yield model
    model.close()


def byte_pieces() -> list[str]:
    """The 256 letters that stand for bytes in byte-level BPE, in the order of GPT-2's table."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}
    return [letters[b] for b in range(256)]


MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ a", "e r", "o n", "Ġ Ġ", "1 2", "Ċ Ċ", "ĠĠ ĠĠ", "h e"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _own_words() -> tuple[list[str], list[int], list[str]]:
    pieces = SPECIALS + byte_pieces() + [m.replace(" ", "") for m in MERGES]
    return pieces, [3] * len(SPECIALS) + [1] * (len(pieces) - len(SPECIALS)), MERGES


def _bpe_vocabulary(
    writer: gguf.GGUFWriter, pre: str, words: tuple[list[str], list[int], list[str]]
) -> int:
    pieces, kinds, merges = words
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_chat_template(TEMPLATE)
    return len(pieces)


SPM_WORDS = [
    "▁the", "the", "he", "in", "on", "er", "▁a", "▁in", "ing", "▁", "to", "▁to", "▁▁", "an",
    "and", "▁and",
]  # fmt: skip


def _spm_vocabulary(writer: gguf.GGUFWriter) -> int:
    letters = [chr(c) for c in range(33, 127)] + ["▁", "é", "ü"]
    words = [w for w in SPM_WORDS if len(w) > 1]
    for word in list(words):  # every prefix too, so that each word can be put together
        words += [word[:n] for n in range(2, len(word)) if word[:n] not in words]
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    pieces = ["<unk>", "<s>", "</s>", *bytes_, *words, *letters]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(words) + len(letters))
    scores = [0.0] * 259 + [-float(i + 1) for i in range(len(words) + len(letters))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_scores(scores)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    return len(pieces)


@pytest.fixture(scope="session")
def make_gguf() -> Callable[..., Path]:
    return _make_gguf


def _make_gguf(
    path: Path,
    *,
    type: str = "F32",
    tied: bool = True,
    biases: bool = False,
    vocabulary: str = "smollm",
    words: tuple[list[str], list[int], list[str]] | None = None,
    rope_factors: bool = False,
    encode: Callable[[np.ndarray, GGMLQuantizationType], np.ndarray] | None = None,
    facts: dict[str, Any] | None = None,
    without: tuple[str, ...] = (),
    layers: int = LAYERS,
    seed: int = 7,
) -> Path:
    """A llama of random weights. `encode` replaces gguf's quantiser where that has none.

    `vocabulary` is "spm" or a way to cut text; `words` are tokens, their kinds and merges for it.
    """
    rng = np.random.default_rng(seed)
    architecture = (facts or {}).get("general.architecture", "llama")
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_name("Tiny Test Model")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD_SIZE)
    for key, value in (facts or {}).items():
        if key == "general.architecture":
            continue
        if isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_string(key, value)
    if vocabulary == "spm":
        size = _spm_vocabulary(writer)
    else:
        size = _bpe_vocabulary(writer, vocabulary, words or _own_words())
    kind = GGMLQuantizationType[type]

    def matrix(name: str, n: int, k: int, scale: float = 1.0) -> None:
        if name in without:
            return
        values = (rng.standard_normal((n, k)) * scale / np.sqrt(k)).astype(np.float32)
        values += np.float32(0.2 * scale / np.sqrt(k))  # so that a block's minimum matters
        if kind == GGMLQuantizationType.F32:
            writer.add_tensor(name, values)
        else:
            quantise = encode or gguf.quants.quantize
            writer.add_tensor(name, quantise(values, kind), raw_dtype=kind)

    def vector(name: str, n: int, around: float) -> None:
        values = (around + 0.1 * rng.standard_normal(n)).astype(np.float32)
        if name not in without:
            writer.add_tensor(name, values)

    matrix("token_embd.weight", size, HIDDEN, scale=8.0)
    for i in range(layers):
        at = f"blk.{i}."
        vector(at + "attn_norm.weight", HIDDEN, 1.0)
        for name, n, k in (
            ("attn_q", HEADS * HEAD_SIZE, HIDDEN),
            ("attn_k", KV_HEADS * HEAD_SIZE, HIDDEN),
            ("attn_v", KV_HEADS * HEAD_SIZE, HIDDEN),
            ("attn_output", HIDDEN, HEADS * HEAD_SIZE),
            ("ffn_gate", FEED_FORWARD, HIDDEN),
            ("ffn_up", FEED_FORWARD, HIDDEN),
            ("ffn_down", HIDDEN, FEED_FORWARD),
        ):
            matrix(f"{at}{name}.weight", n, k)
            if biases and name.startswith("attn"):
                vector(f"{at}{name}.bias", n, 0.2)
        vector(at + "ffn_norm.weight", HIDDEN, 1.0)
    if rope_factors:
        writer.add_tensor("rope_freqs.weight", np.linspace(1, 8, HEAD_SIZE // 2).astype(np.float32))
    vector("output_norm.weight", HIDDEN, 1.0)
    if not tied:
        matrix("output.weight", size, HIDDEN, scale=4.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="session")
def reference_logits() -> Callable[..., np.ndarray]:
    return _reference_logits


def _reference_logits(path: Path, ids: list[int], *, rope_scale: float = 1.0) -> np.ndarray:
    """A llama in plain numpy, straight from the file: rotated pairs are neighbours, as stored."""
    reader = gguf.GGUFReader(path)
    weights = {
        t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
        for t in reader.tensors
    }

    def fact(key: str) -> Any:
        return reader.fields[f"llama.{key}"].contents()

    heads, kv_heads = fact("attention.head_count"), fact("attention.head_count_kv")
    size = fact("embedding_length") // heads
    length = len(ids)
    frequencies = fact("rope.freq_base") ** -(np.arange(0, size, 2) / size)
    frequencies = frequencies / rope_scale / weights.get("rope_freqs.weight", 1.0)
    turn = np.exp(1j * np.arange(length)[:, None] * frequencies)[:, None]  # (T, 1, size / 2)

    def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        epsilon = fact("attention.layer_norm_rms_epsilon")
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    def rotated(x: np.ndarray) -> np.ndarray:  # (T, heads, size)
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
        return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

    x = weights["token_embd.weight"][ids]
    hidden_future = np.triu(np.full((length, length), -np.inf), 1)
    for i in range(fact("block_count")):
        at = f"blk.{i}."
        h = norm(x, weights[at + "attn_norm.weight"])
        q = rotated(linear(h, at + "attn_q").reshape(length, heads, size))
        k = rotated(linear(h, at + "attn_k").reshape(length, kv_heads, size))
        v = linear(h, at + "attn_v").reshape(length, kv_heads, size)
        k, v = (np.repeat(a, heads // kv_heads, axis=1) for a in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(size) + hidden_future
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        attended = np.einsum("hts,shd->thd", scores, v).reshape(length, -1)
        x = x + linear(attended, at + "attn_output")
        h = norm(x, weights[at + "ffn_norm.weight"])
        gate = linear(h, at + "ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + "ffn_up"), at + "ffn_down")
    output = weights.get("output.weight", weights["token_embd.weight"])
    return norm(x, weights["output_norm.weight"]) @ output.T


@pytest.fixture(scope="session")
def folder_logits() -> Callable[..., np.ndarray]:
    return _folder_logits


def _folder_logits(folder: Path, ids: list[int], session: Any = None) -> np.ndarray:
    """(ids, vocabulary) of a model folder through plain onnxruntime, without our engine."""
    session = session or _session(folder)
    feed: dict[str, np.ndarray] = {
        "input_ids": np.array([ids], np.int64),
        "attention_mask": np.ones((1, len(ids)), np.int64),
    }
    for port in session.get_inputs():
        if port.name.startswith("past_key_values"):
            _, heads, _, size = port.shape
            feed[port.name] = np.zeros((1, heads, 0, size), np.float32)
    return session.run(["logits"], feed)[0][0]


@pytest.fixture(scope="session")
def open_session() -> Callable[[Path], Any]:
    return _session


def _session(folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )


@pytest.fixture(scope="session")
def row_bytes() -> Callable[[int, GGMLQuantizationType], int]:
    def bytes_of(k: int, type: GGMLQuantizationType) -> int:
        block, size = GGML_QUANT_SIZES[type]
        return k // block * size

    return bytes_of


@pytest.fixture(scope="session")
def bpe_vocabulary() -> Callable[[gguf.GGUFWriter], int]:
    """Adds a small byte-level vocabulary to a file; gives its size."""
    return lambda writer: _bpe_vocabulary(writer, "smollm", _own_words())
