"""Ids are those of Hugging Face's library; typed text never becomes a control token."""

import contextlib
import json
import shutil

import numpy as np
import pytest
import tokenizers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from app import engine as og

relaxed = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FOLDERS = ["tiny-llama", "tiny-spm"]
CONTROLS = [
    "<|endoftext|>", "<|end|>", "<|user|>", "<s>", "</s>", "<unk>", "<|im_end|>", "<think>",
    "<|im", "|>", "<0x41>", "\u2581", "\u0120", "[INST]", "  ", "   ",
]  # fmt: skip
pieces = st.one_of(st.sampled_from(CONTROLS), st.text(max_size=6), st.sampled_from("<|>/ \n\t\0"))
texts = st.lists(pieces, max_size=12).map("".join)


def clean(text):
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@pytest.fixture(params=FOLDERS)
def pair(request, data_folder):
    """(ours, Hugging Face's) over the same file."""
    folder = data_folder / request.param
    plain = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return og.Tokenizer(folder), plain


@relaxed
@given(text=texts)
def test_ids_and_text_are_those_of_the_library(pair, text):
    ours, plain = pair
    ids = ours.encode(text)
    assert ids.tolist() == plain.encode(clean(text), add_special_tokens=False).ids
    assert ours.decode(ids) == plain.decode(ids.tolist())


def test_no_bos_unless_asked_for(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-spm")
    assert tokenizer.encode("Hello").tolist()[0] != 1
    tokenizer.update_options(add_special_tokens="true")
    assert tokenizer.encode("Hello").tolist()[0] == 1
    tokenizer.update_options(add_special_tokens=False, skip_special_tokens=False)
    assert tokenizer.decode([1, *tokenizer.encode("Hello")]).startswith("<s>")
    with pytest.raises(og.EngineError, match="colour"):
        tokenizer.update_options(colour="true")
    with pytest.raises(og.EngineError, match="maybe"):
        tokenizer.update_options(add_special_tokens="maybe")


# ---------------------------------------------------------------- text as typed


@relaxed
@given(text=texts)
def test_plain_text_gives_no_control_token_and_comes_back(pair, text):
    ours, _ = pair
    ids = ours.encode_plain(text)
    assert not ours.special_token_ids.intersection(ids.tolist())
    expected = clean(text)
    if ours.encode("\u2581").tolist() == ours.encode(" ").tolist():
        expected = expected.replace("\u2581", " ")  # such vocabularies do not tell them apart
    assert ours.decode(ids) == expected


def test_plain_text_without_specials_has_the_librarys_ids(pair):
    ours, plain = pair
    for text in (
        "Hello world!",
        " a  b\n\n\tc",
        "def main():\n    for i",
        "\u00e9\u4e2d\U0001f600",
    ):
        expected = plain.encode(text, add_special_tokens=False).ids
        assert ours.encode_plain(text).tolist() == expected


@pytest.fixture
def folder_with(tmp_path, data_folder):
    """A model folder with another tokenizer.json."""

    def make(tokenizer):
        folder = tmp_path / f"model {len(list(tmp_path.iterdir()))}"
        shutil.copytree(data_folder / "tiny-llama", folder)
        tokenizer.save(str(folder / "tokenizer.json"))
        return og.Tokenizer(folder)

    return make


def with_every_kind_of_added_token():
    """A byte-level vocabulary with added tokens of all flags, overlapping each other."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: index for index, piece in enumerate([*alphabet, "<|in|>"])}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken("<|im_end|>", special=True, normalized=False),
            AddedToken("<|im", special=True, normalized=False, rstrip=True),
            AddedToken("<|in|>", special=True, normalized=False),
        ]
    )
    tokenizer.add_tokens(
        [
            AddedToken("<think>", normalized=False),
            AddedToken("</think>", normalized=True, lstrip=True),
            AddedToken("  ", normalized=False),
            AddedToken("word", single_word=True),
            AddedToken("\n\n", normalized=True),
            AddedToken("\t", normalized=False, rstrip=True),
        ]
    )
    return tokenizer


ADVERSARIAL = [
    "<|im_end|>", "<|im_end|", "<|im<|im_end|>_end|>", " <|im   ", "a </think> b", "<|in|>",
    "word words word", "a  b   c    d", "\n\n\n", "\t \t", "<think>x</think>", "<|im\n\n_end|>", "",
]  # fmt: skip


@pytest.mark.parametrize("text", ADVERSARIAL)
def test_added_tokens_of_every_kind_stay_text(folder_with, text):
    tokenizer = folder_with(with_every_kind_of_added_token())
    ids = tokenizer.encode_plain(text)
    names = {tokenizer.to_token_id(n) for n in ("<|im_end|>", "<|im", "<|in|>", "<think>", "word")}
    assert not names.intersection(ids.tolist())
    assert tokenizer.decode(ids) == text


def test_white_space_keeps_its_own_ids(folder_with):
    """They control nothing, and text typed with other ids would be read less well."""
    tokenizer = folder_with(with_every_kind_of_added_token())
    double = tokenizer.to_token_id("  ")
    assert double in tokenizer.encode("a  b").tolist()
    assert tokenizer.encode_plain("a  b").tolist() == tokenizer.encode("a  b").tolist()


def test_whole_words_of_the_vocabulary_that_are_control_tokens_are_spelt(folder_with):
    """ignore_merges looks a whole word up: without care it finds the control token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: index for index, piece in enumerate([*alphabet, "<|x|>"])}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken("<|x|>", special=True, normalized=False)])
    tokenizer = folder_with(inner)
    assert tokenizer.encode("<|x|>").tolist() == [256]
    ids = tokenizer.encode_plain("<|x|>")
    assert 256 not in ids
    assert tokenizer.decode(ids) == "<|x|>"


