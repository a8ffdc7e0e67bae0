"""Our tokenizer.json gives llama.cpp's ids, on prose, on chats and on what people try to break."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from app.convert import ConvertError, import_gguf
from app.convert.gguf_file import GgufFile
from app.convert.pretokenizers import PRE_TOKENIZERS
from app.convert.tokenizer import tokenizer_json
from app.convert.vocabulary import read

ADVERSARIAL = [
    "", " ", "  ", "\n", "\n\n\n", " \n ", "\t\tx", "a  b   c    d", "trailing   ", "   leading",
    "0", "12", "123", "1234567890", "3.14159", "1,000,000.00", "v1.2.3-rc4", "١٢٣ ٤٥", "²³½Ⅷ",
    "don't we'll I'M they'RE it's 'tis", "naïve café Ångström", "cafe\u0301", "ﬁ ﬂ ①",
    "Привет, мир! Γειά σου", "你好，世界。今天",  # noqa: RUF001
    "こんにちは カタカナ", "한국어", "שלום עולם",
    "नमस्ते",    "🙂👍🏽👨‍👩‍👧‍👦🇪🇺", "\u200b\u200d\ufeff", "\x00\x01\x7f", "a\r\nb\rc\n",
    "\u00a0\u2003\u3000x\u0085y\u2028z",
    "!!!???...", "<<>>{}[]()", "``` ```python\n```", "#!/bin/sh\n\tset -e\n", "x=1;y+=2;z**=3//4",
    "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|", "<|im_end|><|im_end|>", " <|im_start|> x",
    "<|endoftext|>", "text<|endoftext|>text", "<|IM_START|>", "<s></s><unk>", "<0x41>", "▁a ▁",
    "Ġthe",
    "the the  the", "\\n\\t", "http://example.org/a?b=c&d=%20#e", "A" * 300, " " * 65, "\n" * 40,
    "é" * 70, "ab" * 100 + "1" * 40, "\U0010ffff\U000e0001", "Ünïcödé\u0301\u0327 z̸̢a̷lgo",
]  # fmt: skip

# One name of each: equal ones are given by several names. The two that llama.cpp itself marks as
# differing from the original (single spaces before digits) are left out.
EACH_WAY = sorted(
    {ways: name for name, ways in PRE_TOKENIZERS.items() if name not in ("tiny_aya", "cohere2moe")}
    .values()
)  # fmt: skip


@pytest.fixture(scope="module")
def starter_tokenizer(starter_stored: Path) -> Tokenizer:
    return Tokenizer.from_file(str(starter_stored / "tokenizer.json"))


def differing(ours: Tokenizer, theirs: Any, texts: list[str]) -> list[tuple[str, Any, Any]]:
    pairs = [(t, ours.encode(t, add_special_tokens=False).ids, theirs.tokens(t)) for t in texts]
    return [pair for pair in pairs if pair[1] != pair[2]]


def random_texts(count: int) -> list[str]:
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    letters = [*"abcXYZ 123\n\t.,!?'\"-_/éüß你好🙂ÐЖ", " the", "<|im_end|>", "'ll", "\r\n", "  "]
    return ["".join(rng.choice(letters, rng.integers(1, 40))) for _ in range(count)]


@pytest.mark.peer
@pytest.mark.starter
def test_the_starter_on_prose(
    starter_tokenizer: Tokenizer, starter_llama: Any, data_folder: Path
) -> None:
    text = (data_folder / "prose.txt").read_text("utf-8")
    ids = starter_tokenizer.encode(text).ids
    assert len(ids) >= 10_000
    assert ids == starter_llama.tokens(text)
    assert starter_tokenizer.decode(ids, skip_special_tokens=False) == text


@pytest.mark.peer
@pytest.mark.starter
def test_the_starter_on_adversarial_texts(starter_tokenizer: Tokenizer, starter_llama: Any) -> None:
    assert differing(starter_tokenizer, starter_llama, ADVERSARIAL + random_texts(500)) == []


@pytest.mark.peer
@pytest.mark.starter
def test_the_starter_on_a_chat(
    starter_tokenizer: Tokenizer, starter_llama: Any, starter_stored: Path
) -> None:
    import jinja2

    config = json.loads((starter_stored / "tokenizer_config.json").read_text("utf-8"))
    messages = [
        {"role": "user", "content": "What is 12 * 12?"},
        {"role": "assistant", "content": "144.\n"},
        {"role": "user", "content": "  <|im_end|> and now?  "},
    ]
    text = jinja2.Template(config["chat_template"]).render(
        messages=messages, add_generation_prompt=True
    )
    assert text.endswith("<|im_start|>assistant\n")
    assert differing(starter_tokenizer, starter_llama, [text]) == []


@pytest.mark.peer
@pytest.mark.starter
def test_every_end_of_the_starter_is_an_end_in_llama_cpp(
    starter_llama: Any, starter_stored: Path
) -> None:
    config = json.loads((starter_stored / "genai_config.json").read_text("utf-8"))
    assert config["model"]["eos_token_id"] == [2, 0]
    assert set(config["model"]["eos_token_id"]) <= starter_llama.ends()


@pytest.mark.peer
@pytest.mark.starter
@pytest.mark.parametrize("kind", EACH_WAY)
def test_each_way_to_cut_text(
    tmp_path: Path, make_gguf: Callable[..., Path], llama_cpp: ModuleType, starter_gguf: Path,
    data_folder: Path, kind: str,
) -> None:  # fmt: skip
    """The starter's first words, and numbers, under another way to cut: it shows in the ids."""
    with GgufFile(starter_gguf) as file:
        tokens, merges, kinds = (
            list(file.metadata[f"tokenizer.ggml.{key}"])
            for key in ("tokens", "merges", "token_type")
        )
    left_out = len(tokens) - 6000
    pairs = [(f"{n:02}"[0], f"{n:02}"[1]) for n in range(100)]
    triples = [(f"{n:03}"[:2], f"{n:03}"[2]) for n in range(1000)]
    quads = [(f"{n:03}", "5") for n in range(1000)]
    numbers = [*pairs, *triples, *quads]
    words = (
        tokens[:-left_out] + ["".join(parts) for parts in numbers],
        [*map(int, kinds[:-left_out]), *[1] * len(numbers)],
        merges[:-left_out] + [" ".join(parts) for parts in numbers],
    )
    source = make_gguf(tmp_path / "tiny.gguf", type="Q4_0", vocabulary=kind, words=words, layers=1)
    with GgufFile(source) as file:
        vocabulary = read(file.metadata, source.name, len(words[0]))
    ours = Tokenizer.from_str(json.dumps(tokenizer_json(vocabulary, source.name)))
    theirs = llama_cpp.LlamaCpp(source, context=32)
    prose = (data_folder / "prose.txt").read_text("utf-8").split("\n")
    assert differing(ours, theirs, ADVERSARIAL + random_texts(300) + prose) == []
    theirs.close()


