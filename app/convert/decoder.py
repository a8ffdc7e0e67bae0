"""What a decoder-only model is, whatever file it came from: sizes, and its weights by role.

Families fill it in, graph.py draws it. Knows neither GGUF keys nor ONNX.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.convert.weights import Matrix

Vector = NDArray[np.float32]
Activation = Literal["silu", "gelu"]  # gelu by tanh, as everywhere in these families


@dataclass(frozen=True)
class Linear:
    """y = x W^T + bias."""

    matrix: Matrix
    bias: Vector | None = None


@dataclass(frozen=True)
class Norm:
    """With `is_centred` the mean is taken off first (layer norm), else root mean square alone."""

    weight: Vector
    bias: Vector | None = None
    is_centred: bool = False


@dataclass(frozen=True)
class Rotation:
    """How far each pair turns a position; positions from `switch_length` texts on by `far`.

    `size` multiplies sine and cosine, so that longer texts keep the spread of their attention
    (YaRN, arXiv 2309.00071; LongRoPE, arXiv 2402.13753).
    """

    frequencies: NDArray[np.float64]  # radians a position, one for each rotated pair
    size: float = 1.0
    far: NDArray[np.float64] | None = None  # for texts longer than `near_length`, all of them
    far_size: float = 1.0
    near_length: int = 0


@dataclass(frozen=True)
class Layer:
    """Query, key and value lie one above the other in one matrix, gate and up in another.

    Norms that a family does not have are None. `query_norm` and `key_norm` are as long as a head,
    and then each head is normalised, or as long as all heads. `rotation` is a place in the
    Decoder's rotations, None for a layer without positions; `window` how many tokens a query sees,
    itself among them, None for all.
    """

    attention_norm: Norm | None
    query_key_value: Linear
    attention_output: Linear
    feed_forward_norm: Norm | None
    up: Linear  # gate and up where the unit is gated
    down: Linear
    query_norm: Vector | None = None
    key_norm: Vector | None = None
    attention_output_norm: Norm | None = None
    feed_forward_output_norm: Norm | None = None
    rotation: int | None = 0
    window: int | None = None


@dataclass(frozen=True)
class Decoder:
    """A model of layers: attention with grouped heads, then a feed-forward unit."""

    type: str  # for genai_config.json
    vocabulary_size: int
    context_length: int
    hidden_size: int
    feed_forward_size: int
    head_count: int
    key_value_head_count: int
    head_size: int
    norm_epsilon: float
    rotations: tuple[Rotation, ...]
    embedding: Matrix
    layers: tuple[Layer, ...]
    final_norm: Norm
    output: Linear | None  # None: the embedding serves as output too
    attention_scale: float
    activation: Activation = "silu"
    is_gated: bool = True
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logits_scale: float = 1.0
    attention_cap: float = 0.0  # cap * tanh(x / cap), 0 for none
    logits_cap: float = 0.0
