"""The families of models that can be imported: {general.architecture: what is its own}.

All of them are read by one Reader: which biases and norms a model has is told by its tensors, its
sizes by its facts. A row here holds only what no file says.
"""

from app.convert.families.family import Family
from app.convert.families.reader import Reader

FAMILIES = {
    "llama": Family("llama", pairs_are_neighbours=True),
    "qwen2": Family("qwen2"),
    "qwen3": Family("qwen3"),
    "gemma2": Family(
        "gemma2",
        activation="gelu",
        scales_embedding=True,
        window_period=2,
        window=4096,
        # 27B, which is told by its layers, divides by the width of a head as it would be if the
        # heads shared the hidden values; the smaller ones by the width that heads have.
        layers_of_shared_width=46,
    ),
    "gemma3": Family(
        "gemma3_text",
        activation="gelu",
        scales_embedding=True,
        window_period=6,
        local_base=10000.0,
        layers_of_shared_width=62,
    ),
    "phi3": Family("phi3", windows_everywhere=True),
    "granite": Family("granite", pairs_are_neighbours=True),
    "olmo2": Family("olmo", window_period=4),
    "smollm3": Family("smollm3", pairs_are_neighbours=True, unrotated_period=4),
    "starcoder2": Family("decoder", activation="gelu", is_gated=False, is_centred=True),
}

__all__ = ["FAMILIES", "Family", "Reader"]