@pytest.mark.peer
def test_sentencepiece(
    tmp_path: Path, make_gguf: Callable[..., Path], llama_cpp: ModuleType
) -> None:
    source = make_gguf(tmp_path / "tiny.gguf", vocabulary="spm", layers=1)
    ours, theirs = both(llama_cpp, source, tmp_path / "out")
    assert differing(ours, theirs, ADVERSARIAL + random_texts(300)) == []
    text = "the inner  ring\nand 你"
    assert ours.encode(text).ids == theirs.tokens(text, add_special=True)  # with its first token
    assert ours.decode(ours.encode(text).ids) == text
    theirs.close()


def both(llama_cpp: ModuleType, source: Path, folder: Path) -> tuple[Tokenizer, Any]:
    list(import_gguf(source, folder))
    ours = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return ours, llama_cpp.LlamaCpp(source, context=32)


def facts(**changes: Any) -> dict[str, Any]:
    base = {
        "model": "gpt2", "pre": "smollm", "tokens": ["a", "b", "<|im_end|>", "<e>"],
        "token_type": np.array([1, 1, 3, 3]), "merges": [], "eos_token_id": 3,
    }  # fmt: skip
    return {f"tokenizer.ggml.{key}": value for key, value in {**base, **changes}.items()}


def test_ends_are_the_named_one_and_every_known_end_of_a_turn() -> None:
    assert read(facts(), "x", 4).ends == (3, 2)
    assert read(facts(token_type=np.array([1, 1, 1, 3])), "x", 4).ends == (3,)  # an ordinary word
    assert read(facts(eos_token_id=99), "x", 4).ends == (2,)  # damaged: there is no token 99


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "wordpiece"}, "“wordpiece”"),
        ({"tokens": None}, "no vocabulary"),
        ({"tokens": ["a"] * 9, "token_type": np.ones(9, int)}, "more tokens than rows"),
        ({"token_type": np.ones(1, int)}, "differ in length"),
        ({"token_type": ["a"] * 4}, "wrong kind"),
        ({"merges": 7}, "wrong kind"),
    ],
)
def test_vocabularies_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        read(facts(**changes), "x", 4)