def test_a_unigram_vocabulary_that_holds_its_control_tokens(folder_with):
    byte_pieces = [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    vocab = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *byte_pieces, ("\u2581", -2.0),
             ("a", -1.0), ("<", -3.0), (">", -3.0), ("s", -3.0), ("/", -3.0)]  # fmt: skip
    inner = tokenizers.Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=True))
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    inner.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ])  # fmt: skip
    specials = [
        AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")
    ]
    inner.add_special_tokens(specials)
    tokenizer = folder_with(inner)
    assert 2 in tokenizer.encode("a</s>").tolist()
    for text in ("a</s>", "</s>", "<s>a</s> a", "</s></s>", "<</s>>", "<unk>"):
        ids = tokenizer.encode_plain(text)
        assert not {0, 1, 2}.intersection(ids.tolist())
        assert tokenizer.decode(ids) == text


# ---------------------------------------------------------------- streams


@relaxed
@given(text=st.text(max_size=30))
def test_streamed_text_is_decoded_text(pair, text):
    ours, _ = pair
    ids = ours.encode(text).tolist()
    stream = ours.create_stream()
    assert "".join([stream.decode(i) for i in ids]) + stream.flush() == ours.decode(ids)


@relaxed
@example(ids=[178, 100, 100, 130, 100])  # the start of a character, and too much after it
@given(ids=st.lists(st.integers(0, 511), max_size=24))
def test_broken_text_is_streamed_like_it_is_decoded(data_folder, ids):
    """Random ids of a byte-level vocabulary: most multi-byte characters in them are broken."""
    ours = og.Tokenizer(data_folder / "tiny-llama")
    stream = ours.create_stream()
    assert "".join([stream.decode(i) for i in ids]) + stream.flush() == ours.decode(ids)


def test_no_half_character_is_ever_shown(pair):
    ours, _ = pair
    stream = ours.create_stream()
    shown = [stream.decode(i) for i in ours.encode("\u65e5\u672c\u8a9e \U0001f468\u200d\U0001f469")]
    assert "\ufffd" not in "".join(shown)
    assert "".join(shown) == "\u65e5\u672c\u8a9e \U0001f468\u200d\U0001f469"


