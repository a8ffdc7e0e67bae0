"""The starter model, imported, beside llama.cpp on the same file and beside plain numpy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

WINDOW = 512
IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018]


def surprise(logits: np.ndarray, ids: list[int]) -> np.ndarray:
    """-log p of each id but the first: (len(ids) - 1,)"""
    rows = logits[: len(ids) - 1]
    top = rows.max(axis=1)
    total = np.exp(rows - top[:, None]).sum(axis=1, dtype=np.float64)
    return np.log(total) + top - rows[np.arange(len(rows)), ids[1:]]


def perplexity(logits_of: Callable[[list[int]], np.ndarray], ids: list[int]) -> tuple[float, int]:
    windows = [ids[i : i + WINDOW] for i in range(0, len(ids) - WINDOW + 1, WINDOW)]
    values = np.concatenate([surprise(logits_of(window), window) for window in windows])
    return float(np.exp(values.mean())), len(values)


@pytest.mark.peer
@pytest.mark.starter
def test_perplexity_is_at_most_half_a_percent_above_llama_cpp(
    starter_stored: Path, starter_llama: Any, data_folder: Path,
    open_session: Callable[[Path], Any], folder_logits: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    text = (data_folder / "prose.txt").read_text("utf-8")
    ids = Tokenizer.from_file(str(starter_stored / "tokenizer.json")).encode(text).ids
    session = open_session(starter_stored)
    ours, count = perplexity(lambda window: folder_logits(starter_stored, window, session), ids)
    theirs, _ = perplexity(starter_llama.logits, ids)
    print(f"perplexity over {count} tokens: {ours:.3f}, llama.cpp {theirs:.3f}")
    assert count >= 10_000
    assert ours < theirs * 1.005


@pytest.mark.starter
def test_fp32_is_exact(
    starter_gguf: Path, starter_fp32: Path,
    reference_logits: Callable[..., np.ndarray], folder_logits: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    expected = reference_logits(starter_gguf, IDS)
    found = folder_logits(starter_fp32, IDS)
    assert np.abs(found - expected).max() < 2e-3
    assert (found.argmax(-1) == expected.argmax(-1)).all()


@pytest.mark.peer
@pytest.mark.starter
@pytest.mark.parametrize("precision", ["stored", "int8"])
def test_blocks_are_as_near_to_the_exact_model_as_llama_cpp_is(
    precision: str, request: pytest.FixtureRequest,
    starter_fp32: Path, starter_llama: Any, data_folder: Path,
    folder_logits: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    folder = request.getfixturevalue(f"starter_{precision}")
    text = (data_folder / "prose.txt").read_text("utf-8")[:1200]
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids
    exact = folder_logits(starter_fp32, ids)
    ours = divergence(exact, folder_logits(folder, ids))
    theirs = divergence(exact, starter_llama.logits(ids))
    print(f"divergence from the exact model: ours {ours:.5f}, llama.cpp {theirs:.5f}")
    assert ours < 1.5 * theirs


def divergence(exact: np.ndarray, other: np.ndarray) -> float:
    """Mean of Kullback and Leibler's, in nats for each token."""

    def log_p(logits: np.ndarray) -> np.ndarray:
        logits = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    p, q = log_p(exact), log_p(other)
    return float((np.exp(p) * (p - q)).sum(axis=1).mean())


@pytest.mark.peer
@pytest.mark.starter
@pytest.mark.parametrize(("precision", "count"), [("stored", 1), ("fp32", 16)])
def test_the_peer_writes_the_same_with_the_folder(
    precision: str, count: int, request: pytest.FixtureRequest,
    open_session: Callable[[Path], Any], folder_logits: Callable[..., np.ndarray],
) -> None:  # fmt: skip
    """With blocks only the first: their kernels round differently for one row and for many."""
    og = pytest.importorskip("onnxruntime_genai", reason="the peer is missing")
    folder = request.getfixturevalue(f"starter_{precision}")
    model = og.Model(str(folder))
    tokenizer = og.Tokenizer(model)
    prompt = tokenizer.apply_chat_template('[{"role": "user", "content": "Tell me a long story."}]')
    params = og.GeneratorParams(model)
    params.set_search_options(do_sample=False, max_length=120, repetition_penalty=1.0)
    generator = og.Generator(model, params)
    ids = [int(i) for i in tokenizer.encode(prompt)]
    generator.append_tokens(ids)
    session = open_session(folder)
    for _ in range(count):
        ids.append(int(folder_logits(folder, ids, session)[-1].argmax()))
        generator.generate_next_token()
    assert list(generator.get_sequence(0)) == ids


@pytest.fixture(autouse=True)
def freed() -> Iterator[None]:
    """Models of this file are large: let go of them before the next test."""
    yield
    import gc

    gc.collect()
