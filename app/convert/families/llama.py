"""GGUF of architecture `llama`: Llama, SmolLM, Mistral and whoever shares their graph.

GGUF stores the rows of q and k so that the two values of a rotated pair are neighbours; ONNX
wants the first halves of all pairs in front of the second halves. `halves_order` puts them back.
"""

from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.convert.decoder import Decoder, Layer, Linear, Vector
from app.convert.errors import ConvertError
from app.convert.gguf_file import READABLE_TYPES, GgufFile
from app.convert.weights import Matrix, Part

MAX_SIZE = 1 << 24  # of any one dimension: a damaged number must not become gigabytes of indices


def read(source: GgufFile) -> Decoder:
    return _Llama(source).decoder()


def halves_order(heads: int, head_size: int, rotated: int) -> NDArray[np.intp]:
    """Rows of the source in our order: in each head pairs (0, 1) (2, 3) become 0 2 .. 1 3 .."""
    head = np.arange(head_size)
    head[:rotated] = head[:rotated].reshape(-1, 2).T.ravel()
    return (np.arange(heads)[:, None] * head_size + head).ravel()


class _Llama:
    """Reads by role; every size that the file states is checked against the tensors."""

    def __init__(self, source: GgufFile) -> None:
        self.source = source
        if self.number("expert_count", 0):
            self.refuse("a mixture of experts, which cannot be imported yet")
        self.layer_count = self.number("block_count")
        self.hidden = self.number("embedding_length")
        self.feed_forward = self.number("feed_forward_length")
        self.heads = self.number("attention.head_count")
        self.kv_heads = self.number("attention.head_count_kv", self.heads)
        sizes = self.layer_count, self.heads, self.kv_heads, self.hidden, self.feed_forward
        if not all(1 <= size <= MAX_SIZE for size in sizes):
            self.refuse("a model with impossible sizes: the file is damaged")
        self.head_size = self.number("attention.key_length", self.hidden // self.heads)
        self.rotated = self.number("rope.dimension_count", self.head_size)
        if self.number("attention.value_length", self.head_size) != self.head_size:
            self.refuse("a model whose keys and values differ in size, which cannot be imported")
        if not (
            1 <= self.heads * self.head_size <= MAX_SIZE
            and 0 <= self.rotated <= self.head_size
            and self.rotated % 2 == self.heads % self.kv_heads == 0
        ):
            self.refuse("a model with impossible sizes: the file is damaged")

    def decoder(self) -> Decoder:
        embedding = self.matrix("token_embd", None, self.hidden, name="model.embed_tokens")
        vocabulary = embedding.n
        tied = "output.weight" not in self.source.tensors
        return Decoder(
            type="llama",
            vocabulary_size=vocabulary,
            context_length=self.context_length(),
            hidden_size=self.hidden,
            feed_forward_size=self.feed_forward,
            head_count=self.heads,
            key_value_head_count=self.kv_heads,
            head_size=self.head_size,
            norm_epsilon=self.real("attention.layer_norm_rms_epsilon"),
            rotary_frequencies=self.frequencies(),
            embedding=embedding,
            layers=tuple(self.layer(i) for i in range(self.layer_count)),
            final_norm=self.vector("output_norm.weight", self.hidden),
            output=None if tied else self.matrix("output", vocabulary, self.hidden, name="lm_head"),
        )

    def layer(self, i: int) -> Layer:
        at, to = f"blk.{i}", f"model.layers.{i}"
        size, kv_size = self.heads * self.head_size, self.kv_heads * self.head_size
        query = halves_order(self.heads, self.head_size, self.rotated)
        key = halves_order(self.kv_heads, self.head_size, self.rotated)
        up = np.arange(self.feed_forward)
        return Layer(
            attention_norm=self.vector(f"{at}.attn_norm.weight", self.hidden),
            query_key_value=self.linear(
                f"{to}.attn.qkv_proj",
                self.hidden,
                {f"{at}.attn_q": query, f"{at}.attn_k": key, f"{at}.attn_v": np.arange(kv_size)},
            ),
            attention_output=self.linear(
                f"{to}.attn.o_proj", size, {f"{at}.attn_output": np.arange(self.hidden)}
            ),
            feed_forward_norm=self.vector(f"{at}.ffn_norm.weight", self.hidden),
            gate_up=self.linear(
                f"{to}.mlp.gate_up_proj", self.hidden, {f"{at}.ffn_gate": up, f"{at}.ffn_up": up}
            ),
            down=self.linear(
                f"{to}.mlp.down_proj", self.feed_forward, {f"{at}.ffn_down": np.arange(self.hidden)}
            ),
        )

    # ---- tensors

    def linear(self, name: str, k: int, parts: dict[str, NDArray[np.intp]]) -> Linear:
        matrices = [self.matrix(source, len(rows), k, rows, name) for source, rows in parts.items()]
        matrix = Matrix(name, tuple(part for m in matrices for part in m.parts))
        biases = [f"{source}.bias" in self.source.tensors for source in parts]
        if not any(biases):
            return Linear(matrix)
        pieces = [
            self.vector(f"{source}.bias", len(rows))[rows] if has else np.zeros(len(rows), "f4")
            for (source, rows), has in zip(parts.items(), biases, strict=True)
        ]
        return Linear(matrix, np.concatenate(pieces))

    def matrix(
        self, source: str, n: int | None, k: int, rows: NDArray[np.intp] | None = None,
        name: str = "",
    ) -> Matrix:  # fmt: skip
        tensor = self.source.tensor(f"{source}.weight")
        n = tensor.shape[0] if n is None else n
        if tensor.shape != (n, k):
            self.refuse(
                f"a damaged file: “{tensor.name}” is {' x '.join(map(str, tensor.shape))} "
                f"where {n} x {k} is due"
            )
        if tensor.type not in READABLE_TYPES:
            self.refuse(f"stored as {tensor.type.name}, a kind that cannot be imported yet")
        return Matrix(name, (Part(tensor, np.arange(n) if rows is None else rows),))

    def vector(self, name: str, size: int) -> Vector:
        tensor = self.source.tensor(name)
        if prod(tensor.shape) != size:
            self.refuse(f"a damaged file: “{name}” has {prod(tensor.shape)} values, not {size}")
        return self.source.values(tensor).ravel()

    def frequencies(self) -> NDArray[np.float64]:
        base = self.real("rope.freq_base", 10000.0)
        steps = np.arange(0, self.rotated, 2) / self.rotated
        frequencies: NDArray[np.float64] = base**-steps
        scaling = str(self.source.metadata.get("llama.rope.scaling.type", "none"))
        if scaling == "linear":
            frequencies = frequencies / self.real("rope.scaling.factor")
        elif scaling != "none":
            self.refuse(f"a model with “{scaling}” position scaling, which cannot be imported yet")
        if "rope_freqs.weight" in self.source.tensors:  # Llama 3.1 and later
            frequencies = frequencies / self.vector("rope_freqs.weight", len(frequencies))
        return frequencies

    # ---- facts

    def context_length(self) -> int:
        length = self.number("context_length")
        if not 1 <= length < 2**31:
            self.refuse(f"a damaged file: its context of {length} tokens is impossible")
        return length

    def fact(self, key: str, otherwise: Any) -> Any:
        value = self.source.metadata.get(f"llama.{key}", otherwise)
        if isinstance(value, np.ndarray):  # one for each layer
            if len(set(value.tolist())) != 1:
                self.refuse(f"a model whose layers differ ({key}), which cannot be imported yet")
            value = value.tolist()[0]
        if value is None:
            self.refuse(f"an incomplete file: it does not say its “llama.{key}”")
        return value

    def number(self, key: str, otherwise: int | None = None) -> int:
        value = self.fact(key, otherwise)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(f"a damaged file: its “llama.{key}” is no whole number")
        return int(value)

    def real(self, key: str, otherwise: float | None = None) -> float:
        value = self.fact(key, otherwise)
        if not isinstance(value, int | float) or not 0 < value < inf:
            self.refuse(f"a damaged file: its “llama.{key}” is no number above 0")
        return float(value)

    def refuse(self, what: str) -> None:
        raise ConvertError(f"“{self.source.path.name}” is {what}.")