def test_a_broken_character_does_not_swallow_what_follows(data_folder):
    ours = og.Tokenizer(data_folder / "tiny-llama")
    half = ours.encode("\u4e2d").tolist()[:1]
    stream = ours.create_stream()
    shown = [stream.decode(i) for i in [*half, *ours.encode("hello").tolist()]]
    assert "".join(shown) == "\ufffdhello"


def test_specials_are_not_shown(pair):
    ours, _ = pair
    special = min(ours.special_token_ids)
    stream = ours.create_stream()
    ids = [special, *ours.encode("a b").tolist(), special, *ours.encode(" c").tolist()]
    assert "".join(stream.decode(np.int32(i)) for i in ids) == ours.decode(ids)


# ---------------------------------------------------------------- the rest of its surface


def test_batches_are_padded_on_the_right(pair):
    ours, _ = pair
    batch = ours.encode_batch(("Hello world", "a"))
    assert batch.as_numpy().dtype == np.int32
    assert batch.as_numpy()[1, -1] == ours.pad_token_id
    assert ours.decode_batch(batch)[0] == "Hello world"


def test_ids_by_piece(data_folder):
    ours = og.Tokenizer(data_folder / "tiny-llama")
    assert ours.to_token_id("the") == ours.to_token_id("\u0120the")
    assert ours.to_token_id("<|end|>") == 5
    assert ours.to_token_id("no such piece") == -1


def test_end_of_text_ids_of_both_files_count(tmp_path, data_folder):
    folder = tmp_path / "m"
    shutil.copytree(data_folder / "tiny-spm", folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7]}))
    model = og.Model(folder)
    assert model.config.model.eos_token_ids == (2, 7)
    assert og.Tokenizer(model).eos_token_ids.tolist() == [2, 7]


@pytest.mark.parametrize("ids", [[-1], [10**6], [40, -5, 41]])
def test_ids_outside_the_vocabulary_become_a_replacement_character(data_folder, ids):
    assert "\ufffd" in og.Tokenizer(data_folder / "tiny-llama").decode(ids)


@pytest.mark.parametrize("bad", [None, 3, b"bytes", ["a"]])
def test_only_text_is_encoded(data_folder, bad):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    with pytest.raises(TypeError):
        tokenizer.encode(bad)
    with pytest.raises(TypeError):
        tokenizer.encode_plain(bad)


def test_half_surrogates_become_a_replacement_character(data_folder):
    tokenizer = og.Tokenizer(data_folder / "tiny-llama")
    for encode in (tokenizer.encode, tokenizer.encode_plain):
        assert tokenizer.decode(encode("a\ud800b")) == "a\ufffdb"
        assert tokenizer.decode(encode("\ud83d\ude00")) == "\U0001f600"


def test_markers_of_tools_and_reasoning_are_the_configs_or_an_error(data_folder):
    config = og.Config(data_folder / "tiny-llama")
    config.overlay('{"model": {"bot_token_id": 7, "eor_token_id": 9}}')
    tokenizer = og.Tokenizer(config)
    assert (tokenizer.bot_token_id, tokenizer.eor_token_id) == (7, 9)
    for name in ("eot_token_id", "bor_token_id"):
        with pytest.raises(og.EngineError, match=name):
            getattr(tokenizer, name)


@pytest.mark.parametrize(
    "decoder",
    [
        {"type": "Strip", "content": " ", "start": 1, "stop": 1000000},
        {"type": "Strip", "content": " ", "start": 2**40, "stop": 0},
        {"type": "WordPiece", "prefix": "", "cleanup": True},
        {"type": "Abacus"},
    ],
    ids=str,
)
def test_a_decoder_that_makes_the_library_panic_is_the_files_fault(decoder, data_folder, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(data_folder / "tiny-spm", folder)
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"decoder": decoder}))
    with contextlib.suppress(og.EngineError):
        tokenizer = og.Tokenizer(folder)
        stream = tokenizer.create_stream()
        for token in tokenizer.encode("a b"):
            stream.decode(token)
        stream.flush()
        assert isinstance(tokenizer.decode([]) + tokenizer.decode(list(range(300))), str)
