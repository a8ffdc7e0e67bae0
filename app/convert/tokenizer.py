"""A Vocabulary as tokenizer.json and tokenizer_config.json of the `tokenizers` library.

Ids are the file's own, so a vocabulary is never renumbered.
"""

from typing import Any

from app.convert.tokenizer_models import MODELS
from app.convert.vocabulary import CONTROL, UNKNOWN, USER_DEFINED, Vocabulary


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
    kinds = {
        "gpt2": "GPT2Tokenizer",
        "llama": "LlamaTokenizer",
        "gemma4": "GemmaTokenizer",
        "t5": "T5Tokenizer",
    }
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
