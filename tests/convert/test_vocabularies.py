"""Real vocabularies, with llama.cpp's texts and the ids that it expects for them."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import gguf
import numpy as np
import pytest
from tokenizers import Tokenizer

from app.convert.gguf_file import GgufFile
from app.convert.tokenizer import tokenizer_json
from app.convert.vocabulary import MODELS, read

FOLDER = Path(__file__).parents[2] / "build" / "vocabularies"
NAMES = (
    "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2", "llama-bpe",
    "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact", "starcoder",
)  # fmt: skip
PIECES = 30_000
BETWEEN = "\n__ggml_vocab_test__\n"


@pytest.fixture
def folder() -> Path:
    if not FOLDER.exists():
        pytest.skip("the vocabularies are missing: python packaging/setup/vocabularies.py")
    return FOLDER


def ours(path: Path) -> Tokenizer:
    with GgufFile(path) as file:
        vocabulary = read(file.metadata, path.name, 1 << 24)
    return Tokenizer.from_str(json.dumps(tokenizer_json(vocabulary, path.name)))


@pytest.mark.vocabularies
@pytest.mark.parametrize("name", NAMES)
def test_ids_are_the_expected_ones(folder: Path, name: str) -> None:
    path = folder / f"ggml-vocab-{name}.gguf"
    texts = Path(f"{path}.inp").read_text("utf-8").split(BETWEEN)
    lines = Path(f"{path}.out").read_text("utf-8").split("\n")[: len(texts)]
    expected = [[int(id) for id in line.split()] for line in lines]
    assert len(texts) == len(expected) > 40
    tokenizer = ours(path)
    found = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    assert found == expected


@pytest.mark.vocabularies
def test_every_vocabulary_of_a_known_kind_is_named_above(folder: Path) -> None:
    with_ids = [path for path in folder.glob("*.gguf") if Path(f"{path}.inp").exists()]
    known = set()
    for path in with_ids:
        with GgufFile(path) as file:
            if file.metadata["tokenizer.ggml.model"] in MODELS:
                known.add(path.stem.removeprefix("ggml-vocab-"))
    assert known == set(NAMES)


@pytest.mark.peer
@pytest.mark.vocabularies
def test_unigram_is_cut_as_llama_cpp_cuts_it(
    folder: Path, tmp_path: Path, llama_cpp: ModuleType
) -> None:
    """The first pieces of a vocabulary with a map of characters, in a model of one small layer."""
    source = folder / "ggml-vocab-nomic-bert-moe.gguf"
    path = tmp_path / "unigram.gguf"
    _with_vocabulary_of(source, path)
    peer = llama_cpp.LlamaCpp(path, context=32)
    tokenizer = ours(path)
    texts = Path(f"{folder / 'ggml-vocab-llama-spm.gguf'}.inp").read_text("utf-8").split(BETWEEN)
    differing = [
        (text, tokenizer.encode(text, add_special_tokens=False).tokens, peer.tokens(text))
        for text in texts
        if tokenizer.encode(text, add_special_tokens=False).ids != peer.tokens(text)
    ]
    peer.close()
    assert differing == []
    assert len(texts) > 40


def _with_vocabulary_of(source: Path, path: Path) -> None:
    writer = gguf.GGUFWriter(str(path), "llama")
    width = 32
    writer.add_context_length(32)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(width)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    facts = "tokenizer.ggml."
    with GgufFile(source) as file:
        found = {
            key.removeprefix(facts): value
            for key, value in file.metadata.items()
            if key.startswith(facts)
        }
    writer.add_tokenizer_model(found["model"])
    writer.add_token_list(found["tokens"][:PIECES])
    writer.add_token_scores(found["scores"][:PIECES].tolist())
    writer.add_token_types(found["token_type"][:PIECES].tolist())
    writer.add_unk_token_id(found["unknown_token_id"])
    writer.add_remove_extra_whitespaces(found["remove_extra_whitespaces"])
    writer.add_add_space_prefix(found["add_space_prefix"])
    writer.add_precompiled_charsmap(found["precompiled_charsmap"].tobytes())
    size = PIECES
    zeros: Callable[..., np.ndarray] = lambda *shape: np.zeros(shape, np.float32)  # noqa: E731
    for name, shape in {
        "token_embd": (size, width), "output_norm": (width,), "blk.0.attn_norm": (width,),
        "blk.0.attn_q": (width, width), "blk.0.attn_k": (width, width),
        "blk.0.attn_v": (width, width), "blk.0.attn_output": (width, width),
        "blk.0.ffn_norm": (width,), "blk.0.ffn_gate": (width, width),
        "blk.0.ffn_up": (width, width), "blk.0.ffn_down": (width, width),
    }.items():  # fmt: skip
        writer.add_tensor(f"{name}.weight", zeros(*shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
