"""A Decoder as genai_config.json: where things are in the folder, and how to sample by default."""

from collections.abc import Mapping
from typing import Any

from app.convert.decoder import Decoder
from app.convert.vocabulary import Vocabulary

# For a chat, where the file gives no advice of its own. A temperature below one and a nucleus keep
# small models from drifting into unlikely words (their makers advise 0.2 to 0.8), top_k bounds
# the tail, and a slight repetition penalty stops the loops that models of this size fall into
# without hurting code and lists.
SEARCH = {
    "do_sample": True,
    "temperature": 0.6,
    "top_p": 0.9,
    "top_k": 40,
    "repetition_penalty": 1.05,
}
# Option: the file's word for it, the type, and the most that is advice and no mistake.
ADVICE: dict[str, tuple[str, type, float]] = {
    "temperature": ("general.sampling.temp", float, 10.0),
    "top_p": ("general.sampling.top_p", float, 1.0),
    "top_k": ("general.sampling.top_k", int, 10_000),
    "repetition_penalty": ("general.sampling.penalty_repeat", float, 10.0),
}


def search(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults, and what the file advises instead; a chat always samples."""
    usable = {}
    for option, (key, kind, most) in ADVICE.items():
        value: Any = metadata.get(key)
        if type(value) in (int, kind) and 0 < value <= most:
            usable[option] = value
    return {**SEARCH, **usable}


def genai_config(
    decoder: Decoder, vocabulary: Vocabulary, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    ends = list(vocabulary.ends)
    padding = vocabulary.padding
    if padding is None:
        padding = ends[0] if ends else 0
    bos = vocabulary.bos if vocabulary.bos is not None else padding
    return {
        "model": {
            "type": decoder.type,
            "bos_token_id": bos,
            "eos_token_id": ends or [padding],
            "pad_token_id": padding,
            "vocab_size": decoder.vocabulary_size,
            "context_length": decoder.context_length,
            "decoder": {
                "filename": "model.onnx",
                "session_options": {"provider_options": []},
                "head_size": decoder.head_size,
                "hidden_size": decoder.hidden_size,
                "num_attention_heads": decoder.head_count,
                "num_hidden_layers": len(decoder.layers),
                "num_key_value_heads": decoder.key_value_head_count,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            **search(metadata),
            "max_length": decoder.context_length,
            "min_length": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": True,
        },
    }
