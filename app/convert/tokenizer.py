"""GGUF's vocabulary -> tokenizer.json and tokenizer_config.json of the `tokenizers` library.

Two kinds: byte-level BPE (`gpt2`), whose merges the file lists, and SentencePiece BPE (`llama`),
whose merges follow from the scores. Ids are the file's own, so a vocabulary is never renumbered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.convert.errors import ConvertError
from app.convert.pretokenizers import PRE_TOKENIZERS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "▁"
# Pieces that end a turn or a text. A file names one end token; models use several.
END_PIECES = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|end▁of▁sentence|>",
    "</s>", "<EOT>", "<|eot|>",
)  # fmt: skip
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


@dataclass(frozen=True)
class Vocabulary:
    """What the file says about tokens, checked."""

    model: str
    pre: str
    pieces: list[str]
    kinds: list[int]
    scores: list[float]
    merges: list[str]
    bos: int | None
    eos: int | None
    unknown: int | None
    padding: int | None
    ends: tuple[int, ...]
    adds_bos: bool
    adds_eos: bool
    adds_space: bool
    template: str | None

    def piece(self, id: int | None) -> str | None:
        return None if id is None else self.pieces[id]


def read(metadata: Mapping[str, Any], name: str, size: int) -> Vocabulary:
    """`size` is the number of rows that the embedding has: the vocabulary may not exceed it."""

    def fact(key: str, otherwise: Any = None) -> Any:
        return metadata.get(f"tokenizer.ggml.{key}", otherwise)

    model, pieces = fact("model"), fact("tokens")
    if not isinstance(model, str) or model not in MODELS:
        raise ConvertError(
            f"“{name}” has a tokenizer of the kind “{model}”, which cannot be imported yet."
        )
    if not _is_texts(pieces) or not pieces:
        raise ConvertError(f"“{name}” has no vocabulary: it cannot be used for a chat.")
    if len(pieces) > size:
        raise ConvertError(f"“{name}” is damaged: it has more tokens than rows for them.")
    kinds, scores = fact("token_type"), fact("scores")
    merges = fact("merges", [])
    if not (_is_numbers(kinds, "iu") and _is_numbers(scores, "f") and _is_texts(merges)):
        raise ConvertError(f"“{name}” is damaged: its token lists are of the wrong kind.")
    kinds = [NORMAL] * len(pieces) if kinds is None else kinds.tolist()
    scores = [0.0] * len(pieces) if scores is None else scores.tolist()
    if not len(kinds) == len(scores) == len(pieces):
        raise ConvertError(f"“{name}” is damaged: its token lists differ in length.")

    def token(key: str) -> int | None:
        id = fact(key)
        return id if type(id) is int and 0 <= id < len(pieces) else None

    def flag(key: str, otherwise: bool) -> bool:
        value = fact(key, otherwise)
        return value if isinstance(value, bool) else otherwise

    is_bpe = model == "gpt2"
    pre = str(fact("pre", "default"))
    template = metadata.get("tokenizer.chat_template")
    return Vocabulary(
        model=model,
        pre=pre,
        pieces=pieces,
        kinds=kinds,
        scores=scores,
        merges=merges,
        bos=token("bos_token_id"),
        eos=token("eos_token_id"),
        unknown=token("unknown_token_id"),
        padding=token("padding_token_id"),
        ends=_ends(pieces, kinds, [token(key) for key in END_KEYS]),
        adds_bos=flag("add_bos_token", not is_bpe or pre in ADDS_BOS),
        adds_eos=flag("add_eos_token", False),
        adds_space=flag("add_space_prefix", not is_bpe),
        template=template if isinstance(template, str) else None,
    )


def _is_numbers(value: Any, kinds: str) -> bool:
    """Arrays of numbers come from the file as numpy's; `kinds` are numpy's letters."""
    return value is None or (isinstance(value, np.ndarray) and value.dtype.kind in kinds)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


ADDS_BOS = frozenset({"llama-bpe", "llama3", "llama-v3", "tekken"})


def _ends(pieces: list[str], kinds: list[int], named: list[int | None]) -> tuple[int, ...]:
    """The named ends first, then every control token that is known to end a turn."""
    known = [
        id
        for id, (piece, kind) in enumerate(zip(pieces, kinds, strict=True))
        if kind in (CONTROL, USER_DEFINED) and piece in END_PIECES
    ]
    return tuple(dict.fromkeys([id for id in named if id is not None] + known))


def tokenizer_json(vocabulary: Vocabulary, name: str) -> dict[str, Any]:
    """The file for `tokenizers`. The model part may raise ConvertError for an unknown kind."""
    added = [
        {"id": id, "content": piece, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": kind != USER_DEFINED}
        for id, (piece, kind) in enumerate(
            zip(vocabulary.pieces, vocabulary.kinds, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED) and piece
    ]  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        **MODELS[vocabulary.model](vocabulary, name),
        "post_processor": _post_processor(vocabulary),
    }


def _byte_level_bpe(vocabulary: Vocabulary, name: str) -> dict[str, Any]:
    if vocabulary.pre not in PRE_TOKENIZERS:
        raise ConvertError(
            f"“{name}” cuts text in the manner of “{vocabulary.pre}”, which cannot be imported yet."
        )
    pre = PRE_TOKENIZERS[vocabulary.pre]
    cuts = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in pre.patterns
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    merges = [merge.split(" ", 1) for merge in vocabulary.merges]
    ids = _ids(vocabulary)
    if not all(len(m) == 2 and {*m, "".join(m)} <= ids.keys() for m in merges):
        raise ConvertError(f"“{name}” is damaged: its merges name tokens that it does not have.")
    return {
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*cuts, {**byte_level, "use_regex": False}],
        },
        "decoder": {**byte_level, "use_regex": False},
        "model": _bpe(ids, merges, ignore_merges=pre.whole_words),
    }


def _sentencepiece_bpe(vocabulary: Vocabulary, name: str) -> dict[str, Any]:
    prefix = [{"type": "Prepend", "prepend": SPACE}] if vocabulary.adds_space else []
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    ids = _ids(vocabulary)
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, spaces]},
        "pre_tokenizer": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                *(strip if vocabulary.adds_space else []),
            ],
        },
        "model": _bpe(
            ids,
            _merges_of_scores(vocabulary, ids),
            unk_token=vocabulary.piece(vocabulary.unknown),
            byte_fallback=True,
            fuse_unk=True,
        ),
    }


MODELS: dict[str, Callable[[Vocabulary, str], dict[str, Any]]] = {
    "gpt2": _byte_level_bpe,
    "llama": _sentencepiece_bpe,
}


def _bpe(ids: dict[str, int], merges: list[list[str]], **options: Any) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        **options,
        "vocab": ids,
        "merges": merges,
    }


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    """{piece: id}; of two equal pieces the first keeps the name, as in llama.cpp's look-up."""
    ids: dict[str, int] = {}
    for id, piece in enumerate(vocabulary.pieces):
        ids.setdefault(piece, id)
    return ids


