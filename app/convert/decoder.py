"""What a decoder-only model is, whatever file it came from: sizes, and its weights by role.

Families fill it in, graph.py draws it. Knows neither GGUF keys nor ONNX.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.convert.weights import Matrix

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Linear:
    """y = x W^T + bias."""

    matrix: Matrix
    bias: Vector | None = None


@dataclass(frozen=True)
class Layer:
    """Query, key and value lie one above the other in one matrix, gate and up in another."""

    attention_norm: Vector
    query_key_value: Linear
    attention_output: Linear
    feed_forward_norm: Vector
    gate_up: Linear
    down: Linear


@dataclass(frozen=True)
class Decoder:
    """A model of pre-normalised layers: attention with grouped heads, then a gated unit (SiLU)."""

    type: str  # for genai_config.json
    vocabulary_size: int
    context_length: int
    hidden_size: int
    feed_forward_size: int
    head_count: int
    key_value_head_count: int
    head_size: int
    norm_epsilon: float
    rotary_frequencies: NDArray[np.float64]  # radians a position, one for each rotated pair
    embedding: Matrix
    layers: tuple[Layer, ...]
    final_norm: Vector
    output: Matrix | None  # None: the embedding serves as output too
