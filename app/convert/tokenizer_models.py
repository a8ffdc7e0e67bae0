"""The parts of tokenizer.json that cut a text and join pieces, a function for each kind."""

import base64
from collections.abc import Callable
from typing import Any

from app.convert.errors import ConvertError
from app.convert.pretokenizers import PRE_TOKENIZERS
from app.convert.vocabulary import NORMAL, UNKNOWN, USER_DEFINED, Vocabulary

SPACE = "▁"
MUCH_LESS = -1e6  # the score of pieces that a text never becomes: control tokens, unused ones
Parts = dict[str, Any]


def _byte_level_bpe(vocabulary: Vocabulary, name: str) -> Parts:
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
    ids = _ids(vocabulary)
    merges = _listed_merges(vocabulary, ids, name)
    return {
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*cuts, {**byte_level, "use_regex": False}],
        },
        "decoder": {**byte_level, "use_regex": False},
        "model": _bpe(ids, merges, ignore_merges=pre.whole_words),
    }


def _sentencepiece_bpe(vocabulary: Vocabulary, name: str) -> Parts:
    ids = _ids(vocabulary)
    merges = _merges_of_scores(vocabulary, ids)
    return {**_spaces(vocabulary), "model": _bytes_bpe(vocabulary, ids, merges)}


def _sentencepiece_merges(vocabulary: Vocabulary, name: str) -> Parts:
    """Whole lines are merged, no words are cut."""
    ids = _ids(vocabulary)
    lines = {"type": "Split", "pattern": {"Regex": r"[^\n]+|\n+"}, "behavior": "Isolated",
             "invert": False}  # fmt: skip
    model = _bytes_bpe(vocabulary, ids, _listed_merges(vocabulary, ids, name))
    return {**_spaces(vocabulary), "pre_tokenizer": lines, "model": model}


def _spaces(vocabulary: Vocabulary) -> Parts:
    prefix = [{"type": "Prepend", "prepend": SPACE}] if vocabulary.adds_space else []
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
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
    }


def _unigram(vocabulary: Vocabulary, name: str) -> Parts:
    """The most likely pieces; what no piece covers is the unknown token."""
    unknown = vocabulary.unknown
    if unknown is None:
        raise ConvertError(f"“{name}” is incomplete: it does not name its unknown token.")
    normalizers: list[Parts] = []
    if vocabulary.characters:
        table = base64.b64encode(vocabulary.characters).decode("ascii")
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": table})
    if vocabulary.squeezes_spaces:
        normalizers += [
            {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]
    scheme = "always" if vocabulary.adds_space else "never"
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme,
                 "split": False}  # fmt: skip
    scores = [
        score if kind in (NORMAL, USER_DEFINED, UNKNOWN) else MUCH_LESS
        for score, kind in zip(vocabulary.scores, vocabulary.kinds, strict=True)
    ]
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": metaspace,
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": [list(pair) for pair in zip(vocabulary.pieces, scores, strict=True)],
            "byte_fallback": False,
        },
    }


MODELS: dict[str, Callable[[Vocabulary, str], Parts]] = {
    "gpt2": _byte_level_bpe,
    "llama": _sentencepiece_bpe,
    "gemma4": _sentencepiece_merges,
    "t5": _unigram,
}


def _bytes_bpe(vocabulary: Vocabulary, ids: dict[str, int], merges: list[list[str]]) -> Parts:
    return _bpe(
        ids,
        merges,
        unk_token=vocabulary.piece(vocabulary.unknown),
        byte_fallback=True,
        fuse_unk=True,
    )


def _bpe(ids: dict[str, int], merges: list[list[str]], **options: Any) -> Parts:
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


def _listed_merges(vocabulary: Vocabulary, ids: dict[str, int], name: str) -> list[list[str]]:
    merges = [merge.split(" ", 1) for merge in vocabulary.merges]
    if not all(len(m) == 2 and {*m, "".join(m)} <= ids.keys() for m in merges):
        raise ConvertError(f"“{name}” is damaged: its merges name tokens that it does not have.")
    return merges


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