def _merges_of_scores(vocabulary: Vocabulary, ids: dict[str, int]) -> list[list[str]]:
    """Every way to put a piece together from two others, best score first."""
    found = []
    for piece, id in ids.items():
        if vocabulary.kinds[id] not in (NORMAL, USER_DEFINED):
            continue
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                found.append((-vocabulary.scores[id], ids[left], ids[right], [left, right]))
    found.sort(key=lambda merge: merge[:3])
    return [merge for *_, merge in found]


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any] | None:
    """What `add_special_tokens` puts around a text; a rendered chat brings its own."""
    front = vocabulary.bos if vocabulary.adds_bos else None
    back = vocabulary.eos if vocabulary.adds_eos else None
    if front is None and back is None:
        return None

    def special(id: int | None) -> list[dict[str, Any]]:
        piece = vocabulary.piece(id)
        return [] if piece is None else [{"SpecialToken": {"id": piece, "type_id": 0}}]

    def text(letter: str) -> list[dict[str, Any]]:
        return [*special(front), {"Sequence": {"id": letter, "type_id": 0}}, *special(back)]

    named = {vocabulary.pieces[id]: id for id in (front, back) if id is not None}
    return {
        "type": "TemplateProcessing",
        "single": text("A"),
        "pair": text("A") + text("B"),
        "special_tokens": {
            piece: {"id": piece, "ids": [id], "tokens": [piece]} for piece, id in named.items()
        },
    }


def tokenizer_config(vocabulary: Vocabulary, context_length: int) -> dict[str, Any]:
    kinds = {"gpt2": "GPT2Tokenizer", "llama": "LlamaTokenizer"}
    named = {
        "bos_token": vocabulary.bos,
        "eos_token": vocabulary.eos,
        "unk_token": vocabulary.unknown,
        "pad_token": vocabulary.padding,
    }
    config: dict[str, Any] = {
        "tokenizer_class": kinds[vocabulary.model],
        "add_bos_token": vocabulary.adds_bos,
        "add_eos_token": vocabulary.adds_eos,
        "add_prefix_space": vocabulary.adds_space,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
        **{key: vocabulary.pieces[id] for key, id in named.items() if id is not None},
    }
    if vocabulary.template is not None:
        config["chat_template"] = vocabulary.template
    return config
