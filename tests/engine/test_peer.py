"""The same folders, prompts and seeds through onnxruntime-genai and through us."""

import json

import numpy as np
import pytest

from app import engine as og

pytestmark = pytest.mark.peer
peer = pytest.importorskip("onnxruntime_genai")


@pytest.fixture(params=["tiny-llama", "tiny-llama-gqa", "tiny-llama-keep", "tiny-spm"])
def float32_folder(request, data_folder):
    """Sampling from float16 logits meets exact ties, whose order the peer leaves open."""
    return data_folder / request.param


PROMPTS = ["The quick brown fox", "Once upon a time there was", "def main():\n    for i", "7"]


def run(library, folder, prompt, steps=40, rows=None, **options):
    """(tokens of all rows, logits after the prompt) of one library.

    Both get our ids: the peer merges some sentencepiece text wrongly (SPEC 6).
    """
    model = library.Model(str(folder))
    params = library.GeneratorParams(model)
    ids = np.asarray(rows if rows is not None else og.Tokenizer(folder).encode(prompt), np.int32)
    width = ids.shape[-1]
    params.set_search_options(max_length=width + steps, **options)
    generator = library.Generator(model, params)
    generator.append_tokens(ids)
    logits = np.asarray(generator.get_logits()).reshape(-1).copy()
    while not generator.is_done():
        generator.generate_next_token()
    count = len(ids) if ids.ndim == 2 else 1
    return [np.asarray(generator.get_sequence(i)).tolist() for i in range(count)], logits


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_tokens_and_logits_are_equal(tiny_folder, prompt):
    ours, our_logits = run(og, tiny_folder, prompt)
    theirs, their_logits = run(peer, tiny_folder, prompt)
    assert ours == theirs
    np.testing.assert_allclose(our_logits, their_logits, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 8},
        {"top_k": 50, "top_p": 0.9, "temperature": 0.8},
        {"top_k": 500, "temperature": 1.7},
        {"top_k": 20, "top_p": 0.5, "repetition_penalty": 1.3},
        {"top_k": 40, "min_length": 30, "no_repeat_ngram_size": 3},
        {"top_k": 0, "top_p": 1.0},
        {"top_k": 1},
        {"temperature": 0.0, "top_k": 30},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [0, 1, 123456789])
def test_sampled_tokens_are_equal_for_a_seed(float32_folder, options, seed):
    given = {"do_sample": True, "random_seed": seed, "top_p": 1.0, **options}
    ours, _ = run(og, float32_folder, PROMPTS[1], **given)
    theirs, _ = run(peer, float32_folder, PROMPTS[1], **given)
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [{"repetition_penalty": 1.4}, {"no_repeat_ngram_size": 2}, {"min_length": 60}],
    ids=str,
)
def test_penalties_change_greedy_text_alike(tiny_folder, options):
    assert (
        run(og, tiny_folder, PROMPTS[0], **options)[0]
        == (run(peer, tiny_folder, PROMPTS[0], **options)[0])
    )


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "top_k": 20, "random_seed": 5}])
def test_batches_are_equal(float32_folder, options):
    tokenizer = og.Tokenizer(float32_folder)
    rows = tokenizer.encode_batch(PROMPTS).as_numpy()
    given = {"batch_size": len(rows), "rows": rows, **options}
    ours, our_logits = run(og, float32_folder, "", **given)
    theirs, their_logits = run(peer, float32_folder, "", **given)
    assert ours == theirs
    np.testing.assert_allclose(our_logits, their_logits, atol=1e-4)


def test_a_second_turn_is_equal_when_the_peer_has_no_pending_token(tiny_folder):
    """After rewinding, where SPEC 4.7 calls the peer exact."""
    sequences = []
    for library in (og, peer):
        model = library.Model(str(tiny_folder))
        params = library.GeneratorParams(model)
        params.set_search_options(max_length=80)
        generator = library.Generator(model, params)
        generator.append_tokens(np.arange(10, 30, dtype=np.int32))
        for _ in range(5):
            generator.generate_next_token()
        generator.rewind_to(12)
        generator.append_tokens(np.arange(40, 60, dtype=np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        sequences.append(np.asarray(generator.get_sequence(0)).tolist())
    assert sequences[0] == sequences[1]


def test_defaults_are_equal(tiny_folder):
    ours = og.GeneratorParams(og.Model(tiny_folder)).get_search_options()
    theirs = peer.GeneratorParams(peer.Model(str(tiny_folder))).get_search_options()
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs)


def test_text_is_tokenized_alike(data_folder):
    folder = data_folder / "tiny-llama"
    ours = og.Tokenizer(folder)
    theirs = peer.Tokenizer(peer.Model(str(folder)))
    for text in [*PROMPTS, "<|user|>\nhi<|end|>", " a  b\n\n c\t", "\u00fc\u4e2d\U0001f600", ""]:
        ids = ours.encode(text)
        assert ids.tolist() == list(theirs.encode(text))
        assert ours.decode(ids) == theirs.decode(ids)
    messages = json.dumps([{"role": "user", "content": "Hello"}])
    assert ours.apply_chat_template(messages) == theirs.apply_chat_template(messages)


@pytest.mark.starter
def test_the_starter_model_in_fp32_writes_the_same_text(starter_fp32):
    ours, our_logits = run(og, starter_fp32, "The capital of France is", steps=24, do_sample=False)
    theirs, their_logits = run(
        peer, starter_fp32, "The capital of France is", steps=24, do_sample=False
    )
    assert ours == theirs
    np.testing.assert_allclose(our_logits, their_logits, atol=1e-3)
