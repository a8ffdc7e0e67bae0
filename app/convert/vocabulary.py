"""What a GGUF file says about its tokens, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.convert.errors import ConvertError
from app.convert.pretokenizers import PRE_TOKENIZERS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# How a text becomes pieces: byte-level BPE, SentencePiece BPE by scores, SentencePiece BPE with a
# list of merges, SentencePiece unigram. The names are GGUF's.
MODELS = ("gpt2", "llama", "gemma4", "t5")
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
    squeezes_spaces: bool  # runs of spaces become one, those at the ends none
    characters: bytes | None  # a map of characters to what stands for them, SentencePiece's form
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

    by_scores = model in ("llama", "t5")
    pre = str(fact("pre", "default"))
    cuts = PRE_TOKENIZERS.get(pre) if model == "gpt2" else None
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
        adds_bos=flag("add_bos_token", model == "llama" or bool(cuts and cuts.adds_bos)),
        adds_eos=flag("add_eos_token", model == "t5"),
        adds_space=flag("add_space_prefix", by_scores),
        squeezes_spaces=flag("remove_extra_whitespaces", False),
        characters=_characters(fact("precompiled_charsmap"), name),
        template=template if isinstance(template, str) else None,
    )


def _characters(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.itemsize != 1:
        raise ConvertError(f"“{name}” is damaged: its map of characters is of the wrong kind.")
    return value.tobytes()


def _is_numbers(value: Any, kinds: str) -> bool:
    """Arrays of numbers come from the file as numpy's; `kinds` are numpy's letters."""
    return value is None or (isinstance(value, np.ndarray) and value.dtype.kind in kinds)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _ends(pieces: list[str], kinds: list[int], named: list[int | None]) -> tuple[int, ...]:
    """The named ends first, then every control token that is known to end a turn."""
    known = [
        id
        for id, (piece, kind) in enumerate(zip(pieces, kinds, strict=True))
        if kind in (CONTROL, USER_DEFINED) and piece in END_PIECES
    ]
    return tuple(dict.fromkeys([id for id in named if id is not None] + known))
