"""A GGUF file of a known family as a Decoder."""

import re

import numpy as np
from numpy.typing import NDArray

from app.convert.decoder import Decoder, Layer, Linear, Norm, Rotation
from app.convert.families.facts import MAX_SIZE, Facts
from app.convert.families.family import Family
from app.convert.families.rotations import plain, rotation
from app.convert.gguf_file import GgufFile

# Tables that follow from other facts; everything else that is not used is a variant unknown here.
_NEEDLESS = re.compile(r"(?:blk\.\d+\.)?(?:rope_freqs|attn_rot_embd|rope_factors_\w+)\.weight")

SWITCHES = {4096: "phi3", 8192: "phi3small"}  # {length of a near text: type}


def halves_order(heads: int, head_size: int, rotated: int) -> NDArray[np.intp]:
    """Rows of the source in our order: in each head pairs (0, 1) (2, 3) become 0 2 .. 1 3 .."""
    head = np.arange(head_size)
    head[:rotated] = head[:rotated].reshape(-1, 2).T.ravel()
    return (np.arange(heads)[:, None] * head_size + head).ravel()


class Reader:
    """Reads by role; every size that the file states is checked against the tensors."""

    def __init__(self, source: GgufFile, family: Family) -> None:
        self.family = family
        self.facts = facts = Facts(source)
        if facts.number("expert_count", 0):
            facts.refuse("a mixture of experts, which cannot be imported yet")
        self.layer_count = facts.size("block_count")
        self.hidden = facts.size("embedding_length")
        self.feed_forward = facts.size("feed_forward_length")
        self.heads = facts.size("attention.head_count")
        self.kv_heads = facts.size("attention.head_count_kv", self.heads)
        self.head_size = facts.number("attention.key_length", self.hidden // self.heads)
        self.rotated = facts.number("rope.dimension_count", self.head_size)
        if facts.number("attention.value_length", self.head_size) != self.head_size:
            facts.refuse("a model whose keys and values differ in size, which cannot be imported")
        if not (
            1 <= self.heads * self.head_size <= MAX_SIZE
            and 0 <= self.rotated <= self.head_size
            and self.rotated % 2 == self.heads % self.kv_heads == 0
        ):
            facts.refuse("a model with impossible sizes: the file is damaged")
        if self.rotated % 16:
            facts.refuse(
                f"a model that turns {self.rotated} values of each head, which cannot be imported"
            )
        self.context_length = self._context_length()
        self.window = self._window()

    def decoder(self) -> Decoder:
        facts, family = self.facts, self.family
        embedding = facts.matrix("token_embd", None, self.hidden, name="model.embed_tokens")
        decoder = Decoder(
            type=self._type(),
            vocabulary_size=embedding.n,
            context_length=self.context_length,
            hidden_size=self.hidden,
            feed_forward_size=self.feed_forward,
            head_count=self.heads,
            key_value_head_count=self.kv_heads,
            head_size=self.head_size,
            norm_epsilon=self._epsilon(),
            rotations=self._rotations(),
            embedding=embedding,
            layers=tuple(self._layer(i) for i in range(self.layer_count)),
            final_norm=self._required_norm("output_norm"),
            output=self._output(embedding.n),
            attention_scale=self._attention_scale(),
            activation=family.activation,
            is_gated=family.is_gated,
            embedding_scale=facts.real(
                "embedding_scale", self.hidden**0.5 if family.scales_embedding else 1.0
            ),
            residual_scale=facts.real("residual_scale", 1.0),
            logits_scale=1 / facts.real("logit_scale", 1.0),
            attention_cap=self._cap("attn_logit_softcapping"),
            logits_cap=self._cap("final_logit_softcapping"),
        )
        self._refuse_leftovers()
        return decoder

    def _type(self) -> str:
        """Readers of genai_config.json know from the type when a text is long."""
        near_length = self._rotations()[0].near_length
        if not near_length:
            return self.family.type
        if near_length not in SWITCHES:
            self.facts.refuse(
                f"a model that turns positions in another way from {near_length:,} tokens on, "
                "which cannot be imported"
            )
        return SWITCHES[near_length]

    # ---- layers

    def _layer(self, i: int) -> Layer:
        at, to = f"blk.{i}", f"model.layers.{i}"
        size, kv_size = self.heads * self.head_size, self.kv_heads * self.head_size
        has_window = self._has_window(i)
        return Layer(
            attention_norm=self._norm(f"{at}.attn_norm"),
            query_key_value=self._query_key_value(at, f"{to}.attn.qkv_proj"),
            attention_output=self._linear(f"{to}.attn.o_proj", size, f"{at}.attn_output"),
            feed_forward_norm=self._norm(f"{at}.ffn_norm"),
            up=self._up(at, to),
            down=self._linear(f"{to}.mlp.down_proj", self.feed_forward, f"{at}.ffn_down"),
            query_norm=self.facts.optional_vector(f"{at}.attn_q_norm.weight", self.head_size, size),
            key_norm=self.facts.optional_vector(
                f"{at}.attn_k_norm.weight", self.head_size, kv_size
            ),
            attention_output_norm=self._norm(f"{at}.post_attention_norm"),
            feed_forward_output_norm=self._norm(f"{at}.post_ffw_norm"),
            rotation=self._rotation(i, has_window),
            window=self.window if has_window else None,
        )

    def _query_key_value(self, at: str, name: str) -> Linear:
        size, kv_size = self.heads * self.head_size, self.kv_heads * self.head_size
        if self.facts.holds(f"{at}.attn_qkv.weight"):
            if self.family.pairs_are_neighbours:
                self.facts.refuse("of an unknown layout, which cannot be imported yet")
            rows = np.arange(size + 2 * kv_size)
            return self.facts.linear(name, self.hidden, {f"{at}.attn_qkv": rows})
        query, key = np.arange(size), np.arange(kv_size)
        if self.family.pairs_are_neighbours:
            query = halves_order(self.heads, self.head_size, self.rotated)
            key = halves_order(self.kv_heads, self.head_size, self.rotated)
        parts = {f"{at}.attn_q": query, f"{at}.attn_k": key, f"{at}.attn_v": np.arange(kv_size)}
        return self.facts.linear(name, self.hidden, parts)

    def _up(self, at: str, to: str) -> Linear:
        rows = np.arange(self.feed_forward)
        if not self.family.is_gated:
            parts, name = {f"{at}.ffn_up": rows}, f"{to}.mlp.up_proj"
        elif self.facts.holds(f"{at}.ffn_gate.weight"):
            parts, name = {f"{at}.ffn_gate": rows, f"{at}.ffn_up": rows}, f"{to}.mlp.gate_up_proj"
        else:  # one matrix, the gate above
            both = np.arange(2 * self.feed_forward)
            parts, name = {f"{at}.ffn_up": both}, f"{to}.mlp.gate_up_proj"
        return self.facts.linear(name, self.hidden, parts)

    def _linear(self, name: str, k: int, source: str) -> Linear:
        return self.facts.linear(name, k, {source: np.arange(self.hidden)})

    def _norm(self, name: str) -> Norm | None:
        weight = self.facts.optional_vector(f"{name}.weight", self.hidden)
        if weight is None:
            return None
        bias = self.facts.optional_vector(f"{name}.bias", self.hidden)
        if bias is not None and not self.family.is_centred:
            self.facts.refuse("of an unknown layout, which cannot be imported yet")
        return Norm(weight, bias, self.family.is_centred)

    def _required_norm(self, name: str) -> Norm:
        self.facts.source.tensor(f"{name}.weight")
        norm = self._norm(name)
        assert norm is not None
        return norm

    def _output(self, vocabulary: int) -> Linear | None:
        if not self.facts.holds("output.weight"):
            return None
        rows = np.arange(vocabulary)
        return self.facts.linear("lm_head", self.hidden, {"output": rows})

    # ---- positions and windows

    def _rotations(self) -> tuple[Rotation, ...]:
        """That of all layers, and the one of layers with a window where it is another."""
        everywhere = rotation(self.facts, self.rotated, self.context_length)
        if not self._has_local_rotation():
            return (everywhere,)
        base = self.family.local_base or self.facts.real("rope.freq_base", 10000.0)
        base = self.facts.real("rope.freq_base_swa", base)
        return everywhere, Rotation(plain(base, self.rotated))

    def _has_local_rotation(self) -> bool:
        return bool(self.window and self.family.window_period) and (
            self.family.local_base is not None or self.facts.has("rope.scaling.type")
        )

    def _rotation(self, i: int, has_window: bool) -> int | None:
        period = self.family.unrotated_period
        if self.rotated == 0 or (period and (i + 1) % period == 0):
            return None
        return int(has_window and self._has_local_rotation())

    def _window(self) -> int:
        """0 where the whole context fits into it."""
        family = self.family
        if not family.window_period and not family.windows_everywhere:
            return 0
        window = self.facts.number("attention.sliding_window", family.window)
        return window if 0 < window < self.context_length else 0

    def _has_window(self, i: int) -> bool:
        if not self.window:
            return False
        period = self.family.window_period
        pattern = self.facts.source.metadata.get(
            f"{self.facts.architecture}.attention.sliding_window_pattern", period
        )
        if isinstance(pattern, np.ndarray):
            if len(pattern) != self.layer_count:
                self.facts.refuse("a damaged file: its list of windows is not one for each layer")
            return bool(pattern[i])
        if not isinstance(pattern, int) or pattern < 0:
            self.facts.refuse("a damaged file: its order of windows is no whole number")
        return self.family.windows_everywhere or bool(pattern and (i + 1) % pattern)

    # ---- numbers

    def _context_length(self) -> int:
        length = self.facts.number("context_length")
        if not 1 <= length < 2**31:
            self.facts.refuse(f"a damaged file: its context of {length} tokens is impossible")
        return length

    def _epsilon(self) -> float:
        kind = "layer_norm_epsilon" if self.family.is_centred else "layer_norm_rms_epsilon"
        return self.facts.real(f"attention.{kind}")

    def _attention_scale(self) -> float:
        width: float = self.head_size
        if self.layer_count == self.family.layers_of_shared_width:
            width = self.hidden / self.heads
        return self.facts.real("attention.scale", width**-0.5)

    def _cap(self, key: str) -> float:
        return self.facts.real(key) if self.facts.fact(key, 0) else 0.0

    def _refuse_leftovers(self) -> None:
        unused = [
            name
            for name in self.facts.source.tensors
            if name not in self.facts.used and not _NEEDLESS.fullmatch(name)
        ]
        if unused:
            self.facts.refuse(
                f"a variant of “{self.facts.architecture}” with parts that are unknown here "
                f"(“{unused[0]}”), which cannot be imported yet"
            )
